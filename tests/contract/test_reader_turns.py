"""Turns that only read: what the gate allows a reviewer and a plan, and what a crash of them leaves to the worker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jackline.clock import wall_ms
from jackline.domain.call_gate import Admission
from jackline.domain.records import Lease, Turn
from jackline.domain.resume_prompt import find_interrupted_calls
from jackline.domain.run_inputs import StopReason
from jackline.domain.spec import INSIST
from jackline.domain.states import CallClass, CallState, Decision, Role
from jackline.engine import recovery
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult
from jackline.engine.settings import new_id
from jackline.policy.reader_turns import ReaderTurn
from jackline.policy.rules import POLICY_VERSION
from jackline.store.models import RunChange
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, READ, begun, intent, owner

PROOF = "python -m pytest -q"
CLONE = "/srv/reviews/1-0"
WORKER = "/srv/repository"
TASK = {"description": "look", "subagent_type": "general-purpose", "prompt": "look around"}


class Gate:
    """A ledger in a turn of some role, and the stops that it wanted."""

    def __init__(self, store: Store, **spec: Any) -> None:
        self.store, self.lease = store, begun(store)
        self.stops: list[tuple[StopReason, str]] = []
        self._spec, self._turn = {"proof": PROOF, "policy_version": POLICY_VERSION, **spec}, 0
        self.ledger = self._build(self.lease)

    def _build(self, lease: Lease) -> CallLedger:
        run = self.store.runs.get("run-1")
        assert run is not None
        run = run._replace(spec=run.spec._replace(**self._spec))
        prober: Any = SimpleNamespace(probe_call=lambda *_call: None)
        return CallLedger(
            self.store,
            lease,
            run,
            prober,
            now=wall_ms,
            new_id=new_id,
            stop=lambda why, text: self.stops.append((why, text)),
        )

    def enter(self, role: Role, **reader: Any) -> Gate:
        self._turn += 1
        self.store.leases.write_change(
            self.lease,
            RunChange(
                at=AT,
                turn=Turn(
                    run_id="run-1",
                    number=self._turn,
                    step=self._turn,
                    attempt=self.lease.token,
                    role=role,
                    agent="claude",
                    session=None,
                    prompt="look",
                    started_at=AT,
                ),
            ),
        )
        self.ledger.current_step = (self._turn, self._turn)
        is_reader = role is not Role.WORK
        self.ledger.reader = ReaderTurn(role, proof=PROOF, **reader) if is_reader else None
        self.ledger.workspace = CLONE if role is Role.REVIEW else WORKER
        return self

    def ask(self, tool: str, given: object, parent: str = "") -> tuple[Decision, str]:
        answer = self.ledger.prepare(
            CallRequest(tool=tool, input=given, door="http", agent_call=f"{tool}-{given}", parent=parent)
        )
        return answer.decision, answer.reason

    def run(self, command: str) -> tuple[Decision, str]:
        return self.ask("Bash", {"command": command})

    def crash(self, *, strict: bool = False) -> list[str]:
        """Another attempt takes over; the calls that only a person can settle."""
        self.lease = self.store.leases.claim("run-1", owner("worker-2"), LEASE_MS, AT + 2, dead=self.lease.token)[0]
        prober: Any = SimpleNamespace(probe_call=lambda *_call: None)
        doubts = recovery.settle_open_calls(
            self.store, self.lease, prober, lambda: AT + 3, host="host-1", strict=strict
        )
        self.ledger = self._build(self.lease)
        return [call.id for call in doubts]


@pytest.fixture
def gate(store: Store) -> Gate:
    return Gate(store)


SQLITE = pytest.mark.parametrize("database", ["sqlite"], indirect=True)  # what is decided does not depend on the store


ALLOWED: list[tuple[str, object]] = [
    ("Read", {"file_path": f"{CLONE}/a.py"}),
    ("Grep", {"pattern": "x"}),
    ("Bash", {"command": "git diff HEAD~1 && cat a.py | head"}),
    ("TodoWrite", {"todos": []}),
    ("Agent", TASK),
    ("mcp__jackline__run_status", {}),
    ("mcp__jackline__send_to_agent", {"to": "worker", "text": "hello"}),
    ("mcp__jackline__receive_messages", {}),
    ("mcp__jackline__bridge_status", {}),
    ("tool_call", {"name": "read_file", "arguments": {"path": "a.py"}}),
]
REFUSED: list[tuple[str, object]] = [
    ("Write", {"file_path": f"{CLONE}/a.py", "content": "x"}),
    ("Edit", {"file_path": f"{WORKER}/a.py", "old_string": "a", "new_string": "b"}),
    ("apply_patch", {"changes": []}),
    ("Bash", {"command": "echo x > a.py"}),
    ("Bash", {"command": f"cp a.py {WORKER}/a.py"}),
    ("Bash", {"command": "git commit -am x"}),
    ("Bash", {"command": "git reflog show -1 --format='[core] fsmonitor=/tmp/x' --output=.git/config review"}),
    ("Bash", {"command": "git stash list -p --output=a"}),
    ("Bash", {"command": "git push origin HEAD"}),
    ("Bash", {"command": "./unknown"}),
    ("Bash", {"command": f"{PROOF} && rm -r ."}),
    ("Bash", {"command": f"{PROOF} -k one"}),
    ("Bash", {"command": PROOF, "cwd": WORKER}),
    ("mcp__github__create_issue", {"title": "x"}),
    ("mcp__jackline__work_enqueue", {"kind": "x"}),
    ("mcp__other__thing", {}),
    ("Skill", {"skill": "deploy"}),
    ("save_memory", {"fact": "x"}),
    ("tool_call", {"name": "write_file", "arguments": {"path": "a.py", "content": "x"}}),
]


@SQLITE
@pytest.mark.parametrize(("tool", "given"), ALLOWED)
@pytest.mark.parametrize("role", [Role.REVIEW, Role.PLAN])
def test_a_turn_that_only_reads_may_read(gate: Gate, role: Role, tool: str, given: object) -> None:
    assert gate.enter(role).ask(tool, given) == (Decision.ALLOW, "")


@SQLITE
@pytest.mark.parametrize(("tool", "given"), REFUSED)
@pytest.mark.parametrize("role", [Role.REVIEW, Role.PLAN])
def test_a_turn_that_only_reads_may_change_nothing(gate: Gate, role: Role, tool: str, given: object) -> None:
    decision, reason = gate.enter(role).ask(tool, given)
    assert decision is Decision.DENY
    assert "must not change anything" in reason
    assert gate.stops == []
    (call,) = gate.store.calls.list_all("run-1")
    assert call.state is CallState.DENIED


@SQLITE
def test_a_reviewer_may_run_exactly_the_proof(gate: Gate) -> None:
    gate.enter(Role.REVIEW)
    assert gate.run(f" {PROOF}\n") == (Decision.ALLOW, "")
    assert gate.ask("exec_command", {"cmd": PROOF, "workdir": CLONE}) == (Decision.ALLOW, "")
    assert PROOF in gate.run("make test")[1]  # the model reads which command it may run


@SQLITE
def test_a_plan_may_not_run_the_proof(gate: Gate) -> None:
    decision, reason = gate.enter(Role.PLAN).run(PROOF)
    assert (decision, "only plans" in reason) == (Decision.DENY, True)


@SQLITE
def test_the_proof_runs_again_in_each_round_even_if_it_is_an_effect(store: Store) -> None:
    gate = Gate(store, rules=(MAIL._replace(name="sends", tool="", command=("python",)),))
    for _ in range(2):
        gate.enter(Role.REVIEW)
        answer = gate.ledger.prepare(CallRequest(tool="Bash", input={"command": PROOF}, door="http"))
        assert answer.decision is Decision.ALLOW
        gate.ledger.finish(CallResult(call_id=answer.call_id, ok=True, exit_code=0))
    assert {call.rule for call in store.calls.list_all("run-1")} == {"review.proof"}
    assert store.calls.list_receipts("run-1") == []


@SQLITE
def test_what_the_policy_denies_stays_denied_with_its_own_reason(store: Store) -> None:
    gate = Gate(store, rules=(MAIL._replace(name="none", tool="", command=("python",), decision=Decision.DENY),))
    assert gate.enter(Role.REVIEW).run(PROOF) == (Decision.DENY, "rule 'none' denies Bash")


@SQLITE
def test_a_subagent_of_a_reviewer_changes_nothing_either(gate: Gate) -> None:
    gate.enter(Role.REVIEW)
    gate.ledger.prepare(CallRequest(tool="Agent", input=TASK, door="http", agent_call="task"))
    decision, reason = gate.ask("Write", {"file_path": f"{CLONE}/a.py", "content": "x"}, parent="task")
    assert (decision, "Reviewers must not change anything" in reason) == (Decision.DENY, True)
    assert gate.ask("Read", {"file_path": f"{CLONE}/a.py"}, parent="task") == (Decision.ALLOW, "")


@SQLITE
def test_a_read_that_needs_approval_is_denied_and_the_run_does_not_wait(store: Store) -> None:
    rule = MAIL._replace(name="secrets", tool="Read", call_class=CallClass.READ, decision=Decision.ASK)
    gate = Gate(store, rules=(rule,))
    decision, reason = gate.enter(Role.REVIEW).ask("Read", {"file_path": "a"})
    assert (decision, "no one is available to approve it" in reason, gate.stops) == (Decision.DENY, True, [])


@SQLITE
def test_the_worker_is_not_limited_after_a_review(gate: Gate) -> None:
    gate.enter(Role.REVIEW).run("echo x > a.py")
    assert gate.enter(Role.WORK).run("echo x > a.py") == (Decision.ALLOW, "")


# --- what a crash leaves


@pytest.mark.parametrize("strict", [False, True])
def test_nothing_of_an_interrupted_review_is_in_doubt_or_left_to_the_worker(store: Store, *, strict: bool) -> None:
    gate = Gate(store, replay=INSIST).enter(Role.REVIEW)
    gate.run(PROOF)
    gate.run("cat a.py")
    gate.ask("Agent", TASK)
    assert gate.crash(strict=strict) == []
    calls = store.calls.list_all("run-1")
    assert {call.state for call in calls} == {CallState.ABANDONED}
    assert store.calls.list_forced("run-1") == []
    assert find_interrupted_calls(calls, store.records.list_turns("run-1")) == []


def test_a_call_of_a_review_is_not_forced_on_the_worker_whatever_its_rule_says(store: Store) -> None:
    gate = Gate(store).enter(Role.REVIEW)
    store.ledger.admit(gate.lease, intent(rule=READ), lambda _intent, _history: Admission(Decision.ALLOW), (1, 1), AT)
    assert gate.crash() == []
    assert store.calls.list_forced("run-1") == []


def test_the_worker_still_makes_its_own_interrupted_calls_again(store: Store) -> None:
    gate = Gate(store, replay=INSIST).enter(Role.WORK)
    gate.run("cat a.py")
    assert gate.crash() == []
    assert [call.turn for call in store.calls.list_forced("run-1")] == [1]


def test_an_unknown_call_that_ran_in_a_read_only_mode_is_not_in_doubt(store: Store) -> None:
    gate = Gate(store).enter(Role.REVIEW, is_gated=False, is_contained=True)
    gate.ledger.observe(CallRequest(tool="shell", input={"command": "./unknown"}, door="stream"))
    gate.ledger.observe(CallRequest(tool="shell", input={"command": "git push origin HEAD"}, door="stream"))
    assert gate.crash(strict=True) == []
    assert gate.stops == []


def test_the_unknown_call_of_a_reviewer_that_nothing_holds_is_not_in_doubt_either(store: Store) -> None:
    gate = Gate(store, ungated=True).enter(Role.REVIEW, is_gated=False)
    gate.ledger.observe(CallRequest(tool="shell", input={"command": "./unknown"}, door="stream"))
    assert gate.crash(strict=True) == []


def test_interrupted_reviews_do_not_count_for_the_worker(store: Store) -> None:
    """A call of the worker that was cut off too often is left to a person; a reviewer's is another call."""
    gate = Gate(store, replay=INSIST)
    for role in (Role.REVIEW, Role.REVIEW, Role.WORK):
        gate.enter(role).run("cat a.py")
        assert gate.crash() == []


