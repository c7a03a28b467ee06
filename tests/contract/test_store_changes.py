"""What a run changed in its repository, kept by both backends."""

from __future__ import annotations

import pytest

from jackline.domain.changes import Changes
from jackline.errors import Fenced
from jackline.store.models import RunChange
from jackline.store.store import Store
from tests.support.stores import AT, begun, claimed
from tests.support.stores import FakeClock as Clock


def test_changes_are_kept_and_the_newest_count(store: Store) -> None:
    lease = begun(store)
    assert store.records.get_changes("run-1") == store.records.get_changes("nobody") == Changes()
    store.leases.write_change(lease, RunChange(AT, changes=Changes(("abc one",), 1, 2, 3)))
    newer = Changes(('abc "one"', "def größer 🙂 \N{REPLACEMENT CHARACTER}"), 4, 5, 6)
    store.leases.write_change(lease, RunChange(AT + 1, changes=newer))
    assert store.records.get_changes("run-1") == newer
    store.leases.write_change(lease, RunChange(AT + 2))
    assert store.records.get_changes("run-1") == newer, "a write that says nothing of them leaves them alone"
    assert store.verify.check_all() == []


def test_a_stale_lease_does_not_change_them(store: Store, clock: Clock) -> None:
    stale = begun(store)
    clock.now += 60_000
    claimed(store, name="worker-2")
    with pytest.raises(Fenced):
        store.leases.write_change(stale, RunChange(AT, changes=Changes(("abc one",), 1, 2, 3)))
    assert store.records.get_changes("run-1") == Changes()
