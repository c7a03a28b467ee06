"""Google's generateContent, as Gemini's API speaks it: reads and writes it. Never does I/O."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.fake_model.wire import FakeAnswer, ModelRequest, OfferedTool, split_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WHOLE, _STREAM, _COUNT = ":generateContent", ":streamGenerateContent", ":countTokens"
_SERVER_ERROR = 500
_LIMIT = 429
_USUAL = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_DAY_QUOTA = "QUOTA_EXHAUSTED"  # the provider's word for a quota that is not back soon
_DAY_QUOTA_DETAILS = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaMetric": "generate_content_requests", "quotaId": "GenerateRequestsPerDayPerProject"}],
}
_RETRY_DETAILS = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}


class GeminiWire:
    """POST /v1beta/models/MODEL:generateContent and :streamGenerateContent, the count of tokens, the page of models."""

    name = "gemini"

    def handles(self, method: str, path: str) -> bool:
        return method == "POST" and "/models/" in path and path.endswith((_WHOLE, _STREAM))

    def build_page(self, method: str, path: str) -> Mapping[str, Any] | None:
        if method == "POST" and "/models/" in path and path.endswith(_COUNT):
            return {"totalTokens": FakeAnswer(id="", model="").tokens_input}
        if method == "GET" and path == "/v1beta/models":
            return {"models": [{"name": "models/fake-model", "displayName": "fake-model",
                                "supportedGenerationMethods": ["generateContent", "countTokens"]}]}  # fmt: skip
        return None

    def parse_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:
        instruction, contents = body.get("systemInstruction") or body.get("system_instruction"), body.get("contents")
        messages = [instruction, *(contents if isinstance(contents, list) else [])]
        parts = [part for message in messages for part in _list_parts(message)]
        return ModelRequest(
            wire=self.name,
            model=path.rpartition("/")[2].partition(":")[0],
            stream=path.endswith(_STREAM),
            text="\n".join(filter(None, map(_extract_text, parts))),
            tools=tuple(_parse_tools(body)),
            results=sum("functionResponse" in part for part in parts),
        )

    def build_response(self, answer: FakeAnswer) -> Mapping[str, Any]:
        parts = [_build_thought(answer.thinking)] if answer.thinking else []
        parts += [{"text": answer.say}] if answer.say else []
        return {**_build_chunk(answer, parts + _build_calls(answer), "STOP"), "usageMetadata": _build_usage(answer)}

    def stream_response(self, answer: FakeAnswer) -> Iterator[bytes]:
        yield _format_event(_build_chunk(answer, []))  # the provider sometimes starts with empty content
        for piece in split_text(answer.thinking):
            yield _format_event(_build_chunk(answer, [_build_thought(piece)]))
        for piece in split_text(answer.say):
            yield _format_event(_build_chunk(answer, [{"text": piece}]))
        yield _format_event(
            {**_build_chunk(answer, _build_calls(answer), "STOP"), "usageMetadata": _build_usage(answer)}
        )

    def stream_type(self) -> str:
        return "text/event-stream"

    def build_error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        usual = "INTERNAL" if status >= _SERVER_ERROR else "INVALID_ARGUMENT"
        word = _USUAL.get(status, usual) if not kind or kind == _DAY_QUOTA else kind
        fields: dict[str, Any] = {"code": status, "message": message, "status": word}
        if status == _LIMIT:
            fields["details"] = [_DAY_QUOTA_DETAILS if kind == _DAY_QUOTA else _RETRY_DETAILS]
        return {"error": fields}


WIRE = GeminiWire()


def _build_chunk(answer: FakeAnswer, parts: list[dict[str, Any]], reason: str = "") -> dict[str, Any]:
    content: dict[str, Any] = {"role": "model", "parts": parts} if parts else {"role": "model"}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {"candidates": [candidate], "modelVersion": answer.model, "responseId": answer.id}


def _build_calls(answer: FakeAnswer) -> list[dict[str, Any]]:
    return [
        {"functionCall": {"id": call.id, "name": call.tool, "args": dict(call.input)}, "thoughtSignature": "c2lnbmVk"}
        for call in answer.calls
    ]


def _build_thought(words: str) -> dict[str, Any]:
    return {"text": words, "thought": True}


def _build_usage(answer: FakeAnswer) -> Mapping[str, Any]:
    return {
        "promptTokenCount": answer.tokens_input,
        "candidatesTokenCount": answer.tokens_output,
        "totalTokenCount": answer.tokens_input + answer.tokens_output,
        **({"cachedContentTokenCount": answer.tokens_cached} if answer.tokens_cached else {}),
    }


def _format_event(fields: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(fields, separators=(",", ":")).encode() + b"\r\n\r\n"


def _list_parts(content: object) -> list[dict[str, Any]]:
    parts = content.get("parts") if isinstance(content, dict) else None
    found = parts if isinstance(parts, list) else [parts]
    return [part for part in found if isinstance(part, dict)]


def _extract_text(part: Mapping[str, Any]) -> str:
    """The text of a part; for a tool's result, its JSON."""
    if "functionResponse" in part:
        return json.dumps(part["functionResponse"].get("response"), ensure_ascii=False)
    return str(part.get("text", ""))


def _parse_tools(body: Mapping[str, Any]) -> Iterator[OfferedTool]:
    """A tool that the provider runs itself (search, code) has no declaration, and cannot be called back."""
    for group in body.get("tools") or ():
        for one in group.get("functionDeclarations") or group.get("function_declarations") or ():
            yield OfferedTool(str(one.get("name", "")), one.get("parametersJsonSchema") or one.get("parameters") or {})
