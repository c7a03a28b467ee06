"""Each type of channel against the real thing on this machine: servers on loopback, Apprise, processes, a terminal."""

from __future__ import annotations

import gzip
import hmac
import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest

from jackline.errors import ChannelDown, ConfigError, MessageNotNeeded, MessageRefused
from jackline.features.notify.channel import Channel, ChannelMessage, MessageAction
from jackline.features.notify.channel_settings import parse_channel
from jackline.features.notify.http_request import post
from jackline.features.notify.senders import SendContext, send_message
from tests.support.ntfy_server import NtfyServer
from tests.support.raw_server import serve_bytes

MESSAGE = ChannelMessage(
    id="notice-1",
    kind="run.failed",
    title="claude/nightly: failed ✗",
    body="it went wrong\nagent claude",
    created_at=1_700_000_000_000,
    subject="run:run-1",
    priority="high",
    tags=("x", "nightly"),
    labels=("nightly", "claude"),
    agent="claude",
    task="nightly",
    run_id="run-1",
    folder="/home/ada/runs/run-1",
)


@pytest.fixture
def context(tmp_path: Path) -> SendContext:
    environ = {"PATH": os.environ["PATH"], "SECRET": "a long secret"}
    return SendContext(environ=environ, folder=str(tmp_path), timeout_s=20)


def ntfy(server: NtfyServer, **more: Any) -> Channel:
    return parse_channel("phone", {"type": "ntfy", "url": server.url + "/", "topic": "watch", **more})


def test_ntfy_gets_title_tags_priority_and_buttons(context: SendContext) -> None:
    action = MessageAction(label="Approve", url="https://host/reply", body="CODE allow", headers={"A": "b"})
    with NtfyServer() as server:
        send_message(ntfy(server), MESSAGE._replace(actions=(action,)), context)
        (message,) = server.list_messages("watch")
        (request,) = server.requests
    assert (message["title"], message["message"]) == (MESSAGE.title, MESSAGE.body)
    assert (message["priority"], message["tags"]) == (4, ["x", "nightly"])
    (button,) = message["actions"]
    assert (button["action"], button["label"], button["body"]) == ("http", "Approve", "CODE allow")
    assert json.loads(request.body)["sequence_id"] == "notice-1"


def test_ntfy_cuts_long_texts_and_makes_ids_that_it_takes(context: SendContext) -> None:
    long = MESSAGE._replace(id="work:a b", title="ä" * 500, body='"\n' * 4000)
    with NtfyServer() as server:
        send_message(ntfy(server), long, context)
        send_message(ntfy(server), long, context)
        first, second = server.list_messages("watch")
        ids = {json.loads(one.body)["sequence_id"] for one in server.requests}
    assert "attachment" not in first
    assert first["message"].endswith("…")
    assert len(ids) == 1
    assert ids.pop().isalnum()
    assert second["message"] == first["message"]


def test_ntfy_leaves_out_tags_of_which_there_are_too_many(context: SendContext) -> None:
    labels = tuple(f"label-{number}-{'x' * 50}" for number in range(200))
    with NtfyServer() as server:
        send_message(ntfy(server), MESSAGE._replace(tags=("x", *labels)), context)
        (message,) = server.list_messages("watch")
    assert message["message"] == MESSAGE.body
    assert message["tags"] == ["x", *labels[: len(message["tags"]) - 1]]


def test_a_message_that_cannot_be_cut_enough_is_refused(context: SendContext) -> None:
    actions = tuple(MessageAction(label=label, url="https://host/reply", body="x" * 4000) for label in ("Yes", "No"))
    with NtfyServer() as server, pytest.raises(MessageRefused, match="413"):
        send_message(ntfy(server), MESSAGE._replace(actions=actions), context)


