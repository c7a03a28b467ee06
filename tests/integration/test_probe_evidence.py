"""What a probe saw is kept, also when nobody knows: in the ledger, in the chain of events, and for a person to read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.clock import boot_ms
from jackline.domain.call_gate import decide_call
from jackline.domain.notices import describe_doubts
from jackline.domain.records import Spec
from jackline.domain.states import CallState
from jackline.engine import recovery
from jackline.engine.probes.prober import Prober
from jackline.engine.process import Warden
from jackline.policy.rules import Rule
from jackline.store.models import Settlement
from jackline.store.store import Store
from tests.support.stores import AT, MAIL, begun, intent

PROBE = 'echo "asked about: $(cat answer)" >&2; exit "$(cat answer)"'


@pytest.fixture(scope="module")
def warden() -> Iterator[Warden]:
    with Warden.start(deadline_ms=boot_ms() + 600_000, marker={"JACKLINE_COMMAND": "test-evidence"}) as one:
        yield one


@pytest.fixture
def rule() -> Rule:
    return MAIL._replace(probe=PROBE)


@pytest.fixture
def prober(rule: Rule, tmp_path: Path, warden: Warden) -> Prober:
    spec = Spec("do it", str(tmp_path), rules=(rule,))
    return Prober(spec, {"PATH": os.environ["PATH"]}, 30.0, lambda: warden)


def test_a_call_that_was_cut_off_keeps_what_its_probe_saw(
    store: Store, rule: Rule, prober: Prober, tmp_path: Path
) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(rule=rule), decide_call, (1, 2), AT)
    (tmp_path / "answer").write_text("3")
    (doubt,) = recovery.settle_open_calls(store, lease, prober, lambda: AT + 1)
    call = store.calls.get("run-1", "call-1")
    assert call is not None
    assert (call.state, call.id) == (CallState.IN_DOUBT, doubt.id)
    assert "exit 3: asked about: 3" in call.reason
    last = store.records.list_events("run-1")[-1]
    assert (last.kind, json.loads(last.data)["reason"]) == ("call.in_doubt", call.reason)
    assert "exit 3: asked about: 3" in describe_doubts([call])
    assert store.verify.verify_run("run-1").problems == ()
    # The next recovery asks again, and now somebody knows.
    (tmp_path / "answer").write_text("0")
    assert recovery.settle_open_calls(store, lease, prober, lambda: AT + 2) == []
    (receipt,) = store.calls.list_receipts("run-1")
    assert (receipt.call_id, receipt.origin) == ("call-1", "probe")
    assert store.verify.verify_run("run-1").problems == ()


def test_a_failed_call_keeps_its_own_output_while_nobody_knows(
    store: Store, rule: Rule, prober: Prober, tmp_path: Path
) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(rule=rule), decide_call, (1, 2), AT)
    failed = store.ledger.settle(lease, Settlement("call-1", "doubt", AT, output="connection reset", exit_code=7))
    (tmp_path / "answer").write_text("2")
    settlement = prober.probe_call(failed, AT + 1)
    assert settlement is not None
    call = store.ledger.settle(lease, settlement)
    assert (call.state, call.output, call.exit_code) == (CallState.IN_DOUBT, "connection reset", 7)
    assert "asked about: 2" in call.reason
    assert store.calls.list_open("run-1") == [call]
    assert store.verify.verify_run("run-1").problems == ()