# --- agents without a gate


@SQLITE
def test_a_reviewer_that_nothing_holds_back_stops_the_run(gate: Gate) -> None:
    gate.enter(Role.REVIEW, is_gated=False)
    gate.ledger.observe(CallRequest(tool="shell", input={"command": "cat a.py"}, door="stream"))
    assert gate.stops == []
    gate.ledger.observe(CallRequest(tool="shell", input={"command": "echo x > a.py"}, door="stream"))
    assert [why for why, _ in gate.stops] == [StopReason.UNGATED]


@SQLITE
@pytest.mark.parametrize("command", ["echo x > a.py", f"echo x > {WORKER}/a.py", "git push origin HEAD", "rm -rf ~"])
def test_what_a_read_only_mode_prevents_does_not_stop_the_run(gate: Gate, command: str) -> None:
    gate.enter(Role.REVIEW, is_gated=False, is_contained=True)
    call_id = gate.ledger.observe(CallRequest(tool="shell", input={"command": command}, door="stream"))
    call = gate.ledger.finish(CallResult(call_id=call_id, ok=False, exit_code=1, output="Read-only file system"))
    assert (call.state, call.call_class, gate.stops) == (CallState.FAILED, CallClass.LOCAL, [])
    assert "Reviewers must not change anything" in call.reason


@SQLITE
def test_a_read_only_mode_does_not_hold_the_tools_of_a_server(gate: Gate) -> None:
    gate.enter(Role.REVIEW, is_gated=False, is_contained=True)
    gate.ledger.observe(CallRequest(tool="mcp__github__get_issue", input={"number": 1}, door="stream"))
    assert gate.stops == []
    call_id = gate.ledger.observe(CallRequest(tool="mcp__github__merge_branch", input={"to": "main"}, door="stream"))
    gate.ledger.finish(CallResult(call_id=call_id, ok=True))
    assert [why for why, _ in gate.stops] == [StopReason.UNGATED]
