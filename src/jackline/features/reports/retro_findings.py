"""Finds what a week's runs and cases show: success, failures, limits, flaky proofs, repeated learnings. Pure.

A proof is flaky if it has different results on the same tree. If a check has no tree, two checks of an attempt without
a turn in between are taken to have the same tree, and a proof that changes its result twice in one run is a suspect.
Two learnings are alike if they have the same kind and mostly the same words: a rough hint for a person.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from jackline.domain.states import Failure, Proof, RunState
from jackline.features.cases.learning import REVIEW_COMMAND
from jackline.features.reports.lines import CheckLine, Learning, RunLine, Spending, TurnLine
from jackline.named import NamedTuple, stored_as


@stored_as("agent task succeeded proved failed cancelled usd_micros tokens")
class TaskSuccess(NamedTuple):
    """The runs of one agent at one task that ended in the week."""

    agent: str
    task: str
    succeeded: int
    proved: int  # of those
    failed: int
    cancelled: int
    usd_micros: int
    tokens: int

    @property
    def ended(self) -> int:
        """How many runs ended."""
        return self.succeeded + self.failed + self.cancelled

    @property
    def rate(self) -> float | None:
        """The share of succeeded runs, without cancelled ones."""
        judged = self.succeeded + self.failed
        return self.succeeded / judged if judged else None


@stored_as("failure runs turns")
class FailureCount(NamedTuple):
    """The runs and turns with one class of failure."""

    failure: str
    runs: int  # that ended so
    turns: int  # that ended so, also if a retry or another agent succeeded


@stored_as("agent turns")
class LimitHits(NamedTuple):
    """How often an agent stopped at a limit."""

    agent: str
    turns: int


def count_successes(runs: Iterable[RunLine]) -> list[TaskSuccess]:
    """By agent and task, the most frequent first."""
    by_name: dict[tuple[str, str], list[RunLine]] = {}
    for run in runs:
        by_name.setdefault((run.agent, run.task), []).append(run)
    found = []
    for (agent, task), of_name in by_name.items():
        states = Counter(run.state for run in of_name)
        found.append(
            TaskSuccess(
                agent=agent,
                task=task,
                succeeded=states[RunState.SUCCEEDED],
                proved=sum(run.state == RunState.SUCCEEDED and run.proof == Proof.PROVED for run in of_name),
                failed=states[RunState.FAILED],
                cancelled=states[RunState.CANCELLED],
                usd_micros=sum(run.usd_micros for run in of_name),
                tokens=sum(run.tokens for run in of_name),
            )
        )
    return sorted(found, key=lambda one: (-one.ended, one.agent, one.task))


def count_failures(runs: Iterable[RunLine], turns: Iterable[TurnLine]) -> list[FailureCount]:
    """By class, the most frequent first."""
    of_runs = Counter(run.failure or "unknown" for run in runs if run.state == RunState.FAILED)
    of_turns = Counter(turn.failure for turn in turns if turn.failure)
    found = [FailureCount(failure=name, runs=of_runs[name], turns=of_turns[name]) for name in of_runs | of_turns]
    return sorted(found, key=lambda one: (-one.runs, -one.turns, one.failure))


def count_limits(turns: Iterable[TurnLine]) -> list[LimitHits]:
    """By agent, the most frequent first."""
    found = Counter(turn.agent for turn in turns if turn.failure == Failure.LIMIT)
    return [LimitHits(agent, count) for agent, count in sorted(found.items(), key=lambda one: (-one[1], one[0]))]


def group_by_day(spending: Sequence[Spending], days: Sequence[str]) -> Mapping[str, list[Spending]]:
    """The spending of each day."""
    return {day: [one for one in spending if one.day == day] for day in days}


SAME_TREE = "different results on the same tree"
NO_TURN = "different results with no turn in between"
TO_AND_FRO = "changed its result twice in one run"
_TWICE = 2


@stored_as("command why runs")
class FlakyProof(NamedTuple):
    """A command with inconsistent results."""

    command: str
    why: str
    runs: tuple[str, ...]


def find_flaky_proofs(
    checks: Mapping[str, Sequence[CheckLine]], turns: Mapping[str, Sequence[TurnLine]]
) -> list[FlakyProof]:
    """From the checks and turns by run id; each command with its strongest reason."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for command, runs in _find_on_one_tree(checks).items():
        found[command, SAME_TREE] += runs
    for run_id, of_run in checks.items():
        for command in dict.fromkeys(check.command for check in of_run if check.command != REVIEW_COMMAND):
            finished = [one for one in of_run if one.command == command and one.exit_code is not None]
            why = _find_reason(finished, turns.get(run_id, ()))
            if why:
                found[command, why].append(run_id)
    order = (SAME_TREE, NO_TURN, TO_AND_FRO)
    best: dict[str, FlakyProof] = {}
    for (command, why), runs in sorted(found.items(), key=lambda one: (order.index(one[0][1]), one[0][0])):
        best.setdefault(command, FlakyProof(command=command, why=why, runs=tuple(dict.fromkeys(runs))))
    return list(best.values())


