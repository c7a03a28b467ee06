"""What a store can do: one contract, two backends, one suite of tests. A contract only.

Every write of a worker names its lease; a write whose lease is no longer the newest raises Fenced and changes
nothing. Event and state are written in one transaction. Times are milliseconds; `at` is the caller's wall clock,
leases are counted by the store's own clock (the boot clock on SQLite, the database's clock on PostgreSQL).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from jackline.store.import_contract import ImportStore
from jackline.store.state_protocol import CaseStore, JournalStore, ReportStore, WorkStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jackline.domain.changes import Changes
    from jackline.domain.events import Event
    from jackline.domain.gate import Admission, History, Intent
    from jackline.domain.health import Health
    from jackline.domain.records import (
        Attempt,
        Call,
        Check,
        Checkpoint,
        Lease,
        Notice,
        Owner,
        Receipt,
        Repository,
        Run,
        Turn,
    )
    from jackline.domain.secrets import Redactor
    from jackline.domain.tally import Tally
    from jackline.store.contract import Change, NewRun, RunQuery, RunRow, Settlement, Status, Verified
    from jackline.store.driver import Driver
    from jackline.store.verify import Archive


class Store(WorkStore, JournalStore, CaseStore, ReportStore, ImportStore, Protocol):
    """The truth: runs here, the agent's own state in `state_protocol`."""

    @property
    def driver(self) -> Driver:
        """The connection to the database."""
        ...

    @property
    def secret(self) -> bytes:
        """The instance's secret for keys, the same on every host that shares the store."""
        ...

    @property
    def redactor(self) -> Redactor:
        """What frees everything of secrets before it is written here; for whoever writes beside the store."""
        ...

    def close(self) -> None:
        """Give up the connection."""
        ...

    # runs
    def create_run(self, new: NewRun, at: int) -> tuple[Run, bool]:
        """The run and whether it is new; Conflict if another request has the id, NotFound if the parent is unknown."""
        ...

    def ancestors(self, run_id: str) -> list[tuple[str, int | None]]:
        """The runs that this one was forked from, nearest first, each with the last step that the fork knows."""
        ...

    def run(self, run_id: str) -> Run | None:
        """One run by its whole id."""
        ...

    def matching_runs(self, text: str, repository: str | None, limit: int = 10) -> list[RunRow]:
        """Runs whose id is `text`; else whose number (`#12`) it is in the repository; else whose id begins so.

        `repository` is the id of one (`domain.repository`); without it no number is looked for.
        """
        ...

    def list_runs(self, query: RunQuery) -> list[RunRow]:
        """Newest first; costs the same however many runs there are."""
        ...

    def repositories(self) -> list[Repository]:
        """Every place where a run was made."""
        ...

    def request_cancel(self, run_id: str, at: int, notice_id: str) -> Run:
        """Ask a running run to stop, or end one that is queued or waiting, with a notice; a terminal state refuses.

        Of one that is ended here the calls without an outcome are settled: nobody will come back for them.
        """
        ...

    # leases
    def claim(self, run_id: str, owner: Owner, lease_ms: int, at: int, dead: int | None = None) -> tuple[Lease, Run]:
        """Take the run as a new attempt; Busy if it is running, unless its lease ran out or its attempt is `dead`."""
        ...

    def renew(self, lease: Lease, lease_ms: int, wall_ms: int) -> bool:
        """Move the lease on and add `wall_ms` to what was spent; True if a cancel was requested, Fenced if lost."""
        ...

    def cancel_wanted(self, run_id: str) -> bool:
        """Whether a cancel was requested: one cheap read."""
        ...

    def note_warden(self, lease: Lease, pid: int, started: int) -> None:
        """Remember the attempt's warden, so that a later attempt can end it."""
        ...

    def write(self, lease: Lease, change: Change) -> Run:
        """The one fenced write of a worker; gives back the run as it now is.

        Cancel requests, calls and wall time are changed by others and never overwritten by `change.life`. A notice
        without a chain head gets the head that this very write leads to. A run whose end was requested meanwhile is
        not put to wait: CancelWanted, and nothing is written.
        """
        ...

    # ledger
    def admit(
        self,
        lease: Lease,
        intent: Intent,
        decide: Callable[[Intent, History], Admission],
        place: tuple[int, int],
        at: int,
    ) -> tuple[Call, Admission, Receipt | None]:
        """Write the intent down with what `decide` says of it, in one transaction; `place` is (turn, step).

        `decide` may be asked more than once, so it must be pure. A read or a local repeats freely, unless its rule
        asks a person or its replay is to relaunch: no earlier calls stand in its history, and its occurrence is 0,
        because nobody counts them. A stored result is given back whole, as a receipt also where it is that of a
        finished call which is no effect.
        """
        ...

    def settle(self, lease: Lease, settlement: Settlement) -> Call:
        """Write an outcome; an effect that succeeded or happened gets its receipt in the same transaction."""
        ...

    def answer(self, run_id: str, call_id: str, verdict: str, at: int) -> tuple[Call, Run]:
        """A person's word on a call: happened, did-not, retry, skip (in doubt); allow, deny (asked).

        Refused while a worker holds the run, or when the call is not open to such an answer. The same question,
        asked twice, is answered once. When nothing else is open the waiting run is queued again.
        """
        ...

    def expire_asked(self, lease: Lease, at: int, verdict: str, older_than: int) -> list[Call]:
        """Answer what a person was asked before `older_than` and has not answered, with `allow` or `deny`."""
        ...

    def asked(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that a person was asked about and has not answered; oldest first. `newest`: among so many last ones."""
        ...

    def forced(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that a recovery gave up and that were not made again since; oldest first, among the newest."""
        ...

    def cut_off_times(self, run_id: str, key: str) -> int:
        """How often a recovery found a call of this key without an outcome."""
        ...

    def open_calls(self, run_id: str, newest: int | None = None) -> list[Call]:
        """Calls that were allowed and have no outcome, and those in doubt; oldest first, among the newest."""
        ...

    def calls(self, run_id: str) -> list[Call]:
        """The whole ledger of a run, oldest first; of a large input or output only its beginning, and the reference."""
        ...

    def content(self, run_id: str, digest: str) -> str | None:
        """The large text that a call's reference names."""
        ...

    def digests(self, run_id: str) -> list[str]:
        """Which large texts the run has."""
        ...

    def whole(self, call: Call) -> Call:
        """The call with its large texts in full."""
        ...

    def tally(self, run_id: str) -> Tally:
        """How the run's calls came out, counted by the database."""
        ...

    def call(self, run_id: str, call_id: str) -> Call | None:
        """One call of a run."""
        ...

    def receipts(self, run_id: str) -> list[Receipt]:
        """Every proof of an effect, oldest first."""
        ...

    # reading
    def events(self, stream: str, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events with a sequence above `after`."""
        ...

    def turns(self, run_id: str) -> list[Turn]:
        """The turns of a run."""
        ...

    def attempts(self, run_id: str) -> list[Attempt]:
        """The attempts of a run."""
        ...

    def checks(self, run_id: str) -> list[Check]:
        """The checks of a run."""
        ...

    def sessions(self, run_id: str) -> dict[str, str]:
        """The provider's session of each agent of the run."""
        ...

    def health(self) -> list[Health]:
        """How each agent's last turn left it, whichever run that was of."""
        ...

    def changes(self, run_id: str) -> Changes:
        """What the run changed in its repository, as far as it is known."""
        ...

    def checkpoints(self, run_id: str) -> list[Checkpoint]:
        """What a resume can start from."""
        ...

    def notices(self, run_id: str | None = None, limit: int = 100) -> list[Notice]:
        """The outbox, newest first."""
        ...

    # upkeep
    def name_instance(self, host: str, agent: str) -> tuple[str, str]:
        """Give it these names of a host and an agent, unless it has some already; the names that it has now."""
        ...

    def status(self) -> Status:
        """Schema and size."""
        ...

    def check(self, archive: Archive | None = None) -> list[str]:
        """What is wrong: damage, broken chains, rows that contradict each other. Empty is good.

        `archive` gives the archived events of a run, or None; without them only the head of those is known.
        """
        ...

    def verify(self, run_id: str, archived: Iterable[Event] | None = None, kept_head: str | None = None) -> Verified:
        """Compute the run's chain again, and compare it with all that can be compared; the first problem comes first.

        `archived` are the events that left the store, from the first on; `kept_head` is one that a person wrote down.
        """
        ...

    def backup(self, path: str) -> None:
        """Copy everything to a new file, which appears whole or not at all; Refused by a server, with its own way."""
        ...

    def archivable(self, before: int, limit: int = 100) -> Sequence[str]:
        """Terminal runs that ended before this time and still have their events here."""
        ...

    def drop_archived_events(self, run_id: str, head: str, at: int) -> int:
        """Remove the events of a run whose archive is safely written; the chain goes on. Refused if it moved on."""
        ...
