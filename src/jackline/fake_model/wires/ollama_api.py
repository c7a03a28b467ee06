"""Ollama's own chat protocol, lines of JSON instead of server-sent events: reads and writes it. Never does I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.fake_model.wire import FakeAnswer, ModelRequest, OfferedTool, split_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_AT = "2026-01-01T00:00:00.000000000Z"  # clients require a time, and ignore it
_MODEL = "fake-model:latest"
_DETAILS = {"format": "gguf", "family": "fake", "parameter_size": "1B", "quantization_level": "Q4_0"}
_PAGES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("GET", "/api/version"): {"version": "0.12.0"},
    ("GET", "/api/tags"): {
        "models": [{"name": _MODEL, "model": _MODEL, "modified_at": _AT, "size": 1, "digest": "0", "details": _DETAILS}]
    },
    ("POST", "/api/show"): {"details": _DETAILS, "capabilities": ["completion", "tools", "thinking"], "model_info": {}},
}


class OllamaWire:
    """POST /api/chat, and the pages of models and of the version."""

    name = "ollama"

    def handles(self, method: str, path: str) -> bool:
        return method == "POST" and path == "/api/chat"

    def build_page(self, method: str, path: str) -> Mapping[str, Any] | None:
        return _PAGES.get((method, path))

    def parse_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:  # noqa: ARG002 - the model is in the body
        messages = [one for one in body.get("messages") or () if isinstance(one, dict)]
        return ModelRequest(
            wire=self.name,
            model=str(body.get("model", "")),
            stream=body.get("stream") is not False,  # the default is the opposite of other protocols
            text="\n".join(filter(None, (str(one.get("content") or "") for one in messages))),
            tools=_parse_tools(body.get("tools")),
            results=sum(one.get("role") == "tool" for one in messages),
        )

    def build_response(self, answer: FakeAnswer) -> Mapping[str, Any]:
        return _build_last(answer, _build_message(answer.say, thinking=answer.thinking, calls=_build_calls(answer)))

    def stream_response(self, answer: FakeAnswer) -> Iterator[bytes]:
        yield _format_line(_build_piece(answer, _build_message("")))
        for piece in split_text(answer.thinking):
            yield _format_line(_build_piece(answer, _build_message("", thinking=piece)))
        for piece in split_text(answer.say):
            yield _format_line(_build_piece(answer, _build_message(piece)))
        for call in _build_calls(answer):
            yield _format_line(_build_piece(answer, _build_message("", calls=[call])))
        yield _format_line(_build_last(answer, _build_message("")))

    def stream_type(self) -> str:
        return "application/x-ndjson"

    def build_error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - it has only a message
        return {"error": message}


WIRE = OllamaWire()


def _build_message(content: str, thinking: str = "", calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = calls
    return message


def _build_calls(answer: FakeAnswer) -> list[dict[str, Any]]:
    """Arguments are an object here, not text."""
    return [
        {"id": call.id, "function": {"index": index, "name": call.tool, "arguments": dict(call.input)}}
        for index, call in enumerate(answer.calls)
    ]


def _build_piece(answer: FakeAnswer, message: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": answer.model, "created_at": _AT, "message": message, "done": False}


def _build_last(answer: FakeAnswer, message: Mapping[str, Any]) -> dict[str, Any]:
    durations = {"total_duration": 3, "load_duration": 1, "prompt_eval_duration": 1, "eval_duration": 1}
    counts = {"prompt_eval_count": answer.tokens_input, "eval_count": answer.tokens_output}
    return {**_build_piece(answer, message), "done": True, "done_reason": "stop", **durations, **counts}


def _format_line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _parse_tools(tools: object) -> tuple[OfferedTool, ...]:
    offered = [one.get("function") for one in tools if isinstance(one, dict)] if isinstance(tools, list) else []
    return tuple(OfferedTool(str(one["name"]), one.get("parameters") or {}) for one in offered if isinstance(one, dict))
