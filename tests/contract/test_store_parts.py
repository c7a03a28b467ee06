"""The store and its parts: each is imported when it is first used, and works on every backend."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jackline.domain.call_gate import decide_call
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import ItemQuery, NewItem
from jackline.secrets.redactor import Redactor
from jackline.store.models import RunQuery, Settlement
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, intent, new_run, owner

PARTS = ("runs", "leases", "ledger", "calls", "approvals", "blobs", "records", "journal", "verify", "admin")
LOADED = """
import sys
from jackline.store.store import Store
print(*sorted(name for name in sys.modules if name.startswith("jackline.store.")))
"""


@pytest.fixture
def parts(store: Store) -> Store:
    return Store(store.driver)


def test_a_run_goes_through_the_parts(parts: Store) -> None:
    run, is_new = parts.runs.create(new_run(), AT)
    lease, _ = parts.leases.claim(run.id, owner(), LEASE_MS, AT)
    parts.ledger.admit(lease, intent(), decide_call, (1, 1), AT)
    parts.ledger.settle(lease, Settlement("call-1", "succeed", AT + 1, "sent", 0, "message-1"))
    (call,) = parts.calls.list_all(run.id)
    assert (is_new, call.output, parts.blobs.load_call(call)) == (True, "sent", call)
    assert [row.id for row in parts.runs.list_page(RunQuery())] == [run.id]
    assert [event.kind for event in parts.records.list_events(run.id)][:2] == ["run.created", "run.claimed"]
    assert parts.verify.verify_run(run.id).problems == ()
    assert (parts.verify.check_all(), parts.admin.get_status().counts["calls"]) == ([], 1)


def test_a_feature_builds_its_part_over_the_store(parts: Store) -> None:
    WorkQueue(parts).enqueue(NewItem("item-1", "mail"), AT, "ada")
    assert [item.id for item in WorkItems(parts).list_page(ItemQuery())] == ["item-1"]


def test_a_part_is_made_once(parts: Store) -> None:
    for name in PARTS:
        assert getattr(parts, name) is getattr(parts, name)


def test_the_redactor_is_made_on_first_use(store: Store) -> None:
    made: list[Redactor] = []

    def make_redactor() -> Redactor:
        made.append(Redactor(["the-secret-value"]))
        return made[-1]

    parts = Store(store.driver, make_redactor)
    assert (parts.runs.get("run-1"), made) == (None, [])
    parts.runs.create(new_run(spec={"prompt": "say the-secret-value"}), AT)
    run = parts.runs.get("run-1")
    assert run is not None
    assert (run.spec.prompt, len(made)) == ("say [redacted]", 1)


def test_no_part_is_imported_with_the_store() -> None:
    loaded = subprocess.run((sys.executable, "-c", LOADED), capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) == {"jackline.store.driver", "jackline.store.rows", "jackline.store.store"}
