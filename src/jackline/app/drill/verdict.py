"""The judgement of a case: what was expected against what was seen. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.drill.cases import Case
    from jackline.app.drill.seen import Seen

PASS, FAIL, SKIP = "pass", "fail", "skip"
_DONE = "succeeded"


@stored_as("case result reasons effects_expected effects_seen replayed refused seconds evidence")
class Verdict(NamedTuple):
    """One row of the table."""

    case: str
    result: str
    reasons: tuple[str, ...]  # why it failed or was left out
    effects_expected: int
    effects_seen: int
    replayed: int
    refused: int
    seconds: float
    evidence: str


def judge(case: Case, seen: Seen, seconds: float, evidence: str) -> Verdict:
    """Pass only if nothing at all is wrong."""
    reasons = tuple(_wrong(case, seen))
    return Verdict(
        case=case.name,
        result=FAIL if reasons else PASS,
        reasons=reasons,
        effects_expected=len(case.effects),
        effects_seen=sum(seen.effects.values()),
        replayed=seen.replayed,
        refused=seen.refused,
        seconds=seconds,
        evidence=evidence,
    )


def _wrong(case: Case, seen: Seen) -> Iterator[str]:
    """The world outside first: an effect that is there twice is the worst that can be."""
    yield from _effects(case, seen)
    if seen.problem:
        yield seen.problem
        return  # what follows would only say in other words that it was not played to its end
    yield from (f"it did not hold: {fact.words}" for fact in seen.facts if not fact.held)
    yield from _runs(case, seen)
    yield from _order(case, seen)
    yield from _ledger(case, seen)
    yield from (f"still running: {command}" for command in seen.left)


def _effects(case: Case, seen: Seen) -> Iterator[str]:
    for name in sorted({*case.effects, *seen.effects}):
        wanted, found = int(name in case.effects), seen.effects.get(name, 0)
        if wanted != found:
            yield f"the effect '{name}' happened {_times(found)}, expected {_times(wanted)}"


def _runs(case: Case, seen: Seen) -> Iterator[str]:
    for wanted in case.runs:
        found = seen.runs.get((wanted.tool, wanted.name), (0, 0))
        for what, expected, count in (("begun", wanted.begun, found[0]), ("ended", wanted.ended, found[1])):
            if count != expected:
                yield f"`{wanted.tool} {wanted.name}` was {what} {_times(count)}, expected {_times(expected)}"


def _order(case: Case, seen: Seen) -> Iterator[str]:
    for name in case.drained:
        begun_first = seen.order[: seen.order.index((name, "ended"))] if (name, "ended") in seen.order else seen.order
        yield from (
            f"the effect '{effect}' was begun before '{name}' had been made again"
            for effect in case.effects
            if (effect, "begun") in begun_first
        )


def _ledger(case: Case, seen: Seen) -> Iterator[str]:
    if seen.state != _DONE:
        yield f"the run is {seen.state}, not {_DONE}"
    if seen.doubts:
        yield f"effects in doubt at the end: {seen.doubts}"
    if seen.replayed < case.replayed:
        yield f"calls replayed: {seen.replayed}, expected at least {case.replayed}"
    if seen.refused < case.refused:
        yield f"calls refused during the replay: {seen.refused}, expected at least {case.refused}"
    if seen.chain:
        yield f"the run's history does not hold: {seen.chain}"
    yield from _receipts(case, seen)


def _receipts(case: Case, seen: Seen) -> Iterator[str]:
    for name in case.effects:
        if name not in seen.origins:
            yield f"the effect '{name}' has no receipt"
    for name, origin in case.origins:
        if seen.origins.get(name, origin) != origin:
            yield f"the receipt of '{name}' is from the {seen.origins[name]}, expected from the {origin}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
