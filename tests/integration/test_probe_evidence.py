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
from jackline.domain.spec import Spec
from jackline.domain.states import CallState, Replay
from jackline.engine import recovery
from jackline.engine.probes.prober import Prober
from jackline.engine.process import Warden
from jackline.policy.rules import Rule
from jackline.store.models import Settlement
from jackline.store.store import Store
from tests.support.probing import Doubt
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
    (doubt,) = recovery.settle_open_calls(store, lease, prober, lambda: AT + 1, host="host-1")
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
    assert recovery.settle_open_calls(store, lease, prober, lambda: AT + 2, host="host-1") == []
    (receipt,) = store.calls.list_receipts("run-1")
    assert (receipt.call_id, receipt.origin) == ("call-1", "probe")
    assert store.verify.verify_run("run-1").problems == ()


@pytest.mark.parametrize("replay", [Replay.ASK, Replay.IDEMPOTENT])
def test_a_probe_that_found_nothing_is_not_believed_about_a_call_of_another_host(
    store: Store, rule: Rule, warden: Warden, tmp_path: Path, replay: Replay
) -> None:
    """Its machine may be suspended, and make the call when it wakes up; unless sending it twice is harmless."""
    changed = rule._replace(replay=replay)
    prober = Prober(Spec("do it", str(tmp_path), rules=(changed,)), {"PATH": os.environ["PATH"]}, 30.0, lambda: warden)
    lease = begun(store)
    store.ledger.admit(lease, intent(rule=changed), decide_call, (1, 2), AT)
    (tmp_path / "answer").write_text("1")
    doubts = recovery.settle_open_calls(store, lease, prober, lambda: AT + 1, host="host-2")
    call = store.calls.get("run-1", "call-1")
    assert call is not None
    is_asked = store.driver.backend == "postgres" and replay is Replay.ASK
    assert [one.id for one in doubts] == (["call-1"] if is_asked else [])
    assert call.state is (CallState.IN_DOUBT if is_asked else CallState.VOID)
    assert ("host host-1 made the call" in call.reason) == is_asked
    # On the host itself, all its processes are known to be gone.
    assert recovery.settle_open_calls(store, lease, prober, lambda: AT + 2, host="host-1") == []


def test_what_a_probe_found_is_believed_about_a_call_of_another_host(
    store: Store, rule: Rule, prober: Prober, tmp_path: Path
) -> None:
    lease = begun(store)
    store.ledger.admit(lease, intent(rule=rule), decide_call, (1, 2), AT)
    (tmp_path / "answer").write_text("0")
    assert recovery.settle_open_calls(store, lease, prober, lambda: AT + 1, host="host-2") == []
    assert len(store.calls.list_receipts("run-1")) == 1


@pytest.mark.parametrize("waits", [True, False])
def test_after_the_grace_time_of_another_host_its_probe_is_believed(
    rule: Rule, warden: Warden, tmp_path: Path, *, waits: bool
) -> None:
    doubt = Doubt(PROBE, tmp_path, {"PATH": os.environ["PATH"]}, warden)
    (tmp_path / "answer").write_text("1")
    change, _ = doubt.found(doubt.call({}), other_host="host-2", wait_for_host=lambda: waits)
    assert change == ("did_not" if waits else "doubt")


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
