"""What an ACP agent reports while it works, as event lines: words put together, calls from their pieces, cost."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from .borrowed import Gate, tell
from .turn import Pulse

SHOWN_CHARACTERS = 4_096
REPORTED_CHARACTERS = 65_536
WORDS_AT_ONCE = 16_384
KINDS = {"agent_message_chunk": "message", "agent_thought_chunk": "thinking"}
# The words that rules know; any other kind of tool keeps its own.
WORDS = {"execute": "shell", "read": "read", "edit": "edit", "search": "grep"}
_NAME = re.compile(r"[A-Za-z][\w.:-]{0,63}")


@dataclass(slots=True)
class Call:
    """A call as far as the agent has told it."""

    id: str
    title: str = ""
    kind: str = ""
    input: Any = None
    paths: tuple[str, ...] = ()
    output: str = ""
    exit_code: int | None = None
    admitted: str = ""  # its id in the ledger, if the agent asked for it
    told: str = ""  # the name under which it was told
    is_running: bool = False
    is_refused: bool = False  # it did not run, whatever the agent says of it later

    @property
    def word(self) -> str:
        """What rules know its tool by."""
        if self.kind in WORDS:
            return WORDS[self.kind]
        return self.title if _NAME.fullmatch(self.title) else self.kind or "other"

    @property
    def given(self) -> Any:  # noqa: ANN401 - any JSON
        """Its input; an agent that does not tell it tells at least a title."""
        named = {"command" if self.kind == "execute" else "title": self.title}
        return self.input or {**named, **({"paths": list(self.paths)} if self.paths else {})}

    def take(self, update: dict[str, Any]) -> None:
        """What an update says replaces what was known; what it does not mention stays."""
        self.title = _text(update.get("title")) or self.title
        self.kind = _text(update.get("kind")) or self.kind
        self.input = update.get("rawInput") or self.input
        places = [_text(one.get("path")) for one in _objects(update.get("locations"))]
        self.paths = tuple(filter(None, places)) or self.paths
        self.output = _output(update) or self.output
        self.exit_code = _exit_code(update.get("rawOutput"), self.exit_code)


@dataclass(slots=True)
class Updates:
    """The notices of one turn. Silent until `is_live`: a session that is loaded tells its past first."""

    gate: Gate
    pulse: Pulse
    is_live: bool = False
    calls: dict[str, Call] = field(default_factory=dict)
    _kind: str = ""
    _words: list[str] = field(default_factory=list)

    def hear(self, method: str, params: dict[str, Any]) -> None:
        update = params.get("update")
        if method != "session/update" or not isinstance(update, dict) or not self.is_live:
            return
        self.pulse.beat()
        name = _text(update.get("sessionUpdate"))
        if name in KINDS:
            self._say(KINDS[name], _block(update.get("content")))
        elif name in ("tool_call", "tool_call_update"):
            self._follow(update)
        elif name == "usage_update":
            self._charge(update.get("cost"))

    def flush(self) -> None:
        """Tell the words that have come in pieces."""
        text, self._words = "".join(self._words), []
        if text.strip():
            tell(self._kind, text=text)

    def call(self, update: dict[str, Any]) -> Call:
        """The call that an update is about."""
        name = _text(update.get("toolCallId"))
        call = self.calls.setdefault(name, Call(name))
        call.take(update)
        return call

    def start(self, call: Call) -> None:
        """Tell that it runs, once."""
        if not call.told and not call.is_refused:
            self.flush()
            call.told = call.admitted or call.id
            tell("call.started", call=call.told, tool=call.word, title=call.title, input=call.given)

    def settle(self, *, quiet: bool) -> bool:
        """Whether calls run that were not told yet; tells them when it is `quiet`.

        Some agents say that a call runs and ask for leave right after it: told at once it would count as two.
        """
        waiting = [call for call in self.calls.values() if call.is_running and not call.told and not call.is_refused]
        if quiet:
            for call in waiting:
                self.start(call)
        return bool(waiting)

    def _say(self, kind: str, text: str) -> None:
        if kind != self._kind or sum(map(len, self._words)) > WORDS_AT_ONCE:
            self.flush()
        self._kind = kind
        self._words.append(text)

    def _follow(self, update: dict[str, Any]) -> None:
        call, status = self.call(update), update.get("status")
        call.is_running = call.is_running or status == "in_progress"
        if status in ("completed", "failed"):
            self.start(call)
            del self.calls[call.id]
            if not call.is_refused:
                self._finish(call, ok=status == "completed" and not call.exit_code)

    def _finish(self, call: Call, *, ok: bool) -> None:
        code = {} if call.exit_code is None else {"exit_code": call.exit_code}
        if call.admitted:
            self.gate.finish(call=call.admitted, ok=ok, output=call.output[-REPORTED_CHARACTERS:], **code)
        output = call.output[-SHOWN_CHARACTERS:]
        tell("call.finished", call=call.told, tool=call.word, ok=ok, output=output, **code)

    def _charge(self, cost: object) -> None:
        """What the session has cost so far, earlier turns included."""
        if isinstance(cost, dict) and cost.get("currency") == "USD":
            tell("usage", usd=cost.get("amount"), scope="session")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _block(content: object) -> str:
    return _text(content.get("text")) if isinstance(content, dict) else ""


def _output(update: dict[str, Any]) -> str:
    """The words of its content, or else whatever its raw output is."""
    pieces = [_block(one.get("content")) or _diff(one) for one in _objects(update.get("content"))]
    text = "\n".join(filter(None, pieces))
    raw = update.get("rawOutput")
    if text or raw is None:
        return text
    return raw if isinstance(raw, str) else json.dumps(raw)


def _diff(content: dict[str, Any]) -> str:
    return f"changed {_text(content.get('path'))}" if content.get("type") == "diff" else ""


def _exit_code(raw: object, known: int | None) -> int | None:
    """Agents put it in different places, if anywhere."""
    if not isinstance(raw, dict):
        return known
    metadata = raw.get("metadata")
    inner = metadata if isinstance(metadata, dict) else {}
    found = [raw.get("exitCode"), raw.get("exit_code"), inner.get("exit"), inner.get("exitCode")]
    return next((one for one in found if type(one) is int), known)
