"""OpenAI's Responses protocol, which codex speaks: reads and writes values. Never does I/O.

A free-form ("custom") tool takes a text instead of an object: it is offered, and called, as {"custom": TEXT}.
An error of the kind `usage_limit_reached@SECONDS` has the time when the limit of a subscription is reset.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.fake_model.wire import ModelRequest, OfferedTool, split_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.fake_model.wire import FakeAnswer, ToolCall, Wire

_PATHS = frozenset({"/v1/responses", "/responses"})
_MODELS = frozenset({"/v1/models", "/models"})
_CREATED = 1_700_000_000  # a constant, so that the same script gives the same bytes
_CUSTOM = {"type": "object", "properties": {"custom": {"type": "string"}}, "required": ["custom"]}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_TYPES = {401: "invalid_request_error", 403: "invalid_request_error", 404: "invalid_request_error", 429: "requests"}
_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded", 503: "server_is_overloaded"}
_SERVER_ERROR = 500
_SERVER = "mcp__"


class ResponsesWire:
    """POST /v1/responses."""

    name = "responses"

    def handles(self, method: str, path: str) -> bool:
        return method == "POST" and path in _PATHS

    def build_page(self, method: str, path: str) -> Mapping[str, Any] | None:
        if method != "GET" or path not in _MODELS:
            return None
        model = {"id": "fake-model", "object": "model", "created": _CREATED, "owned_by": "jackline"}
        return {"object": "list", "data": [model], "models": []}

    def parse_request(self, path: str, body: Mapping[str, Any]) -> ModelRequest:  # noqa: ARG002 - the model is in the body
        given = body.get("input")
        items = given if isinstance(given, list) else [{"content": given}]
        parts = [
            _extract_text(body.get("instructions")),
            *(_extract_item_text(item) for item in items if isinstance(item, dict)),
        ]
        return ModelRequest(
            wire=self.name,
            model=_extract_text(body.get("model")),
            stream=body.get("stream") is True,
            text="\n".join(part for part in parts if part),
            tools=tuple(tool for offered in (body, *items) for tool in _parse_tools(offered)),
            results=sum(isinstance(item, dict) and item.get("type") in _RESULTS for item in items),
        )

    def build_response(self, answer: FakeAnswer) -> Mapping[str, Any]:
        return _build_response(answer, "completed", _build_output(answer))

    def stream_response(self, answer: FakeAnswer) -> Iterator[bytes]:
        """Each event is numbered, as OpenAI's are."""
        for number, event in enumerate(_list_events(answer)):
            fields = {"type": event.kind, **event.fields, "sequence_number": number}
            yield f"event: {event.kind}\ndata: {json.dumps(fields)}\n\n".encode()

    def stream_type(self) -> str:
        return "text/event-stream"

    def build_error(self, status: int, message: str, kind: str) -> Mapping[str, Any]:
        word, _, seconds = kind.partition("@")
        usual = "server_error" if status >= _SERVER_ERROR else "invalid_request_error"
        fields = {
            "message": message,
            "type": word or _TYPES.get(status, usual),
            "param": None,
            "code": word or _CODES.get(status),
        }
        return {"error": {**fields, "resets_at": int(seconds)} if seconds else fields}


WIRE: Wire = ResponsesWire()


# --- reading ---------------------------------------------------------------------------------------------


def _parse_tools(holder: object) -> Iterator[OfferedTool]:
    """The tools of the request, of an item `additional_tools`, or of the namespace of all functions."""
    offered = holder.get("tools") if isinstance(holder, dict) else None
    for one in offered if isinstance(offered, list) else ():
        match one:
            case {"type": "custom", "name": str(name)}:
                yield OfferedTool(name, _CUSTOM)
            case {"type": "function", "name": str(name), "parameters": dict(schema)}:
                yield OfferedTool(name, schema)
            case {"type": "namespace", "name": "functions"}:
                yield from _parse_tools(one)
            case {"type": "namespace", "name": str(server)} if server.startswith(_SERVER):
                yield from (tool._replace(name=f"{server}__{tool.name}") for tool in _parse_tools(one))
            case _:
                continue  # a tool that the provider itself would run, such as a web search


def _extract_item_text(item: Mapping[str, Any]) -> str:
    """The text of a message, a call or a result."""
    kept = (item.get(name) for name in ("content", "summary", "name", "arguments", "input", "output"))
    return "\n".join(part for part in map(_extract_text, kept) if part)


