"""Ollama's own chat protocol, lines of JSON instead of server-sent events: reads and writes it. Never does I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.fake.pieces import cut
from jackline.fake.wire import Answer, Asked, Tool

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

    def owns(self, method: str, path: str) -> bool:
        return method == "POST" and path == "/api/chat"

    def page(self, method: str, path: str) -> Mapping[str, Any] | None:
        return _PAGES.get((method, path))

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:  # noqa: ARG002 - the model is in the body
        messages = [one for one in body.get("messages") or () if isinstance(one, dict)]
        return Asked(
            wire=self.name,
            model=str(body.get("model", "")),
            stream=body.get("stream") is not False,  # the default is the opposite of other protocols
            text="\n".join(filter(None, (str(one.get("content") or "") for one in messages))),
            tools=_parse_tools(body.get("tools")),
            results=sum(one.get("role") == "tool" for one in messages),
        )

    def whole(self, answer: Answer) -> Mapping[str, Any]:
        return _build_last(answer, _build_message(answer.say, thinking=answer.thinking, calls=_build_calls(answer)))

    def stream(self, answer: Answer) -> Iterator[bytes]:
        yield _format_line(_build_piece(answer, _build_message("")))
        for piece in cut(answer.thinking):
            yield _format_line(_build_piece(answer, _build_message("", thinking=piece)))
        for piece in cut(answer.say):
            yield _format_line(_build_piece(answer, _build_message(piece)))
        for call in _build_calls(answer):
            yield _format_line(_build_piece(answer, _build_message("", calls=[call])))
        yield _format_line(_build_last(answer, _build_message("")))

    def stream_type(self) -> str:
        return "application/x-ndjson"

    def error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:  # noqa: ARG002 - it has only a message
        return {"error": message}


WIRE = OllamaWire()


def _build_message(content: str, thinking: str = "", calls: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = calls
    return message


def _build_calls(answer: Answer) -> list[dict[str, Any]]:
    """Arguments are an object here, not text."""
    return [
        {"id": call.id, "function": {"index": index, "name": call.tool, "arguments": dict(call.input)}}
        for index, call in enumerate(answer.calls)
    ]


def _build_piece(answer: Answer, message: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": answer.model, "created_at": _AT, "message": message, "done": False}


def _build_last(answer: Answer, message: Mapping[str, Any]) -> dict[str, Any]:
    durations = {"total_duration": 3, "load_duration": 1, "prompt_eval_duration": 1, "eval_duration": 1}
    counts = {"prompt_eval_count": answer.tokens_input, "eval_count": answer.tokens_output}
    return {**_build_piece(answer, message), "done": True, "done_reason": "stop", **durations, **counts}


def _format_line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _parse_tools(tools: object) -> tuple[Tool, ...]:
    offered = [one.get("function") for one in tools if isinstance(one, dict)] if isinstance(tools, list) else []
    return tuple(Tool(str(one["name"]), one.get("parameters") or {}) for one in offered if isinstance(one, dict))
