"""Builds the report of a week: which week, what its runs did, and where their time went. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from jackline.domain.events import NOTHING
from jackline.domain.states import WaitReason
from jackline.features.reports import retro_findings
from jackline.features.reports.dashboard_page import FOR_PEOPLE
from jackline.features.reports.lines import CheckLine, Learning, Move, RunLine, Spending, TurnLine
from jackline.formatting import DAY_MS, format_date, to_datetime
from jackline.named import NamedTuple, stored_as

_WEEK_NAME = re.compile(r"([0-9]{4})-W([0-9]{2})")
DAYS = 7
WEEK_MS = DAYS * DAY_MS
_FIRST_MONDAY_MS = 4 * DAY_MS  # 1970 began on a Thursday
LOOK_BACK_MS = 4 * WEEK_MS  # learnings of these weeks and of the week itself are compared

RUNNING, QUEUED = "running", "queued"
LIMIT, PEOPLE, OTHER = "limits", "people", "other waits"
BUCKETS = (RUNNING, QUEUED, LIMIT, PEOPLE, OTHER)
_KINDS = {"run.claimed": RUNNING, "run.created": QUEUED, "run.queued": QUEUED}
_WORKED = frozenset({"run.succeeded", "run.failed"})
_OF_REASON = {WaitReason.LIMIT: LIMIT, **dict.fromkeys(FOR_PEOPLE, PEOPLE)}


# weeks


class Week(NamedTuple):
    """An ISO week, from Monday 00:00 UTC to the next."""

    name: str  # 2026-W46
    start: int
    until: int

    @property
    def days(self) -> tuple[str, ...]:
        """The dates of its days."""
        return tuple(format_date(self.start + day * DAY_MS) for day in range(DAYS))


def parse_week(text: str) -> Week | None:
    """Parse the name of a week; None if it does not exist."""
    found = _WEEK_NAME.fullmatch(text)
    if found is None:
        return None
    try:
        monday = date.fromisocalendar(int(found[1]), int(found[2]), 1)
    except ValueError:
        return None
    return _build_week((monday - date(1970, 1, 1)).days * DAY_MS)


def get_current_week(now: int) -> Week:
    """The week that contains this time."""
    return _build_week((now - _FIRST_MONDAY_MS) // WEEK_MS * WEEK_MS + _FIRST_MONDAY_MS)


def get_week_before(week: Week, weeks: int) -> Week:
    """The week a number of weeks earlier."""
    return _build_week(week.start - weeks * WEEK_MS)


def get_last_full_week(now: int) -> Week:
    """The last complete week."""
    return get_week_before(get_current_week(now), 1)


def _build_week(start: int) -> Week:
    year, number, _ = to_datetime(start + 3 * DAY_MS).isocalendar()  # the year of a week is that of its Thursday
    return Week(name=f"{year:04}-W{number:02}", start=start, until=start + WEEK_MS)


# time


@stored_as("reason times ms")
class WaitTime(NamedTuple):
    """The time spent waiting for one reason."""

    reason: str
    times: int  # how often it began in the span
    ms: int


@stored_as("running queued waits")
class TimeSpent(NamedTuple):
    """Total times over all runs."""

    running: int = 0
    queued: int = 0
    waits: tuple[WaitTime, ...] = ()  # the longest first

    @property
    def lost(self) -> int:
        """The time without work."""
        return self.queued + sum(one.ms for one in self.waits)

    def of(self, bucket: str) -> int:
        """The time of a bucket."""
        if bucket in {RUNNING, QUEUED}:
            return self.running if bucket == RUNNING else self.queued
        return sum(one.ms for one in self.waits if get_bucket(one.reason) == bucket)


def get_bucket(reason: str) -> str:
    """The bucket of a reason."""
    return {str(one): bucket for one, bucket in _OF_REASON.items()}.get(reason, OTHER)


def measure_times(moves: Iterable[Move], before: Mapping[str, Move], start: int, until: int) -> TimeSpent:
    """Measure the time from `start` to `until`; `before` has the state of runs that began earlier."""
    by_run: dict[str, list[Move]] = defaultdict(list)
    for run_id, move in before.items():
        by_run[run_id].append(move)
    for move in moves:
        by_run[move.run_id].append(move)
    spent: dict[str, int] = defaultdict(int)
    times: dict[str, int] = defaultdict(int)
    for known in by_run.values():
        # By sequence, not by time: clocks of hosts can differ.
        ordered = sorted(known, key=lambda one: one.seq)
        for move, following in zip(ordered, (*ordered[1:], None), strict=True):
            state = _find_state(move, following)
            if state is None:
                continue
            end = until if following is None else min(following.at, until)
            spent[state] += max(0, end - max(move.at, start))
            times[state] += start <= move.at < until
    waits = [
        WaitTime(reason=reason, times=times[reason], ms=ms)
        for reason, ms in spent.items()
        if reason not in {RUNNING, QUEUED}
    ]
    return TimeSpent(
        running=spent[RUNNING], queued=spent[QUEUED], waits=tuple(sorted(waits, key=lambda one: (-one.ms, one.reason)))
    )


def _find_state(move: Move, following: Move | None) -> str | None:
    """The state after a change; None for an ended run."""
    if move.kind == "run.waiting":
        return move.reason or "unknown"
    if move.kind == "run.created" and following is not None and following.kind in _WORKED:
        return RUNNING  # an imported run, whose claim is not recorded
    return _KINDS.get(move.kind)


# the report


class WeekData(NamedTuple):
    """The stored data of a week; by run id: state changes, the state before, turns and checks."""

    runs: Sequence[RunLine] = ()  # that ended in it
    alive: Sequence[RunLine] = ()  # that had not ended at its end
    moves: Sequence[Move] = ()
    before: Mapping[str, Move] = NOTHING
    turns: Mapping[str, Sequence[TurnLine]] = NOTHING
    checks: Mapping[str, Sequence[CheckLine]] = NOTHING
    spending: Sequence[Spending] = ()
    learnings: Sequence[Learning] = ()  # also of the weeks before


class WeekReport(NamedTuple):
    """The report of a week."""

    week: Week
    until: int  # the end of the week, or now if it is not over
    successes: Sequence[retro_findings.TaskSuccess] = ()
    failures: Sequence[retro_findings.FailureCount] = ()
    limits: Sequence[retro_findings.LimitHits] = ()
    spending: Sequence[Spending] = ()
    times: TimeSpent = TimeSpent()
    repeated: Sequence[retro_findings.RepeatedLearning] = ()
    flaky: Sequence[retro_findings.FlakyProof] = ()
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


def build_report(week: Week, read: WeekData, now: int) -> WeekReport:
    """Build the report."""
    until = min(week.until, now)
    turns = [one for of_run in read.turns.values() for one in of_run if week.start <= one.started_at < week.until]
    checks = {
        run_id: [one for one in of_run if week.start <= one.started_at < week.until]
        for run_id, of_run in read.checks.items()
    }
    return WeekReport(
        week=week,
        until=until,
        successes=retro_findings.count_successes(read.runs),
        failures=retro_findings.count_failures(read.runs, turns),
        limits=retro_findings.count_limits(turns),
        spending=tuple(read.spending),
        times=measure_times(read.moves, read.before, week.start, until),
        repeated=retro_findings.find_repeated_learnings(read.learnings, week.start),
        flaky=retro_findings.find_flaky_proofs(checks, read.turns),
        archived=sum(run.archived_at is not None for run in (*read.runs, *read.alive)),
    )