def _extract_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _extract_text(value.get("text") or value.get("content"))
    return "\n".join(filter(None, map(_extract_text, value))) if isinstance(value, list) else ""


# --- writing ---------------------------------------------------------------------------------------------


class _Event(NamedTuple):
    kind: str
    fields: Mapping[str, Any]


class _Item(NamedTuple):
    """A part of the answer: empty as announced, the events that fill it, and its final form."""

    announced: Mapping[str, Any]
    events: tuple[_Event, ...]
    done: Mapping[str, Any]


def _list_events(answer: FakeAnswer) -> Iterator[_Event]:
    """OpenAI repeats the whole text five times; once is enough, and a CLI may read a line of 10 MB very slowly."""
    begun = {"response": _build_response(answer, "in_progress", ())}
    yield _Event("response.created", begun)
    yield _Event("response.in_progress", begun)
    output = _build_output(answer)
    for index, item in enumerate(output):
        yield _Event("response.output_item.added", {"output_index": index, "item": item.announced})
        for kind, fields in item.events:
            yield _Event(kind, {"item_id": item.done["id"], "output_index": index, **fields})
        yield _Event("response.output_item.done", {"output_index": index, "item": item.done})
    yield _Event("response.completed", {"response": _build_response(answer, "completed", ())})


def _build_output(answer: FakeAnswer) -> tuple[_Item, ...]:
    thinking = (_build_reasoning(answer),) if answer.thinking else ()
    words = (_build_message(answer),) if answer.say else ()
    return (*thinking, *words, *map(_build_call, answer.calls))


def _build_reasoning(answer: FakeAnswer) -> _Item:
    """A summary: the thinking itself is sent only in encrypted form."""
    part = {"type": "summary_text", "text": answer.thinking}
    shell = {"type": "reasoning", "id": f"rs_{answer.id}", "summary": []}
    events = (
        _Event("response.reasoning_summary_part.added", {"summary_index": 0, "part": {**part, "text": ""}}),
        *(
            _Event("response.reasoning_summary_text.delta", {"summary_index": 0, "delta": piece})
            for piece in split_text(answer.thinking)
        ),
    )
    return _Item(announced=shell, events=events, done={**shell, "summary": [part], "encrypted_content": "c2VhbGVk"})


def _build_message(answer: FakeAnswer) -> _Item:
    part: dict[str, Any] = {"type": "output_text", "text": answer.say, "annotations": [], "logprobs": []}
    shell = {"type": "message", "id": f"msg_{answer.id}", "role": "assistant", "content": [], "status": "in_progress"}
    events = (
        _Event("response.content_part.added", {"content_index": 0, "part": {**part, "text": ""}}),
        *(
            _Event("response.output_text.delta", {"content_index": 0, "delta": piece, "logprobs": []})
            for piece in split_text(answer.say)
        ),
    )
    return _Item(announced=shell, events=events, done={**shell, "content": [part], "status": "completed"})


def _build_call(call: ToolCall) -> _Item:
    """A call's input is a text of JSON, or for a free-form tool any text, and is streamed like text."""
    kind, name, text = "function_call", "arguments", json.dumps(dict(call.input))
    if call.input.keys() == {"custom"}:
        kind, name, text = "custom_tool_call", "input", str(call.input["custom"])
    stem = f"response.{kind}_{name}"
    # A tool of an MCP server is called by its own name, in the namespace of its server.
    server, _, own_name = call.tool.removeprefix(_SERVER).partition("__")
    is_of_server = call.tool.startswith(_SERVER) and own_name
    tool = {"name": own_name, "namespace": f"{_SERVER}{server}"} if is_of_server else {"name": call.tool}
    identity = {"type": kind, "id": f"fc_{call.id}", "call_id": call.id, **tool}
    deltas = (_Event(f"{stem}.delta", {"delta": piece}) for piece in split_text(text))
    return _Item(
        announced={**identity, name: "", "status": "in_progress"},
        events=tuple(deltas),
        done={**identity, name: text, "status": "completed"},
    )


def _build_response(answer: FakeAnswer, status: str, output: tuple[_Item, ...]) -> dict[str, Any]:
    usage = {
        "input_tokens": answer.tokens_input,  # OpenAI counts cached tokens as input too
        "input_tokens_details": {"cached_tokens": answer.tokens_cached},
        "output_tokens": answer.tokens_output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.tokens_input + answer.tokens_output,
    }
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": _CREATED,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": answer.model,
        "output": [item.done for item in output],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if status == "completed" else None,
    }
