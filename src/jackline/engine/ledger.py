"""The ledger as the gate's doors use it: the intent is committed before the answer is given. It spawns only probes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.gate import decide, must_be_held, observed
from jackline.domain.signals import Stop
from jackline.domain.states import CallState, Decision
from jackline.engine.replaying import Queue
from jackline.errors import NotFound
from jackline.named import NamedTuple
from jackline.store.contract import Change, Settlement

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.gate import Admission, Intent
    from jackline.domain.judging import Judgement
    from jackline.domain.records import Call, Lease, Run
    from jackline.engine.probe import Prober
    from jackline.store.contract import Store


_SHOWN = 300  # characters of an input


class Wish(NamedTuple):
    """What an agent asks through a door."""

    tool: str
    input: object
    door: str
    agent_call: str = ""  # the agent's own name for the call
    folder: str = ""  # where it would run; empty: the workspace
    parent: str = ""  # the agent's own name for the call that this one is part of: a subagent's task
    defers: bool = False  # the agent ends by itself when a person is asked


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
        ingredients: Callable[[Judgement, object], Mapping[str, str]] = lambda _judgement, _input: {},
    ) -> None:
        """`stop` is how the gate asks for the end of the work; `ingredients` is what only the host can tell."""
        self._store, self._lease, self._run, self._prober = store, lease, run, prober
        self._now, self._new_id, self._stop, self._ingredients = now, new_id, stop, ingredients
        self._allowed: set[str] = set()
        self._names: dict[str, str] = {}  # the agent's own name of a call → ours
        self.place = (0, 0)  # turn and step that calls belong to now
        self.since_turn = 0  # the first turn of the session that asks
        self.replay = Queue(())
        self.settling = threading.Lock()  # an agent's report and a recovery must not judge the same call at once
        self._asking = threading.Lock()  # two calls at once must not both take the place of one that was cut off

    # before

    def prepare(self, wish: Wish) -> Answer:
        """Write the intent down with the decision, then say it."""
        intent = self._intent(wish)
        with self._asking:
            intent = self.replay.place(intent)
            call, admission, receipt = self._store.admit(self._lease, intent, decide, self.place, self._now())
            self.replay.decided(call.id, intent, admission.decision)
        self._remember(wish, call, admission)
        self._heed(wish, call, admission)
        return Answer(admission.decision, call.id, admission.reason, receipt.output if receipt else "")

    def observe(self, wish: Wish) -> str:
        """Write down a call that runs already, because the agent does not ask; gives back its id."""
        intent = self.replay.place(self._intent(wish))
        call, admission, _ = self._store.admit(self._lease, intent, observed, self.place, self._now())
        self.replay.decided(call.id, intent, admission.decision)
        self._remember(wish, call, admission)
        if admission.spent:
            self._stop(Stop.BUDGET, admission.reason)
        elif must_be_held(intent.rule) and not self._run.spec.ungated:
            self._stop(Stop.UNGATED, admission.reason)
        return call.id

    def knows(self, call_id: str) -> bool:
        """Whether this attempt allowed the call: a tool event without an intent stops the run."""
        return call_id in self._allowed

    def call_of(self, name: str) -> str | None:
        """The call that the agent knows by this name; None if it never asked about it."""
        return self._names.get(name)

    def _remember(self, wish: Wish, call: Call, admission: Admission) -> None:
        if wish.agent_call:
            self._names[wish.agent_call] = call.id
        if admission.decision is Decision.ALLOW:
            self._allowed.add(call.id)

    def _heed(self, wish: Wish, call: Call, admission: Admission) -> None:
        """What a decision means for the run as a whole."""
        if admission.spent:
            self._stop(Stop.BUDGET, admission.reason)
        if admission.decision is Decision.ASK and not wish.defers:
            self._stop(Stop.APPROVAL, f"call {call.id}: {admission.reason}")
        if self.replay.is_stuck:
            self._stop(Stop.STUCK, f"the agent does not make again what was cut off: {self.replay.told()}")

    def _intent(self, wish: Wish) -> Intent:
        from jackline.engine import weigh  # the policy is not loaded before the agent runs

        intent = weigh.intent_of(wish, self._run, self._store.secret, self._new_id(), self._ingredients)
        return intent._replace(parent_id=self._names.get(wish.parent), since_turn=self.since_turn)

    # after

    def finish(self, report: Report) -> Call:
        """Write the outcome down. A failed effect is in doubt unless its rule knows better, or a probe does."""
        with self.settling:
            call = self._finish(report)
        self._drain(call.id)
        return call

    def finish_open(self, report: Report) -> None:
        """The same for an end that is told twice, by a hook and in the output: whoever comes first is heard."""
        with self.settling:
            if not self.is_open(report.call_id):
                return
            self._finish(report)
        self._drain(report.call_id)

    def strayed(self, call_id: str, made: object) -> None:
        """Something else ran than what the gate had judged: of that nobody knows anything, and no more may follow."""
        shown = self._store.redactor.redact(str(made))[:_SHOWN]  # cut last: half a secret is not known as one
        self._stop(Stop.UNGATED, f"in the place of call {call_id} something ran that the gate had not allowed: {shown}")

    def _drain(self, call_id: str) -> None:
        if self.replay.ended(call_id):
            fact = Fact("replay.drained", {"call": call_id})
            self._store.write(self._lease, Change(self._now(), (fact,)))

    def is_open(self, call_id: str) -> bool:
        """Whether the call was allowed and nobody has said yet what came of it."""
        call = self._store.call(self._run.id, call_id)
        return call is not None and call.state is CallState.PREPARED

    def not_run(self, call_id: str, why: str) -> None:
        """The agent itself held a call back that the gate had allowed: nothing happened."""
        with self.settling:
            if self.is_open(call_id):
                self._store.settle(self._lease, Settlement(call_id, "deny", self._now(), reason=why))
        self.replay.ended(call_id)

    def _finish(self, report: Report) -> Call:
        call = self._store.call(self._run.id, report.call_id)
        if call is None:
            raise NotFound(report.call_id, what="call", hint=f"jackline show {self._run.id}")
        from jackline.engine import weigh

        settled = self._store.settle(self._lease, weigh.settlement_of(report, call, self._run.spec, self._now()))
        return self._resolve(settled) if settled.state is CallState.IN_DOUBT else settled

    def _resolve(self, call: Call) -> Call:
        settlement = self._prober.judge(call, self._now())
        judged = call if settlement is None else self._store.settle(self._lease, settlement)
        if judged.state is CallState.IN_DOUBT:
            self._stop(Stop.DOUBT, f"call {call.id} failed and nobody knows whether it took effect")
        return judged
