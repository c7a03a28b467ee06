"""The central guards, asserted directly on both databases.

An intent is stored before its answer, a command before it is carried out, a receipt with its outcome, a checkpoint with
the end of an interrupted attempt; recovery abandons no effect.
"""

from __future__ import annotations

import json
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jackline.agents.claude.claude_hooks import HOOKS
from jackline.clock import boot_ms, wall_ms
from jackline.domain.call_gate import Admission
from jackline.domain.limits import Limits
from jackline.domain.outcome import Outcome, Usage
from jackline.domain.records import Lease, Run
from jackline.domain.run_inputs import (
    CheckEnded,
    MachineInput,
    Recover,
    Recovered,
    RunCheck,
    RunCommand,
    StartTurn,
    StopReason,
    StopWanted,
    StopWork,
    TurnEnded,
)
from jackline.domain.states import CallClass, CallState, Decision, Failure, Phase, RunState, WaitReason
from jackline.engine import recovery
from jackline.engine.attempt import RunInput, run_attempt
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult
from jackline.engine.gate_http import HttpGate
from jackline.engine.gate_socket import SocketGate
from jackline.engine.process import Warden
from jackline.engine.runtime import LiveRuntime
from jackline.engine.settings import EngineSettings, new_id
from jackline.errors import Refused, StoreUnavailable
from jackline.policy.rules import Rule
from jackline.store.driver import Driver, Statements
from jackline.store.models import Settlement
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, READ, UNKNOWN, begun, claimed, intent, made, owner

TOKEN = "0123456789abcdef"
LIMIT_S = 60
ALLOWED = Admission(Decision.ALLOW)
Open = Callable[..., Store]
Stops = list[tuple[StopReason, str]]


def make_ledger(store: Store, stops: Stops | None = None, **spec: Any) -> tuple[CallLedger, Lease]:
    lease = begun(store)
    run = store.runs.get(lease.run_id)
    assert run is not None
    run = run._replace(spec=run.spec._replace(**{"rules": (MAIL, READ), "workspace": "/", **spec}))
    prober: Any = SimpleNamespace(probe_call=lambda *_call: None)
    seen: Stops = [] if stops is None else stops
    ledger = CallLedger(
        store, lease, run, prober, now=wall_ms, new_id=new_id, stop=lambda why, detail: seen.append((why, detail))
    )
    return ledger, lease


