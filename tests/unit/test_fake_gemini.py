"""The fake model in the words of Gemini's API: what it reads of a request, and what it answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackline.fake_model.pointing import point
from jackline.fake_model.wire import FakeAnswer, OfferedTool, ToolCall
from jackline.fake_model.wires.gemini_api import WIRE

MODEL = "/v1beta/models/fake-model"
CALL = ToolCall("call_1", "run_shell_command", {"command": "ls"})
BODY: dict[str, Any] = {
    "systemInstruction": {"role": "user", "parts": [{"text": "be brief"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "hello"}, {"inlineData": {"data": "eA=="}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "run_shell_command", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "run_shell_command", "response": {"output": "fünf"}}}],
        },
    ],
    "tools": [
        {"functionDeclarations": [{"name": "run_shell_command", "parametersJsonSchema": {"type": "object"}}]},
        {"functionDeclarations": [{"name": "write_file", "parameters": {"type": "OBJECT"}}]},
        {"googleSearch": {}},
    ],
}


def answer(**more: Any) -> FakeAnswer:
    return FakeAnswer(**{"id": "a1", "model": "fake-model", **more})


def events(given: FakeAnswer) -> list[dict[str, Any]]:
    pieces = list(WIRE.stream_response(given))
    assert all(piece.startswith(b"data: ") and piece.endswith(b"\r\n\r\n") for piece in pieces)
    return [json.loads(piece.removeprefix(b"data: ")) for piece in pieces]


def parts_of(event: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = event["candidates"][0]["content"].get("parts", [])
    return found


@pytest.mark.parametrize(
    ("method", "path", "owned"),
    [
        ("POST", f"{MODEL}:generateContent", True),
        ("POST", f"{MODEL}:streamGenerateContent", True),
        ("POST", "/v1beta1/publishers/google/models/m:streamGenerateContent", True),
        ("POST", f"{MODEL}:countTokens", False),
        ("GET", f"{MODEL}:generateContent", False),
        ("POST", "/v1/chat/completions", False),
    ],
)
def test_it_owns_the_two_ways_to_ask(method: str, path: str, owned: bool) -> None:
    assert WIRE.handles(method, path) is owned


def test_pages() -> None:
    assert WIRE.build_page("POST", f"{MODEL}:countTokens") == {"totalTokens": 11}
    assert WIRE.build_page("GET", "/v1beta/models") is not None
    assert WIRE.build_page("GET", "/v1/models") is None


def test_a_request_is_read() -> None:
    asked = WIRE.parse_request(f"{MODEL}:streamGenerateContent", BODY)
    assert (asked.wire, asked.model, asked.stream, asked.results) == ("gemini", "fake-model", True, 1)
    assert asked.text == 'be brief\nhello\n{"output": "fünf"}'
    assert asked.tools == (
        OfferedTool("run_shell_command", {"type": "object"}),
        OfferedTool("write_file", {"type": "OBJECT"}),
    )
    assert WIRE.parse_request(f"{MODEL}:generateContent", {}).stream is False


def test_a_whole_answer_has_thoughts_words_and_calls_in_this_order() -> None:
    whole = WIRE.build_response(answer(say="hi", thinking="hm", calls=(CALL,), tokens_cached=3))
    thought, words, call = parts_of(dict(whole))
    assert thought == {"text": "hm", "thought": True}
    assert words == {"text": "hi"}
    assert call["functionCall"] == {"id": "call_1", "name": "run_shell_command", "args": {"command": "ls"}}
    assert whole["candidates"][0]["finishReason"] == "STOP"
    assert whole["usageMetadata"] == {
        "promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18, "cachedContentTokenCount": 3,
    }  # fmt: skip


def test_a_stream_says_the_same_in_pieces() -> None:
    told = events(answer(say="hello", thinking="hmm", calls=(CALL,)))
    words = [part for event in told for part in parts_of(event)]
    assert "".join(part["text"] for part in words if part.get("thought")) == "hmm"
    said = [part["text"] for part in words if "text" in part and not part.get("thought")]
    assert len(said) >= 2
    assert "".join(said) == "hello"
    assert words[-1]["functionCall"]["name"] == "run_shell_command"


def test_only_the_last_piece_of_a_stream_ends_it() -> None:
    told = events(answer(say="hello"))
    assert [event["candidates"][0].get("finishReason") for event in told] == [None] * (len(told) - 1) + ["STOP"]
    assert "usageMetadata" in told[-1]


@pytest.mark.parametrize(
    ("status", "word"),
    [(400, "INVALID_ARGUMENT"), (401, "UNAUTHENTICATED"), (404, "NOT_FOUND"), (429, "RESOURCE_EXHAUSTED"),
     (500, "INTERNAL"), (503, "UNAVAILABLE"), (418, "INVALID_ARGUMENT")],
)  # fmt: skip
def test_errors_have_the_providers_word(status: int, word: str) -> None:
    error = WIRE.build_error(status, "no", "")["error"]
    assert (error["code"], error["message"], error["status"]) == (status, "no", word)
    assert WIRE.build_error(status, "no", "ABORTED")["error"]["status"] == "ABORTED"


def test_a_limit_says_when_to_come_back_or_that_it_is_that_of_the_day() -> None:
    (retry,) = WIRE.build_error(429, "slow", "")["error"]["details"]
    assert retry == {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}
    day = WIRE.build_error(429, "slow", "QUOTA_EXHAUSTED")["error"]
    assert day["status"] == "RESOURCE_EXHAUSTED"
    assert "PerDay" in day["details"][0]["violations"][0]["quotaId"]


@pytest.mark.parametrize(("agent", "kind"), [("gemini", "gemini-api-key"), ("qwen", "openai")])
def test_the_cli_is_pointed_by_settings_in_a_home_of_its_own(agent: str, kind: str) -> None:
    pointed = point(agent, "http://127.0.0.1:1", "/h")
    settings = json.loads(pointed.files[f"/h/.{agent}/settings.json"])
    assert settings["security"]["auth"]["selectedType"] == kind
    assert pointed.env["HOME"] == "/h"
    assert any(value.startswith("http://127.0.0.1:1") for value in pointed.env.values())
