"""The adapter of the scripted agent, which needs no model: it plays a script. Pure, like every adapter.

The program that plays is scripted_player.py; what a script may say is in scripted_format.py.
"""

from __future__ import annotations

import json
import os.path
import signal
import sys
from collections.abc import Mapping
from typing import Any

from jackline.agents.scripted_format import validate
from jackline.domain.adapter import Adapter, Declaration, Launch, TurnRequest
from jackline.domain.outcome import Exit, Heard, Outcome, Usage
from jackline.domain.states import Failure, WaitReason

__all__ = ["ADAPTER", "PLAYER", "Scripted", "validate"]

PLAYER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripted_player.py")
DECLARATION = Declaration(
    name="scripted",
    binary=sys.executable,
    gate="enforced",
    gate_reason="it asks the gate before every call, and runs nothing without an answer",
    chooses_session=True,
    resumes=True,
)

_KINDS = frozenset(
    {"message", "thinking", "call.started", "call.finished", "usage", "session", "limit", "retry", "error",
     "end"}
)  # fmt: skip
_TEXT_NAMES = ("text", "detail", "reason", "id")  # what a person reads first of a line, in this order
_RAW = (Heard("raw"),)  # counted, not copied: the transcript has every byte
_MOST = 10**15  # a larger number is nonsense, and would not fit a database's integer


class Scripted:
    """The scripted agent."""

    declaration = DECLARATION

    def launch(self, request: TurnRequest) -> Launch:
        script = os.path.join(request.folder, "script.json")
        return Launch(
            argv=(request.binary or sys.executable, "-I", PLAYER),
            env=_environment(request, script),
            files={script: request.options.get("script", "").encode("utf-8", "surrogatepass")},
            stdin=request.prompt.encode("utf-8", "replace"),
        )

    def parse(self, line: bytes) -> tuple[Heard, ...]:
        line = line.strip()
        if not line:
            return ()
        if not line.startswith(b"{"):  # a gigabyte of garbage must not go through the JSON parser
            return _RAW
        try:
            fields = json.loads(line)
            heard = _heard(_storable(fields) if b"\\u" in line else fields)
        except (ValueError, RecursionError):
            heard = None
        return (heard,) if heard else _RAW

    def classify(self, exit_: Exit, heard: tuple[Heard, ...]) -> Outcome:
        """What the agent said in so many words counts before how its process ended."""
        last = {one.kind: one for one in heard}
        if "limit" in last:
            return Outcome(Failure.LIMIT, last["limit"].text, resets_at=last["limit"].data.get("resets_at"))
        if "error" in last:
            return _said(last["error"])
        if "end" in last and last["end"].text == "deferred":
            return Outcome(waits=WaitReason.APPROVAL)
        return _by_exit(exit_, ended="end" in last)


ADAPTER: Adapter = Scripted()


def _environment(request: TurnRequest, script: str) -> dict[str, str]:
    return {
        "JACKLINE_GATE": request.gate,
        "JACKLINE_GATE_TOKEN": request.token,
        "JACKLINE_RUN_ID": request.run_id,
        "JACKLINE_ATTEMPT": str(request.attempt),
        "JACKLINE_TURN": str(request.turn),
        "JACKLINE_SESSION": request.session or "",
        "JACKLINE_RESUME": "1" if request.resume else "0",
        "JACKLINE_SCRIPT": script,
        "JACKLINE_AGENT_FOLDER": request.folder,
    }


def _heard(fields: dict[str, Any]) -> Heard | None:
    """The line in the words of all agents; None when it is none of them."""
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        return None
    text = next((fields[name] for name in _TEXT_NAMES if isinstance(fields.get(name), str)), "")
    if kind == "limit":
        fields["resets_at"] = _milliseconds(fields.get("resets_at"))
    return Heard(kind, text, fields, _usage(fields) if kind == "usage" else None)


def _usage(fields: Mapping[str, Any]) -> Usage:
    return Usage(
        tokens_input=_whole(fields.get("input")),
        tokens_output=_whole(fields.get("output")),
        tokens_cached=_whole(fields.get("cached")),
        usd_micros=_whole(fields.get("usd"), times=1_000_000),
    )


def _whole(value: object, times: int = 1) -> int:
    """A count from what an agent printed: anything that is none (a text, NaN, less than nothing) counts 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        return 0
    return round(min(value, _MOST) * times)


def _milliseconds(seconds: object) -> int | None:
    return _whole(seconds, times=1000) or None


def _storable(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The same value with every text one that both databases take; only escapes can bring in others."""
    if isinstance(value, dict):
        return {_plain(name): _storable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_storable(item) for item in value]
    return _plain(value) if isinstance(value, str) else value


def _plain(text: str) -> str:
    """Without half surrogates, which have no UTF-8, and NUL, which PostgreSQL refuses."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _said(error: Heard) -> Outcome:
    word = error.data.get("class")
    failure = next((failure for failure in Failure if failure == word), Failure.AGENT_ERROR)
    return Outcome(failure, error.text, session_lost=error.data.get("session_lost") is True)


def _by_exit(exit_: Exit, *, ended: bool) -> Outcome:
    if exit_.lost:
        return Outcome(Failure.CRASHED, "the process was lost with its warden")
    if exit_.signal is not None or exit_.code is None:
        return Outcome(Failure.CRASHED, f"killed by {_signal_name(exit_.signal)}")
    if exit_.code != 0:
        return Outcome(Failure.AGENT_ERROR, f"exit code {exit_.code}")
    if not ended:
        return Outcome(Failure.NO_TERMINAL_EVENT, "it exited with code 0 and never said that it was done")
    return Outcome()


def _signal_name(number: int | None) -> str:
    known = {int(one): one.name for one in signal.Signals}
    return known.get(number or 0, f"signal {number}" if number else "an unknown signal")
