"""The evidence of a case, its verdict, and the verdicts as a table and as JSON. Only `collect_evidence` does I/O.

The number of effects comes from the outbox alone, never from jackline's database.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from jackline.formatting import pluralize
from jackline.named import NamedTuple, stored_as, stored_dict
from jackline.scenarios.sandbox import list_running, write_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.scenarios.command_session import CommandSession
    from jackline.scenarios.drill_cases import DrillCase
    from jackline.scenarios.sandbox import Sandbox

PASS, FAIL, SKIP = "pass", "fail", "skip"
TABLE_TITLES = "CASE RESULT* EFFECTS> REPLAYED> REFUSED> SECONDS> WHY~"
_SUCCEEDED = "succeeded"


class Expectation(NamedTuple):
    """Something that had to be true while the case ran, and whether it was."""

    description: str
    met: bool


class CaseEvidence(NamedTuple):
    """One case after its end."""

    expectations: tuple[Expectation, ...] = ()
    problem: str = ""  # why it could not run to its end
    effects: Mapping[str, int] = {}  # by name, from the outbox
    runs: Mapping[tuple[str, str], tuple[int, int]] = {}  # by tool and name: started and finished
    order: tuple[tuple[str, str], ...] = ()  # name and "begun" or "ended", in the order they happened
    state: str = ""
    in_doubt: int = 0  # effects whose outcome is unknown
    origins: Mapping[str, str] = {}  # by name: the source of the receipt
    replayed: int = 0
    refused: int = 0
    still_running: tuple[str, ...] = ()  # commands of processes
    broken_history: str = ""  # the report of `jackline verify`, if it found something


@stored_as("case result reasons effects_expected effects_seen replayed refused seconds evidence")
class CaseVerdict(NamedTuple):
    """One row of the table."""

    case: str
    result: str
    reasons: tuple[str, ...]  # why it failed or was skipped
    effects_expected: int
    effects_seen: int
    replayed: int
    refused: int
    seconds: float
    evidence: str


# --- collecting


def collect_evidence(
    sandbox: Sandbox, commands: CommandSession, run_id: str, expectations: tuple[Expectation, ...], problem: str
) -> CaseEvidence:
    """Collect it, even if the case did not run to its end; jackline's own reports are kept as files."""
    still_running = tuple(list_running(sandbox).values())
    journal = read_lines(sandbox, "journal.jsonl")
    what = Counter((line["tool"], line["name"], line["what"]) for line in journal)
    evidence = CaseEvidence(
        expectations=expectations,
        problem=problem,
        effects=Counter(line["name"] for line in read_lines(sandbox, "outbox.jsonl")),
        runs={(tool, name): (what[tool, name, "begun"], what[tool, name, "ended"]) for tool, name, _ in what},
        order=tuple((line["name"], line["what"]) for line in journal),
        still_running=still_running,
    )
    shown = commands.run("show", run_id, "--json")
    write_text(sandbox.at("show.json"), shown.out)
    if shown.code != 0:
        return evidence._replace(problem=problem or f"`jackline show` failed: {shown.err.strip()}")
    reports = {name: commands.run(name, run_id, "--json") for name in ("receipts", "verify")}
    for name, report in reports.items():
        write_text(sandbox.at(f"{name}.json"), report.out)
    verified = reports["verify"]
    run = json.loads(shown.out)
    calls = run["calls"]
    return evidence._replace(
        state=run["state"],
        in_doubt=sum(call["state"] == "in_doubt" and call["call_class"] == "effect" for call in calls),
        origins={receipt["target"]: receipt["origin"] for receipt in run["receipts"]},
        replayed=sum(bool(call["original"]) and call["decision"] in {"allow", "stored"} for call in calls),
        refused=sum(call["decision"] == "deny" for call in calls),
        broken_history="" if verified.code == 0 else " ".join((verified.err or verified.out).split()),
    )


