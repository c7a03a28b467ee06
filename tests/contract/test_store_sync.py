"""Which commits wait for the disk, and what is left when the newest of the others are lost; on every backend."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from jackline.domain.call_gate import Admission, History, Intent, decide_call
from jackline.domain.events import Fact
from jackline.domain.states import CallClass, CallState, Decision, Replay
from jackline.errors import Refused
from jackline.policy.rules import Rule
from jackline.store.models import RunChange, Settlement
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, READ, UNKNOWN, begun, by_hand, intent

SYNCED, UNSYNCED = {"on", 2}, {"off", 1}
LOCAL = Rule("edits", "edit", CallClass.LOCAL)


def _setting(store: Store) -> Any:
    """The setting that a commit at this moment has."""
    sql = "SHOW synchronous_commit" if store.driver.backend == "postgres" else "PRAGMA synchronous"
    return by_hand(store, sql)[0][0]


@pytest.fixture
def settings(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings under which the heads of runs are moved, one for each write of the ledger."""
    seen: list[Any] = []
    run = store.driver.run  # type: ignore[attr-defined]

    def record(name: str, values: Any) -> int:
        if name == "move_head":
            seen.append(_setting(store))
        return int(run(name, values))

    monkeypatch.setattr(store.driver, "run", record)
    return seen


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (READ, [UNSYNCED, UNSYNCED]),
        (LOCAL, [UNSYNCED, UNSYNCED]),
        (MAIL, [SYNCED, SYNCED]),
        (UNKNOWN, [SYNCED, SYNCED]),
        (LOCAL._replace(replay=Replay.RELAUNCH), [SYNCED, SYNCED]),  # a finished task must not be launched again
        (LOCAL._replace(most=3), [SYNCED, UNSYNCED]),  # a limit also counts after a power cut
        (LOCAL._replace(decision=Decision.ASK), [SYNCED]),
        (LOCAL._replace(decision=Decision.DENY), [SYNCED]),
    ],
    ids=["read", "local", "effect", "unknown", "task", "limited", "asked", "denied"],
)
def test_only_reads_and_local_calls_do_not_wait_for_the_disk(
    store: Store, settings: list[Any], rule: Rule, expected: list[set[Any]]
) -> None:
    lease = begun(store)
    call, *_ = store.ledger.admit(lease, intent(rule=rule), decide_call, (1, 1), AT)
    if call.state is CallState.PREPARED:
        store.ledger.settle(lease, Settlement(call.id, "succeed", AT, "ok"))
    assert [one in allowed for one, allowed in zip(settings, expected, strict=True)] == [True] * len(expected)
    assert _setting(store) in SYNCED


def test_a_settlement_by_anyone_but_the_agent_waits_for_the_disk(store: Store, settings: list[Any]) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(rule=READ), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("call-1", "abandon", AT, origin="recovery"))
    assert settings[1] in SYNCED


def test_an_input_that_is_too_long_to_be_held_waits_for_the_disk(store: Store, settings: list[Any]) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(rule=READ, input=f'"{"x" * 70_000}"'), decide_call, (1, 1), AT)
    assert settings[0] in SYNCED


def test_the_setting_is_reset_after_an_error(store: Store) -> None:
    lease = begun(store)

    def refuse(_intent: Intent, _history: History) -> Admission:
        assert _setting(store) in UNSYNCED
        raise Refused("no")

    with pytest.raises(Refused):
        store.ledger.admit(lease, intent(rule=READ), refuse, (1, 1), AT)
    assert _setting(store) in SYNCED


# The loss itself on SQLite; on PostgreSQL a real server is killed: see tests/race/test_postgres_outages.py.


@pytest.fixture
def lossy(tmp_path: Path) -> Any:
    """A store, and a function that copies it as a power cut would leave it: without the end of its log."""
    path = tmp_path / "jackline.db"
    store = open_store(str(path), create=True)

    def copy(log_bytes: int | None = None) -> Store:
        folder = tmp_path / f"copy-{log_bytes}"
        folder.mkdir()
        for name in (path.name, f"{path.name}-wal"):
            shutil.copy(tmp_path / name, folder / name)
        if log_bytes is not None:
            os.truncate(folder / f"{path.name}-wal", log_bytes)
        return open_store(str(folder / path.name), create=False)

    yield store, lambda: os.path.getsize(f"{path}-wal"), copy
    store.close()


def test_after_a_power_cut_the_records_end_with_the_last_sync(lossy: Any) -> None:
    store, log_size, copy = lossy
    lease = begun(store)
    store.ledger.admit(lease, intent(), decide_call, (1, 1), AT)
    synced = log_size()
    store.ledger.admit(lease, intent("call-2", READ, key="key-2"), decide_call, (1, 1), AT)
    store.ledger.settle(lease, Settlement("call-2", "succeed", AT, "read"))
    head = store.verify.verify_run("run-1").chain_head
    for size in (synced, synced + 1_000):  # between two commits, and in the middle of one
        left = copy(size)
        assert left.verify.check_all() == []
        assert [call.id for call in left.calls.list_open("run-1")] == ["call-1"]
        found = left.verify.verify_run("run-1", kept_head=head)
        assert (found.problems, found.missing_head) == ((), head)
        left.close()
    killed = copy()  # a killed process leaves all that it committed
    assert [call.id for call in killed.calls.list_all("run-1")] == ["call-1", "call-2"]
    assert killed.verify.verify_run("run-1", kept_head=head).missing_head == ""
    killed.close()


def test_an_outcome_whose_intent_was_lost_writes_both(lossy: Any) -> None:
    store, log_size, copy = lossy
    lease = begun(store)
    store.ledger.admit(lease, intent(), decide_call, (1, 1), AT)
    synced = log_size()
    large = f'"{"x" * 20_000}"'
    for number, text in (("call-2", large), ("call-3", "{}")):
        store.ledger.admit(lease, intent(number, READ, key=number, input=text), decide_call, (1, 1), AT)
    left = copy(synced)
    left.ledger._cache = store.ledger._cache  # the process lives on, as with a database on another host
    # Another event takes the number of the lost one; a comparison of numbers would not notice.
    left.leases.write_change(lease, RunChange(AT, (Fact("agent.note"),)))
    assert left.ledger.find_call(lease, "call-2").state is CallState.PREPARED
    for number in ("call-2", "call-3"):
        left.ledger.settle(lease, Settlement(number, "succeed", AT + 5, "read"))
    left.ledger.settle(lease, Settlement("call-1", "succeed", AT + 6, "sent"))
    calls = left.calls.list_all("run-1")
    assert [(call.id, call.state) for call in calls] == [(f"call-{one}", CallState.DONE) for one in (1, 2, 3)]
    assert left.blobs.load_call(calls[1]).input == large
    assert left.verify.check_all() == []
    assert left.leases.renew(lease, LEASE_MS, 0) is False
    left.close()
