"""Anthropic's Messages: POST /v1/messages, whole or as server-sent events. Reads and writes JSON, never does I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.fake_model.wire import FakeAnswer, ModelRequest, OfferedTool, split_text

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
_SIGNATURE = "c2lnbmVkIGJ5IHRoZSBmYWtlIG1vZGVs"  # a client sends it back; it is not verified here

_EMPTY: dict[str, Mapping[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


class AnthropicWire:
    """The Messages protocol."""

    name = "anthropic"

    def handles(self, method: str, path: str) -> bool:
        return method == "POST" and path.endswith(_MESSAGES)

    def build_page(self, method: str, path: str) -> Mapping[str, Any] | None:
        return {"input_tokens": 11} if method == "POST" and path.endswith(f"{_MESSAGES}/count_tokens") else None

    def parse_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:  # noqa: ARG002 - the path of a wire may name the model
        blocks = [block for message in body["messages"] for block in _as_blocks(message["content"])]
        words = [_extract_text(block) for block in [*_as_blocks(body.get("system", "")), *blocks]]
        return ModelRequest(
            wire=self.name,
            model=body["model"],
            stream=bool(body.get("stream")),
            text="\n".join(word for word in words if word),
            tools=tuple(OfferedTool(tool["name"], tool.get("input_schema", {})) for tool in body.get("tools", ())),
            results=sum(block.get("type") == "tool_result" for block in blocks),
        )

    def build_response(self, answer: FakeAnswer) -> Mapping[str, Any]:
        return _build_message(answer, _build_content(answer), _stop_reason(answer), answer.tokens_output)

    def stream_response(self, answer: FakeAnswer) -> Iterator[bytes]:
        yield _format_event("message_start", message=_build_message(answer, [], None, 1))
        for index, block in enumerate(_build_content(answer)):
            # Announced empty, then filled by deltas.
            yield _format_event("content_block_start", index=index, content_block={**block, **_EMPTY[block["type"]]})
            for delta in _list_deltas(block):
                yield _format_event("content_block_delta", index=index, delta=delta)
            yield _format_event("content_block_stop", index=index)
        end = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        yield _format_event("message_delta", delta=end, usage=_build_usage(answer, answer.tokens_output))
        yield _format_event("message_stop")

    def stream_type(self) -> str:
        return "text/event-stream; charset=utf-8"

    def build_error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        return {"type": "error", "error": {"type": kind or _KINDS.get(status, "api_error"), "message": message}}


WIRE = AnthropicWire()


def _as_blocks(content: str | list[Any]) -> list[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _extract_text(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block["text"])
        case "thinking":
            return str(block["thinking"])
        case "tool_use":
            return f"{block['name']} {json.dumps(block['input'])}"
        case "tool_result":
            return "\n".join(_extract_text(part) for part in _as_blocks(block.get("content") or ""))
        case _:
            return ""  # an image or a document: a script cannot search it


def _build_message(
    answer: FakeAnswer, content: list[Mapping[str, Any]], stop_reason: str | None, output: int
) -> Mapping[str, Any]:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": _build_usage(answer, output),
    }


def _build_usage(answer: FakeAnswer, output: int) -> Mapping[str, int]:
    return {
        "input_tokens": answer.tokens_input - answer.tokens_cached,  # this protocol counts cached tokens separately
        "cache_read_input_tokens": answer.tokens_cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": output,
    }


def _stop_reason(answer: FakeAnswer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _build_content(answer: FakeAnswer) -> list[Mapping[str, Any]]:
    content: list[Mapping[str, Any]] = []
    if answer.thinking:
        content.append({"type": "thinking", "thinking": answer.thinking, "signature": _SIGNATURE})
    if answer.say:
        content.append({"type": "text", "text": answer.say})
    for call in answer.calls:
        id = f"toolu_{call.id.removeprefix('call_')}"
        content.append({"type": "tool_use", "id": id, "name": call.tool, "input": dict(call.input)})
    return content


def _list_deltas(block: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in split_text(block["text"]))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in split_text(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            pieces = split_text(json.dumps(block["input"]))
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces)


def _format_event(name: str, **fields: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
