"""What a store can do for the agent's own state: work items, the journal, cases. Contracts only.

As everywhere, an event is written in the same transaction as the state that it explains, times are milliseconds, and
what could be a secret is redacted before it is written. A change that somebody else got ahead of is refused, with a
line that says so, and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.events import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.domain.case import Case, CaseQuery, Entry, EntryKind, NewCase
    from jackline.domain.events import Event, Fact
    from jackline.domain.reporting import EventLine, ItemLine, Learning, RunLine, Spending
    from jackline.domain.retro.lines import CheckLine, Move, TurnLine
    from jackline.domain.work import Hold, ItemQuery, NewItem, WorkItem
    from jackline.store.contract import TimelineQuery


class WorkStore(Protocol):
    """The queue."""

    def enqueue(self, new: NewItem, at: int, actor: str) -> tuple[WorkItem, bool]:
        """The item and whether it is new; Conflict if the id has another kind or payload."""
        ...

    def claim_item(self, item_id: str, owner: str, lease_ms: int, at: int) -> WorkItem:
        """Take one item, pending or with a lease that ran out; NotFound, or Refused with who holds it.

        One whose attempts are used up is buried instead, and refused.
        """
        ...

    def claim_next(self, kinds: Sequence[str], owner: str, lease_ms: int, at: int) -> WorkItem | None:
        """Take the next item of one of these kinds (none: any): expired leases first, then priority, then age.

        Any number of processes get different ones. What has no attempts left is buried on the way.
        """
        ...

    def renew_item(self, hold: Hold, lease_ms: int, at: int) -> WorkItem:
        """Move the lease on; Refused unless it is still held so."""
        ...

    def resolve_item(self, hold: Hold, change: str, at: int, notes: str | None = None) -> WorkItem:
        """`succeed`, `fail` or `cancel`; one that is in flight only by who holds it."""
        ...

    def release_item(self, hold: Hold, at: int, notes: str | None = None) -> WorkItem:
        """Give it back to the queue; after its last attempt it is buried: failed, and dead."""
        ...

    def annotate_item(self, item_id: str, notes: str, at: int, actor: str) -> WorkItem:
        """Put these notes in place of the old ones, which stay in the events; in any status."""
        ...

    def park_item(self, hold: Hold, question: str, at: int) -> WorkItem:
        """Let it wait for a person, with a notice-worthy question; one in flight only by who holds it."""
        ...

    def answer_item(self, item_id: str, answer: str, at: int, actor: str) -> WorkItem:
        """A person's answer: it is pending again, with its attempts as they were."""
        ...

    def item(self, item_id: str) -> WorkItem | None:
        """One item by its whole id."""
        ...

    def items(self, query: ItemQuery) -> list[WorkItem]:
        """Newest first; costs the same however many there are."""
        ...

    def unfinished_items(self, older_than: int, limit: int = 1000, *, given_up_only: bool = False) -> list[WorkItem]:
        """What a host replays at its start, oldest first: what is pending, and what is in flight but given up.

        Given up is what has a lease that ran out, or was not touched since `older_than`.
        """
        ...

    def requeue_item(self, item_id: str, older_than: int, at: int, actor: str) -> WorkItem | None:
        """Give back to the queue what is in flight but given up (as above); None if it is not, or not any more."""
        ...

    def item_counts(self) -> list[tuple[str, str, int]]:
        """(kind, status, how many) of what is pending, in flight or waiting for a person."""
        ...


class JournalStore(Protocol):
    """Events beside those of runs."""

    def append_event(self, fact: Fact, at: int, actor: str, item_id: str | None = None) -> Event:
        """Write an event at the end of the journal, or of an item's stream."""
        ...

    def timeline(self, query: TimelineQuery) -> list[Event]:
        """Events of every stream by time; costs the same however many there are, unless it has to search."""
        ...


