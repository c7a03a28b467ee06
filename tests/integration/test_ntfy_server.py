"""The stand-in for ntfy answers as the real server does, so that tests with it mean something."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any

import pytest

from tests.support.ntfy_server import NtfyServer


@pytest.fixture
def ntfy() -> Iterator[NtfyServer]:
    with NtfyServer() as server:
        yield server


def ask(server: NtfyServer, path: str, body: bytes | None = None, **headers: str) -> HTTPResponse:
    request = urllib.request.Request(f"{server.url}/{path}", data=body, headers=headers)  # noqa: S310 - on loopback
    return urllib.request.urlopen(request, timeout=30)  # type: ignore[no-any-return]  # noqa: S310 - on loopback


def read(server: NtfyServer, path: str, **headers: str) -> list[dict[str, Any]]:
    with ask(server, path, None, **headers) as answer:
        return [json.loads(line) for line in answer]


def status_of(server: NtfyServer, path: str, body: bytes | None = None, **headers: str) -> int:
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(server, path, body, **headers)
    with caught.value as error:
        return error.code


def test_a_message_published_with_headers_or_as_json_is_read_back(ntfy: NtfyServer) -> None:
    actions = [{"action": "http", "label": "deny", "url": f"{ntfy.url}/answers", "body": "no", "clear": True}]
    ask(ntfy, "news", "é".encode(), Title="=?utf-8?b?w6k=?=", Tags="a,b", Priority="high").close()
    values = {"topic": "news", "message": "two", "title": "é", "tags": ["c"], "priority": 5, "actions": actions}
    ask(ntfy, "", json.dumps(values).encode()).close()
    first, second = read(ntfy, "news/json?poll=1")
    assert [first[name] for name in ("message", "title", "tags", "priority")] == ["é", "é", ["a", "b"], 4]
    assert [second[name] for name in ("message", "title", "tags", "priority")] == ["two", "é", ["c"], 5]
    ntfy.press(second, "deny")
    assert [one["message"] for one in ntfy.list_messages("answers")] == ["no"]


def test_reading_since_an_id_a_time_and_an_unknown_id(ntfy: NtfyServer) -> None:
    old = ntfy.publish("news", "old", time=1000)
    ntfy.publish("news", "new", time=2000)

    def texts(since: str) -> list[str]:
        return [one["message"] for one in read(ntfy, f"news/json?poll=1&since={since}")]

    assert texts(old["id"]) == ["new"]
    assert texts("2000") == ["new"]
    assert texts("0123456789ab") == texts("all") == ["old", "new"]
    assert status_of(ntfy, "news/json?poll=1&since=soon") == 400


def test_a_stream_sends_the_cached_messages_and_then_the_new_ones_until_it_is_cut(ntfy: NtfyServer) -> None:
    ntfy.publish("news", "one")
    with ask(ntfy, "news/json?since=all") as stream:
        lines = [json.loads(stream.readline()) for _ in range(2)]
        ntfy.publish("news", "two")
        ntfy.send_keepalives()
        lines += [json.loads(stream.readline()) for _ in range(2)]
        assert [one["event"] for one in lines] == ["open", "message", "message", "keepalive"]
        ntfy.drop_streams()
        with pytest.raises(HTTPException):
            stream.read()
    ntfy.wait_for_streams("news", 0)
    ntfy.cut_stream(10)
    with ask(ntfy, "news/json?since=all") as stream:
        stream.readline()
        with pytest.raises(HTTPException):
            stream.read()


def test_a_client_that_leaves_is_noticed(ntfy: NtfyServer) -> None:
    stream = ask(ntfy, "news/json")
    ntfy.wait_for_streams("news", 1)
    stream.close()
    ntfy.wait_for_streams("news", 0)


def test_tokens_limits_and_failures(ntfy: NtfyServer) -> None:
    assert status_of(ntfy, "", b'{"topic": "news", "message": "' + b"x" * 8192 + b'"}') == 413
    ask(ntfy, "news", b"x" * 4097).close()
    assert "attachment" in ntfy.list_messages("news")[0]
    ntfy.fail(500)
    assert status_of(ntfy, "news", b"lost") == 500
    ntfy.protect("tk_right", "news")
    assert status_of(ntfy, "news", b"no token") == 403
    assert status_of(ntfy, "news", b"wrong", Authorization="Bearer tk_wrong") == 401
    assert status_of(ntfy, "other/json?poll=1", Authorization="Bearer tk_right") == 403
    assert len(read(ntfy, "news/json?poll=1", Authorization="Bearer tk_right")) == 1


def test_it_dies_and_comes_back_with_its_cache(ntfy: NtfyServer) -> None:
    ntfy.publish("news", "kept")
    ntfy.die()
    with pytest.raises(urllib.error.URLError):
        ask(ntfy, "news/json?poll=1")
    ntfy.start()
    assert [one["message"] for one in read(ntfy, "news/json?poll=1")] == ["kept"]


def test_a_request_hangs_until_it_is_let_go(ntfy: NtfyServer) -> None:
    let_go = ntfy.hang()
    with pytest.raises(TimeoutError):
        urllib.request.urlopen(f"{ntfy.url}/news/json?poll=1", timeout=0.05)  # noqa: S310 - on loopback
    let_go.set()
    ntfy.wait_for_requests(1)
