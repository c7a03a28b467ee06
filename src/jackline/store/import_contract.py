"""What a store takes over from the predecessors: contracts and small values only."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.case import Case, Entry
    from jackline.domain.changes import Changes
    from jackline.domain.records import Attempt, Call, Life, Spec, Turn
    from jackline.domain.work import WorkItem


class Import(StrEnum):
    """What became of something that was to be imported."""

    IMPORTED = "imported"
    ALREADY = "already"  # it was imported before; what is here stays as it is
    TAKEN = "taken"  # its id belongs to something else here


class ImportedEvent(NamedTuple):
    """Something that a predecessor wrote down, with its own time and actor."""

    at: int
    kind: str
    actor: str
    data: Mapping[str, Any] = NOTHING


class ImportedCall(NamedTuple):
    """A call of a predecessor's ledger, as it stood in the end; done effects get a receipt."""

    call: Call
    ended_at: int  # of one in doubt: when it was last heard of
    external_id: str = ""


class ImportedRun(NamedTuple):
    """A run of a predecessor: always terminal, and never carried on. `origin` and `since` tell it from others.

    The ids in turns, attempts and calls are not looked at.
    """

    id: str
    origin: str  # the kind of source, and its own id there
    since: str  # when it was made there, as it was written; empty if nobody knows
    repository: str  # its path
    spec: Spec
    life: Life
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


class ImportStore(Protocol):
    """What the predecessors left: each is written in one transaction, once. A rehearsal only looks."""

    def import_run(self, new: ImportedRun, at: int, actor: str, *, rehearse: bool = False) -> Import:
        """Write a run with all that is known of it; its chain goes from `run.created` to `run.imported`."""
        ...

    def import_item(
        self, item: WorkItem, events: Sequence[ImportedEvent], at: int, actor: str, *, rehearse: bool = False
    ) -> Import:
        """Write an item with the events that it had, then `work.imported`; TAKEN if kind or payload are others."""
        ...

    def import_case(
        self, case: Case, entries: Sequence[Entry], at: int, actor: str, *, rehearse: bool = False
    ) -> Import:
        """Write a case with its entries, active nowhere; TAKEN if its request or its repository is another."""
        ...

    def import_events(self, stream: str, events: Sequence[tuple[int, ImportedEvent]], *, rehearse: bool = False) -> int:
        """Write numbered events at the end of a stream, if their numbers are above the last one there; how many."""
        ...
