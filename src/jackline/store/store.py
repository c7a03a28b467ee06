"""The store: one database, with its parts imported on first use. No SQL here.

Every write of a worker names its lease; a write whose lease is no longer the newest raises Fenced and changes nothing.
An event and the state that it explains are written in one transaction. Times are milliseconds; `at` is the caller's
wall clock. Leases use the store's own clock: the boot clock on SQLite, the database's clock on PostgreSQL.

A command needs one or two parts, and importing the others would delay it. Features build their own parts over a store,
such as `WorkItems(store)`. A new read is one named query and one method of a part.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from jackline.store import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.spec import Spec
    from jackline.secrets.redactor import Redactor
    from jackline.store.admin import Admin
    from jackline.store.amendments import Amendments
    from jackline.store.approvals import Approvals
    from jackline.store.blobs import Blobs
    from jackline.store.calls import Calls
    from jackline.store.driver import Driver, Statements
    from jackline.store.journal import Journal
    from jackline.store.leases import Leases
    from jackline.store.ledger import LedgerStore
    from jackline.store.notices import NoticeStore
    from jackline.store.pull_requests import PullRequests
    from jackline.store.queue import RunQueue
    from jackline.store.reviews import Reviews
    from jackline.store.run_records import RunRecords
    from jackline.store.run_worktrees import RunWorktrees
    from jackline.store.runs import RunStore
    from jackline.store.settings_records import SettingsRecords
    from jackline.store.spending import SpendingStore
    from jackline.store.verify import Verification
    from jackline.store.wakeups import Wakeups

_SPECS_KEPT = 256


class Store:
    """One store over one driver."""

    def __init__(self, driver: Driver, make_redactor: Callable[[], Redactor] | None = None) -> None:
        """Without `make_redactor`, secrets are recognized by their form only."""
        self.driver = driver
        self._make_redactor = make_redactor
        self._specs: dict[str, tuple[str, Spec]] = {}  # each with the text that it was parsed from

    @cached_property
    def secret(self) -> bytes:
        """The instance's secret for keys, the same on every host that shares the store."""
        row = self.driver.read(lambda statements: statements.one("instance_value", {"name": "secret"}))
        return bytes.fromhex(row[0]) if row else b""

    @cached_property
    def redactor(self) -> Redactor:
        """Removes secrets from everything before it is written; made on first use, because reads need none."""
        if self._make_redactor is not None:
            return self._make_redactor()
        from jackline.secrets.redactor import Redactor

        return Redactor(())

    def close(self) -> None:
        """Close the connection."""
        self.driver.close()

    def load_spec(self, statements: Statements, run_id: str) -> Spec:
        """The spec of a run as it is now; it is parsed again only if a person changed it."""
        row = statements.one("get_spec", {"run_id": run_id})
        text = str(row[0]) if row else "{}"
        known = self._specs.get(run_id)
        if known is not None and known[0] == text:
            return known[1]
        if len(self._specs) >= _SPECS_KEPT:
            self._specs.clear()
        spec = rows.parse_spec(text)
        self._specs[run_id] = (text, spec)
        return spec

    def get_claimed_spec(self, statements: Statements, run_id: str) -> Spec:
        """The spec that a worker read when it claimed the run: it keeps this one until the attempt ends."""
        known = self._specs.get(run_id)
        return known[1] if known is not None else self.load_spec(statements, run_id)

    @cached_property
    def runs(self) -> RunStore:
        """Runs: create, cancel, find, list."""
        from jackline.store.runs import RunStore

        return RunStore(self)

    @cached_property
    def leases(self) -> Leases:
        """Claims of runs, and the fenced writes of their workers."""
        from jackline.store.leases import Leases

        return Leases(self)

    @cached_property
    def spending(self) -> SpendingStore:
        """What running turns may still spend of the day's budget."""
        from jackline.store.spending import SpendingStore

        return SpendingStore(self)

    @cached_property
    def ledger(self) -> LedgerStore:
        """Writes of tool calls: intents before, outcomes after."""
        from jackline.store.ledger import LedgerStore

        return LedgerStore(self)

    @cached_property
    def calls(self) -> Calls:
        """Reads of tool calls and receipts."""
        from jackline.store.calls import Calls

        return Calls(self)

    @cached_property
    def approvals(self) -> Approvals:
        """Answers to calls that are in doubt or need approval."""
        from jackline.store.approvals import Approvals

        return Approvals(self)

    @cached_property
    def amendments(self) -> Amendments:
        """People's messages to agents, and their changes of runs."""
        from jackline.store.amendments import Amendments

        return Amendments(self)

    @cached_property
    def blobs(self) -> Blobs:
        """Large texts of calls, by digest."""
        from jackline.store.blobs import Blobs

        return Blobs(self)

    @cached_property
    def records(self) -> RunRecords:
        """Reads of events, turns, attempts, checks, checkpoints and notices."""
        from jackline.store.run_records import RunRecords

        return RunRecords(self)

    @cached_property
    def reviews(self) -> Reviews:
        """Iterations, verdicts and findings."""
        from jackline.store.reviews import Reviews

        return Reviews(self)

    @cached_property
    def worktrees(self) -> RunWorktrees:
        """The worktrees that were made for runs."""
        from jackline.store.run_worktrees import RunWorktrees

        return RunWorktrees(self)

    @cached_property
    def pull_requests(self) -> PullRequests:
        """Pull requests of runs, and the feedback on them."""
        from jackline.store.pull_requests import PullRequests

        return PullRequests(self)

    @cached_property
    def journal(self) -> Journal:
        """Events that belong to no run, and the timeline of all events."""
        from jackline.store.journal import Journal

        return Journal(self)

    @cached_property
    def settings(self) -> SettingsRecords:
        """Records of the files that a person owns."""
        from jackline.store.settings_records import SettingsRecords

        return SettingsRecords(self)

    @cached_property
    def notices(self) -> NoticeStore:
        """Notices that are not about a run."""
        from jackline.store.notices import NoticeStore

        return NoticeStore(self)

    @cached_property
    def queue(self) -> RunQueue:
        """The runs that a service starts."""
        from jackline.store.queue import RunQueue

        return RunQueue(self)

    @cached_property
    def wakeups(self) -> Wakeups:
        """The runs that continue without a person."""
        from jackline.store.wakeups import Wakeups

        return Wakeups(self)

    @cached_property
    def verify(self) -> Verification:
        """Checks that nothing was altered."""
        from jackline.store.verify import Verification

        return Verification(self)

    @cached_property
    def admin(self) -> Admin:
        """Status, backup, archive and the name of the instance."""
        from jackline.store.admin import Admin

        return Admin(self)
