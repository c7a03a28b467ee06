"""What is asked of a store about the agent's own state: small values. What it can do with them: `state_protocol`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.work import MOST_ATTEMPTS
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.domain.case import Problem

JOURNAL = "journal:"  # the stream of events that belong to no run, no item and no case


class NewItem(NamedTuple):
    """An item to be put into the queue."""

    id: str
    kind: str
    payload: str = "{}"  # canonical JSON
    priority: int = 0
    max_attempts: int = MOST_ATTEMPTS
    notes: str = ""
    question: str = ""  # with one, the item waits for a person from the beginning


class ItemQuery(NamedTuple):
    """Which items to list, newest first."""

    statuses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    owner: str | None = None
    before: tuple[int, str] | None = None  # the (created_at, id) of the last row of the page before
    limit: int = 50


class TimelineQuery(NamedTuple):
    """Which events of the timeline to read: all but a run's own `agent.*` and `call.*`."""

    after: tuple[int, str, int] | None = None  # (at, stream, seq): only later ones, oldest first
    since: int | None = None  # a time: only from then on
    before: tuple[int, str, int] | None = None  # the page before this event, newest first
    kind: str = ""  # its beginning
    actor: str = ""
    stream: str = ""
    text: str = ""  # somewhere in kind, actor or data, in whatever case of ASCII letters
    limit: int = 50
    newest_first: bool = True
    whole: bool = False  # with a stream: also what a run keeps out of the timeline


class NewCase(NamedTuple):
    """A case to be begun; if the id is taken, the store adds a number to it."""

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
