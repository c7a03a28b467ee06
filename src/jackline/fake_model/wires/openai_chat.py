"""OpenAI's Chat Completions, which most providers and local servers speak too: reads and writes it. Never does I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.fake_model.wire import FakeAnswer, ModelRequest, OfferedTool, split_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.fake_model.wire import ToolCall

_CREATED = 1_700_000_000  # clients require a number, and ignore it
_MODELS = ("/v1/models", "/models")
_SERVER_ERROR = 500
_USUAL = {
    401: "invalid_api_key",
    402: "insufficient_quota",
    403: "access_denied",
    404: "model_not_found",
    413: "context_length_exceeded",
    429: "rate_limit_exceeded",
}
_TYPES = {401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit_error"}
_OWN_TYPE = ("insufficient_quota", "server_error")  # OpenAI uses these in both fields


class ChatWire:
    """POST /v1/chat/completions, and the page of models."""

    name = "chat"

    def handles(self, method: str, path: str) -> bool:
        return method == "POST" and path.endswith("/chat/completions")

    def build_page(self, method: str, path: str) -> Mapping[str, Any] | None:
        if method != "GET" or path not in _MODELS:
            return None
        return {"object": "list", "data": [{"id": "fake-model", "object": "model", "created": _CREATED,
                                            "owned_by": "jackline"}]}  # fmt: skip

    def parse_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:  # noqa: ARG002 - the model is in the body
        messages = [one for one in body.get("messages") or () if isinstance(one, dict)]
        return ModelRequest(
            wire=self.name,
            model=str(body.get("model", "")),
            stream=body.get("stream") is True,
            text="\n".join(filter(None, (_extract_text(one.get("content")) for one in messages))),
            tools=_parse_tools(body.get("tools")),
            results=sum(one.get("role") == "tool" for one in messages),
        )

    def build_response(self, answer: FakeAnswer) -> Mapping[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": answer.say or None}
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": _encode_arguments(call)},
                }
                for call in answer.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish_reason(answer)}
        return {**_build_head(answer, "chat.completion"), "choices": [choice], "usage": _build_usage(answer)}

    def stream_response(self, answer: FakeAnswer) -> Iterator[bytes]:
        yield _format_chunk(answer, {"role": "assistant", "content": ""})
        for piece in split_text(answer.thinking):
            yield _format_chunk(answer, {"reasoning_content": piece})
        for piece in split_text(answer.say):
            yield _format_chunk(answer, {"content": piece})
        for index, call in enumerate(answer.calls):
            yield from _stream_call(answer, index, call)
        yield _format_chunk(answer, {}, _finish_reason(answer))
        # Sent even without `stream_options.include_usage`, as many servers do; clients accept it.
        yield _format_event(
            {**_build_head(answer, "chat.completion.chunk"), "choices": [], "usage": _build_usage(answer)}
        )
        yield b"data: [DONE]\n\n"

    def stream_type(self) -> str:
        return "text/event-stream"

    def build_error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        usual = "server_error" if status >= _SERVER_ERROR else _USUAL.get(status)
        code = kind or usual
        kind_of = code if code in _OWN_TYPE else _TYPES.get(status, "invalid_request_error")
        return {"error": {"message": message, "type": kind_of, "param": None, "code": code}}


WIRE = ChatWire()


def _stream_call(answer: FakeAnswer, index: int, call: ToolCall) -> Iterator[bytes]:
    """The name first, then the arguments in pieces: a client that reads only one piece fails."""
    named = {"index": index, "id": call.id, "type": "function", "function": {"name": call.tool, "arguments": ""}}
    yield _format_chunk(answer, {"tool_calls": [named]})
    for piece in split_text(_encode_arguments(call)):
        yield _format_chunk(answer, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def _format_chunk(answer: FakeAnswer, delta: Mapping[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return _format_event({**_build_head(answer, "chat.completion.chunk"), "choices": [choice]})


def _format_event(fields: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\n\n"


def _build_head(answer: FakeAnswer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{answer.id}", "object": kind, "created": _CREATED, "model": answer.model}


def _build_usage(answer: FakeAnswer) -> Mapping[str, Any]:
    return {
        "prompt_tokens": answer.tokens_input,
        "completion_tokens": answer.tokens_output,
        "total_tokens": answer.tokens_input + answer.tokens_output,
        "prompt_tokens_details": {"cached_tokens": answer.tokens_cached},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _finish_reason(answer: FakeAnswer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _encode_arguments(call: ToolCall) -> str:
    return json.dumps(dict(call.input))


def _parse_tools(value: object) -> tuple[OfferedTool, ...]:
    offered = value if isinstance(value, list) else []
    functions = [one["function"] for one in offered if isinstance(one, dict) and isinstance(one.get("function"), dict)]
    return tuple(OfferedTool(str(one.get("name", "")), one.get("parameters") or {}) for one in functions)


def _extract_text(content: object) -> str:
    """The text of a message: a plain text, or the texts among its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)
