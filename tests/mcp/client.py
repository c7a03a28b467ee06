"""How the tests talk to `jackline mcp`: with the official client, in a place of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from tests.cli.place import SECONDS, Place

T = TypeVar("T")
ARGUMENTS = ["-P", "-m", "jackline", "mcp"]


@asynccontextmanager
async def connected(place: Place, **environ: str) -> AsyncIterator[Client]:
    """A client of a fresh `jackline mcp`."""
    environment = place.environment(**environ)
    server = StdioServerParameters(command=sys.executable, args=ARGUMENTS, env=environment, cwd=place.repository)
    async with Client(stdio_client(server)) as client:
        yield client


def talk(place: Place, work: Callable[[Client], Awaitable[T]], **environ: str) -> T:
    """Do this with a client; what takes too long is an error."""

    async def conversation() -> T:
        with anyio.fail_after(SECONDS):
            async with connected(place, **environ) as client:
                return await work(client)

    return anyio.run(conversation)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives; it must not fail, and its text must say the same as its structure."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    told: dict[str, Any] = json.loads(text_of(result))
    assert told == result.structured_content
    return told


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """How a tool fails: by one line, which is no traceback."""
    result = await client.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    assert result.is_error, result
    said = text_of(result)
    assert said
    assert "\n" not in said
    assert "Traceback" not in said
    return said


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
