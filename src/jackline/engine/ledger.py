"""The ledger as the gate's doors use it: the intent is committed before the answer is given. It spawns only probes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from jackline.domain import keys, policy
from jackline.domain.events import canonical
from jackline.domain.gate import Intent, decide, must_be_held, observed
from jackline.domain.signals import Stop
from jackline.domain.states import CallClass, CallState, Decision
from jackline.errors import NotFound
from jackline.store.contract import Settlement

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.records import Call, Lease, Run
    from jackline.engine.probe import Prober
    from jackline.store.contract import Store


class Wish(NamedTuple):
    """What an agent asks through a door."""

    tool: str
    input: object
    door: str
    agent_call: str = ""  # the agent's own name for the call
    folder: str = ""  # where it would run; empty: the workspace
    parent: str = ""  # the agent's own name for the call that this one is part of: a subagent's task


class Answer(NamedTuple):
    """What the door tells the agent."""

    decision: Decision
    call_id: str
    reason: str = ""
    output: str = ""


class Report(NamedTuple):
    """What an agent says came of a call."""

    call_id: str
    ok: bool
    exit_code: int | None = None
    output: str = ""
    external_id: str = ""
    duration_ms: int | None = None  # as the agent measured it


class Ledger:
    """The ledger of one attempt. Doors call it from their own threads; the store serialises."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        run: Run,
        prober: Prober,
        *,
        now: Callable[[], int],
        new_id: Callable[[], str],
        stop: Callable[[Stop, str], None],
    ) -> None:
        """`stop` is how the gate asks for the end of the work."""
        self._store, self._lease, self._run, self._prober = store, lease, run, prober
        self._now, self._new_id, self._stop = now, new_id, stop
        self._known: set[str] = set()
        self.place = (0, 0)  # turn and step that calls belong to now
        self.settling = threading.Lock()  # an agent's report and a recovery must not judge the same call at once

    def prepare(self, wish: Wish) -> Answer:
        """Write the intent down with the decision, then say it."""
        intent = self._intent(wish)
        call, admission, receipt = self._store.admit(self._lease, intent, decide, self.place, self._now())
        if admission.decision is Decision.ALLOW:
            self._known.add(call.id)
        if admission.spent:
            self._stop(Stop.BUDGET, admission.reason)
        if admission.decision is Decision.ASK:
            self._stop(Stop.APPROVAL, f"call {call.id}: {admission.reason}")
        return Answer(admission.decision, call.id, admission.reason, receipt.output if receipt else "")

    def observe(self, wish: Wish) -> str:
        """Write down a call that runs already, because the agent does not ask; gives back its id."""
        intent = self._intent(wish)
        call, admission, _ = self._store.admit(self._lease, intent, observed, self.place, self._now())
        if admission.spent:
            self._stop(Stop.BUDGET, admission.reason)
        elif must_be_held(intent.rule):
            self._stop(Stop.UNGATED, admission.reason)
        return call.id

    def knows(self, call_id: str) -> bool:
        """Whether this attempt allowed the call: a tool event without an intent stops the run."""
        return call_id in self._known

    def finish(self, report: Report) -> Call:
        """Write the outcome down. A failed effect is in doubt unless its rule knows better, or a probe does."""
        with self.settling:
            return self._finish(report)

    def _finish(self, report: Report) -> Call:
        call = self._store.call(self._run.id, report.call_id)
        if call is None:
            raise NotFound(report.call_id, what="call", hint=f"jackline show {self._run.id}")
        settled = self._store.settle(
            self._lease,
            Settlement(
                report.call_id,
                self._change(report, call),
                self._now(),
                report.output,
                report.exit_code,
                report.external_id,
            ),
        )
        return self._resolve(settled) if settled.state is CallState.IN_DOUBT else settled

    def _change(self, report: Report, call: Call) -> str:
        if report.ok:
            return "succeed"
        rule = policy.named(self._run.spec.rules, call.rule)
        proved_harmless = report.exit_code in rule.nothing_happened
        return "doubt" if call.call_class is CallClass.EFFECT and not proved_harmless else "fail"

    def _resolve(self, call: Call) -> Call:
        settlement = self._prober.judge(call, self._now())
        if settlement is not None:
            return self._store.settle(self._lease, settlement)
        self._stop(Stop.DOUBT, f"call {call.id} failed and nobody knows whether it took effect")
        return call

    def _intent(self, wish: Wish) -> Intent:
        spec = self._run.spec
        rule = policy.match(spec.rules, wish.tool)
        normal = keys.normalise(wish.input, spec.workspace)
        return Intent(
            call_id=self._new_id(),
            tool=wish.tool,
            rule=rule,
            key=keys.key(self._store.secret, self._run.lineage, rule, wish.tool, normal),
            target=keys.target(rule, normal),
            input=canonical(normal),
            door=wish.door,
            agent_call=wish.agent_call,
        )
