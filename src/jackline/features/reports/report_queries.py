"""Bounded reads for dashboards and retros: no query reads a whole table, and nothing is written."""

from __future__ import annotations

import json
from typing import Any

from jackline.domain.states import RunState
from jackline.features.reports.lines import EventLine, ItemLine, Learning, RunLine, Spending
from jackline.named import NamedTuple
from jackline.store.driver import Row, clean
from jackline.store.parts import StorePart


class UnattendedParts(NamedTuple):
    """Whether there is any of each."""

    services: bool
    schedules: bool
    triggers: bool
    stuck: bool


class ReportQueries(StorePart):
    """Reads for dashboards."""

    def list_runs_in(self, state: str, limit: int) -> list[RunLine]:
        """Runs in a state, oldest first."""
        return [RunLine(*row) for row in self._report("report_runs", state=str(state), limit=limit)]

    def list_runs_waiting(self, reason: str, limit: int) -> list[RunLine]:
        """Runs that wait for a reason, oldest first."""
        found = self._report("report_waiting", state=str(RunState.WAITING), reason=str(reason), limit=limit)
        return [RunLine(*row) for row in found]

    def list_runs_failed(self, since: int, limit: int) -> list[RunLine]:
        """Runs that failed since a time, newest first."""
        found = self._report("report_failed", state=str(RunState.FAILED), since=since, limit=limit)
        return [RunLine(*row) for row in found]

    def count_runs(self, state: str, most: int) -> int:
        """How many runs are in a state, counted no further than `most`."""
        return int(self._report("report_count", state=str(state), most=most)[0][0])

    def list_items_in(self, status: str, limit: int) -> list[ItemLine]:
        """Items of a status, oldest first."""
        return [ItemLine(*row) for row in self._report("report_items", status=str(status), limit=limit)]

    def list_dead_items(self, limit: int) -> list[ItemLine]:
        """Dead letters, newest first."""
        return [ItemLine(*row) for row in self._report("report_dead", limit=limit)]

    def count_kinds(self, status: str, most: int, limit: int) -> list[tuple[str, int]]:
        """The kinds of items of a status, and how many of each, counted no further than `most`."""
        found = self._report("report_kinds", status=str(status), most=most, limit=limit)
        return [(kind, int(count)) for kind, count in found]

    def list_spending(self, first: str, last: str) -> list[Spending]:
        """The spending from one day (UTC) to another, both included."""
        return [Spending(*row) for row in self._report("report_spending", first=clean(first), last=clean(last))]

    def list_newest_events(self, limit: int) -> list[EventLine]:
        """Events of all streams, newest first, without the messages and the tool calls of agents."""
        return [EventLine(*row) for row in self._report("report_newest_events", limit=limit)]

    def list_newest_learnings(self, limit: int) -> list[Learning]:
        """Learnings of all cases, newest first."""
        return [parse_learning(row) for row in self._report("report_newest_learnings", limit=limit)]

    def find_unattended(self) -> UnattendedParts:
        """Whether there are services that were not stopped, schedules, triggers, and notices that were not taken."""
        return UnattendedParts(*(bool(count) for count in self._report("report_unattended")[0]))

    def _report(self, name: str, **values: object) -> list[Row]:
        return self._driver.read(lambda statements: statements.all(name, values))


def parse_learning(row: Row) -> Learning:
    """A learning from its row."""
    case_id, number, at, summary, action, data = row
    values = parse_object(data)
    kind, path, reason = (get_text(values, name) for name in ("kind", "path", "reason"))
    return Learning(
        case_id=case_id, number=number, at=at, kind=kind, summary=summary, action=action, path=path, reason=reason
    )


def parse_object(data: str) -> dict[str, Any]:
    """The JSON object in a text; empty if there is none, because imported data may be anything."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def get_text(values: dict[str, Any], name: str) -> str:
    """A text field of an object; empty if there is none."""
    value = values.get(name)
    return value if isinstance(value, str) else ""
