"""The renewal of a lease: the deadline that the warden gets, and how soon a cancel request is noticed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from jackline.domain.records import Lease
from jackline.engine import lease_renewer
from jackline.engine.lease_renewer import LeaseRenewer
from jackline.errors import StoreUnavailable

LEASE = Lease(run_id="run-1", owner="worker-1", token=1)
LEASE_MS = 30_000
SLOW_MS = 4_000
LIMIT_S = 60


class FakeStore:
    """The leases of a store whose clock is the test's; a renewal takes a while."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.renewed_at = self.now  # when the database wrote it: the lease ends `LEASE_MS` later
        self.spent: list[int] = []
        self.cancel_requested = False
        self.leases = self

    def renew(self, _lease: Lease, lease_ms: int, wall_ms: int) -> bool:
        assert lease_ms == LEASE_MS
        self.now += SLOW_MS // 2
        self.renewed_at = self.now
        self.spent.append(wall_ms)
        self.now += SLOW_MS // 2
        return self.cancel_requested

    def is_cancel_requested(self, _run_id: str) -> bool:
        return self.cancel_requested


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    made = FakeStore()
    monkeypatch.setattr(lease_renewer, "boot_ms", lambda: made.now)
    return made


@pytest.fixture
def heard(store: FakeStore) -> Iterator[SimpleNamespace]:
    """A renewer, and what it reports."""
    heard = SimpleNamespace(deadlines=[], cancelled=threading.Event(), lost=threading.Event(), errors=[])

    def lose(error: BaseException) -> None:
        heard.errors.append(error)
        heard.lost.set()

    fake: Any = store
    heard.renewer = LeaseRenewer(
        fake, LEASE, LEASE_MS, on_renewed=heard.deadlines.append, on_cancel=heard.cancelled.set, on_lost=lose
    )
    yield heard
    heard.renewer.stop()


def test_the_warden_kills_after_two_thirds_of_the_lease(store: FakeStore, heard: SimpleNamespace) -> None:
    assert heard.renewer.deadline == store.now + LEASE_MS * 2 // 3
    store.now += 10_000
    before = store.now
    heard.renewer.renew()
    assert heard.deadlines == [heard.renewer.deadline] == [before + LEASE_MS * 2 // 3]
    assert heard.deadlines[0] <= store.renewed_at + LEASE_MS * 2 // 3, "the time that the write took counts"


def test_time_is_accounted_once(store: FakeStore, heard: SimpleNamespace) -> None:
    store.now += 10_000
    heard.renewer.renew()
    heard.renewer.renew()
    assert store.spent == [10_000, SLOW_MS]


def test_a_cancel_request_is_noticed_long_before_a_renewal(store: FakeStore, heard: SimpleNamespace) -> None:
    """The clock stands still, so that no renewal is ever due, and the first pause is the only one."""
    pauses: list[float] = []

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) > 1

    heard.renewer._stop = SimpleNamespace(wait=wait, set=lambda: None)
    store.cancel_requested = True
    heard.renewer._run()
    assert heard.cancelled.is_set()
    assert (store.spent, max(pauses) <= 1) == ([], True)


def test_a_renewal_notices_a_cancel_request_too(store: FakeStore, heard: SimpleNamespace) -> None:
    heard.renewer.renew()
    assert not heard.cancelled.is_set()
    store.cancel_requested = True
    heard.renewer.renew()
    assert heard.cancelled.is_set()


def test_a_third_of_the_lease_later_it_is_renewed(store: FakeStore, heard: SimpleNamespace) -> None:
    renewed = threading.Event()
    heard.renewer._on_renewed = lambda _deadline: renewed.set()
    store.now += LEASE_MS // 3
    heard.renewer.start()
    assert renewed.wait(LIMIT_S)


def test_an_outage_of_the_store_is_survived_until_the_deadline(store: FakeStore, heard: SimpleNamespace) -> None:
    asked = threading.Event()

    def be_away(_run_id: str) -> bool:
        asked.set()
        raise StoreUnavailable("gone")

    store.is_cancel_requested = be_away  # type: ignore[method-assign]
    store.renew = lambda *_: be_away("")  # type: ignore[method-assign]
    heard.renewer.start()
    assert asked.wait(LIMIT_S)
    assert not heard.lost.is_set()
    store.now = heard.renewer.deadline
    assert heard.lost.wait(LIMIT_S)
    assert [type(error) for error in heard.errors] == [StoreUnavailable]
