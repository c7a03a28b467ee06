"""The relay that agents start as their MCP server: it answers as the real one does, and starts it only when needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from jackline.features.mcp import relay
from tests.cli.place import SECONDS, Place
from tests.mcp.client import call, refusal
from tests.support.helpers import is_alive, wait_until
from tests.support.slow_cases import keep_some
from tools import mcp_replies

COMMAND = [sys.executable, "-I", "-S", relay.__file__]
ABOUT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Talk:
    """A conversation with a server, one line after the other."""

    def __init__(self, place: Place, command: list[str]) -> None:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = subprocess.Popen(command, env=place.environment(), cwd=place.repository, **pipes)
        self._number = 0

    def ask(self, method: str, params: object = None) -> dict[str, Any]:
        self._number += 1
        more = {} if params is None else {"params": params}
        return self.ask_raw(json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, **more}).encode())

    def ask_raw(self, line: bytes) -> dict[str, Any]:
        self.tell(line)
        assert self.process.stdout is not None
        reply: dict[str, Any] = json.loads(self.process.stdout.readline())
        return reply

    def tell(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    def open(self, version: str = HANDSHAKE_PROTOCOL_VERSIONS[-1]) -> dict[str, Any]:
        reply = self.ask("initialize", {"protocolVersion": version, **ABOUT})
        self.tell(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return reply

    def servers(self) -> list[int]:
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]

    def end(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(SECONDS)
        self.process.stdout.close()
        return code


@pytest.fixture
def talk(place: Place) -> Iterator[Talk]:
    conversation = Talk(place, COMMAND)
    yield conversation
    conversation.end()


def test_its_answers_are_those_of_the_real_server() -> None:
    written = mcp_replies.PAGE.read_text(encoding="utf-8")
    assert written == mcp_replies.render(), "the tools of the MCP server have changed: make mcp-replies"


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
def test_they_are_the_same_in_every_version_of_the_protocol(talk: Talk, version: str) -> None:
    expected = mcp_replies.ask_server(version)
    assert talk.open(version)["result"] == expected.pop("initialize")
    for method, result in expected.items():
        assert talk.ask(method)["result"] == result, method
    assert talk.servers() == []
    assert talk.end() == 0


@pytest.mark.parametrize("version", MODERN_PROTOCOL_VERSIONS)
def test_a_client_without_a_session_gets_the_same_answers_too(talk: Talk, version: str) -> None:
    expected, params = mcp_replies.ask_server(version), mcp_replies.build_params(version)
    for method, result in expected.items():
        assert talk.ask(method, params)["result"] == result, method
    assert talk.servers() == []
    reply = talk.ask("tools/call", {"name": "work_enqueue", "arguments": {"kind": "review", "id": "pr-1"}, **params})
    assert reply["result"]["structuredContent"]["item"]["id"] == "pr-1"
    assert talk.ask("tools/list", params)["result"] == expected["tools/list"]
    assert talk.end() == 0


def test_an_impatient_client_that_opens_twice_is_told_so_by_the_real_server(talk: Talk) -> None:
    version = MODERN_PROTOCOL_VERSIONS[-1]
    assert "result" in talk.ask("server/discover", mcp_replies.build_params(version))
    reply = talk.ask("initialize", {"protocolVersion": HANDSHAKE_PROTOCOL_VERSIONS[-1], **ABOUT})
    assert reply["error"]["data"]["supported"] == list(MODERN_PROTOCOL_VERSIONS)


def test_a_call_starts_the_real_server_and_reaches_it(talk: Talk) -> None:
    talk.open()
    listed = talk.ask("tools/list", {"_meta": {"progressToken": 1}})["result"]
    assert talk.servers() == []
    reply = talk.ask("tools/call", {"name": "work_enqueue", "arguments": {"kind": "review", "id": "pr-1"}})
    assert reply["result"]["structuredContent"]["item"]["id"] == "pr-1"
    (server,) = talk.servers()
    assert talk.ask("tools/list")["result"] == listed
    assert talk.end() == 0
    assert not is_alive(server)


def test_the_official_client_finds_nothing_unusual(place: Place) -> None:
    server = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=place.environment(), cwd=place.repository)

    async def converse() -> None:
        with anyio.fail_after(SECONDS):
            async with Client(stdio_client(server)) as client:
                assert "case_start" in {tool.name for tool in (await client.list_tools()).tools}
                assert (await call(client, "work_enqueue", kind="review", id="pr-1"))["item"]["id"] == "pr-1"
                assert "no argument" in await refusal(client, "work_get", nonsense="x")

    anyio.run(converse)


@pytest.mark.parametrize(
    "line",
    keep_some(
        [
            b"this is not JSON",
            b'["a batch"]',
            b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}',
            b'{"jsonrpc":"2.0","id":7,"method":"no/such"}',
            b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}',
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 7,
                    "method": "initialize",
                    "params": {"protocolVersion": "1999-01-01", **ABOUT},
                }
            ).encode(),
        ]
    ),
)
def test_what_it_does_not_know_the_real_server_answers(place: Place, talk: Talk, line: bytes) -> None:
    """After such a line a ping, because the server does not answer everything."""
    real = Talk(place, [sys.executable, "-P", "-m", "jackline", "mcp"])
    ping = b'{"jsonrpc":"2.0","id":8,"method":"ping"}'
    real.tell(line)
    talk.tell(line)
    answers = []
    for one in (talk, real):
        heard = [one.ask_raw(ping)]
        while heard[-1].get("id") != 8:
            assert one.process.stdout is not None
            heard.append(json.loads(one.process.stdout.readline()))
        answers.append(heard)
        assert one.end() == 0
    assert answers[0] == answers[1]


def test_it_ends_with_its_server(talk: Talk) -> None:
    talk.open()
    assert talk.ask("tools/call", {"name": "work_list", "arguments": {}})["result"]["isError"] is False
    (server,) = talk.servers()
    os.kill(server, signal.SIGKILL)
    assert talk.process.wait(SECONDS) == 128 + signal.SIGKILL


def test_the_server_ends_with_it(talk: Talk) -> None:
    talk.open()
    talk.ask("tools/call", {"name": "work_list", "arguments": {}})
    (server,) = talk.servers()
    talk.process.kill()
    talk.process.wait(SECONDS)
    wait_until(lambda: not is_alive(server))


def test_it_loads_almost_nothing() -> None:
    names = {"__name__": "relay", "__file__": relay.__file__}
    program = f"import sys; exec(open({relay.__file__!r}).read(), {names!r}); print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert not {"threading", "subprocess", "typing", "jackline", "pydantic"} & set(ended.stdout.split())
