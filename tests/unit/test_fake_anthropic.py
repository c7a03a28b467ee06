"""Anthropic's Messages as the fake model reads and writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.fake_model.wire import FakeAnswer, OfferedTool, ToolCall
from jackline.fake_model.wires.anthropic_messages import WIRE

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
CALLS = (ToolCall("call_1", "Bash", {"command": "ls"}), ToolCall("call_2", "Read", {}))
FULL = FakeAnswer("1", "m", say="two words", thinking="a thought", calls=CALLS, tokens_input=9, tokens_cached=4)


def events(pieces: Iterator[bytes]) -> list[dict[str, Any]]:
    """Each piece is exactly one event, whose name is that of its data."""
    found = []
    for piece in pieces:
        name, data, *rest = piece.decode().split("\n")
        assert rest == ["", ""]
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def put_together(heard: list[dict[str, Any]]) -> dict[str, Any]:
    """The message as a client of the stream builds it."""
    message = heard[0]["message"]
    partial: dict[int, str] = {}
    for event in heard[1:]:
        if event["type"] == "content_block_start":
            assert event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            if delta["type"] == "input_json_delta":
                partial[event["index"]] = partial.get(event["index"], "") + delta["partial_json"]
                continue
            key = delta["type"].removesuffix("_delta")
            block[key] += delta[key]
        elif event["type"] == "message_delta":
            message |= {**event["delta"], "usage": event["usage"]}
    for index, text in partial.items():
        message["content"][index]["input"] = json.loads(text)
    return dict(message)


def test_a_conversation_is_read() -> None:
    body = {
        "model": "m",
        "stream": True,
        "system": [{"type": "text", "text": "be good"}],
        "tools": [{"name": "Bash", "input_schema": SCHEMA}, {"type": "web_search_20250305", "name": "web_search"}],
        "messages": [
            {"role": "user", "content": "first"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.txt"}]},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "b.txt"},
                    {"type": "tool_result", "tool_use_id": "t3"},
                    {"type": "image", "source": {}},
                    {"type": "text", "text": "last"},
                ],
            },
        ],
    }
    asked = WIRE.parse_request("/v1/messages", body)
    assert asked.text.split("\n") == ["be good", "first", "hm", 'Bash {"command": "ls"}', "a.txt", "b.txt", "last"]
    assert (asked.wire, asked.model, asked.stream, asked.results) == ("anthropic", "m", True, 3)
    assert asked.tools == (OfferedTool("Bash", SCHEMA), OfferedTool("web_search", {}))


def test_a_small_request_is_read() -> None:
    asked = WIRE.parse_request("/v1/messages", {"model": "m", "messages": [{"role": "user", "content": "x"}]})
    assert (asked.text, asked.stream, asked.tools, asked.results) == ("x", False, (), 0)


def test_a_whole_answer() -> None:
    message = WIRE.build_response(FULL)
    assert message["content"] == [
        {"type": "thinking", "thinking": "a thought", "signature": message["content"][0]["signature"]},
        {"type": "text", "text": "two words"},
        {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
        {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}},
    ]
    assert (message["id"], message["role"], message["stop_reason"]) == ("msg_1", "assistant", "tool_use")
    assert WIRE.build_response(FakeAnswer("1", "m", say="x"))["stop_reason"] == "end_turn"


def test_cached_tokens_are_counted_apart() -> None:
    usage = WIRE.build_response(FULL)["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (5, 4, 7)


def test_the_events_of_a_stream_in_their_order() -> None:
    names = [event["type"] for event in events(WIRE.stream_response(FakeAnswer("1", "m", say="two words")))]
    deltas = ["content_block_delta"] * 2
    block = ["content_block_start", *deltas, "content_block_stop"]
    assert names == ["message_start", *block, "message_delta", "message_stop"]


@given(st.text(), st.text(), st.sampled_from([(), CALLS[:1], CALLS]))
def test_a_stream_put_together_is_the_whole_answer(say: str, thinking: str, calls: tuple[ToolCall, ...]) -> None:
    answer = FULL._replace(say=say, thinking=thinking, calls=calls)
    assert put_together(events(WIRE.stream_response(answer))) == WIRE.build_response(answer)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_an_error_has_the_usual_kind_of_its_status(status: int, kind: str) -> None:
    assert WIRE.build_error(status, "words", "") == {"type": "error", "error": {"type": kind, "message": "words"}}


def test_an_error_may_have_another_kind() -> None:
    assert WIRE.build_error(400, "words", "billing_error")["error"]["type"] == "billing_error"


def test_which_requests_are_its_own() -> None:
    assert WIRE.handles("POST", "/v1/messages")
    assert not WIRE.handles("GET", "/v1/messages")
    assert not WIRE.handles("POST", "/v1/messages/count_tokens")
    assert WIRE.build_page("POST", "/v1/messages/count_tokens") == {"input_tokens": 11}
    assert WIRE.build_page("POST", "/v1/messages") is None
