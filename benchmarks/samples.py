"""Sample runs, written through the store: to hold a lease, and as templates of a big database."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from jackline import clock
from jackline.domain import ids
from jackline.domain.call_gate import Intent, decide_call
from jackline.domain.events import Fact
from jackline.domain.limits import Limits
from jackline.domain.records import Check, Checkpoint, Lease, Notice, Owner, Run, RunStatus, SessionUse, Turn
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, Failure, Phase, Proof, Replay, RunState, WaitReason
from jackline.policy.rules import Rule
from jackline.store.models import NewRun, RunChange, Settlement
from jackline.store.store import Store

LEASE_MS = 3_600_000
READ = Rule(name="read", tool="read", call_class=CallClass.READ, replay=Replay.EXACT)
SEND = Rule(name="send", tool="send_mail", call_class=CallClass.EFFECT, key=("id",), target="mail:{id}")
_TURN_AND_STEP = (1, 1)
_INPUT = f'{{"text":"{"x" * 100}"}}'  # without an id: the events of a copied run keep their digest of it


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """The properties of a sample run."""

    state: RunState
    repository: str
    agent: str = "scripted"
    task: str = "adhoc"


def new_id(at: int) -> str:
    return ids.make(at, os.urandom(ids.RANDOM_BYTES))


def create_run(store: Store, wanted: SampleSpec, at: int, rules: tuple[Rule, ...] = (SEND,)) -> Run:
    prompt = "make the flaky test of the importer pass, and say what was wrong with it"
    spec = Spec(
        prompt=prompt,
        workspace=wanted.repository,
        agent=wanted.agent,
        task=wanted.task,
        limits=Limits(calls=None),
        rules=rules,
    )
    run, _ = store.runs.create(NewRun(new_id(at), wanted.repository, spec, request="sample"), at)
    return run


def claim_run(store: Store, run: Run, at: int) -> tuple[Lease, Run]:
    owner = Owner(name=f"bench-{os.getpid()}", host=clock.host_name(), boot=clock.boot_id(), pid=os.getpid())
    return store.leases.claim(run.id, owner, LEASE_MS, at)


def durable_call(store: Store, lease: Lease, rule: Rule, call_id: str, at: int) -> None:
    """The pair that an agent waits for: its intent before the call, its outcome (and receipt) after it."""
    key = hashlib.sha256(call_id.encode()).hexdigest()
    target = f"mail:{call_id}" if rule.target else ""
    intent = Intent(call_id, rule.tool, rule, key, target, _INPUT, "shim")
    store.ledger.admit(lease, intent, decide_call, _TURN_AND_STEP, at)
    store.ledger.settle(lease, Settlement(call_id, "succeed", at, output="sent", exit_code=0, external_id=call_id))


def write_run(store: Store, wanted: SampleSpec, at: int) -> Run:
    """Write a run of one turn, three calls and a check, in the requested state."""
    run = create_run(store, wanted, at)
    if wanted.state is RunState.QUEUED:
        return run
    if wanted.state is RunState.CANCELLED:
        return store.runs.request_cancel(run.id, at + 10, new_id(at + 10))
    lease, run = claim_run(store, run, at + 10)
    _write_turn(store, lease, run, at + 20)
    if wanted.state is RunState.RUNNING:
        return run
    return _write_end(store, lease, run, wanted.state, at + 60)


def _write_turn(store: Store, lease: Lease, run: Run, at: int) -> None:
    session = f"session-{run.id}"
    turn = Turn(run.id, 1, 1, lease.token, "work", run.spec.agent, session, run.spec.prompt, at)
    status = run.status._replace(phase=Phase.WORKING, step=1, turn=1, iteration=1)
    fact = Fact("turn.started", {"turn": 1, "role": "work", "agent": run.spec.agent})
    store.leases.write_change(lease, RunChange(at, (fact,), status, turn, session=SessionUse(run.spec.agent, session)))
    for rule in (READ, READ, SEND):
        durable_call(store, lease, rule, new_id(at), at + 10)
    ended = turn._replace(ended_at=at + 20, exit_code=0, last_message="It passes now: the fixture was shared.")
    store.leases.write_change(lease, RunChange(at + 20, (Fact("turn.ended", {"turn": 1, "exit_code": 0}),), turn=ended))


def _write_end(store: Store, lease: Lease, run: Run, state: RunState, at: int) -> Run:
    check = Check(run.id, 2, lease.token, "pytest -q", at, at + 10, 0, "12 passed", "0" * 40)
    status = _build_final_status(run.status, state)
    notice = Notice(new_id(at), run.id, f"run.{state}", f"{run.spec.task} {state}", "", "", at)
    checkpoint = Checkpoint(run.id, 2, "step", "{}", "{}", at)
    facts = (Fact("check.ended", {"step": 2, "exit_code": 0}), Fact(f"run.{state}", {"proof": status.proof}))
    return store.leases.write_change(
        lease, RunChange(at, facts, status, check=check, checkpoint=checkpoint, notice=notice)
    )


def _build_final_status(status: RunStatus, state: RunState) -> RunStatus:
    ended = status._replace(state=state, phase=None, step=2, turn=1, iteration=1)
    match state:
        case RunState.WAITING:
            return ended._replace(reason=WaitReason.HUMAN)
        case RunState.FAILED:
            return ended._replace(failure=Failure.AGENT_ERROR, detail="exit 1")
        case _:
            return ended._replace(proof=Proof.PROVED)