class CaseStore(Protocol):
    """Notebooks."""

    def start_case(self, new: NewCase, place: str, at: int, actor: str = "") -> Case:
        """Begin a case, and make it the active one of its place; Refused if an open one is active there.

        Without an actor it is the case's user who does it.
        """
        ...

    def case(self, case_id: str) -> Case | None:
        """One case by its whole id."""
        ...

    def matching_cases(self, text: str, limit: int = 10) -> list[Case]:
        """The case of this id, else those whose id begins so."""
        ...

    def cases(self, query: CaseQuery) -> list[Case]:
        """Newest first."""
        ...

    def active_case(self, place: str) -> Case | None:
        """The one that is written to in this place."""
        ...

    def switch_case(self, place: str, case_id: str, at: int, actor: str = "") -> Case:
        """Make an open case the active one of a place; Refused for a closed one."""
        ...

    def add_entry(self, case_id: str, entry: Entry, at: int, actor: str) -> Entry:
        """Add an entry with the next number of its kind (that of `entry` is not looked at); Refused when closed.

        Of evidence, NotFound if the hypothesis that its data names is not there.
        """
        ...

    def change_entry(
        self,
        case_id: str,
        kind: EntryKind,
        number: int,
        status: str,
        at: int,
        actor: str,
        data: Mapping[str, Any] = NOTHING,
    ) -> Entry:
        """Give an entry another status, and more data; NotFound, or Refused when the case is closed."""
        ...

    def entries(self, case_id: str, kind: EntryKind | None = None, after: int = 0) -> list[Entry]:
        """The entries of a case by kind and number; of one kind, those with a number above `after`."""
        ...

    def close_case(self, case_id: str, closeout: Mapping[str, Any], at: int, actor: str) -> Case:
        """Close it, and let it be active nowhere; Refused if it is closed already, or was written to meanwhile.

        `closeout["event_seq"]` is the case's own when whoever closes it looked whether it may be closed.
        """
        ...

    def reopen_case(self, case_id: str, place: str, at: int, actor: str) -> Case:
        """Open a closed case again and make it active there; Refused if another open one is."""
        ...

    def relocate_case(self, case_id: str, repository: str, path: str, at: int, actor: str) -> Case:
        """Let a case follow its repository to where that has been moved; it is active nowhere then."""
        ...


class ReportStore(Protocol):
    """What dashboards and retros read: every look-up is bounded, every span is read in pages."""

    def runs_in(self, state: str, limit: int) -> list[RunLine]:
        """Runs in a state, newest first."""
        ...

    def runs_waiting(self, reason: str, limit: int) -> list[RunLine]:
        """Runs that wait for this reason, oldest first."""
        ...

    def runs_failed(self, since: int, limit: int) -> list[RunLine]:
        """Runs that failed since a time, newest first."""
        ...

    def count_runs(self, state: str, most: int) -> int:
        """How many runs are in a state, counted no further than `most`."""
        ...

    def items_in(self, status: str, limit: int) -> list[ItemLine]:
        """Items of a status, oldest first."""
        ...

    def items_dead(self, limit: int) -> list[ItemLine]:
        """Dead letters, newest first."""
        ...

    def kinds_in(self, status: str, most: int, limit: int) -> list[tuple[str, int]]:
        """The kinds of items of a status, and how many of each, counted no further than `most`."""
        ...

    def spending(self, first: str, last: str) -> list[Spending]:
        """What was spent from one day (UTC) to another, both included."""
        ...

    def newest_events(self, limit: int) -> list[EventLine]:
        """Events of all streams, newest first, without the talk and the tool calls of agents."""
        ...

    def newest_learnings(self, limit: int) -> list[Learning]:
        """Learnings of all cases, newest first."""
        ...

    def learnings_between(self, start: int, until: int) -> Iterator[Learning]:
        """Learnings of all cases from a time until before another, oldest first."""
        ...

    def runs_finished(self, start: int, until: int) -> Iterator[RunLine]:
        """Runs that ended from a time until before another, oldest end first."""
        ...

    def runs_alive(self, at: int) -> Iterator[RunLine]:
        """Runs that were made before a time and had not ended then, in no order."""
        ...

    def run_moves(self, start: int, until: int) -> Iterator[Move]:
        """Changes of runs' states from a time until before another, by time."""
        ...

    def last_move(self, run_id: str, before: int = ..., until: int = ...) -> Move | None:
        """The last change of a run's state, before an event of it or a time if one is named."""
        ...

    def next_move(self, run_id: str, after: int) -> Move | None:
        """The first change of a run's state after an event of it."""
        ...

    def turn_lines(self, run_id: str) -> list[TurnLine]:
        """The turns of a run."""
        ...

    def check_lines(self, run_id: str) -> list[CheckLine]:
        """The checks of a run."""
        ...
