"""A state machine that claims, renews, expires, finishes, cancels and crashes at random, against a small model."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.records import Lease, RunStatus
from jackline.domain.states import RunState, WaitReason
from jackline.errors import Busy, CancelWanted, Fenced, Refused
from jackline.store.models import RunChange
from jackline.store.open import migrate, open_store
from jackline.store.store import Store
from tests.support.postgres import database_of_its_own
from tests.support.stores import AT, LEASE_MS, READ, FakeClock, intent, made, owner

ENDS = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.WAITING)


class Machine(RuleBasedStateMachine):
    """One run and its workers; the model is what a careful reader of the contract would write on paper."""

    database = ""
    template = ""

    @initialize()
    def begin(self) -> None:
        self.clock = FakeClock()
        self.places = contextlib.ExitStack()
        self.place = self.places.enter_context(_place(self.database, self.template))
        self.store: Store = open_store(self.place, create=False, lease_clock=self.clock)
        self.run_id = made(self.store).id
        self.state = RunState.QUEUED
        self.token = 0
        self.holder: Lease | None = None
        self.until = ("", 0)
        self.cancel = False
        self.calls = 0
        self.stale: list[Lease] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            assert self.store.verify.check_all() == []
            self.store.close()
            self.places.close()

    def _live(self) -> bool:
        boot, until = self.until
        return self.state is RunState.RUNNING and boot == self.clock.boot and until > self.clock.now

    @rule(dead=st.booleans())
    def claim(self, dead: bool) -> None:
        known_dead = self.token if dead else None
        try:
            lease, run = self.store.leases.claim(self.run_id, owner(f"w{self.token}"), LEASE_MS, AT, dead=known_dead)
        except Refused:
            assert self.state in {RunState.SUCCEEDED, RunState.CANCELLED}
            return
        except Busy:
            assert self._live()
            assert not dead
            return
        assert self.state not in {RunState.SUCCEEDED, RunState.CANCELLED}
        assert dead or not self._live()
        self.token += 1
        if self.holder is not None:
            self.stale.append(self.holder)
        self.cancel = self.cancel and self.state is not RunState.FAILED
        self.holder, self.state, self.until = lease, RunState.RUNNING, (self.clock.boot, self.clock.now + LEASE_MS)
        assert (lease.token, run.status.cancel_requested) == (self.token, self.cancel)

    @precondition(lambda self: self.holder is not None)
    @rule()
    def renew(self) -> None:
        assert self.holder is not None
        assert self.store.leases.renew(self.holder, LEASE_MS, 1) is self.cancel
        self.until = (self.clock.boot, self.clock.now + LEASE_MS)

    @rule(passed=st.sampled_from([1, LEASE_MS - 1, LEASE_MS]))
    def time_passes(self, passed: int) -> None:
        self.clock.now += passed

    @rule()
    def the_host_reboots(self) -> None:
        self.clock.boot, self.clock.now = self.clock.boot + "x", 10

    @precondition(lambda self: self.holder is not None)
    @rule()
    def call(self) -> None:
        assert self.holder is not None
        self.calls += 1
        self.store.ledger.admit(self.holder, intent(f"call-{self.calls}", READ), decide_call, (1, 1), AT)

    @precondition(lambda self: self.holder is not None)
    @rule(end=st.sampled_from(ENDS))
    def finish(self, end: RunState) -> None:
        assert self.holder is not None
        reason = WaitReason.PAUSED if end is RunState.WAITING else None
        change = RunChange(AT, (Fact(f"run.{end}"),), RunStatus(state=end, reason=reason))
        if self.cancel and end is RunState.WAITING:
            with pytest.raises(CancelWanted):
                self.store.leases.write_change(self.holder, change)
            return
        self.store.leases.write_change(self.holder, change)
        self.stale.append(self.holder)
        self.state, self.holder = end, None

    @rule()
    def ask_to_cancel(self) -> None:
        try:
            self.store.runs.request_cancel(self.run_id, AT, "notice-1")
        except Refused:
            assert self.state in {RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED}
            return
        self.cancel = True
        if self.state is not RunState.RUNNING:
            self.state = RunState.CANCELLED

    @rule()
    def the_process_dies(self) -> None:
        """What was committed is all there is; a new process opens the database."""
        self.store.close()
        self.store = open_store(self.place, create=False, lease_clock=self.clock)

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def a_zombie_writes(self, data: Any) -> None:
        lease = data.draw(st.sampled_from(self.stale))
        writes = (
            lambda: self.store.leases.renew(lease, LEASE_MS, 1),
            lambda: self.store.leases.write_change(lease, RunChange(AT, status=RunStatus(state=RunState.SUCCEEDED))),
            lambda: self.store.ledger.admit(lease, intent("zombie", READ), decide_call, (1, 1), AT),
        )
        with pytest.raises(Fenced):
            data.draw(st.sampled_from(writes))()

    @invariant()
    def the_run_is_what_the_model_says(self) -> None:
        if not hasattr(self, "store"):
            return
        run = self.store.runs.get(self.run_id)
        assert run is not None
        assert (run.status.state, run.status.attempt) == (self.state, self.token)
        assert (run.status.spent.calls, run.status.cancel_requested) == (self.calls, self.cancel)
        assert run.owner == (self.holder.owner if self.holder else None)
        assert (run.finished_at is not None) is (self.state in ENDS[:3])
        open_attempts = [one for one in self.store.records.list_attempts(self.run_id) if one.ended_at is None]
        assert len(open_attempts) == (1 if self.holder else 0)


@contextlib.contextmanager
def _place(database: str, template: str) -> Iterator[str]:
    if database == "sqlite":
        with tempfile.TemporaryDirectory(prefix="jackline-machine-") as folder:
            place = os.path.join(folder, "state.sqlite")
            migrate(place)
            yield place
    else:
        with database_of_its_own(database, template) as place:
            yield place


def _run(database: str, examples: int, template: str = "") -> None:
    machine = type("OneMachine", (Machine,), {"database": database, "template": template})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_sqlite_does_what_the_model_does() -> None:
    _run("sqlite", 25)


@pytest.mark.postgres
def test_postgres_does_what_the_model_does(postgres_server: str, migrated_postgres: str) -> None:
    _run(postgres_server, 12, migrated_postgres)


@pytest.mark.full
def test_sqlite_does_what_the_model_does_for_long() -> None:
    _run("sqlite", 300)


@pytest.mark.full
@pytest.mark.postgres
def test_postgres_does_what_the_model_does_for_long(postgres_server: str, migrated_postgres: str) -> None:
    _run(postgres_server, 300, migrated_postgres)
