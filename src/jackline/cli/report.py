"""How a run stands, and what can be done next, in the exact words to type. It changes nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline.cli.record import run_record
from jackline.domain.gate import is_a_persons, is_asked
from jackline.domain.states import Failure, RunState, WaitReason
from jackline.domain.tally import completion
from jackline.domain.turns import lost_sessions, run_cost
from jackline.formatting import format_count, format_elapsed, format_local, format_usd, make_printable, pluralize
from jackline.named import stored_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run, Turn

DOUBT_ANSWERS = ("happened", "did-not", "retry", "skip")
ASK_ANSWERS = ("allow", "deny")
CUT_OFF_ANSWERS = ("skip",)
_SAID = {
    DOUBT_ANSWERS: "may have happened: look, then answer with one of",
    ASK_ANSWERS: "needs approval: answer with one of",
    CUT_OFF_ANSWERS: "was interrupted, and the agent has not repeated it: go on, or first answer",
}
_ANSWERED = frozenset({WaitReason.IN_DOUBT, WaitReason.APPROVAL, WaitReason.HUMAN})
_RESUMED = frozenset({WaitReason.DEPENDENCY, WaitReason.PAUSED, WaitReason.RETRY})
_MOST_CALLS = 10


def tell(home: Home, run: Run, out: Output, code: int) -> int:
    """The end of `run` and `resume`: a short summary, or exactly one JSON object. Gives the code back."""
    if out.json:
        tally = home.store().tally(run.id)
        out.json_line({**run_record(home, run), "exit_code": code, "completion": stored_dict(tally)})
        return code
    turns = home.store().turns(run.id)
    out.line(f"run {run.id} (#{run.number}) {headline(run, out)}")
    if run.life.detail:
        out.line(f"  {make_printable(run.life.detail)}")
    out.line(f"  {_spent(run, turns)}")
    out.line(f"  {completion(home.store().tally(run.id))}")
    for text in lost_sessions(turns):
        out.line(f"  {make_printable(text)}")
    look = f"look: {out.command('show', run.id)}"
    for text in (f"folder: {home.folder(run.id)}", *next_steps(home, run, out), look):
        out.line(f"  {text}")
    return code


def headline(run: Run, out: Output) -> str:
    """The state with what belongs to it."""
    life = run.life
    match life.state:
        case RunState.WAITING:
            said = f"waiting: {life.reason}"
        case RunState.SUCCEEDED:
            said = f"succeeded, {life.proof}"
        case RunState.FAILED:
            said = f"failed: {life.failure}"
        case RunState.RUNNING:
            said = f"running: {life.phase}"
        case _:
            said = str(life.state)
    return out.paint(said, {"succeeded": "green", "failed": "red", "waiting": "yellow"}.get(life.state, "cyan"))


def next_steps(home: Home, run: Run, out: Output) -> list[str]:
    """What a person can do now."""
    life, resume, read = run.life, out.command("resume", run.id), f"read: {out.command('logs', run.id)}"
    match life.state:
        case RunState.RUNNING:
            return [f"follow: {out.command('logs', '-f', run.id)}", f"end: {out.command('cancel', run.id)}"]
        case RunState.QUEUED:
            return [f"go on: {resume}"]
        case RunState.WAITING:
            return _waiting(home, run, out, resume)
        case RunState.FAILED if run.spec.imported:
            return [read]
        case RunState.FAILED:
            return [*_cure(life.failure), f"try again: {resume}", read]
        case _:
            return [read]


def awaiting(home: Home, run: Run) -> list[tuple[Call, tuple[str, ...]]]:
    """The calls that wait for a person, each with its valid answers; the same question is listed once."""
    if run.life.reason is WaitReason.HUMAN:
        return [(call, CUT_OFF_ANSWERS) for call in home.store().forced(run.id)]
    found: dict[str, tuple[Call, tuple[str, ...]]] = {}
    for call in home.store().calls(run.id):
        if is_a_persons(call, strict=run.spec.strict):
            found[call.id] = (call, DOUBT_ANSWERS)
        elif is_asked(call):
            found.setdefault(call.key, (call, ASK_ANSWERS))
    return list(found.values())


def _waiting(home: Home, run: Run, out: Output, resume: str) -> list[str]:
    reason = run.life.reason
    if reason in _ANSWERED:
        calls = awaiting(home, run)
        asked = [line for call, answers in calls[:_MOST_CALLS] for line in _asked(run, call, answers, out)]
        more = [f"and {len(calls) - _MOST_CALLS} more: {out.command('show', run.id)}"] * (len(calls) > _MOST_CALLS)
        return [*asked, *more, f"{'then go on' if calls else 'go on'}: {resume}"]
    if reason is WaitReason.BUDGET:
        return ["its limits were frozen when it began: start another run with a higher --max-..."]
    wake = f" (not before {format_local(run.life.wake_at, round(time.time() * 1000))})" if run.life.wake_at else ""
    return [f"go on{wake if reason not in _RESUMED else ''}: {resume}"]


def _asked(run: Run, call: Call, answers: tuple[str, ...], out: Output) -> list[str]:
    """The question, then one complete command for each answer: each line can be pasted into a shell as it is."""
    touched = f" → {make_printable(call.target)}" if call.target else ""
    commands = [f"  {out.command('answer', run.id, call.id, answer)}" for answer in answers]
    return [f"call {call.id} {make_printable(call.tool)}{touched} {_SAID[answers]}", *commands]


def _cure(failure: Failure | None) -> list[str]:
    match failure:
        case Failure.UNAVAILABLE:
            return ["see what is missing: jackline agents"]
        case Failure.TIMEOUT | Failure.IDLE:
            return ["a turn may take longer with a new run and --timeout-seconds or --idle-seconds"]
        case _:
            return []


def _spent(run: Run, turns: Sequence[Turn]) -> str:
    life, spent = run.life, run.life.spent
    cost = run_cost(run, turns)
    parts = (
        format_elapsed(spent.wall_ms),
        pluralize(life.attempt, "attempt"),
        pluralize(life.turn, "turn"),
        pluralize(spent.calls, "call"),
        f"{format_count(spent.tokens)} tokens",
        format_usd(cost) if cost is not None else "cost unknown",
    )
    return ", ".join(parts)
