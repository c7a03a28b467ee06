"""The store frees everything of secrets before it writes; what it compares by is left as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from jackline.domain.agent_health import AgentHealth
from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.records import Check, Checkpoint, Notice, Turn
from jackline.secrets.redactor import REDACTED, Redactor
from jackline.store.models import RunChange, Settlement
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.support.secrets import TOKENS
from tests.support.stores import AT, begun, by_hand, claimed, intent, made

KNOWN, TOKEN = "a value of ours", TOKENS["github p"]
SAID = f"it is {KNOWN}, or {TOKEN}"
TABLES = (
    "runs", "specs", "events", "turns", "checks", "checkpoints", "notices", "calls", "receipts", "agent_health",
    "contents",
)  # fmt: skip


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    opened = open_store(database, create=False, redactor=Redactor([KNOWN]))
    yield opened
    opened.close()


def leaks(store: Store) -> list[Any]:
    rows = [(table, row) for table in TABLES for row in by_hand(store, f"SELECT * FROM {table}")]
    assert [row for _, row in rows if REDACTED in str(row)]  # else nothing was looked at
    return [(table, row) for table, row in rows if KNOWN in str(row) or TOKEN in str(row)]


def test_what_was_asked_is_kept_and_given_out_redacted(store: Store) -> None:
    run = made(store, spec={"prompt": SAID, "job": f"prompt = '{SAID}'"})
    assert run.spec.prompt == f"it is {REDACTED}, or {REDACTED}"
    assert store.runs.get("run-1") == run
    assert leaks(store) == []


def test_a_repeated_request_is_still_the_same(store: Store) -> None:
    assert made(store, spec={"prompt": SAID}) == made(store, spec={"prompt": SAID})


def test_everything_that_a_worker_writes_is_redacted(store: Store) -> None:
    lease = begun(store)
    run = store.runs.get("run-1")
    assert run is not None
    change = RunChange(
        AT + 2,
        (Fact("agent.message", {"text": SAID, "argv": ["x", "--password", "abcd"], "password": "y", "offset": 7}),),
        status=run.status._replace(detail=SAID),
        turn=Turn("run-1", 1, 1, 1, "work", "a", "s", SAID, AT, detail=SAID, last_message=SAID),
        check=Check("run-1", 1, 1, SAID, AT, output=SAID),
        health=AgentHealth("a", "limit", SAID),
        checkpoint=Checkpoint("run-1", 1, "step", f'{{"detail":"{SAID}"}}', "{}", AT),
        notice=Notice("n", "run-1", "waiting", SAID, SAID, "", AT),
    )
    store.leases.write_change(lease, change)
    assert leaks(store) == []
    assert store.verify.check_all() == []
    assert '"offset":7' in store.records.list_events("run-1")[-2].data  # the last one tells of the records


def test_a_call_is_redacted_and_still_known_by_its_key_and_target(store: Store) -> None:
    lease = begun(store)
    place = (1, 1)
    wish = intent(input=f'{{"text":"{SAID}","password":"z"}}', target=f"mail:{TOKEN}")
    call, _, _ = store.ledger.admit(lease, wish, decide_call, place, AT + 2)
    assert call.key == wish.key
    store.ledger.settle(lease, Settlement(call.id, "succeed", AT + 3, SAID * 3_000, 0, TOKEN, reason=SAID))
    again, admission, receipt = store.ledger.admit(lease, wish._replace(call_id="call-2"), decide_call, place, AT + 4)
    assert (admission.decision, again.original) == ("stored", call.id)
    assert receipt is not None
    assert receipt.external_id == REDACTED
    other = intent("call-3", key="key-3", input='{"to":"eve"}', target=f"mail:{TOKEN}")
    dead = claimed_anew(store)
    assert store.ledger.admit(dead, other, decide_call, place, AT + 6)[1].decision == "ask"
    assert leaks(store) == []
    assert store.verify.check_all() == []


def claimed_anew(store: Store) -> Any:
    run = store.runs.get("run-1")
    assert run is not None
    by_hand(store, "UPDATE runs SET state = 'queued', owner = NULL WHERE id = 'run-1'")
    return claimed(store, "run-1", "worker-2")
