"""Finds the event stream for a name that a model wrote. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app import work as work_items
from jackline.app.case import place
from jackline.domain import case, work
from jackline.errors import UsageError
from jackline.store.contract import JOURNAL

if TYPE_CHECKING:
    from jackline.app.home import Home


def named(home: Home, text: str) -> str:
    """The stream of `run:ID`, `case:ID`, `work:ID` or `journal:`; a run id needs no prefix."""
    kind, colon, name = text.partition(":")
    match kind, name:
        case "", "":
            return ""
        case "journal", "":
            return JOURNAL
        case "run", name if name:
            return of_run(home, name)
        case "case", name if name:
            return of_case(home, name)
        case "work", name if name:
            return of_item(home, name)
    if colon:
        raise UsageError(f"unknown stream '{text[:100]}': use run:ID, case:ID, work:ID or journal:")
    return of_run(home, text)


def of_run(home: Home, text: str) -> str:
    """The stream of a run, by its id or a unique prefix."""
    return home.find(text).id


def of_case(home: Home, text: str) -> str:
    """The stream of a case, by its id or a unique prefix."""
    return case.stream_of(place.find(home, text).id)


def of_item(home: Home, text: str) -> str:
    """The stream of a work item."""
    return work.stream_of(work_items.get(home, text).id)