class WatchedDriver:
    """A real driver. `before_commit` runs in each transaction of `write`, at its end; `after_commit` after it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.before_commit: Callable[[], None] = lambda: None
        self.after_commit: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def write(self, work: Callable[[Statements], Any], *, synced: bool = True) -> Any:
        def watched(statements: Statements) -> Any:
            result = work(statements)
            self.before_commit()
            return result

        result = self._driver.write(watched, synced=synced)
        self.after_commit()
        return result


def watch(store: Store) -> tuple[Store, WatchedDriver]:
    """A store on the same connection whose transactions are watched."""
    driver: Any = WatchedDriver(store.driver)
    return Store(driver), driver


def fail() -> None:
    raise StoreUnavailable("the disk is full")


# --- written before answered


def ask_over_socket(ledger: CallLedger, folder: Path, token: str = TOKEN) -> tuple[str, str]:
    """The decision as it comes over the wire, and the reason."""
    gate = SocketGate(str(folder), ledger, TOKEN, lambda _error: None)
    gate.open()
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(LIMIT_S)
            client.connect(gate.address)
            request = {"op": "prepare", "token": token, "tool": "mail", "input": {"to": "bob"}}
            client.sendall(json.dumps(request).encode() + b"\n")
            with client.makefile("rb") as lines:
                answer = json.loads(lines.readline())
                return answer["decision"], answer["reason"]
    finally:
        gate.close()


def test_a_suspended_attempt_does_not_take_the_gate_of_its_successor_away(tmp_path: Path) -> None:
    """It wakes up after another process took its run over, and then closes, or even opens, its own gate."""
    ledger: Any = None
    first, late, second = (SocketGate(str(tmp_path), ledger, TOKEN, lambda _error: None, n) for n in (2, 1, 3))
    assert [one.name for one in tmp_path.iterdir()] == [os.path.basename(second.address)]  # the others were dead
    third = SocketGate(str(tmp_path), ledger, TOKEN, lambda _error: None, 2)
    for gate in (first, late, third):
        gate.close()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(second.address)
    second.close()
    assert list(tmp_path.iterdir()) == []


def ask_over_http(ledger: CallLedger, _folder: Path, token: str = TOKEN) -> tuple[str, str]:
    gate = HttpGate(ledger, TOKEN, HOOKS, lambda _error: None)
    gate.open()
    fields = {"hook_event_name": "PreToolUse", "tool_use_id": "t1", "tool_name": "mail", "tool_input": {"to": "bob"}}
    body = json.dumps(fields).encode()
    head = f"POST /hook HTTP/1.1\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    try:
        port = int(gate.address.rpartition(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S) as client:
            client.sendall(head.encode() + body)
            with client.makefile("rb") as lines:
                status, length = lines.readline().split()[1], 0
                while (line := lines.readline()).strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                answer = json.loads(lines.read(length) or b"{}")
    finally:
        gate.close()
    if status != b"200":
        return f"error {status.decode()}", answer.get("error", "")
    return answer["hookSpecificOutput"]["permissionDecision"], ""


DOORS = pytest.mark.parametrize("ask", [ask_over_socket, ask_over_http])


@DOORS
def test_a_call_is_not_allowed_if_its_intent_could_not_be_committed(
    store: Store, tmp_path: Path, ask: Callable[[CallLedger, Path], tuple[str, str]]
) -> None:
    watched, driver = watch(store)
    ledger, _ = make_ledger(watched)
    driver.before_commit = fail
    decision, reason = ask(ledger, tmp_path)
    assert (decision, "the disk is full" in reason) in {("deny", True), ("error 500", True)}
    assert store.calls.list_all("run-1") == []


@DOORS
def test_when_the_answer_arrives_another_process_can_read_the_intent(
    store: Store, opened: Open, tmp_path: Path, ask: Callable[[CallLedger, Path], tuple[str, str]]
) -> None:
    ledger, _ = make_ledger(store)
    decision, _ = ask(ledger, tmp_path)
    (call,) = opened().calls.list_all("run-1")
    assert (decision, call.state, call.call_class) == ("allow", CallState.PREPARED, CallClass.EFFECT)


@DOORS
def test_a_gate_denies_a_client_with_another_token(
    store: Store, tmp_path: Path, ask: Callable[..., tuple[str, str]]
) -> None:
    ledger, _ = make_ledger(store)
    decision, _ = ask(ledger, tmp_path, "another")
    assert decision in {"deny", "error 401"}
    assert store.calls.list_all("run-1") == []


# --- the receipt with the outcome


@pytest.mark.parametrize("change", ["succeed", "happened"])
def test_no_commit_shows_an_effect_as_done_without_its_receipt(store: Store, opened: Open, change: str) -> None:
    watched, driver = watch(store)
    lease, other = begun(watched), opened()
    watched.ledger.admit(lease, intent(), lambda _intent, _history: ALLOWED, (1, 2), AT)
    if change == "happened":
        watched.ledger.settle(lease, Settlement(call_id="call-1", change="doubt", at=AT, origin="recovery"))
    seen: list[tuple[CallState, int]] = []

    def look() -> None:
        call = other.calls.get("run-1", "call-1")
        assert call is not None
        seen.append((call.state, len(other.calls.list_receipts("run-1"))))

    driver.after_commit = look
    watched.ledger.settle(lease, Settlement(call_id="call-1", change=change, at=AT + 1))
    assert seen == [(CallState.DONE, 1)]


def test_a_receipt_that_cannot_be_written_takes_its_outcome_along(store: Store) -> None:
    watched, driver = watch(store)
    ledger, _ = make_ledger(watched)
    call_id = ledger.prepare(CallRequest(tool="mail", input={"to": "bob"}, door="hook")).call_id
    driver.before_commit = fail
    with pytest.raises(StoreUnavailable):
        ledger.finish(CallResult(call_id=call_id, ok=True, exit_code=0))
    (call,) = store.calls.list_all("run-1")
    assert (call.state, store.calls.list_receipts("run-1")) == (CallState.PREPARED, [])


# --- what was cut off


@pytest.mark.parametrize("gave_up", [False, True])
@pytest.mark.parametrize(
    ("rule", "state"),
    [(MAIL, CallState.IN_DOUBT), (UNKNOWN, CallState.IN_DOUBT), (READ, CallState.ABANDONED)],
    ids=lambda one: getattr(one, "name", None),
)
def test_recovery_abandons_what_repeats_and_doubts_what_may_have_happened(
    store: Store, rule: Rule, state: CallState, *, gave_up: bool
) -> None:
    begun_lease = begun(store)
    store.ledger.admit(begun_lease, intent(rule=rule), lambda _intent, _history: ALLOWED, (1, 2), AT)
    lease = store.leases.claim("run-1", owner("worker-2"), LEASE_MS, AT + 2, dead=begun_lease.token)[0]
    prober: Any = SimpleNamespace(probe_call=lambda *_call: None)
    doubts = recovery.settle_open_calls(store, lease, prober, lambda: AT + 3, host="host-1", gave_up=gave_up)
    (call,) = store.calls.list_all("run-1")
    assert call.state is state
    assert [one.id for one in doubts] == (["call-1"] if rule is MAIL else [])


def test_an_effect_in_doubt_is_not_allowed_again(store: Store) -> None:
    ledger, lease = make_ledger(store)
    request = CallRequest(tool="mail", input={"to": "bob"}, door="hook")
    first = ledger.prepare(request)
    store.ledger.settle(lease, Settlement(call_id=first.call_id, change="doubt", at=AT, origin="recovery"))
    assert ledger.prepare(request).decision is Decision.DENY


def test_an_outcome_that_was_written_meanwhile_is_not_overwritten(store: Store, opened: Open) -> None:
    """Two gates of one attempt: the second one still has the call in its memory, as open."""
    lease, other = begun(store), opened()
    store.ledger.admit(lease, intent(), lambda _intent, _history: ALLOWED, (1, 2), AT)
    other.ledger.settle(lease, Settlement(call_id="call-1", change="doubt", at=AT + 1))
    with pytest.raises(Refused):
        store.ledger.settle(lease, Settlement(call_id="call-1", change="succeed", at=AT + 2))
    (call,) = other.calls.list_all("run-1")
    assert (call.state, other.calls.list_receipts("run-1")) == (CallState.IN_DOUBT, [])


def test_two_writers_of_one_run_keep_one_chain(store: Store, opened: Open) -> None:
    """Each has the end of the chain after its own last write in its memory."""
    lease, other = begun(store), opened()
    for number in range(3):
        for name, writer in (("a", store), ("b", other)):
            wanted = intent(f"call-{name}{number}", READ)
            writer.ledger.admit(lease, wanted, lambda _intent, _history: ALLOWED, (1, 2), AT)
    run = store.runs.get("run-1")
    assert run is not None
    assert run.status.spent.calls == 6
    assert store.verify.check_all() == []


# --- budgets and calls that nobody gated


def test_the_call_after_the_last_of_the_budget_stops_an_agent_without_a_gate(store: Store) -> None:
    stops: Stops = []
    made(store, spec={"limits": Limits(calls=3)})
    lease = claimed(store)
    run = store.runs.get("run-1")
    assert run is not None
    prober: Any = SimpleNamespace(probe_call=lambda *_call: None)
    ledger = CallLedger(
        store, lease, run, prober, now=wall_ms, new_id=new_id, stop=lambda why, text: stops.append((why, text))
    )
    counts = []
    for number in range(4):
        ledger.observe(CallRequest(tool="read", input={"path": str(number)}, door="stream"))
        counts.append(len(stops))
    assert counts == [0, 0, 0, 1]
    assert stops == [(StopReason.BUDGET, "the run's budget of 3 calls is spent")]


def test_a_call_that_needs_approval_and_was_not_gated_stops_the_run(store: Store) -> None:
    stops: Stops = []
    rule = MAIL._replace(decision=Decision.ASK)
    ledger, _ = make_ledger(store, stops, rules=(rule,))
    call_id = ledger.observe(CallRequest(tool="mail", input={"to": "bob"}, door="stream"))
    assert stops == []  # an effect that is cut off is in doubt
    ledger.finish(CallResult(call_id=call_id, ok=True, exit_code=0))
    assert [why for why, _ in stops] == [StopReason.UNGATED]


# --- one attempt: stored, then carried out


class ScriptedRuntime:
    """Answers each command with the inputs of a script, and lets a test look when a command is carried out."""

    def __init__(self, script: list[MachineInput], on_execute: Callable[[RunCommand], None]) -> None:
        self._inbox = deque(RunInput(one) for one in script)
        self._on_execute = on_execute
        self.executed: list[type] = []

    def now(self) -> int:
        return AT + 5

    def new_id(self) -> str:
        return new_id()

    def execute(self, command: RunCommand, run: Run) -> None:
        self.executed.append(type(command))
        self._on_execute(command)

    def next_input(self) -> RunInput:
        return self._inbox.popleft()

    def account_time(self) -> None:
        return


WELL = TurnEnded(AT + 7, Outcome(), Usage())
INTERRUPTED: list[MachineInput] = [
    Recovered(AT + 6),
    StopWanted(AT + 7, StopReason.INTERRUPT, "Ctrl-C"),
    TurnEnded(AT + 8, Outcome(Failure.CRASHED, "stopped"), Usage()),
]


def start(store: Store, **spec: Any) -> tuple[Lease, Run]:
    made(store, spec=spec)
    return store.leases.claim("run-1", owner(), LEASE_MS, AT + 1)


def test_a_command_is_in_the_database_before_it_is_carried_out(store: Store, opened: Open) -> None:
    lease, run = start(store, proof="make test")
    other = opened()
    stored: list[tuple[type, Phase | None, int]] = []

    def look(command: RunCommand) -> None:
        now = other.runs.get("run-1")
        assert now is not None
        stored.append((type(command), now.status.phase, now.status.step))

    script: list[MachineInput] = [Recovered(AT + 6), WELL, CheckEnded(AT + 9, 0)]
    ended = run_attempt(store, lease, run, ScriptedRuntime(script, look))
    assert ended.status.state is RunState.SUCCEEDED
    assert stored == [(Recover, Phase.RECOVERING, 1), (StartTurn, Phase.WORKING, 2), (RunCheck, Phase.PROVING, 3)]


def test_a_command_that_could_not_be_stored_is_not_carried_out(store: Store) -> None:
    watched, driver = watch(store)
    lease, run = start(watched)

    def break_disk(_: RunCommand) -> None:
        driver.before_commit = fail

    runtime = ScriptedRuntime([Recovered(AT + 6), WELL], break_disk)
    with pytest.raises(StoreUnavailable):
        run_attempt(watched, lease, run, runtime)
    assert runtime.executed == [Recover]


def test_an_interrupt_leaves_a_checkpoint_in_the_commit_that_parks_the_run(store: Store, opened: Open) -> None:
    watched, driver = watch(store)
    lease, run = start(watched)
    other = opened()
    seen: list[tuple[RunState, list[str]]] = []

    def look() -> None:
        now = other.runs.get("run-1")
        assert now is not None
        seen.append((now.status.state, [one.kind for one in other.records.list_checkpoints("run-1")]))

    driver.after_commit = look
    runtime = ScriptedRuntime(INTERRUPTED, lambda _command: None)
    parked = run_attempt(watched, lease, run, runtime)
    assert runtime.executed == [Recover, StartTurn, StopWork]
    assert (parked.status.state, parked.status.reason) == (RunState.WAITING, WaitReason.PAUSED)
    assert [kinds.count("interrupt") for state, kinds in seen if state is RunState.RUNNING] == [0] * (len(seen) - 1)
    assert seen[-1] == (RunState.WAITING, ["boundary", "interrupt"])
    last = other.records.list_checkpoints("run-1")[-1]
    assert json.loads(last.cursor)["turn"] == parked.status.turn == 1
    assert json.loads(last.status)["state"] == "waiting"


def test_a_change_is_written_whole_or_not_at_all(store: Store, opened: Open) -> None:
    watched, driver = watch(store)
    lease, run = start(watched)
    other = opened()
    seen: list[tuple[RunState, int]] = []

    def look() -> None:
        now = other.runs.get("run-1")
        assert now is not None
        seen.append((now.status.state, len(other.records.list_notices("run-1"))))

    driver.after_commit = look
    run_attempt(watched, lease, run, ScriptedRuntime(INTERRUPTED, lambda _command: None))
    assert seen[-1] == (RunState.WAITING, 1)
    assert {notices for state, notices in seen if state is RunState.RUNNING} == {0}


# --- the live runtime


@pytest.fixture
def runtime(store: Store, tmp_path: Path) -> Iterator[LiveRuntime]:
    """The runtime of a claimed run that does nothing by itself: its renewer is stopped."""
    lease, run = start(store)
    settings = EngineSettings(str(tmp_path), "host-1", lease_ms=LEASE_MS)
    agents: Any = None
    lock = os.open(os.devnull, os.O_RDONLY)
    made = LiveRuntime(store, lease, run, agents, settings, lock)
    made._renewer.stop()
    yield made
    made.close()
    os.close(lock)


def test_a_cancel_request_stops_the_work_that_is_under_way(store: Store, runtime: LiveRuntime) -> None:
    store.runs.request_cancel("run-1", AT + 2, new_id())
    runtime._renewer.renew()
    received = runtime._inbox.get_nowait()
    assert isinstance(received, RunInput)
    assert isinstance(received.input, StopWanted)
    assert received.input.why is StopReason.CANCEL


def test_the_warden_is_started_with_the_deadline_of_the_lease(
    runtime: LiveRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[int] = []
    real = Warden.start

    def begin(**options: Any) -> Warden:
        deadlines.append(options["deadline_ms"])
        return real(**options)

    monkeypatch.setattr(Warden, "start", begin)
    before = boot_ms()
    runtime._warden.ready()
    assert deadlines[0] <= before + LEASE_MS * 2 // 3
