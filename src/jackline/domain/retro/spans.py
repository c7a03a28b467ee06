"""Measures the time that runs spent working, queued and waiting, from their state changes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from jackline.domain.dashboard import FOR_PEOPLE
from jackline.domain.retro.lines import Move
from jackline.domain.states import WaitReason
from jackline.named import NamedTuple, stored_as

RUNNING, QUEUED = "running", "queued"
LIMIT, PEOPLE, OTHER = "limits", "people", "other waits"
_KINDS = {"run.claimed": RUNNING, "run.created": QUEUED, "run.queued": QUEUED}
_WORKED = frozenset({"run.succeeded", "run.failed"})
_OF_REASON = {WaitReason.LIMIT: LIMIT, **dict.fromkeys(FOR_PEOPLE, PEOPLE)}


@stored_as("reason times ms")
class Waits(NamedTuple):
    """The time spent waiting for one reason."""

    reason: str
    times: int  # how often it began in the span
    ms: int


@stored_as("running queued waits")
class Times(NamedTuple):
    """Total times over all runs."""

    running: int = 0
    queued: int = 0
    waits: tuple[Waits, ...] = ()  # the longest first

    @property
    def lost(self) -> int:
        """The time without work."""
        return self.queued + sum(one.ms for one in self.waits)

    def of(self, bucket: str) -> int:
        """The time of a bucket."""
        if bucket in {RUNNING, QUEUED}:
            return self.running if bucket == RUNNING else self.queued
        return sum(one.ms for one in self.waits if bucket_of(one.reason) == bucket)


BUCKETS = (RUNNING, QUEUED, LIMIT, PEOPLE, OTHER)


def bucket_of(reason: str) -> str:
    """The bucket of a reason."""
    return {str(one): bucket for one, bucket in _OF_REASON.items()}.get(reason, OTHER)


def fold(moves: Iterable[Move], before: Mapping[str, Move], start: int, until: int) -> Times:
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
    waits = [Waits(reason, times[reason], ms) for reason, ms in spent.items() if reason not in {RUNNING, QUEUED}]
    return Times(spent[RUNNING], spent[QUEUED], tuple(sorted(waits, key=lambda one: (-one.ms, one.reason))))


def _find_state(move: Move, following: Move | None) -> str | None:
    """The state after a change; None for an ended run."""
    if move.kind == "run.waiting":
        return move.reason or "unknown"
    if move.kind == "run.created" and following is not None and following.kind in _WORKED:
        return RUNNING  # an imported run, whose claim is not recorded
    return _KINDS.get(move.kind)
