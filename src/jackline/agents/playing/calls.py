"""Calls: ask the gate, run the tool, tell the gate how it went. No tool of a script runs by another way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .gate import Gate
from .lines import Stop, failed, tell
from .tools import Result, run_call, run_commit, run_edit

SHOWN_CHARACTERS = 4_096  # of a tool's output, what a line on standard output shows: the end


@dataclass(slots=True)
class Player:
    """What a step may need to know."""

    gate: Gate
    folder: str
    attempt: int
    step: int = 0  # the number of the step that is being played, from 1


@dataclass(frozen=True, slots=True)
class Call:
    """A tool, what it gets, and the work itself, which is not begun before the gate allows it."""

    tool: str
    input: Mapping[str, object]
    work: Callable[[], Result]
    on_denied: str = "continue"


def play_call(player: Player, value: Mapping[str, Any]) -> None:
    call = Call(value["tool"], value.get("input", {}), partial(run_call, value), value.get("on_denied", "continue"))
    if value.get("ungated"):
        _perform(f"ungated-s{player.step}", call, gate=None)
    else:
        _through_gate(player, call)


def play_edit(player: Player, value: Mapping[str, str]) -> None:
    _through_gate(player, Call("edit", value, partial(run_edit, value)))


def play_commit(player: Player, message: str) -> None:
    _through_gate(player, Call("commit", {"message": message}, partial(run_commit, message)))


def _through_gate(player: Player, call: Call) -> None:
    answer = player.gate.prepare(call.tool, call.input, f"s{player.step}")
    match answer["decision"]:
        case "allow":
            _perform(str(answer["call"]), call, player.gate)
        case "stored":
            stored = Result(0, str(answer.get("output") or ""))
            _tell_finished(str(answer.get("call") or ""), call, stored, stored=True)
        case "deny":
            _denied(call, str(answer.get("reason") or "no reason was given"))
        case "ask":
            raise Stop(0, "end", reason="deferred")


def _perform(call_id: str, call: Call, gate: Gate | None) -> None:
    tell("call.started", call=call_id, tool=call.tool, input=call.input)
    result = call.work()
    if gate is not None:
        gate.finish(
            call=call_id,
            ok=result.exit_code == 0,
            exit_code=result.exit_code,
            output=result.output,
            external_id=result.external_id,
        )
    _tell_finished(call_id, call, result)


def _tell_finished(call_id: str, call: Call, result: Result, *, stored: bool = False) -> None:
    tell(
        "call.finished",
        call=call_id,
        tool=call.tool,
        ok=result.exit_code == 0,
        exit_code=result.exit_code,
        output=result.output[-SHOWN_CHARACTERS:],
        stored=stored,
    )


def _denied(call: Call, reason: str) -> None:
    tell("message", text=f"{call.tool} was denied: {reason}")
    if call.on_denied == "stop":
        raise failed("agent_error", f"{call.tool} was denied: {reason}")
