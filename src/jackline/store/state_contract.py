"""Requests and queries about work items, cases and the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.work import MOST_ATTEMPTS
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.domain.case import Problem

JOURNAL = "journal:"  # the stream of events that belong to no run, item or case


class NewItem(NamedTuple):
    """An item to enqueue."""

    id: str
    kind: str
    payload: str = "{}"  # canonical JSON
    priority: int = 0
    max_attempts: int = MOST_ATTEMPTS
    notes: str = ""
    question: str = ""  # with a question, the item waits for a person from the beginning


class ItemQuery(NamedTuple):
    """Which items to list, newest first."""

    statuses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    owner: str | None = None
    before: tuple[int, str] | None = None  # the (created_at, id) of the last row of the page before
    limit: int = 50


class TimelineQuery(NamedTuple):
    """Which events of the timeline to read: all except the `agent.*` and `call.*` of runs."""

    after: tuple[int, str, int] | None = None  # (at, stream, seq): only later ones, oldest first
    since: int | None = None  # a time: only from then on
    before: tuple[int, str, int] | None = None  # the page before this event, newest first
    kind: str = ""  # its beginning
    actor: str = ""
    stream: str = ""
    text: str = ""  # in kind, actor or data; the case of ASCII letters is ignored
    limit: int = 50
    newest_first: bool = True
    whole: bool = False  # with a stream: also the events that the timeline leaves out


class NewCase(NamedTuple):
    """A case to start; if the id is taken, the store adds a number to it."""

    id: str
    repository: str
    path: str
    user_name: str
    request: str
    problem: Problem
    run_id: str | None = None


class CaseQuery(NamedTuple):
    """Which cases to list, newest first."""

    repository: str | None = None
    status: str = ""
    run_id: str | None = None
    before: tuple[int, str] | None = None
    limit: int = 50
