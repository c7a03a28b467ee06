"""What a run changed in its repository, kept by both backends."""

from __future__ import annotations

import pytest

from jackline.domain.changes import Changes
from jackline.errors import Fenced
from jackline.store.contract import Change, Store
from tests.support.stores import AT, begun, claimed
from tests.support.stores import FakeClock as Clock


def test_changes_are_kept_and_the_newest_count(store: Store) -> None:
    lease = begun(store)
    assert store.changes("run-1") == store.changes("nobody") == Changes()
    store.write(lease, Change(AT, changes=Changes(("abc one",), 1, 2, 3)))
    newer = Changes(('abc "one"', "def größer 🙂 \N{REPLACEMENT CHARACTER}"), 4, 5, 6)
    store.write(lease, Change(AT + 1, changes=newer))
    assert store.changes("run-1") == newer
    store.write(lease, Change(AT + 2))
    assert store.changes("run-1") == newer, "a write that says nothing of them leaves them alone"
    assert store.check() == []


def test_a_stale_lease_does_not_change_them(store: Store, clock: Clock) -> None:
    stale = begun(store)
    clock.now += 60_000
    claimed(store, name="worker-2")
    with pytest.raises(Fenced):
        store.write(stale, Change(AT, changes=Changes(("abc one",), 1, 2, 3)))
    assert store.changes("run-1") == Changes()