def test_ntfy_sends_a_token_or_a_password_and_a_refused_one_is_the_channels_fault(context: SendContext) -> None:
    with NtfyServer() as server:
        server.protect("a long secret", "watch")
        send_message(ntfy(server, token={"env": "SECRET"}), MESSAGE, context)
        with pytest.raises(ChannelDown, match="403"):
            send_message(ntfy(server), MESSAGE, context)
        with pytest.raises(ChannelDown, match="401"):
            send_message(ntfy(server, user="ada", password={"env": "SECRET"}), MESSAGE, context)
        assert server.requests[-1].headers["authorization"] == "Basic YWRhOmEgbG9uZyBzZWNyZXQ="
        with pytest.raises(ConfigError, match="OTHER is not set"):
            send_message(ntfy(server, token={"env": "OTHER"}), MESSAGE, context)


def test_a_server_may_fail_or_refuse_one_message(context: SendContext) -> None:
    with NtfyServer() as server:
        server.fail(500, 429, 413)
        for expected in (ChannelDown, ChannelDown, MessageRefused):
            with pytest.raises(expected):
                send_message(ntfy(server), MESSAGE, context)
        never = server.hang()
        with pytest.raises(ChannelDown, match="did not answer"):
            send_message(ntfy(server), MESSAGE, context._replace(timeout_s=0.05))
        never.set()
        server.die()
        with pytest.raises(ChannelDown, match="refused"):
            send_message(ntfy(server), MESSAGE, context)


def test_a_webhook_is_signed(context: SendContext) -> None:
    with NtfyServer() as server:
        table = {"type": "webhook", "url": f"{server.url}/hook", "secret": {"env": "SECRET"}}
        send_message(parse_channel("hook", table), MESSAGE, context)
        (request,) = server.requests
    signed = request.headers["x-jackline-timestamp"].encode() + b"." + request.body
    digest = hmac.new(b"a long secret", signed, "sha256").hexdigest()
    assert request.headers["x-jackline-signature"] == f"sha256={digest}"
    assert request.headers["x-jackline-id"] == "notice-1"
    payload = json.loads(request.body)
    assert (payload["kind"], payload["run"], payload["task"]) == ("run.failed", "run-1", "nightly")
    assert payload["created_at"] == "2023-11-14T22:13:20.000Z"


def test_apprise_sends_to_any_of_its_urls_and_never_shows_one(context: SendContext) -> None:
    with NtfyServer() as server:
        channel = parse_channel("any", {"type": "apprise", "url": {"env": "URL"}})
        url = f"json://ada:hunter2@127.0.0.1:{server.port}/watch"
        context = context._replace(environ={"URL": url})
        send_message(channel, MESSAGE, context)
        (request,) = server.requests
        payload = json.loads(request.body)
        assert (payload["title"], payload["message"], payload["type"]) == (MESSAGE.title, MESSAGE.body, "warning")
        server.die()
        with pytest.raises(ChannelDown) as caught:
            send_message(channel, MESSAGE, context)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(ConfigError, match="Apprise does not know") as unknown:
        send_message(channel, MESSAGE, context._replace(environ={"URL": "nonsense://hunter2"}))
    assert "hunter2" not in str(unknown.value)


def send_by_apprise(address: str, message: ChannelMessage, context: SendContext) -> None:
    channel = parse_channel("any", {"type": "apprise", "url": {"env": "URL"}})
    send_message(channel, message, context._replace(environ={"URL": address.replace("http", "json", 1)}))


def test_a_message_without_a_text_is_sent_by_apprise(context: SendContext) -> None:
    with NtfyServer() as server:
        send_by_apprise(f"{server.url}/watch", MESSAGE._replace(body=""), context)
        (request,) = server.requests
    assert json.loads(request.body)["message"] == MESSAGE.title


def test_a_service_that_never_ends_its_answer_to_apprise_is_given_up(context: SendContext) -> None:
    drip = [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *([b"x"] * 1000)]
    with serve_bytes(drip, 0.2) as (address, is_left):
        with pytest.raises(ChannelDown, match="no answer within 3 s"):
            send_by_apprise(address, MESSAGE, context._replace(timeout_s=3))
        assert is_left.wait(20)


