"""The ledger as the gate servers use it: the intent is committed before the answer is sent. It spawns only probes."""

from __future__ import annotations

import os
import threading
from functools import cached_property
from typing import TYPE_CHECKING

from jackline.clock import boot_ms
from jackline.domain.call_gate import (
    admit_observed,
    decide_call,
    decide_host_call,
    decide_without_asking,
    describe_stored,
    needs_gate,
)
from jackline.domain.events import Fact
from jackline.domain.run_inputs import StopReason
from jackline.domain.states import NOT_STARTED, CallState, Decision
from jackline.engine.repeated_calls import RepeatedCalls
from jackline.engine.replay import ReplayQueue
from jackline.errors import NotFound
from jackline.formatting import shorten_text
from jackline.named import NamedTuple
from jackline.store.models import RunChange, Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.call_gate import Admission, Intent
    from jackline.domain.records import Call, Lease, Receipt, Run
    from jackline.engine.earlier_effects import EarlierEffects
    from jackline.engine.probes.prober import Prober
    from jackline.engine.work_backup import Backup
    from jackline.policy.classify import Classification
    from jackline.policy.discarded_work import Discard
    from jackline.policy.reader_turns import ReaderTurn
    from jackline.store.store import Store

_SHOWN = 300  # characters of an input
# How a call ended that needed approval and was made without it.
_ENDED = {
    CallState.DONE: "was made and succeeded",
    CallState.FAILED: "was made, failed and changed nothing",
    CallState.VOID: "was made and did not happen",
    CallState.IN_DOUBT: "was made and failed; it is unknown whether it took effect",
    CallState.PREPARED: "was started and did not end",
}
_ALL_APPROVED = ("effects", "effects=any")  # but what needs its own name, and what is denied
_LONGEST_CALL_MS = 3_600_000  # after which a call that does not end no longer counts as activity


class CallRequest(NamedTuple):
    """A call that an agent wants to make."""

    tool: str
    input: object
    door: str
    agent_call: str = ""  # the agent's id of the call
    folder: str = ""  # where it would run; empty: the workspace
    parent: str = ""  # the agent's id of the call that this one is part of: a subagent's task
    defers: bool = False  # the agent ends by itself when the call needs approval


class GateAnswer(NamedTuple):
    """The answer to a request."""

    decision: Decision
    call_id: str
    reason: str = ""
    output: str = ""


class CallResult(NamedTuple):
    """The result of a call, as the agent reports it."""

    call_id: str
    ok: bool
    exit_code: int | None = None
    output: str = ""
    external_id: str = ""
    duration_ms: int | None = None  # as the agent measured it


