"""Builds the report of a week from the stored data. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jackline.domain.events import NOTHING
from jackline.domain.reporting import Learning, RunLine, Spending
from jackline.domain.retro import counts, learnings, proofs, spans
from jackline.domain.retro.lines import CheckLine, Move, TurnLine
from jackline.domain.retro.week import WEEK_MS, Week
from jackline.named import NamedTuple

LOOK_BACK_MS = 4 * WEEK_MS  # learnings of these weeks and of the week itself are compared


class Read(NamedTuple):
    """The stored data of a week; by run id: state changes, the state before, turns and checks."""

    runs: Sequence[RunLine] = ()  # that ended in it
    alive: Sequence[RunLine] = ()  # that had not ended at its end
    moves: Sequence[Move] = ()
    before: Mapping[str, Move] = NOTHING
    turns: Mapping[str, Sequence[TurnLine]] = NOTHING
    checks: Mapping[str, Sequence[CheckLine]] = NOTHING
    spending: Sequence[Spending] = ()
    learnings: Sequence[Learning] = ()  # also of the weeks before


class Report(NamedTuple):
    """The report of a week."""

    week: Week
    until: int  # the end of the week, or now if it is not over
    successes: Sequence[counts.Success] = ()
    failures: Sequence[counts.Failures] = ()
    limits: Sequence[counts.Limits] = ()
    spending: Sequence[Spending] = ()
    times: spans.Times = spans.Times()
    repeated: Sequence[learnings.Repeated] = ()
    flaky: Sequence[proofs.Flaky] = ()
    archived: int = 0  # runs whose events were archived

    @property
    def ended(self) -> int:
        """How many runs ended."""
        return sum(one.ended for one in self.successes)

    @property
    def is_over(self) -> bool:
        """Whether the week is over."""
        return self.until >= self.week.until

    @property
    def is_empty(self) -> bool:
        """Whether nothing happened."""
        parts = (self.successes, self.failures, self.spending, self.repeated, self.flaky)
        return not any(parts) and not self.times.running and not self.times.lost


def fold(week: Week, read: Read, now: int) -> Report:
    """Build the report."""
    until = min(week.until, now)
    turns = [one for of_run in read.turns.values() for one in of_run if week.start <= one.started_at < week.until]
    return Report(
        week,
        until,
        counts.successes(read.runs),
        counts.failures(read.runs, turns),
        counts.limits(turns),
        tuple(read.spending),
        spans.fold(read.moves, read.before, week.start, until),
        learnings.repeated(read.learnings, week.start),
        proofs.flaky(_select_week(read.checks, week), read.turns),
        sum(run.archived_at is not None for run in (*read.runs, *read.alive)),
    )


def _select_week(checks: Mapping[str, Sequence[CheckLine]], week: Week) -> dict[str, list[CheckLine]]:
    return {
        run_id: [one for one in of_run if week.start <= one.started_at < week.until]
        for run_id, of_run in checks.items()
    }
