"""Small builders for tests of the store: a clock that moves when told, owners, runs, intents, SQL by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from jackline.domain.call_gate import Admission, History, Intent
from jackline.domain.events import Event
from jackline.domain.records import Lease, Owner, Run
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import Refused
from jackline.policy.rules import Rule
from jackline.store.models import NewRun
from jackline.store.store import Store

AT = 1_700_000_000_000
LEASE_MS = 30_000
HERE = "/srv/repository"

READ = Rule("reads", "read", CallClass.READ, Replay.EXACT)
MAIL = Rule("mails", "mail", CallClass.EFFECT, Replay.ASK, Decision.ALLOW, target="mail:{to}")
UNKNOWN = Rule("unmatched", "*", CallClass.UNKNOWN)
_TRIGGERS = ("events_never_change", "events_never_leave", "receipts_never_change", "receipts_never_leave")


class FakeClock:
    """A lease clock in the test's hand."""

    def __init__(self) -> None:
        self.boot = "boot-1"
        self.now = 1_000_000

    def __call__(self) -> tuple[str, int]:
        return self.boot, self.now


def owner(name: str = "worker-1") -> Owner:
    return Owner(name, "host-1", "boot-1", 4242)


def new_run(run_id: str = "run-1", **more: Any) -> NewRun:
    spec = {"prompt": "mend it", "workspace": HERE} | more.pop("spec", {})
    values = {"repository": HERE, "request": "as asked"} | more
    return NewRun(id=run_id, spec=Spec(**spec), **values)


def made(store: Store, run_id: str = "run-1", at: int = AT, **more: Any) -> Run:
    return store.runs.create(new_run(run_id, **more), at)[0]


def claimed(store: Store, run_id: str = "run-1", name: str = "worker-1") -> Lease:
    return store.leases.claim(run_id, owner(name), LEASE_MS, AT + 1)[0]


def begun(store: Store, run_id: str = "run-1", name: str = "worker-1") -> Lease:
    made(store, run_id)
    return claimed(store, run_id, name)


def intent(call_id: str = "call-1", rule: Rule = MAIL, **more: Any) -> Intent:
    target = "mail:bob" if rule is MAIL else ""
    values: dict[str, Any] = {"key": "key-1", "target": target, "input": '{"to":"bob"}', "door": "hook"}
    return Intent(call_id, rule.tool, rule, **(values | more))


def history_of(store: Store, lease: Lease, wanted: Intent) -> History:
    """The history that an intent is decided by, without adding to it."""
    seen: list[History] = []

    def look(_: Intent, history: History) -> Admission:
        seen.append(history)
        raise Refused("only looking")

    with pytest.raises(Refused, match="only looking"):
        store.ledger.admit(lease, wanted, look, (1, 2), AT)
    return seen[0]


def data_of(event: Event) -> dict[str, Any]:
    """The data of an event, without the digests of the rows that it wrote."""
    data: dict[str, Any] = json.loads(event.data)
    assert data.pop("records")
    return data


def by_hand(store: Store, sql: str, values: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
    """Run SQL behind the store's back, in its own spelling of parameters."""
    connection = store.driver._connection  # type: ignore[attr-defined]
    cursor = connection.execute(sql, values or {}) if values else connection.execute(sql)
    return cursor.fetchall() if cursor.description else []


def drop_triggers(store: Store) -> None:
    """Let SQL by hand alter what is append-only."""
    backend = store.admin.get_status().backend
    for name in _TRIGGERS:
        table = name.split("_")[0]
        suffix = "" if backend == "sqlite" else f" ON {table}"
        by_hand(store, f"DROP TRIGGER IF EXISTS {name}{suffix}")
