"""What the lines of Codex say (`codex exec --json`), one JSON object each. Pure; never raises."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.agents import codex_errors, hearing, reading
from jackline.domain.outcome import Heard, Scope, Usage
from jackline.domain.states import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable

_RETRY = re.compile(
    r"Reconnecting\.\.\. (?:(?P<attempt>\d{1,9})/\d+|waiting for network)(?: \((?P<reason>.*)\))?", re.DOTALL
)
_SHELL = re.compile(r"\S*/(?:ba|z|da|k)?sh -l?c (.+)", re.DOTALL)
_QUOTED = re.compile(
    r"'(?P<single>[^']*)'|\"(?P<double>(?:\\.|[^\"\\])*)\"|(?P<plain>[^\s'\"\\]+)|\\(?P<one>.)", re.DOTALL
)


def heard(fields: dict[str, Any], now: int) -> Iterable[Heard]:
    """What the fields of a line mean; `now`, in milliseconds, dates a reset that is told as a time of the day."""
    match fields.get("type"):
        case "thread.started":
            return hearing.session(fields.get("thread_id"))
        case "turn.started":
            return ()
        case "item.started" | "item.updated" | "item.completed" as stage:
            return _item(stage, reading.table(fields.get("item")))
        case "error":
            return (_complaint(reading.text(fields.get("message")), now),)
        case "turn.failed":
            return (_failed(reading.table(fields.get("error")), now),)
        case "turn.completed":
            return _completed(reading.table(fields.get("usage")))
    return reading.RAW


def _complaint(text: str, now: int) -> Heard:
    """An error line; one that announces another try is no error."""
    if found := _RETRY.match(text):
        status = codex_errors.status_of(found["reason"] or "")
        return hearing.retry(text, attempt=int(found["attempt"] or 0), status=status)
    complaint = codex_errors.read(text, now)
    if complaint.failure is Failure.LIMIT:
        return Heard("limit", complaint.text, {"resets_at": complaint.resets_at})
    return hearing.error(complaint.text, complaint.failure)


def _failed(error: dict[str, Any], now: int) -> Heard:
    complaint = codex_errors.read(reading.text(error.get("message")), now)
    told = {"ok": False, "class": str(complaint.failure), "resets_at": complaint.resets_at}
    return Heard("end", complaint.text, told)


def _completed(usage: dict[str, Any]) -> tuple[Heard, ...]:
    """The figures are those of the whole session, and a fork's contain those of the session that it began as."""
    used = Usage(
        tokens_input=reading.whole(usage.get("input_tokens")),
        tokens_output=reading.whole(usage.get("output_tokens")),
        tokens_cached=reading.whole(usage.get("cached_input_tokens")),
    )
    return Heard("usage", usage=used, scope=Scope.SESSION), Heard("end", data={"ok": True})


def _item(stage: str, item: dict[str, Any]) -> tuple[Heard, ...]:
    done = stage == "item.completed"
    match item.get("type"):
        case "agent_message":
            return (Heard("message", reading.text(item.get("text"))),) if done else ()
        case "reasoning":
            return (Heard("thinking", reading.text(item.get("text"))),) if done else ()
        case "todo_list":  # at the end of the turn it is told once more
            return () if done else (Heard("thinking", _plan(item)),)
        case "error":  # a warning: what ends a turn is told by `turn.failed`
            return (hearing.error(reading.text(item.get("message")), Failure.AGENT_ERROR, notice=True),)
        case "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call" | "web_search":
            return _call(stage, item)
    return reading.RAW


def _call(stage: str, item: dict[str, Any]) -> tuple[Heard, ...]:
    """A call's id is one of this process: a resumed session counts from the beginning again."""
    match stage:
        case "item.started":
            return (hearing.started(item.get("id"), *_asked(item)),)
        case "item.completed":
            ok = item.get("status", "completed") == "completed"
            return (hearing.finished(item.get("id"), _output(item), ok=ok, exit_code=item.get("exit_code")),)
    return ()


def _asked(item: dict[str, Any]) -> tuple[str, Any]:
    match item.get("type"):
        case "command_execution":
            return "shell", {"command": _unwrapped(reading.text(item.get("command")))}
        case "file_change":
            return "apply_patch", {"changes": reading.items(item.get("changes"))}
        case "mcp_tool_call":
            return f"mcp__{item.get('server')}__{item.get('tool')}", item.get("arguments")
        case "collab_tool_call":
            return reading.text(item.get("tool")), {"prompt": item.get("prompt")}
    return "web_search", {"query": reading.text(item.get("query"))}


def _output(item: dict[str, Any]) -> str:
    if item.get("type") != "mcp_tool_call":
        return reading.text(item.get("aggregated_output"))
    parts = map(reading.table, reading.items(reading.table(item.get("result")).get("content")))
    texts = [reading.text(part.get("text")) for part in parts]
    return "\n".join([*texts, reading.text(reading.table(item.get("error")).get("message"))]).strip()


def _unwrapped(command: str) -> str:
    """What stands inside of `/bin/bash -lc '…'`; the whole where it is not exactly that."""
    found = _SHELL.fullmatch(command)
    words = list(_QUOTED.finditer(found[1])) if found else []
    if not found or sum(len(word[0]) for word in words) != len(found[1]):
        return command
    return "".join(_unquoted(word) for word in words)


def _unquoted(word: re.Match[str]) -> str:
    if word["double"] is not None:
        return re.sub(r"\\([$`\"\\!\n])", r"\1", word["double"])
    return word["single"] or word["plain"] or word["one"] or ""


def _plan(item: dict[str, Any]) -> str:
    steps = map(reading.table, reading.items(item.get("items")))
    return "\n".join(f"[{'x' if step.get('completed') is True else ' '}] {step.get('text')}" for step in steps)
