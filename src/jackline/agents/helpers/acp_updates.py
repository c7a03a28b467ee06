"""Converts an ACP agent's notifications to event lines: joins text, assembles calls from their pieces, reports cost."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ..scripted.playback.agent_io import SHOWN_CHARACTERS, GateClient, emit
from .helper_turn import REPORTED_CHARACTERS, Heartbeat

TEXT_CHARACTERS = 16_384
TEXT_KINDS = {"agent_message_chunk": "message", "agent_thought_chunk": "thinking"}
# Tool names in policy rules; a tool of any other kind keeps its own name.
RULE_NAMES = {"execute": "shell", "read": "read", "edit": "edit", "search": "grep"}
_NAME = re.compile(r"[A-Za-z][\w.:-]{0,63}")


@dataclass(slots=True)
class AcpCall:
    """A call, as far as the agent has reported it."""

    id: str
    title: str = ""
    kind: str = ""
    input: Any = None
    paths: tuple[str, ...] = ()
    output: str = ""
    exit_code: int | None = None
    admitted: str = ""  # its id in the ledger, if the agent asked for permission
    reported: str = ""  # the id under which it was reported
    is_running: bool = False
    is_refused: bool = False  # it did not run, whatever the agent reports later

    @property
    def tool(self) -> str:
        """The tool's name in policy rules."""
        if self.kind in RULE_NAMES:
            return RULE_NAMES[self.kind]
        return self.title if _NAME.fullmatch(self.title) else self.kind or "other"

    @property
    def call_input(self) -> Any:  # noqa: ANN401 - any JSON
        """Its input; an agent that does not report it reports at least a title."""
        named = {"command" if self.kind == "execute" else "title": self.title}
        return self.input or {**named, **({"paths": list(self.paths)} if self.paths else {})}

    def apply(self, update: dict[str, Any]) -> None:
        """Replace the fields that an update has; the others stay."""
        self.title = _as_str(update.get("title")) or self.title
        self.kind = _as_str(update.get("kind")) or self.kind
        self.input = update.get("rawInput") or self.input
        paths = [_as_str(one.get("path")) for one in _as_dicts(update.get("locations"))]
        self.paths = tuple(filter(None, paths)) or self.paths
        self.output = _extract_output(update) or self.output
        self.exit_code = _find_exit_code(update.get("rawOutput"), self.exit_code)


@dataclass(slots=True)
class AcpUpdates:
    """The notifications of one turn. Silent until `is_live`: a loaded session first repeats its past."""

    gate: GateClient
    heartbeat: Heartbeat
    is_live: bool = False
    calls: dict[str, AcpCall] = field(default_factory=dict)
    _kind: str = ""
    _pieces: list[str] = field(default_factory=list)

    def handle(self, method: str, params: dict[str, Any]) -> None:
        update = params.get("update")
        if method != "session/update" or not isinstance(update, dict) or not self.is_live:
            return
        self.heartbeat.beat()
        name = _as_str(update.get("sessionUpdate"))
        if name in TEXT_KINDS:
            if TEXT_KINDS[name] != self._kind or sum(map(len, self._pieces)) > TEXT_CHARACTERS:
                self.flush()
            self._kind = TEXT_KINDS[name]
            self._pieces.append(_extract_text(update.get("content")))
        elif name in ("tool_call", "tool_call_update"):
            self._update_call(update)
        elif name == "usage_update":
            cost = update.get("cost")  # of the session so far, earlier turns included
            if isinstance(cost, dict) and cost.get("currency") == "USD":
                emit("usage", usd=cost.get("amount"), scope="session")

    def flush(self) -> None:
        """Emit the text that has arrived in pieces."""
        text, self._pieces = "".join(self._pieces), []
        if text.strip():
            emit(self._kind, text=text)

    def find_call(self, update: dict[str, Any]) -> AcpCall:
        """The call that an update is about, with the update applied."""
        name = _as_str(update.get("toolCallId"))
        call = self.calls.setdefault(name, AcpCall(name))
        call.apply(update)
        return call

    def report_start(self, call: AcpCall) -> None:
        """Report that a call runs, once."""
        if not call.reported and not call.is_refused:
            self.flush()
            call.reported = call.admitted or call.id
            emit("call.started", call=call.reported, tool=call.tool, title=call.title, input=call.call_input)

    def settle(self, *, quiet: bool) -> bool:
        """Whether calls run that are not reported yet; reports them if `quiet`.

        Some agents report a running call and ask for permission right after: reported at once, it would count twice.
        """
        waiting = [
            call for call in self.calls.values() if call.is_running and not call.reported and not call.is_refused
        ]
        if quiet:
            for call in waiting:
                self.report_start(call)
        return bool(waiting)

    def _update_call(self, update: dict[str, Any]) -> None:
        call, status = self.find_call(update), update.get("status")
        call.is_running = call.is_running or status == "in_progress"
        if status not in ("completed", "failed"):
            return
        self.report_start(call)
        del self.calls[call.id]
        if call.is_refused:
            return
        ok = status == "completed" and not call.exit_code
        code = {} if call.exit_code is None else {"exit_code": call.exit_code}
        if call.admitted:
            self.gate.finish(call=call.admitted, ok=ok, output=call.output[-REPORTED_CHARACTERS:], **code)
        output = call.output[-SHOWN_CHARACTERS:]
        emit("call.finished", call=call.reported, tool=call.tool, ok=ok, output=output, **code)


def _as_str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _as_dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _extract_text(content: object) -> str:
    return _as_str(content.get("text")) if isinstance(content, dict) else ""


def _extract_output(update: dict[str, Any]) -> str:
    """The text of its content, else its raw output."""
    pieces = []
    for one in _as_dicts(update.get("content")):
        diff = f"changed {_as_str(one.get('path'))}" if one.get("type") == "diff" else ""
        pieces.append(_extract_text(one.get("content")) or diff)
    text = "\n".join(filter(None, pieces))
    raw = update.get("rawOutput")
    if text or raw is None:
        return text
    return raw if isinstance(raw, str) else json.dumps(raw)


def _find_exit_code(raw: object, known: int | None) -> int | None:
    """Agents report it in different fields, if at all."""
    if not isinstance(raw, dict):
        return known
    metadata = raw.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    found = [raw.get("exitCode"), raw.get("exit_code"), inner.get("exit"), inner.get("exitCode")]
    return next((one for one in found if type(one) is int), known)
