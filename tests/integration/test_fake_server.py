"""The fake model over real sockets: what is asked, what is answered, how it breaks off, how it ends."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from jackline.fake_model.wires.anthropic_messages import WIRE

SECONDS = 30  # for what should take a fraction of one
TOOLS = [{"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}, "required": ["command"]}}]
Json = dict[str, Any]


def request(text: str = "hi", *, stream: bool = False, tools: list[Json] = TOOLS) -> Json:
    return {"model": "m", "stream": stream, "tools": tools, "messages": [{"role": "user", "content": text}]}


@contextmanager
def playing(*replies: Reply, log: Path | None = None) -> Iterator[FakeModel]:
    with FakeModel(Script(replies), None if log is None else str(log), wires=(WIRE,)) as model:
        yield model


@contextmanager
def connected(model: FakeModel) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(model.address).netloc, timeout=SECONDS)
    try:
        yield connection
    finally:
        connection.close()


def post(connection: http.client.HTTPConnection, body: Json, **headers: str) -> http.client.HTTPResponse:
    connection.request("POST", "/v1/messages?beta=true", json.dumps(body), headers)
    return connection.getresponse()


def ask(model: FakeModel, body: Json) -> tuple[int, Json]:
    with connected(model) as connection:
        response = post(connection, body)
        return response.status, json.loads(response.read())


def said(message: Json) -> str:
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")


# --- answers ---------------------------------------------------------------------------------------------------


def test_an_answer_comes_whole() -> None:
    with playing(Reply(say="hello")) as model:
        status, message = ask(model, request())
    assert (status, said(message)) == (200, "hello")


def test_one_connection_serves_many_requests() -> None:
    with playing(Reply(say="one"), Reply(say="two")) as model, connected(model) as connection:
        assert b"message_stop" in post(connection, request(stream=True)).read()
        first = connection.sock
        assert b"two" in post(connection, request()).read()
        assert connection.sock is first


def test_a_stream_leaves_piece_by_piece() -> None:
    """The half before the hang arrives while the other half is still held back."""
    with playing(Reply(say="hello world", hang="middle")) as model, connected(model) as connection:
        response = post(connection, request(stream=True))
        assert response.headers["Content-Type"].startswith("text/event-stream")
        assert response.fp.readline()  # the size of the first chunk: nothing was waited for
        assert response.fp.readline() == b"event: message_start\n"
        assert model.hanging.wait(SECONDS)


def test_a_tool_that_the_agent_offers_is_called() -> None:
    with playing(Reply(shell="ls")) as model:
        _, message = ask(model, request())
    assert message["content"][0]["name"] == "Bash"
    assert message["content"][0]["input"] == {"command": "ls"}


def test_a_tool_that_nobody_offers_is_an_error_that_says_so() -> None:
    with playing(Reply(shell="ls")) as model:
        status, error = ask(model, request(tools=[{"name": "Read"}]))
    assert status == 500
    assert "offers none: Read" in error["error"]["message"]


def test_ten_megabytes_arrive_whole() -> None:
    with playing(Reply(say="start", pad=10_000_000)) as model, connected(model) as connection:
        lines = post(connection, request(stream=True)).read().splitlines()
    deltas = [json.loads(line.removeprefix(b"data: "))["delta"] for line in lines if b'"text_delta"' in line]
    assert sum(len(delta["text"]) for delta in deltas) == 10_000_000


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
def test_an_error_has_its_status_words_and_headers(status: int) -> None:
    reply = Reply(status=status, message="no, thank you", headers={"retry-after": "7"})
    with playing(reply) as model, connected(model) as connection:
        response = post(connection, request(stream=True))
        error = json.loads(response.read())
    assert (response.status, response.headers["retry-after"]) == (status, "7")
    assert error == WIRE.build_error(status, "no, thank you", "")


# --- breaking off ----------------------------------------------------------------------------------------------


def test_dropped_before_the_answer_is_a_reset() -> None:
    with playing(Reply(drop="before"), Reply(say="back")) as model:
        with connected(model) as connection, pytest.raises(ConnectionResetError) as raised:
            post(connection, request())
        assert raised.type is ConnectionResetError  # a plain end would be a RemoteDisconnected, which is one too
        assert said(ask(model, request())[1]) == "back"


@pytest.mark.parametrize("stream", [True, False])
def test_dropped_in_the_middle_something_has_come(stream: bool) -> None:
    with playing(Reply(say="hello world", drop="middle")) as model, connected(model) as connection:
        response = post(connection, request(stream=stream))
        with pytest.raises(http.client.IncompleteRead) as raised:
            response.read()
    assert b"message" in raised.value.partial
    assert b"end_turn" not in raised.value.partial


@pytest.mark.parametrize("reply", [Reply(hang="before"), Reply(say="hello world", hang="middle")])
def test_closing_ends_a_hang_and_leaves_no_thread(reply: Reply) -> None:
    before = set(threading.enumerate())
    with playing(reply) as model, connected(model) as connection:
        connection.request("POST", "/v1/messages", json.dumps(request(stream=True)))
        assert model.hanging.wait(SECONDS)
        model.close()
        assert set(threading.enumerate()) <= before
        with pytest.raises((http.client.RemoteDisconnected, http.client.IncompleteRead)):
            connection.getresponse().read()


def test_closing_ends_a_client_that_does_not_read_and_one_that_does_not_write() -> None:
    before = set(threading.enumerate())
    with playing(Reply(pad=50_000_000)) as model, connected(model) as greedy, connected(model) as silent:
        silent.connect()
        greedy.request("POST", "/v1/messages", json.dumps(request(stream=True)))
        model.wait(1)
        model.close()
        assert set(threading.enumerate()) <= before


def test_a_client_that_goes_away_in_the_middle_is_not_talked_about(capfd: pytest.CaptureFixture[str]) -> None:
    with playing(Reply(pad=50_000_000), Reply(hang="before"), Reply(say="still here")) as model:
        for _ in range(2):
            with connected(model) as connection:
                connection.request("POST", "/v1/messages", json.dumps(request(stream=True)))
                model.wait(1)
        assert model.hanging.wait(SECONDS)
        assert said(ask(model, request())[1]) == "still here"
    assert capfd.readouterr() == ("", "")


def test_closing_twice_or_unused_does_no_harm() -> None:
    unused = FakeModel(Script(()), wires=(WIRE,))
    unused.close()
    unused.close()
    with pytest.raises(ConnectionRefusedError), connected(unused) as connection:
        connection.connect()


# --- what is asked ---------------------------------------------------------------------------------------------


def test_every_request_is_remembered_and_those_with_tools_are_waited_for() -> None:
    with playing(Reply(say="a")) as model:
        assert said(ask(model, request("a title?", tools=[]))[1]) == "ok"
        with pytest.raises(TimeoutError, match="0 of 1"):
            model.wait(1, timeout=0)
        ask(model, request("the work"))
        assert [asked.text for asked in model.wait(1)] == ["the work"]
        assert [asked.text for asked in model.asked] == ["a title?", "the work"]


def test_who_waits_is_woken_by_the_request() -> None:
    with playing() as model:
        asking = threading.Thread(target=ask, args=(model, request()))
        asking.start()
        assert len(model.wait(1, SECONDS)) == 1
        asking.join()


def test_the_log_has_a_line_per_request_and_no_key(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with playing(log=log) as model, connected(model) as connection:
        post(connection, request("first"), Authorization="Bearer very-secret").read()
        post(connection, request("second", stream=True, tools=[])).read()
    assert "very-secret" not in log.read_text()
    common = {"wire": "anthropic", "model": "m", "results": 0}
    assert [json.loads(line) for line in log.read_text().splitlines()] == [
        {"number": 1, "stream": False, "text": "first", "tools": ["Bash"], **common},
        {"number": 2, "stream": True, "text": "second", "tools": [], **common},
    ]


def test_a_log_that_cannot_be_written_is_noticed_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FakeModel(Script(()), str(tmp_path / "missing" / "log"), wires=(WIRE,))


# --- HTTP ------------------------------------------------------------------------------------------------------


def test_small_questions() -> None:
    with playing() as model, connected(model) as connection:
        connection.request("HEAD", "/")
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
        connection.request("POST", "/v1/messages/count_tokens", "{}")
        assert json.loads(connection.getresponse().read()) == {"input_tokens": 11}
        connection.request("GET", "/elsewhere?x=1")
        response = connection.getresponse()
        assert response.status == 404
        assert "/elsewhere" in json.loads(response.read())["error"]["message"]
    assert model.asked == []


def test_a_body_may_come_in_chunks_or_packed() -> None:
    body = json.dumps(request("packed")).encode()
    with playing() as model, connected(model) as connection:
        connection.request("POST", "/v1/messages", iter([body[:10], body[10:]]), encode_chunked=True)
        assert connection.getresponse().read()
        connection.request("POST", "/v1/messages", gzip.compress(body), {"Content-Encoding": "gzip"})
        assert connection.getresponse().read()
    assert [asked.text for asked in model.asked] == ["packed", "packed"]


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"not JSON", {}),
        (b"[]", {}),
        (b'{"model": "m"}', {}),
        (b'{"model": "m", "messages": 1}', {}),
        (b"not packed", {"Content-Encoding": "gzip"}),
        (gzip.compress(b"{}", mtime=0)[:-4], {"Content-Encoding": "gzip"}),
        (b"{}", {"Content-Encoding": "zstd"}),
        (b"zz\r\n", {"Transfer-Encoding": "chunked"}),
        (b"", {"Content-Length": "many"}),
    ],
)
def test_what_cannot_be_read_is_refused(body: bytes, headers: dict[str, str]) -> None:
    with playing() as model, connected(model) as connection:
        connection.request("POST", "/v1/messages", body, headers)
        response = connection.getresponse()
        assert response.status == 400
        assert "cannot be read" in json.loads(response.read())["error"]["message"]
    assert model.asked == []


def test_only_loopback_is_listened_on() -> None:
    with playing() as model:
        place = urlsplit(model.address)
        assert place.hostname == "127.0.0.1"
        with socket.socket() as other:
            # Another address of the same interface: a server on all addresses would answer there too.
            assert other.connect_ex(("127.0.0.2", place.port)) != 0
