"""What dashboards and retros read: bounded look-ups and pages over a span of time, never over everything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from jackline.domain.reporting import CheckLine, EventLine, ItemLine, Learning, Move, RunLine, Spending, TurnLine
from jackline.domain.states import RunState
from jackline.store.base import Base
from jackline.store.driver import Row, clean

T = TypeVar("T")
_PAGE = 500
_LAST_SEQ = 1 << 62


class Reporting(Base):
    """The part of the store that reports read."""

    def runs_in(self, state: str, limit: int) -> list[RunLine]:
        """Runs in a state, newest first."""
        return [RunLine(*row) for row in self._report("report_runs", state=str(state), limit=limit)]

    def runs_waiting(self, reason: str, limit: int) -> list[RunLine]:
        """Runs that wait for this reason, oldest first."""
        found = self._report("report_waiting", state=str(RunState.WAITING), reason=str(reason), limit=limit)
        return [RunLine(*row) for row in found]

    def runs_failed(self, since: int, limit: int) -> list[RunLine]:
        """Runs that failed since a time, newest first."""
        found = self._report("report_failed", state=str(RunState.FAILED), since=since, limit=limit)
        return [RunLine(*row) for row in found]

    def count_runs(self, state: str, most: int) -> int:
        """How many runs are in a state, counted no further than `most`."""
        return int(self._report("report_count", state=str(state), most=most)[0][0])

    def items_in(self, status: str, limit: int) -> list[ItemLine]:
        """Items of a status, oldest first."""
        return [ItemLine(*row) for row in self._report("report_items", status=str(status), limit=limit)]

    def items_dead(self, limit: int) -> list[ItemLine]:
        """Dead letters, newest first."""
        return [ItemLine(*row) for row in self._report("report_dead", limit=limit)]

    def kinds_in(self, status: str, most: int, limit: int) -> list[tuple[str, int]]:
        """The kinds of items of a status, and how many of each, counted no further than `most`."""
        found = self._report("report_kinds", status=str(status), most=most, limit=limit)
        return [(kind, int(count)) for kind, count in found]

    def spending(self, first: str, last: str) -> list[Spending]:
        """What was spent from one day to another, both included."""
        return [Spending(*row) for row in self._report("report_spending", first=clean(first), last=clean(last))]

    def newest_events(self, limit: int) -> list[EventLine]:
        """Events of all streams, newest first, without the talk and the tool calls of agents."""
        return [EventLine(*row) for row in self._report("report_newest_events", limit=limit)]

    def newest_learnings(self, limit: int) -> list[Learning]:
        """Learnings of all cases, newest first."""
        return [_learning(row) for row in self._report("report_newest_learnings", limit=limit)]

    def learnings_between(self, start: int, until: int) -> Iterator[Learning]:
        """Learnings of all cases from a time until before another, oldest first."""
        after: Row = (start - 1, "\U0010ffff", _LAST_SEQ)

        def page(after: Row) -> list[Learning]:
            at, case_id, number = after
            values = {"after_at": at, "after_case": case_id, "after_number": number, "until": until, "limit": _PAGE}
            return [_learning(row) for row in self._report("report_learnings", **values)]

        return _paged(page, after, lambda one: (one.at, one.case_id, one.number))

    def runs_finished(self, start: int, until: int) -> Iterator[RunLine]:
        """Runs that ended from a time until before another, oldest end first."""

        def page(after: Row) -> list[RunLine]:
            values = {"after_at": after[0], "after_id": after[1], "until": until, "limit": _PAGE}
            return [RunLine(*row) for row in self._report("report_finished", **values)]

        return _paged(page, (start - 1, "\U0010ffff"), lambda one: (one.finished_at, one.id))

    def run_moves(self, start: int, until: int) -> Iterator[Move]:
        """Changes of runs' states from a time until before another, by time."""

        def page(after: Row) -> list[Move]:
            at, stream, seq = after
            values = {"after_at": at, "after_stream": stream, "after_seq": seq, "until": until, "limit": _PAGE}
            return [_move(row) for row in self._report("report_moves", **values)]

        found = _paged(page, (start - 1, "\U0010ffff", _LAST_SEQ), lambda one: (one.at, one.run_id, one.seq))
        return (one for one in found if ":" not in one.run_id)  # anybody may write such a kind into a journal

    def last_move(self, run_id: str, before: int | None = None) -> Move | None:
        """The last change of a run's state, before an event if one is named."""
        found = self._report("report_last_move", stream=clean(run_id), before=_LAST_SEQ if before is None else before)
        return _move(found[0]) if found else None

    def turn_lines(self, run_id: str) -> list[TurnLine]:
        """The turns of a run."""
        return [TurnLine(*row) for row in self._report("report_turns", run_id=clean(run_id))]

    def check_lines(self, run_id: str) -> list[CheckLine]:
        """The checks of a run."""
        return [CheckLine(*row) for row in self._report("report_checks", run_id=clean(run_id))]

    def _report(self, name: str, **values: object) -> list[Row]:
        return self._driver.read(lambda statements: statements.all(name, values))


def _paged(page: Callable[[Row], list[T]], after: Row, place: Callable[[T], Row]) -> Iterator[T]:
    while found := page(after):
        yield from found
        if len(found) < _PAGE:
            return
        after = place(found[-1])


def _move(row: Row) -> Move:
    stream, seq, at, kind, data = row
    return Move(stream, seq, at, kind, _text(_object(data), "reason"))


def _learning(row: Row) -> Learning:
    case_id, number, at, summary, action, data = row
    told = _object(data)
    kind, path, reason = (_text(told, name) for name in ("kind", "path", "reason"))
    return Learning(case_id, number, at, kind, summary, action, path, reason)


def _object(data: str) -> dict[str, Any]:
    """What was imported, or written by hand, may be anything."""
    try:
        told = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}


def _text(told: dict[str, Any], name: str) -> str:
    value = told.get(name)
    return value if isinstance(value, str) else ""
