"""OpenAI's Chat Completions as the fake model speaks it: what clients put together from it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.fake_model.wire import FakeAnswer, OfferedTool, ToolCall
from jackline.fake_model.wires.openai_chat import WIRE

CALLS = (ToolCall("c1", "bash", {"command": "echo hé"}), ToolCall("c2", "write", {"path": "a", "content": "x" * 9}))


def answer(**changes: Any) -> FakeAnswer:
    return FakeAnswer(**{"id": "a1", "model": "m", **changes})


def chunks(one: FakeAnswer) -> list[dict[str, Any]]:
    *events, last = b"".join(WIRE.stream_response(one)).decode().removesuffix("\n\n").split("\n\n")
    assert last == "data: [DONE]"
    return [json.loads(event.removeprefix("data: ")) for event in events]


def deltas(one: FakeAnswer, word: str) -> list[Any]:
    found = [chunk["choices"][0]["delta"] for chunk in chunks(one) if chunk["choices"]]
    return [delta[word] for delta in found if word in delta]


def test_it_owns_completions_wherever_a_client_puts_them() -> None:
    assert WIRE.handles("POST", "/v1/chat/completions")
    assert WIRE.handles("POST", "/chat/completions")
    assert not WIRE.handles("GET", "/v1/chat/completions")
    assert not WIRE.handles("POST", "/v1/responses")


def test_the_page_of_models_names_one() -> None:
    page = WIRE.build_page("GET", "/v1/models")
    assert page is not None
    assert [model["id"] for model in page["data"]] == ["fake-model"]
    assert WIRE.build_page("POST", "/v1/models") is None
    assert WIRE.build_page("GET", "/v1beta/models") is None


def test_a_request_is_read_with_its_texts_tools_and_results() -> None:
    asked = WIRE.parse_request("/v1/chat/completions", {
        "model": "m", "stream": True,
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ],
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
    })  # fmt: skip
    assert asked.text == "be good\none\nout"
    assert (asked.model, asked.stream, asked.results) == ("m", True, 1)
    assert asked.tools == (OfferedTool("bash", {"type": "object"}),)


def test_a_request_with_nothing_in_it_is_read_too() -> None:
    asked = WIRE.parse_request("/v1/chat/completions", {})
    assert (asked.text, asked.tools, asked.stream, asked.results) == ("", (), False, 0)


@given(st.text(min_size=2, max_size=300), st.text(max_size=300))
def test_words_and_thinking_come_in_pieces_that_join_to_the_whole(say: str, thinking: str) -> None:
    one = answer(say=say, thinking=thinking)
    pieces = [piece for piece in deltas(one, "content") if piece]
    assert len(pieces) >= 2
    assert "".join(pieces) == say
    assert "".join(deltas(one, "reasoning_content")) == thinking


def test_arguments_of_calls_come_in_pieces_by_their_index() -> None:
    streamed = [call for calls in deltas(answer(calls=CALLS), "tool_calls") for call in calls]
    for index, call in enumerate(CALLS):
        mine = [one for one in streamed if one["index"] == index]
        assert (mine[0]["id"], mine[0]["function"]["name"]) == (call.id, call.tool)
        assert all("id" not in one for one in mine[1:])
        assert len(mine) > 2
        assert json.loads("".join(one["function"]["arguments"] for one in mine)) == call.input


@pytest.mark.parametrize(("calls", "reason"), [((), "stop"), (CALLS, "tool_calls")])
def test_the_reason_comes_once_and_the_usage_after_it(calls: tuple[ToolCall, ...], reason: str) -> None:
    told = chunks(answer(say="words", calls=calls, tokens_input=30, tokens_output=5, tokens_cached=20))
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in told if chunk["choices"]]
    assert [one for one in reasons if one] == [reason]
    assert told[-1]["choices"] == []
    assert told[-1]["usage"]["prompt_tokens"] == 30
    assert told[-1]["usage"]["total_tokens"] == 35
    assert told[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 20}


def test_the_whole_answer_says_the_same_as_the_stream() -> None:
    whole = WIRE.build_response(answer(say="words", thinking="hm", calls=CALLS))
    (choice,) = whole["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert (choice["message"]["content"], choice["message"]["reasoning_content"]) == ("words", "hm")
    assert [json.loads(call["function"]["arguments"]) for call in choice["message"]["tool_calls"]] == [
        call.input for call in CALLS
    ]
    assert whole["usage"]["total_tokens"] == 18


@pytest.mark.parametrize(
    ("status", "kind", "type_", "code"),
    [
        (401, "", "authentication_error", "invalid_api_key"),
        (404, "", "invalid_request_error", "model_not_found"),
        (429, "", "rate_limit_error", "rate_limit_exceeded"),
        (429, "insufficient_quota", "insufficient_quota", "insufficient_quota"),
        (400, "context_length_exceeded", "invalid_request_error", "context_length_exceeded"),
        (503, "", "server_error", "server_error"),
    ],
)
def test_errors_have_the_shape_that_clients_read(status: int, kind: str, type_: str, code: str) -> None:
    error = WIRE.build_error(status, "no", kind)["error"]
    assert error == {"message": "no", "type": type_, "param": None, "code": code}
