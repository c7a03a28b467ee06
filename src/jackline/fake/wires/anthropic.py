"""Anthropic's Messages: POST /v1/messages, whole or as server-sent events. Reads and writes JSON, never does I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.fake.pieces import cut
from jackline.fake.wire import Answer, Asked, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MESSAGES = "/v1/messages"
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_SIGNATURE = "c2lnbmVkIGJ5IHRoZSBmYWtlIG1vZGVs"  # a client keeps it and sends it back; nobody verifies it here

_EMPTY: dict[str, Mapping[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


class Anthropic:
    """The Messages protocol."""

    name = "anthropic"

    def owns(self, method: str, path: str) -> bool:
        return method == "POST" and path.endswith(_MESSAGES)

    def page(self, method: str, path: str) -> Mapping[str, Any] | None:
        return {"input_tokens": 11} if method == "POST" and path.endswith(f"{_MESSAGES}/count_tokens") else None

    def read(self, path: str, body: Mapping[str, Any]) -> Asked:  # noqa: ARG002 - the path of a wire may name the model
        blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
        words = [_words(block) for block in [*_blocks(body.get("system", "")), *blocks]]
        return Asked(
            wire=self.name,
            model=body["model"],
            stream=bool(body.get("stream")),
            text="\n".join(word for word in words if word),
            tools=tuple(Tool(tool["name"], tool.get("input_schema", {})) for tool in body.get("tools", ())),
            results=sum(block.get("type") == "tool_result" for block in blocks),
        )

    def whole(self, answer: Answer) -> Mapping[str, Any]:
        return _message(answer, _content(answer), _stop_reason(answer), answer.tokens_output)

    def stream(self, answer: Answer) -> Iterator[bytes]:
        yield _event("message_start", message=_message(answer, [], None, 1))
        for index, block in enumerate(_content(answer)):
            yield from _streamed(index, block)
        delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage=_usage(answer, answer.tokens_output))
        yield _event("message_stop")

    def stream_type(self) -> str:
        return "text/event-stream; charset=utf-8"

    def error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        return {"type": "error", "error": {"type": kind or _KINDS.get(status, "api_error"), "message": message}}


WIRE = Anthropic()


def _blocks(content: str | list[Any]) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _words(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "thinking":
            return str(block["thinking"])
        case "tool_use":
            return f"{block['name']} {json.dumps(block['input'])}"
        case "tool_result":
            return "\n".join(_words(part) for part in _blocks(block.get("content") or ""))
        case _:
            return ""  # an image, a document: nothing a script could look for


def _message(
    answer: Answer, content: list[Mapping[str, Any]], stop_reason: str | None, output: int
) -> Mapping[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": _usage(answer, output),
    }


def _usage(answer: Answer, output: int) -> Mapping[str, int]:
    return {
        "input_tokens": answer.tokens_input - answer.tokens_cached,  # this protocol counts the cached ones apart
        "cache_read_input_tokens": answer.tokens_cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": output,
    }


def _stop_reason(answer: Answer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _content(answer: Answer) -> list[Mapping[str, Any]]:
    content: list[Mapping[str, Any]] = []
    if answer.thinking:
        content.append({"type": "thinking", "thinking": answer.thinking, "signature": _SIGNATURE})
    if answer.say:
        content.append({"type": "text", "text": answer.say})
    for call in answer.calls:
        id = f"toolu_{call.id.removeprefix('call_')}"
        content.append({"type": "tool_use", "id": id, "name": call.tool, "input": dict(call.input)})
    return content


def _streamed(index: int, block: Mapping[str, Any]) -> Iterator[bytes]:
    """One block of content: announced empty, then filled by deltas."""
    yield _event("content_block_start", index=index, content_block={**block, **_EMPTY[block["type"]]})
    for delta in _deltas(block):
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _deltas(block: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in cut(block["text"]))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            pieces = cut(json.dumps(block["input"]))
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)


def _event(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
