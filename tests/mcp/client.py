"""How the tests talk to `jackline mcp`: with the official client, in a place of their own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from mcp.client import Client
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, TextContent, jsonrpc_message_adapter

from tests.cli.place import SECONDS, Place

T = TypeVar("T")
ARGUMENTS = ["-P", "-m", "jackline", "mcp"]


@asynccontextmanager
async def connected(place: Place, **environ: str) -> AsyncIterator[Client]:
    """A client of a new `jackline mcp`."""
    async with Client(_transport(place.start("mcp", stdin=subprocess.PIPE, stderr=None, environ=environ))) as client:
        yield client


@asynccontextmanager
async def _transport(server: subprocess.Popen[str]) -> AsyncIterator[TransportStreams]:
    """What `stdio_client` of the SDK gives, for a process that runs already: it can only start a new Python."""
    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout
    heard, to_read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_write, said = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with heard:
            while line := await anyio.to_thread.run_sync(stdout.readline):
                await heard.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def write() -> None:
        async with said:
            async for one in said:
                stdin.write(one.message.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
                stdin.flush()

    async with anyio.create_task_group() as group, to_read, to_write:
        group.start_soon(read)
        group.start_soon(write)
        try:
            yield to_read, to_write
        finally:
            group.cancel_scope.cancel()
            stdin.close()  # which ends the server, and so the thread that reads from it
            server.stdin = None


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