class CallLedger:
    """The ledger of one attempt. The gate servers call it from their own threads; the store serialises."""

    def __init__(  # noqa: PLR0913 - keyword-only hooks into the host
        self,
        store: Store,
        lease: Lease,
        run: Run,
        prober: Prober,
        *,
        now: Callable[[], int],
        new_id: Callable[[], str],
        stop: Callable[[StopReason, str], None],
        read_inputs: Callable[[Classification, object], Mapping[str, str]] = lambda _classification, _input: {},
        keep_work: Callable[[tuple[Discard, ...], str], Backup] | None = None,
    ) -> None:
        """`stop` requests a stop of the run; `read_inputs` reads the key inputs that only the host knows.

        `keep_work` keeps the work that a call would discard, before the call is answered.
        """
        self._store, self._lease, self._run, self._prober = store, lease, run, prober
        self._now, self._new_id, self._stop, self._read_inputs = now, new_id, stop, read_inputs
        self._keep_work = keep_work
        self._allowed: set[str] = set()
        self._ungated: set[str] = set()  # open calls that needed approval and run already
        self._impossible: dict[str, frozenset[int]] = {}  # open call → exit codes with which it did not happen
        self._names: dict[str, str] = {}  # the agent's id of a call → ours
        self._running: dict[str, int] = {}  # allowed calls without a result → when they started, in time since boot
        self._last_end = 0
        self.environ: Mapping[str, str] = os.environ  # what an agent's programs are looked up in
        self.asks = True  # a call that needs approval stops the run; otherwise it is denied for now
        self.current_step = (0, 0)  # the current turn and step
        self.workspace = ""  # of the current turn; empty: the run's
        self.since_turn = 0  # the first turn of the asking session
        self.closed_ports: frozenset[int] = frozenset()  # on loopback: our own listeners, and docker's
        self.reader: ReaderTurn | None = None  # the current turn may only read
        self.replay = ReplayQueue(())
        self.repeats = RepeatedCalls()  # of the current turn
        self.settle_lock = threading.Lock()  # a report and a recovery must not settle the same call at once
        self._admission_lock = threading.Lock()  # two calls at once must not both replace one interrupted call

    def prepare(self, request: CallRequest) -> GateAnswer:
        """Store the intent with the decision, then return the decision."""
        intent, classified = self._build_intent(request)
        decide = decide_call if self.asks and not intent.is_unattended else decide_without_asking
        with self._admission_lock:
            if self.reader is None:  # what a turn that only reads may call repeats no effect
                intent = self._earlier.add_question(intent, classified, request)
            intent = self.replay.mark_intent(intent)
            call, admission, receipt = self._store.ledger.admit(
                self._lease, intent, decide, self.current_step, self._now()
            )
            self.replay.record_decision(call.id, intent, admission.decision)
            if admission.decision is Decision.ALLOW:
                self._earlier.record(intent)
        self._remember(request, intent, call, admission)
        self.repeats.record_start(call.id, request)
        if admission.decision is not Decision.ALLOW:
            self._end_repeat(call.id, admission.reason)
        if admission.spent:
            self._stop(StopReason.BUDGET, admission.reason)
        if admission.decision is Decision.ASK and not request.defers:
            self._stop(StopReason.APPROVAL, f"call {call.id}: {admission.reason}")
        if self.replay.is_stuck:
            calls = self.replay.describe_calls()
            self._stop(StopReason.STUCK, f"the agent does not make the interrupted calls again: {calls}")
        return GateAnswer(
            decision=admission.decision,
            call_id=call.id,
            reason=admission.reason,
            output=_build_output(intent, receipt) if receipt else "",
        )

    def prepare_host_call(self, request: CallRequest) -> GateAnswer:
        """Store the intent of an effect of the host itself, which a person's flag has approved, and decide about it."""
        spec = self._run.spec
        approved = self._run._replace(spec=spec._replace(allowed=(*spec.allowed, *_ALL_APPROVED)))
        intent, _ = self._build_intent(request, run=approved)
        call, admission, receipt = self._store.ledger.admit(
            self._lease, intent, decide_host_call, self.current_step, self._now()
        )
        self._remember(request, intent, call, admission)
        output = receipt.output if receipt else ""
        return GateAnswer(decision=admission.decision, call_id=call.id, reason=admission.reason, output=output)

    def observe(self, request: CallRequest) -> str:
        """Record a call that is running already, because the agent has no gate; return its id."""
        intent = self.replay.mark_intent(self._build_intent(request, is_running=True)[0])
        # The program may have deleted itself since it was started: that the host does not find it proves nothing.
        intent = intent._replace(impossible=intent.impossible - NOT_STARTED)
        call, admission, _ = self._store.ledger.admit(
            self._lease, intent, admit_observed, self.current_step, self._now()
        )
        self.replay.record_decision(call.id, intent, admission.decision)
        self._remember(request, intent, call, admission)
        self.repeats.record_start(call.id, request)
        if admission.spent:
            self._stop(StopReason.BUDGET, admission.reason)
        elif _is_loose(intent) and not self._run.spec.ungated:
            # One that needed approval ends first: an effect that was cut off is in doubt.
            if intent.rule.decision is not Decision.ASK:
                self._stop(StopReason.UNGATED, admission.reason)
            else:
                self._ungated.add(call.id)
        return call.id

    def stop_for_ungated(self) -> None:
        """Stop the run if the agent ended while calls ran that needed approval."""
        for call_id in sorted(self._ungated):
            call = self._store.calls.get(self._run.id, call_id)
            if call is not None:
                self._stop_for_ungated(call)

    def _stop_for_ungated(self, call: Call) -> None:
        from jackline.domain.call_text import describe_effect  # for this line only

        self._ungated.discard(call.id)
        shown = shorten_text(describe_effect(call, self._run.spec.workspace), _SHOWN)
        self._stop(StopReason.UNGATED, f"{shown} {_ENDED[call.state]}, without the approval of rule '{call.rule}'")

    @property
    def active_until(self) -> int:
        """Until when, in time since boot, calls show that the agent is not idle; a running call for an hour at most."""
        return max(self._last_end, *(start + _LONGEST_CALL_MS for start in tuple(self._running.values())), 0)

    def has_allowed(self, call_id: str) -> bool:
        """Whether this attempt allowed the call; one that it did not allow stops the run."""
        return call_id in self._allowed

    def find_call_id(self, name: str) -> str | None:
        """Our id of the call with this agent id; None if the agent never asked about it."""
        return self._names.get(name)

    def _remember(self, request: CallRequest, intent: Intent, call: Call, admission: Admission) -> None:
        if request.agent_call:
            self._names[request.agent_call] = call.id
        if admission.decision is Decision.ALLOW:
            self._allowed.add(call.id)
            self._running[call.id] = boot_ms()
            if intent.impossible:
                self._impossible[call.id] = intent.impossible

    def _build_intent(
        self, request: CallRequest, *, is_running: bool = False, run: Run | None = None
    ) -> tuple[Intent, Classification]:
        from jackline.engine import intents  # the policy is loaded while the agent starts, not before

        facts = intents.TurnFacts(closed_ports=self.closed_ports, environ=self.environ)
        if run is None:  # the host works in the run's workspace, whatever turn was last
            facts = facts._replace(workspace=self.workspace, reader=self.reader)
        intent, classified = intents.build_intent(
            request,
            run or self._run,
            self._store.secret,
            self._new_id(),
            self._read_inputs,
            None if is_running else self._keep_work,
            facts,
        )
        return intent._replace(parent_id=self._names.get(request.parent), since_turn=self.since_turn), classified

    @cached_property
    def _earlier(self) -> EarlierEffects:
        from jackline.engine.earlier_effects import EarlierEffects  # it loads the policy

        return EarlierEffects(self._store, self._run, self._lease.token)

    def finish(self, report: CallResult) -> Call:
        """Store the result. A failed effect is in doubt unless its rule or a probe can settle it."""
        with self.settle_lock:
            call = self._settle(report)
        self._end_replay(call.id)
        self._end_repeat(call.id, f"{report.ok} {report.exit_code} {report.output}")
        if call.id in self._ungated:
            self._stop_for_ungated(call)
        return call

    def finish_open(self, report: CallResult) -> None:
        """Store the result of a call that has none yet: a hook and the output may both report it."""
        with self.settle_lock:
            if not self.is_open(report.call_id):
                return
            self._settle(report)
        self._end_replay(report.call_id)
        self._end_repeat(report.call_id, f"{report.ok} {report.exit_code} {report.output}")

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        """Stop the run: another input ran than the one that the gate allowed."""
        shown = self._store.redactor.redact(str(made))[:_SHOWN]  # redact, then cut
        self._stop(
            StopReason.UNGATED, f"instead of call {call_id} the agent ran something that was not allowed: {shown}"
        )

    def _end_repeat(self, call_id: str, result: str) -> None:
        """Stop an agent that makes the same calls again and again, and learns nothing from them."""
        with self._admission_lock:
            times, calls = self.repeats.record_end(call_id, result)
        most = self._run.spec.limits.repeats
        if most is not None and times >= most:
            words = "; ".join(shorten_text(self._store.redactor.redact(call), _SHOWN) for call in calls)
            same, result = ("call", "result") if len(calls) == 1 else (f"{len(calls)} calls", "results")
            detail = f"the agent made the same {same} {times} times in a row, with the same {result}: {words}"
            self._stop(StopReason.STUCK, detail)

    def _end_replay(self, call_id: str) -> None:
        self._end_activity(call_id)
        if self.replay.record_end(call_id):
            fact = Fact("replay.drained", {"call": call_id})
            self._store.leases.write_change(self._lease, RunChange(at=self._now(), facts=(fact,)))

    def is_open(self, call_id: str) -> bool:
        """Whether the call was allowed and has no result yet."""
        call = self._store.ledger.find_call(self._lease, call_id)
        return call is not None and call.state is CallState.PREPARED

    def settle_not_run(self, call_id: str, why: str) -> None:
        """Settle a call that the gate allowed and the agent did not run."""
        with self.settle_lock:
            if self.is_open(call_id):
                self._store.ledger.settle(
                    self._lease, Settlement(call_id=call_id, change="deny", at=self._now(), reason=why)
                )
        self._end_activity(call_id)
        self.replay.record_end(call_id)

    def _end_activity(self, call_id: str) -> None:
        if self._running.pop(call_id, None) is not None:
            self._last_end = boot_ms()

    def _settle(self, report: CallResult) -> Call:
        call = self._store.ledger.find_call(self._lease, report.call_id)
        if call is None:
            raise NotFound(report.call_id, what="call", hint=f"jackline show {self._run.id}")
        from jackline.engine import intents

        impossible = self._impossible.pop(call.id, frozenset())
        settlement = intents.build_settlement(report, call, self._run.spec, self._now(), impossible)
        settled = self._store.ledger.settle(self._lease, settlement)
        # The agent has seen the failure and continues. What is still in doubt at its end is left to a person.
        probed = self._prober.probe_call(settled, self._now()) if settled.state is CallState.IN_DOUBT else None
        return settled if probed is None else self._store.ledger.settle(self._lease, probed)


def _is_loose(intent: Intent) -> bool:
    """Whether an observed call should have been held back, and was not."""
    return needs_gate(intent.rule) or (bool(intent.refusal) and not intent.is_prevented)


def _build_output(intent: Intent, receipt: Receipt) -> str:
    """The stored result; the agent is told what was not run with it."""
    return f"[{describe_stored(intent.company)}]\n{receipt.output}" if intent.company else receipt.output