def test_apprise_follows_no_redirect(context: SendContext) -> None:
    with NtfyServer() as other:
        answer = f"HTTP/1.1 307 Moved\r\nLocation: {other.url}/watch\r\nContent-Length: 0\r\n\r\n".encode()
        with serve_bytes([answer], 0) as (address, _), pytest.raises(ChannelDown, match="Apprise"):
            send_by_apprise(address, MESSAGE, context)
        assert other.requests == []


@pytest.mark.full
def test_an_answer_to_apprise_that_unpacks_to_gigabytes_is_an_error(context: SendContext) -> None:
    packed = gzip.compress(bytes(64 << 20), 9) * 32  # 2 GB in 2 MB
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with serve_bytes([head, packed], 0) as (address, _), pytest.raises(ChannelDown, match="Apprise"):
        send_by_apprise(address, MESSAGE, context)


def test_a_command_gets_the_message_on_stdin(context: SendContext, tmp_path: Path) -> None:
    program = (
        "import json, os, sys; given = json.load(sys.stdin); "
        "open('given.json', 'w').write(json.dumps([given, os.environ['JACKLINE_NOTICE_KIND'], sys.argv[1:]]))"
    )
    words = [sys.executable, "-c", program, "$(touch no)"]
    send_message(parse_channel("say", {"type": "command", "command": words}), MESSAGE, context)
    given, kind, arguments = json.loads((tmp_path / "given.json").read_text())
    assert (given["title"], kind, arguments) == (MESSAGE.title, "run.failed", ["$(touch no)"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sh", "-c", "echo no line >&2; exit 3"], "ended with 3: no line"),
        (["/no/such/program"], "cannot start /no/such/program"),
        (["sleep", "1000"], "did not end"),
    ],
)
def test_a_command_that_fails_has_delivered_nothing(context: SendContext, words: list[str], expected: str) -> None:
    channel = parse_channel("say", {"type": "command", "command": words})
    with pytest.raises(ChannelDown, match=expected):
        send_message(channel, MESSAGE, context._replace(timeout_s=1.0 if words[0] == "sleep" else 20))


def test_the_bell_rings_at_a_terminal_only(context: SendContext) -> None:
    channel = parse_channel("bell", {})
    ours, theirs = pty.openpty()
    try:
        send_message(channel, MESSAGE, context._replace(terminal=os.ttyname(theirs)))
        assert os.read(ours, 10) == b"\a"
    finally:
        os.close(ours)
        os.close(theirs)
    with pytest.raises(MessageNotNeeded):
        send_message(channel, MESSAGE, context)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nab"], "answered 500 No"),
        ([b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], "answered 500 No"),
        ([b"H"] * 100, "did not answer within"),
        ([b"HTTP/1.1 100 Continue\r\n\r\n"] * 100, "did not answer within"),
        ([b"HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"], "answered 302"),
    ],
)
def test_a_server_that_stops_in_the_middle_or_never_ends_is_left_in_time(parts: list[bytes], expected: str) -> None:
    timeout_s = 2.0 if "answered" in expected else 0.5  # the status must come in time, also on a busy machine
    with serve_bytes(parts, pause_s=0.1) as (url, is_left):
        with pytest.raises(ChannelDown, match=expected):
            post(url, b"x", {}, timeout_s)
        assert is_left.wait(5)


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://127.0.0.1:1/", {"Authorization": "Bearer hunter2\nX: y"}),
        ("http://127.0.0.1:1/", {"Authorization": "Bearer hunter2€"}),
        ("http://127.0.0.1:1/hunter2 x", {}),
        ("http://hunter2..x/", {}),
        ("http://[hunter2", {}),
    ],
)
def test_a_request_that_cannot_be_made_repeats_no_secret(url: str, headers: dict[str, str]) -> None:
    with pytest.raises(ChannelDown, match="cannot be made") as caught:
        post(url, b"x", headers, 1.0)
    assert "hunter2" not in str(caught.value)
