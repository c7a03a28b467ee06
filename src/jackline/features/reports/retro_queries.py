"""Reads for retros: pages over a span of time. It writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from jackline.domain.states import ACTIVE
from jackline.features.reports.lines import CheckLine, Learning, Move, RunLine, TurnLine
from jackline.features.reports.report_queries import get_text, parse_learning, parse_object
from jackline.store.driver import Row, clean
from jackline.store.parts import StorePart

T = TypeVar("T")
_PAGE = 500
_LAST = 1 << 62  # above the sequence of every event, and after every time
_LAST_ID = "\U0010ffff"


class RetroQueries(StorePart):
    """Reads for retros."""

    def iter_learnings(self, start: int, until: int) -> Iterator[Learning]:
        """Learnings of all cases from a time until before another, oldest first."""

        def page(after: Row) -> list[Learning]:
            at, case_id, number = after
            values = {"after_at": at, "after_case": case_id, "after_number": number, "until": until, "limit": _PAGE}
            return [parse_learning(row) for row in self._read("report_learnings", **values)]

        return _iter_pages(page, (start - 1, _LAST_ID, _LAST), lambda one: (one.at, one.case_id, one.number))

    def iter_finished_runs(self, start: int, until: int) -> Iterator[RunLine]:
        """Runs that ended from a time until before another, oldest end first."""
        return self._iter_runs("report_finished", "finished_at", (start - 1, _LAST_ID), until=until)

    def iter_live_runs(self, at: int) -> Iterator[RunLine]:
        """Runs that were created before a time and had not ended then, in no order."""
        for state in sorted(ACTIVE):
            yield from self._iter_runs("report_alive", "created_at", (-1, ""), state=str(state), before=at)
        yield from self._iter_runs("report_outlived", "finished_at", (at - 1, _LAST_ID), before=at)

    def _iter_runs(self, name: str, by: str, after: Row, **values: object) -> Iterator[RunLine]:
        def page(after: Row) -> list[RunLine]:
            found = self._read(name, **values, after_at=after[0], after_id=after[1], limit=_PAGE)
            return [RunLine(*row) for row in found]

        return _iter_pages(page, after, lambda one: (getattr(one, by), one.id))

    def iter_state_changes(self, start: int, until: int) -> Iterator[Move]:
        """Changes of runs' states from a time until before another, by time."""

        def page(after: Row) -> list[Move]:
            at, stream, seq = after
            values = {"after_at": at, "after_stream": stream, "after_seq": seq, "until": until, "limit": _PAGE}
            return [_parse_move(row) for row in self._read("report_moves", **values)]

        found = _iter_pages(page, (start - 1, _LAST_ID, _LAST), lambda one: (one.at, one.run_id, one.seq))
        return (one for one in found if ":" not in one.run_id)  # events of other streams may have such a kind

    def get_last_state_change(self, run_id: str, before: int = _LAST, until: int = _LAST) -> Move | None:
        """The last change of a run's state, before an event or a time if one is named."""
        found = self._read("report_last_move", stream=clean(run_id), before=before, until=until)
        return _parse_move(found[0]) if found else None

    def get_next_state_change(self, run_id: str, after: int) -> Move | None:
        """The first change of a run's state after an event."""
        found = self._read("report_next_move", stream=clean(run_id), after=after)
        return _parse_move(found[0]) if found else None

    def list_turns(self, run_id: str) -> list[TurnLine]:
        """The turns of a run."""
        return [TurnLine(*row) for row in self._read("report_turns", run_id=clean(run_id))]

    def list_checks(self, run_id: str) -> list[CheckLine]:
        """The checks of a run."""
        return [CheckLine(*row) for row in self._read("report_checks", run_id=clean(run_id))]

    def _read(self, name: str, **values: object) -> list[Row]:
        return self._driver.read(lambda statements: statements.all(name, values))


def _iter_pages(page: Callable[[Row], list[T]], after: Row, place: Callable[[T], Row]) -> Iterator[T]:
    while found := page(after):
        yield from found
        if len(found) < _PAGE:
            return
        after = place(found[-1])


def _parse_move(row: Row) -> Move:
    stream, seq, at, kind, data = row
    return Move(run_id=stream, seq=seq, at=at, kind=kind, reason=get_text(parse_object(data), "reason"))
