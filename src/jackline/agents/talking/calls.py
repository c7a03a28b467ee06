"""A call through the gate: ask, do, report. Whatever a helper does itself goes this way, and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .borrowed import Gate, Stop, tell
from .tools import Result

SHOWN_CHARACTERS = 4_096
REPORTED_CHARACTERS = 65_536


def through_gate(
    gate: Gate, word: str, given: Mapping[str, Any], agent_call: str, work: Callable[[], Result]
) -> Result:
    """What came of it, be it a denial; a call that a person must agree to ends the turn, and is made by the next."""
    answer = gate.prepare(word, given, agent_call)
    match answer["decision"]:
        case "allow":
            return _performed(gate, str(answer["call"]), word, given, work)
        case "stored":
            stored = Result(ok=True, output=str(answer.get("output") or ""))
            _tell_finished(str(answer.get("call") or ""), word, stored, stored=True)
            return stored
        case "ask":
            raise Stop(0, "end", reason="deferred")
        case _:
            reason = str(answer.get("reason") or "no reason was given")
            tell("message", text=f"{word} was denied: {reason}")
            return Result(ok=False, output=f"denied: {reason}")


def _performed(gate: Gate, call: str, word: str, given: Mapping[str, Any], work: Callable[[], Result]) -> Result:
    tell("call.started", call=call, tool=word, input=given)
    result = work()
    output = result.output[-REPORTED_CHARACTERS:]
    code = {} if result.exit_code is None else {"exit_code": result.exit_code}
    gate.finish(call=call, ok=result.ok, output=output, external_id="", **code)
    _tell_finished(call, word, result, stored=False)
    return result


def _tell_finished(call: str, word: str, result: Result, *, stored: bool) -> None:
    code = {} if result.exit_code is None else {"exit_code": result.exit_code}
    output = result.output[-SHOWN_CHARACTERS:]
    tell("call.finished", call=call, tool=word, ok=result.ok, output=output, stored=stored, **code)