def _find_on_one_tree(checks: Mapping[str, Sequence[CheckLine]]) -> dict[str, list[str]]:
    results: dict[tuple[str, str], dict[bool, list[str]]] = defaultdict(lambda: defaultdict(list))
    for run_id, of_run in checks.items():
        for one in of_run:
            if one.tree and one.exit_code is not None:
                results[one.command, one.tree][one.exit_code == 0].append(run_id)
    found: dict[str, list[str]] = defaultdict(list)
    for (command, _), by_result in results.items():
        if len(by_result) > 1:
            found[command] += [run for runs in by_result.values() for run in runs]
    return found


def _find_reason(checks: Sequence[CheckLine], turns: Sequence[TurnLine]) -> str:
    changes = [(one, other) for one, other in pairwise(checks) if (one.exit_code == 0) != (other.exit_code == 0)]
    treeless = [(one, other) for one, other in changes if not (one.tree and other.tree)]
    steps = [turn.step for turn in turns]
    together = [(one, other) for one, other in treeless if one.attempt == other.attempt]
    if any(not any(one.step < step < other.step for step in steps) for one, other in together):
        return NO_TURN
    return TO_AND_FRO if len(treeless) >= _TWICE else ""


_WORD = re.compile(r"[^\W_]+")
_SHORTEST = 3
_ALIKE = 0.6
_COMMON = frozenset(
    {
        "the", "and", "for", "that", "this", "with", "was", "were", "are", "not", "but", "has", "have", "had", "when",
        "then", "than", "from", "into", "its", "must", "should",
    }
)  # fmt: skip
MOST_LEARNINGS = 2_000  # that are compared with each other


@stored_as("kind summary learnings")
class RepeatedLearning(NamedTuple):
    """A learning that several cases repeat."""

    kind: str
    summary: str  # of the first
    learnings: tuple[Learning, ...]  # those without an artifact, oldest first

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases with this learning."""
        return tuple(dict.fromkeys(one.case_id for one in self.learnings))


def find_repeated_learnings(learnings: Iterable[Learning], since: int) -> list[RepeatedLearning]:
    """Learnings of several cases, at least one of them since then, without an artifact after the last artifact."""
    groups: list[tuple[frozenset[str], list[Learning]]] = []
    for one in list(learnings)[-MOST_LEARNINGS:]:
        words = frozenset(_WORD.findall(one.summary.casefold())) - _COMMON
        alike = (group for first, group in groups if group[0].kind == one.kind and _is_alike(first, words))
        group = next(alike, None)
        if group is None:
            groups.append((words, [one]))
        else:
            group.append(one)
    found = []
    for _, group in groups:
        newest = sorted(group, key=lambda one: (one.at, one.case_id, one.number), reverse=True)
        newest = newest[: next((place for place, one in enumerate(newest) if one.has_artifact), None)]
        if newest and newest[0].at >= since:
            repeated = RepeatedLearning(group[0].kind, group[0].summary, tuple(reversed(newest)))
            found += [repeated] if len(repeated.cases) > 1 else []
    return sorted(found, key=lambda one: (-len(one.cases), one.kind, one.summary))


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    short = {word for word in one ^ other if len(word) < _SHORTEST}  # a number or a letter more makes no difference
    whole = (one | other) - short
    return bool(whole) and len(one & other) >= _ALIKE * len(whole)
