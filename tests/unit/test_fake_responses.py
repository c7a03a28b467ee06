"""OpenAI's Responses protocol of the fake model: what it reads of a request, and what it answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackline.fake_model.wire import FakeAnswer, OfferedTool, ToolCall
from jackline.fake_model.wires.openai_responses import WIRE

ANSWER = FakeAnswer("1a", "some-model", say="some words", tokens_input=30, tokens_output=5, tokens_cached=20)
CUSTOM = {"type": "object", "properties": {"custom": {"type": "string"}}, "required": ["custom"]}


def events(answer: FakeAnswer) -> list[dict[str, Any]]:
    """The stream as a client reads it."""
    found = []
    for block in b"".join(WIRE.stream_response(answer)).decode().split("\n\n")[:-1]:
        kind, data = block.split("\n")
        fields = json.loads(data.removeprefix("data: "))
        assert kind == f"event: {fields['type']}"
        found.append(fields)
    return found


def deltas(answer: FakeAnswer, kind: str) -> str:
    return "".join(event["delta"] for event in events(answer) if event["type"] == kind)


def items(answer: FakeAnswer) -> list[dict[str, Any]]:
    return [event["item"] for event in events(answer) if event["type"] == "response.output_item.done"]


# --- reading


def test_it_answers_where_responses_are_made_and_lists_its_model() -> None:
    assert WIRE.handles("POST", "/v1/responses")
    assert WIRE.handles("POST", "/responses")
    assert not WIRE.handles("GET", "/v1/responses")
    assert not WIRE.handles("POST", "/v1/chat/completions")
    page = WIRE.build_page("GET", "/v1/models")
    assert page is not None
    assert [one["id"] for one in page["data"]] == ["fake-model"]
    assert WIRE.build_page("POST", "/v1/models") is None


def test_a_conversation_is_read_from_the_oldest_to_the_newest() -> None:
    body = {
        "model": "m",
        "stream": True,
        "instructions": "be kind",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "first"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "second"}], "content": None},
            {"type": "function_call", "call_id": "c1", "name": "third", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "fourth"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "fifth", "input": "raw words"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "sixth"}]},
            {"role": "assistant", "content": "seventh"},
        ],
    }
    asked = WIRE.parse_request("/v1/responses", body)
    assert (asked.wire, asked.model, asked.stream, asked.results) == ("responses", "m", True, 2)
    lines = ["be kind", "first", "second", "third", '{"a": 1}', "fourth", "fifth", "raw words", "sixth", "seventh"]
    assert asked.text.splitlines() == lines


def test_a_bare_text_is_a_conversation_too() -> None:
    asked = WIRE.parse_request("/v1/responses", {"model": "m", "input": "hello"})
    assert (asked.text, asked.stream, asked.tools) == ("hello", False, ())


def test_tools_are_read_from_the_request_and_from_where_newer_models_have_them() -> None:
    schema = {"type": "object", "properties": {"cmd": {"type": "string"}}}
    function = {"type": "function", "name": "exec_command", "parameters": schema}
    patch = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}
    inside = {"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}
    other = {"type": "namespace", "name": "multi_agent", "tools": [{"type": "function", "name": "x", "parameters": {}}]}
    asked = WIRE.parse_request(
        "/v1/responses",
        {
            "tools": [function, patch, {"type": "web_search"}, other, "nonsense"],
            "input": [{"type": "additional_tools", "tools": [inside]}, "nonsense"],
        },
    )
    assert asked.tools == (
        OfferedTool("exec_command", schema),
        OfferedTool("apply_patch", CUSTOM),
        OfferedTool("exec", CUSTOM),
    )


# --- answering


def test_the_tools_of_an_mcp_server_are_read_and_called_by_its_namespace() -> None:
    tool = {"type": "function", "name": "poke", "parameters": {"type": "object"}}
    offered = [{"type": "namespace", "name": "mcp__other", "tools": [tool]}]
    asked = WIRE.parse_request("/v1/responses", {"input": "hi", "tools": offered})
    assert [one.name for one in asked.tools] == ["mcp__other__poke"]
    (item,) = items(FakeAnswer("a1", "m", calls=(ToolCall("c1", "mcp__other__poke", {}),)))
    assert (item["name"], item["namespace"]) == ("poke", "mcp__other")


def test_a_stream_begins_is_numbered_and_completes_with_what_was_used() -> None:
    heard = events(ANSWER)
    assert [event["sequence_number"] for event in heard] == list(range(len(heard)))
    assert heard[0]["type"] == "response.created"
    assert heard[0]["response"]["usage"] is None
    assert heard[-1]["type"] == "response.completed"
    assert heard[-1]["response"]["usage"] == {
        "input_tokens": 30,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 35,
    }


def test_words_come_in_pieces_and_whole_in_their_item() -> None:
    assert deltas(ANSWER, "response.output_text.delta") == "some words"
    (message,) = items(ANSWER)
    assert (message["role"], message["content"][0]["text"]) == ("assistant", "some words")
    assert sum(b"some words" in piece for piece in WIRE.stream_response(ANSWER)) == 1


def test_thinking_words_and_calls_come_in_this_order() -> None:
    calls = (ToolCall("c1", "exec_command", {"cmd": "ls"}), ToolCall("c2", "apply_patch", {"custom": "*** Begin"}))
    answer = ANSWER._replace(thinking="a thought", calls=calls)
    thought, message, function, custom = items(answer)
    assert thought["summary"] == [{"type": "summary_text", "text": "a thought"}]
    assert message["type"] == "message"
    assert (function["type"], function["call_id"], json.loads(function["arguments"])) == (
        "function_call",
        "c1",
        {"cmd": "ls"},
    )
    assert (custom["type"], custom["call_id"], custom["input"]) == ("custom_tool_call", "c2", "*** Begin")
    assert deltas(answer, "response.reasoning_summary_text.delta") == "a thought"
    assert json.loads(deltas(answer, "response.function_call_arguments.delta")) == {"cmd": "ls"}
    assert deltas(answer, "response.custom_tool_call_input.delta") == "*** Begin"
    assert [event["output_index"] for event in events(answer) if event["type"].endswith("item.added")] == [0, 1, 2, 3]


def test_the_whole_says_the_same_as_the_stream() -> None:
    answer = ANSWER._replace(thinking="a thought", calls=(ToolCall("c1", "exec_command", {"cmd": "ls"}),))
    whole = WIRE.build_response(answer)
    assert whole["status"] == "completed"
    assert whole["output"] == items(answer)
    assert whole["usage"] == events(answer)[-1]["response"]["usage"]


@pytest.mark.parametrize(
    ("status", "kind", "type_", "code"),
    [
        (401, "", "invalid_request_error", "invalid_api_key"),
        (404, "", "invalid_request_error", "model_not_found"),
        (429, "", "requests", "rate_limit_exceeded"),
        (429, "insufficient_quota", "insufficient_quota", "insufficient_quota"),
        (400, "context_length_exceeded", "context_length_exceeded", "context_length_exceeded"),
        (400, "", "invalid_request_error", None),
        (500, "", "server_error", None),
        (503, "", "server_error", "server_is_overloaded"),
    ],
)
def test_an_error_has_the_providers_words(status: int, kind: str, type_: str, code: str | None) -> None:
    assert WIRE.build_error(status, "sorry", kind) == {
        "error": {"message": "sorry", "type": type_, "param": None, "code": code}
    }


def test_a_usage_limit_says_when_it_is_reset() -> None:
    error = WIRE.build_error(429, "sorry", "usage_limit_reached@1999999999")["error"]
    assert (error["type"], error["resets_at"]) == ("usage_limit_reached", 1_999_999_999)
