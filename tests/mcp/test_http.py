"""`jackline mcp --http`: loopback only, a token, and no way in for a page in a browser."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from http.client import HTTPConnection
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.place import SECONDS, Place, is_one_line
from tests.mcp.client import call
from tests.mcp.test_stdio import INITIALIZE, TOOLS

TOKEN = "a-token-for-tests"


class Listening(NamedTuple):
    """A server that listens."""

    process: subprocess.Popen[str]
    port: int
    token: str

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def post(self, **headers: str) -> tuple[int, str]:
        """The answer to an `initialize` with these headers."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        known = {"Authorization": f"Bearer {self.token}"}
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("POST", "/mcp", json.dumps(INITIALIZE), {**usual, **known, **given})
        response = connection.getresponse()
        try:
            return response.status, response.read().decode()
        finally:
            connection.close()


Listen = Callable[..., Listening]


def started(place: Place, **environ: str) -> Listening:
    process = place.start("mcp", "--http", "--port", "0", environ=environ)
    assert process.stderr is not None
    found = re.search(r"listening at http://127\.0\.0\.1:(\d+)/mcp$", process.stderr.readline())
    assert found is not None
    token = environ.get("JACKLINE_MCP_TOKEN") or process.stderr.readline().split()[-1]
    return Listening(process, int(found[1]), token)


@pytest.fixture
def listen(place: Place) -> Iterator[Listen]:
    yield partial(started, place)
    place.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """One for all who only knock."""
    place = Place(tmp_path_factory.mktemp("server"))
    place.repository.mkdir()
    yield started(place, JACKLINE_MCP_TOKEN=TOKEN)
    place.close()


def test_the_official_client_with_the_token(listen: Listen) -> None:
    server = listen(JACKLINE_MCP_TOKEN=TOKEN)

    async def conversation() -> None:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http,
            Client(streamable_http_client(server.address, http_client=http)) as client,
        ):
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            made = await call(client, "work_enqueue", kind="review", id="pr-1")
            assert made["new"] is True
            assert (await call(client, "work_get", id="pr-1"))["status"] == "pending"

    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(conversation)


def test_a_fresh_token_is_said_once_and_never_the_same(listen: Listen) -> None:
    first, second = listen(), listen()
    assert len(first.token) == len(second.token) == 48
    assert first.token != second.token
    assert first.post()[0] == 200
    assert first.post(Authorization=f"Bearer {second.token}")[0] == 401


def test_a_given_token_is_not_printed(listen: Listen) -> None:
    server = listen(JACKLINE_MCP_TOKEN=TOKEN)
    assert server.post()[0] == 200
    server.process.send_signal(signal.SIGTERM)
    out, err = server.process.communicate(timeout=SECONDS)
    assert (out, TOKEN in err) == ("", False)


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"bearer {TOKEN}x", TOKEN, "Bearer \xe9"]
)
def test_without_the_token_nothing_is_answered(server: Listening, given: str) -> None:
    status, body = server.post(Authorization=given)
    assert status == 401
    assert "jackline" not in body
    assert "missing or wrong token" in body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:{port}"}, 200),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
    ],
)
def test_a_name_that_was_rebound_to_loopback_does_not_help(
    server: Listening, headers: dict[str, str], status: int
) -> None:
    filled = {name: value.format(port=server.port) for name, value in headers.items()}
    assert server.post(**filled)[0] == status


def test_it_listens_on_loopback_only(server: Listening) -> None:
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    places = {row[1] for row in rows if row[3] == "0A" and int(row[1].partition(":")[2], 16) == server.port}
    assert places == {f"0100007F:{server.port:04X}"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_a_client_is_there(listen: Listen, number: signal.Signals) -> None:
    server = listen(JACKLINE_MCP_TOKEN=TOKEN)
    connection = HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    headers: dict[str, Any] = {"Authorization": f"Bearer {TOKEN}", "Accept": "text/event-stream"}
    connection.request("GET", "/mcp", headers=headers)
    server.process.send_signal(number)
    _, err = server.process.communicate(timeout=SECONDS)
    connection.close()
    assert server.process.returncode != 0
    assert "Traceback" not in err


def test_a_port_that_is_taken_is_said_in_one_line(server: Listening, place: Place) -> None:
    ended = place.type("mcp", "--http", "--port", str(server.port))
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "choose another one with --port" in ended.err