def read_lines(sandbox: Sandbox, name: str) -> list[dict[str, Any]]:
    """Read a JSON lines file of the outside world; empty if it does not exist."""
    try:
        with open(os.path.join(sandbox.world, name), encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


# --- judging


def judge_case(case: DrillCase, evidence: CaseEvidence, seconds: float, folder: str) -> CaseVerdict:
    """Compare the evidence with the case; it passes only if nothing at all is wrong."""
    reasons = tuple(_find_faults(case, evidence))
    return CaseVerdict(
        case=case.name,
        result=FAIL if reasons else PASS,
        reasons=reasons,
        effects_expected=len(case.effects),
        effects_seen=sum(evidence.effects.values()),
        replayed=evidence.replayed,
        refused=evidence.refused,
        seconds=seconds,
        evidence=folder,
    )


def _find_faults(case: DrillCase, evidence: CaseEvidence) -> Iterator[str]:
    # The outside world first: an effect that happened twice is the worst fault.
    for name in sorted({*case.effects, *evidence.effects}):
        expected, found = int(name in case.effects), evidence.effects.get(name, 0)
        if expected != found:
            yield f"the effect '{name}' happened {_format_times(found)}, expected {_format_times(expected)}"
    if evidence.problem:
        yield evidence.problem
        return  # every other fault would only follow from it
    yield from (f"not met: {one.description}" for one in evidence.expectations if not one.met)
    yield from _find_run_faults(case, evidence)
    yield from _find_order_faults(case, evidence)
    yield from _find_ledger_faults(case, evidence)
    yield from (f"still running: {command}" for command in evidence.still_running)


def _find_run_faults(case: DrillCase, evidence: CaseEvidence) -> Iterator[str]:
    for wanted in case.runs:
        begun, ended = evidence.runs.get((wanted.tool, wanted.name), (0, 0))
        for verb, expected, count in (("started", wanted.begun, begun), ("finished", wanted.ended, ended)):
            if count != expected:
                times = f"{_format_times(count)}, expected {_format_times(expected)}"
                yield f"`{wanted.tool} {wanted.name}` {verb} {times}"


def _find_order_faults(case: DrillCase, evidence: CaseEvidence) -> Iterator[str]:
    order = evidence.order
    for name in case.drained:
        before = order[: order.index((name, "ended"))] if (name, "ended") in order else order
        yield from (
            f"the effect '{effect}' started before '{name}' had been repeated"
            for effect in case.effects
            if (effect, "begun") in before
        )


def _find_ledger_faults(case: DrillCase, evidence: CaseEvidence) -> Iterator[str]:
    if evidence.state != _SUCCEEDED:
        yield f"the run is {evidence.state}, not {_SUCCEEDED}"
    if evidence.in_doubt:
        yield f"effects in doubt at the end: {evidence.in_doubt}"
    if evidence.replayed < case.replayed:
        yield f"calls replayed: {evidence.replayed}, expected at least {case.replayed}"
    if evidence.refused < case.refused:
        yield f"calls refused during the replay: {evidence.refused}, expected at least {case.refused}"
    if evidence.broken_history:
        yield f"the run's history does not verify: {evidence.broken_history}"
    for name in case.effects:
        if name not in evidence.origins:
            yield f"the effect '{name}' has no receipt"
    for name, origin in case.origins:
        if evidence.origins.get(name, origin) != origin:
            yield f"the receipt of '{name}' is from the {evidence.origins[name]}, expected from the {origin}"


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


# --- presenting


def build_row(verdict: CaseVerdict) -> tuple[str, ...]:
    """Format a verdict as a row of the table; effects as seen of expected."""
    return (
        verdict.case,
        verdict.result,
        f"{verdict.effects_seen}/{verdict.effects_expected}",
        str(verdict.replayed),
        str(verdict.refused),
        f"{verdict.seconds:.1f}",
        "; ".join(verdict.reasons) or "-",
    )


def build_record(verdict: CaseVerdict, agent: str) -> dict[str, object]:
    """Format a verdict as a JSON object."""
    return {
        "agent": agent,
        **stored_dict(verdict),
        "reasons": list(verdict.reasons),
        "seconds": round(verdict.seconds, 3),
    }


def build_total(verdicts: Sequence[CaseVerdict], agent: str, folder: str) -> dict[str, object]:
    """Format all verdicts as the last JSON object."""
    count = Counter(verdict.result for verdict in verdicts)
    return {
        "agent": agent,
        "total": len(verdicts),
        "passed": count[PASS],
        "failed": count[FAIL],
        "skipped": count[SKIP],
        "seconds": round(sum(verdict.seconds for verdict in verdicts), 3),
        "folder": folder,
    }


def summarize(verdicts: Sequence[CaseVerdict]) -> str:
    """Format all verdicts as one line."""
    count = Counter(verdict.result for verdict in verdicts)
    words = {PASS: "passed", FAIL: "failed", SKIP: "skipped"}
    parts = [f"{count[result]} {word}" for result, word in words.items() if count[result] or result == PASS]
    return f"{pluralize(len(verdicts), 'case')}: {', '.join(parts)}"


def all_passed(verdicts: Sequence[CaseVerdict]) -> bool:
    """Whether the drill succeeded: a skipped case has not passed, and a drill without cases has not succeeded."""
    return bool(verdicts) and all(verdict.result == PASS for verdict in verdicts)
