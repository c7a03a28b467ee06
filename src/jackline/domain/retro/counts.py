"""Counts the results of a week's runs: by agent and task, by failure, by limit, by day. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from jackline.domain.reporting import RunLine, Spending
from jackline.domain.retro.lines import TurnLine
from jackline.domain.states import Failure, Proof, RunState
from jackline.named import NamedTuple, stored_as


@stored_as("agent task succeeded proved failed cancelled usd_micros tokens")
class Success(NamedTuple):
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
class Failures(NamedTuple):
    """The runs and turns with one class of failure."""

    failure: str
    runs: int  # that ended so
    turns: int  # that ended so, also if a retry or another agent succeeded


@stored_as("agent turns")
class Limits(NamedTuple):
    """How often an agent stopped at a limit."""

    agent: str
    turns: int


def successes(runs: Iterable[RunLine]) -> list[Success]:
    """By agent and task, the most frequent first."""
    by_name: dict[tuple[str, str], list[RunLine]] = {}
    for run in runs:
        by_name.setdefault((run.agent, run.task), []).append(run)
    found = [_count_task(*name, of_name) for name, of_name in by_name.items()]
    return sorted(found, key=lambda one: (-one.ended, one.agent, one.task))


def _count_task(agent: str, task: str, runs: Sequence[RunLine]) -> Success:
    states = Counter(run.state for run in runs)
    return Success(
        agent,
        task,
        states[RunState.SUCCEEDED],
        sum(run.state == RunState.SUCCEEDED and run.proof == Proof.PROVED for run in runs),
        states[RunState.FAILED],
        states[RunState.CANCELLED],
        sum(run.usd_micros for run in runs),
        sum(run.tokens for run in runs),
    )


def failures(runs: Iterable[RunLine], turns: Iterable[TurnLine]) -> list[Failures]:
    """By class, the most frequent first."""
    of_runs = Counter(run.failure or "unknown" for run in runs if run.state == RunState.FAILED)
    of_turns = Counter(turn.failure for turn in turns if turn.failure)
    found = [Failures(name, of_runs[name], of_turns[name]) for name in of_runs | of_turns]
    return sorted(found, key=lambda one: (-one.runs, -one.turns, one.failure))


def limits(turns: Iterable[TurnLine]) -> list[Limits]:
    """By agent, the most frequent first."""
    found = Counter(turn.agent for turn in turns if turn.failure == Failure.LIMIT)
    return [Limits(agent, count) for agent, count in sorted(found.items(), key=lambda one: (-one[1], one[0]))]


def by_day(spending: Sequence[Spending], days: Sequence[str]) -> Mapping[str, list[Spending]]:
    """The spending of each day."""
    return {day: [one for one in spending if one.day == day] for day in days}
