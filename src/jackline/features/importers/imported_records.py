"""Runs, calls and events as they are imported from other tools. Pure data."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.changes import Changes
    from jackline.domain.records import Attempt, Call, RunStatus, Turn
    from jackline.domain.spec import Spec


class ImportResult(StrEnum):
    """The result of an import."""

    IMPORTED = "imported"
    ALREADY = "already"  # it was imported before, and stays unchanged
    TAKEN = "taken"  # its id is used by something else


class ImportedEvent(NamedTuple):
    """An event of a predecessor, with its own time and actor."""

    at: int
    kind: str
    actor: str
    data: Mapping[str, Any] = NOTHING


class ImportedCall(NamedTuple):
    """A call of a predecessor's ledger in its last state; done effects get a receipt."""

    call: Call
    ended_at: int  # of one in doubt: the time of its last event
    external_id: str = ""


class ImportedRun(NamedTuple):
    """A run of a predecessor: always terminal, and never continued. `origin` and `since` identify it.

    The ids in turns, attempts and calls are ignored.
    """

    id: str
    origin: str  # the kind of source, and its own id there
    since: str  # its time of creation there, as written; empty if unknown
    repository: str  # its path
    spec: Spec
    status: RunStatus
    created_at: int
    updated_at: int
    finished_at: int
    started_at: int | None = None
    events: tuple[ImportedEvent, ...] = ()
    turns: tuple[Turn, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    calls: tuple[ImportedCall, ...] = ()
    changes: Changes | None = None
    about: Mapping[str, Any] = NOTHING  # for its `run.imported`
