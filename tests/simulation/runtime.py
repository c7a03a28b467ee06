"""A simulated runtime for the real attempt loop: virtual clock, an agent with effects, and crashes at every write.

The run machine, the attempt loop, the gate, the ledger, the recovery and the SQLite store are real. Processes, time and
the systems that effects touch are simulated.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jackline.domain import ids, review
from jackline.domain.outcome import Outcome, Usage
from jackline.domain.records import Check, Owner, Turn
from jackline.domain.run_inputs import (
    CheckEnded,
    Recover,
    Recovered,
    RunCheck,
    RunCommand,
    StartTurn,
    StopReason,
    StopWanted,
    TurnEnded,
)
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, CallState, Decision, Failure, Phase, Replay, Role
from jackline.engine import recovery
from jackline.engine.attempt import RunInput, run_attempt
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult
from jackline.engine.check import CheckResult, build_check_ended, find_pending_checks
from jackline.engine.probes.prober import Prober
from jackline.features.cases import learning, learning_check
from jackline.features.cases.case_model import CaseEntry, EntryKind, NewCase, Problem
from jackline.features.cases.case_queries import Cases
from jackline.features.cases.case_store import CaseNotebook
from jackline.policy.rules import Rule
from jackline.store.models import RunChange, Settlement
from jackline.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.records import Call, Lease, Run
    from jackline.store.driver import Driver, Statements, T

LEASE_MS = 30_000


class Crash(BaseException):
    """Every process of the machine dies at this instant."""


@dataclass
class Outside:
    """The state that survives every crash: the effects, the agent's session, and the clock."""

    rng: random.Random
    now: int = 1_000_000
    sent: dict[str, int] = field(default_factory=dict)
    position: int = 0
    remembers: bool = True
    crashes_left: int = 0
    resolves: bool = False  # whether the agent has resolved its learning
    limit_chance: float = 0.04  # of a usage limit before each effect
    tree: int = 0  # the content of the workspace: each turn of work changes it
    good: frozenset[int] = frozenset()  # trees that pass the proof
    committed: int = 0  # the tree that the host has committed
    stubborn: float = 0.0  # how often a reviewer finds something new

    def maybe_crash(self, chance: float = 0.08) -> None:
        self.now += self.rng.randrange(5)
        if self.crashes_left and self.rng.random() < chance:
            self.crashes_left -= 1
            raise Crash


class CrashingDriver:
    """A real driver, but any write may crash, before or after its commit."""

    def __init__(self, driver: Driver, outside: Outside) -> None:
        self._driver, self._outside = driver, outside

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def write(self, work: Callable[[Statements], T], *, synced: bool = True) -> T:
        self._outside.maybe_crash()
        result = self._driver.write(work, synced=synced)
        self._outside.maybe_crash()
        return result


class SimulatedProber(Prober):
    """A probe that reads the simulated effects, unless `can_answer` is False."""

    def __init__(self, outside: Outside, *, can_answer: bool) -> None:
        self._outside, self._can_answer = outside, can_answer

    def probe_call(self, call: Call, at: int, other_host: str = "") -> Settlement | None:
        assert not other_host
        if not self._can_answer:
            return None
        change = "happened" if self._outside.sent.get(call.target) else "did_not"
        return Settlement(call.id, change, at, origin="probe")


class SimulatedRuntime:
    """Plays the agent at once; the resulting inputs wait in the inbox."""

    def __init__(self, store: Store, lease: Lease, run: Run, outside: Outside, *, probe: bool) -> None:
        self._store, self._lease, self._outside = store, lease, outside
        self._inbox: deque[RunInput] = deque()
        self._prober = SimulatedProber(outside, can_answer=probe)
        self.ledger = CallLedger(store, lease, run, self._prober, now=self.now, new_id=self.new_id, stop=self._stop)
        self._stopping = False

    def now(self) -> int:
        return self._outside.now

    def new_id(self) -> str:
        return ids.make(self._outside.now, self._outside.rng.randbytes(10))

    def account_time(self) -> None:
        self._store.leases.renew(self._lease, LEASE_MS, 1)

    def next_input(self) -> RunInput:
        self._outside.now += self._outside.rng.randrange(100)
        return self._inbox.popleft()

    def execute(self, command: RunCommand, run: Run) -> None:
        match command:
            case Recover():
                doubts = recovery.settle_open_calls(self._store, self._lease, self._prober, self.now, host="host")
                is_checked = run.status.goal in {Phase.PROVING, Phase.REVIEWING}
                checks = find_pending_checks(self._store, run) if is_checked else None
                undone = recovery.find_undone_calls(self._store, run.id)
                ids_ = tuple(call.id for call in doubts)
                recovered = Recovered(self.now(), ids_, checks=checks, undone=undone)
                self._inbox.append(RunInput(self._add_reviews(recovered, run)))
            case StartTurn(role=Role.REVIEW):
                self._inbox.append(self._review_tree(command, run))
            case StartTurn():
                self._stopping = False
                self.ledger.current_step = (command.turn, command.step)
                self._inbox.append(self._turn(command, run))
            case RunCheck(name="learnings"):
                check = Check(run.id, command.step, self._lease.token, command.command, self.now())
                self._inbox.append(build_check_ended(check, learning_check.build_result(self._review(run)), self.now()))
            case RunCheck(name="commit"):
                check = Check(run.id, command.step, self._lease.token, command.command, self.now())
                self._outside.committed = self._outside.tree
                self._inbox.append(build_check_ended(check, CheckResult(0, "", ""), self.now()))
            case RunCheck():
                self._inbox.append(self._prove(command, run))

    def _add_reviews(self, recovered: Recovered, run: Run) -> Recovered:
        reviews = self._store.reviews
        return recovered._replace(
            tree=f"t{self._outside.tree}",
            last_iteration=reviews.get_last_iteration(run.id),
            verdicts=tuple(reviews.list_verdicts(run.id)),
            findings=tuple(reviews.list_findings(run.id)),
        )

    def _prove(self, order: RunCheck, run: Run) -> RunInput:
        """The proof passes on good trees; now and then it changes a file of the work, and is void."""
        out = self._outside
        is_good = not run.spec.review or out.tree in out.good
        check = Check(run.id, order.step, self._lease.token, order.command, self.now(), self.now(), int(not is_good))
        changed = ("a.py",) if run.spec.review and out.rng.random() < 0.05 else ()
        ended = CheckEnded(self.now(), int(not is_good), "red", tree=f"t{out.tree}", changed=changed)
        check = check._replace(tree=f"t{out.tree}")
        if changed:
            out.tree += 1
            out.good |= {out.tree}
        return RunInput(ended, check=check)

    def _review_tree(self, order: StartTurn, run: Run) -> RunInput:
        """A reviewer: random findings, and a verdict that fits them; sometimes none, a limit, or a crash of its own."""
        out, rng = self._outside, self._outside.rng
        turn = Turn(run.id, order.turn, order.step, self._lease.token, order.role, order.agent, None, "", self.now())
        turn = turn._replace(review_round=order.review_round, seat=order.seat, iteration=run.status.iteration)
        self._store.leases.write_change(self._lease, RunChange(at=self.now(), turn=turn))
        out.maybe_crash()
        ended, turn = TurnEnded(self.now(), Outcome(), Usage(tokens_input=1)), turn._replace(ended_at=self.now())
        findings = tuple(self._store.reviews.list_findings(run.id))
        mishap = rng.random()
        if mishap < 0.05:
            return RunInput(ended._replace(outcome=Outcome(Failure.LIMIT, "sim", resets_at=out.now + 1000)), turn=turn)
        if mishap < 0.1:
            return RunInput(ended._replace(outcome=Outcome(Failure.CRASHED, "sim")), turn=turn)
        if mishap < 0.2:
            return RunInput(ended._replace(verdict_problem="no verdict", findings=findings), turn=turn)
        own = [one for one in review.find_open(findings) if one.seat == order.seat]
        settled = {one.id: rng.random() < 0.8 for one in own}
        new = tuple(review.NewFinding(review.BLOCKING, f"nit {order.turn}") for _ in range(rng.random() < out.stubborn))
        answer = review.ParsedReview(review.FAIL if new or not all(settled.values()) else review.PASS, new, settled)
        about = review.ReviewTurn(
            run.id, turn.number, turn.iteration, turn.review_round, turn.seat, turn.agent, f"t{out.tree}", self.now()
        )
        verdict, changed = review.apply_review(answer, about, findings)
        merged = tuple(review.merge_findings(findings, changed))
        reviewed = ended._replace(verdict=verdict, findings=merged, tree=f"t{out.tree}")
        return RunInput(reviewed, turn=turn, verdict=verdict, findings=changed)

    def _review(self, run: Run) -> learning.LearningReview:
        """Review as the engine does, with simulated git."""
        cases = learning_check.find_open_cases(self._store, run.id)
        entries = {case.id: Cases(self._store).list_entries(case.id, EntryKind.LEARNING) for case in cases}
        tracked = {case.id: {"docs/learned.md"} if self._outside.resolves else set() for case in cases}
        return learning.review_learnings(cases, entries, tracked)

    def _stop(self, why: StopReason, detail: str) -> None:
        self._stopping = True
        self._inbox.append(RunInput(StopWanted(self.now(), why, detail)))

    def _turn(self, order: StartTurn, run: Run) -> RunInput:
        turn = Turn(run.id, order.turn, order.step, self._lease.token, order.role, "sim", None, "", self.now())
        self._store.leases.write_change(self._lease, RunChange(at=self.now(), turn=turn))
        turn = turn._replace(iteration=run.status.iteration)
        outcome = self._play(run)
        self._outside.tree += order.role is Role.WORK
        if self._outside.rng.random() < 0.6:
            self._outside.good |= {self._outside.tree}
        unfinished = len(self._store.calls.list_open(run.id))
        checks = () if outcome.failure else find_pending_checks(self._store, run)
        undone = recovery.find_undone_calls(self._store, run.id)
        ended = TurnEnded(self.now(), outcome, Usage(tokens_input=1), unfinished, checks=checks, undone=undone)
        return RunInput(ended, turn=turn._replace(ended_at=self.now()))

    def _play(self, run: Run) -> Outcome:
        """The agent: one effect after the other, with random failures in between."""
        out = self._outside
        undone = any(call.state is CallState.VOID for call in self._store.calls.list_all(run.id))
        start = out.position if out.remembers and not undone else 0  # the resume prompt names what did not happen
        for number in range(start, int(run.spec.options["effects"])):
            if out.rng.random() < out.limit_chance:
                return Outcome(Failure.LIMIT, "sim", resets_at=out.rng.choice((None, out.now + 1000)))
            mishap = out.rng.random()
            if mishap < 0.04:
                return Outcome(Failure.CRASHED, "sim")
            if mishap < 0.07:
                self._stop(out.rng.choice((StopReason.INTERRUPT, StopReason.SHUTDOWN)), "sim")
                return Outcome(Failure.CRASHED, "interrupted")
            self._effect(number)
            if self._stopping:
                return Outcome(Failure.CRASHED, "stopped by the gate")
            out.position = number + 1
        self._learn(run)
        return Outcome()

    def _learn(self, run: Run) -> None:
        """Open a case with one learning; the agent resolves it once a check has failed."""
        if "case" not in run.spec.options:
            return
        at, store = self.now(), self._store
        if store.records.list_checks(run.id) and store.records.list_checks(run.id)[-1].exit_code:
            self._outside.resolves = True
        case = Cases(store).get_active(f"run:{run.id}") or CaseNotebook(store).start(
            NewCase("case", "sim", "/sim", "ada", "why?", Problem(), run.id), f"run:{run.id}", at
        )
        if not Cases(store).list_entries(case.id, EntryKind.LEARNING):
            data = {"path": "docs/learned.md"}
            CaseNotebook(store).add_entry(
                case.id, CaseEntry(case.id, EntryKind.LEARNING, 0, at, at, "so", "docs", data), at, "sim"
            )

    def _effect(self, number: int) -> None:
        """Make an effect; if it fails and is known not to have happened, again. One in doubt is left to a person."""
        target, out = f"mail:{number}", self._outside
        while True:
            answer = self.ledger.prepare(CallRequest("send", {"number": number}, "sim"))
            out.maybe_crash()
            if answer.decision is not Decision.ALLOW:
                return
            ok = out.rng.random() > 0.1  # a non-zero exit: nobody knows whether the effect happened
            if ok or out.rng.random() < 0.5:
                out.sent[target] = out.sent.get(target, 0) + 1
            out.maybe_crash()
            if self.ledger.finish(CallResult(answer.call_id, ok=ok, exit_code=0 if ok else 1)).state is CallState.DONE:
                return


def spec_for(effects: int, *, case: bool = False, review: tuple[str, ...] = ()) -> Spec:
    options = {"effects": str(effects), **({"case": "yes"} if case else {})}
    rule = Rule("mail", "send", CallClass.EFFECT, Replay.ASK, Decision.ALLOW, target="mail:{number}")
    spec = Spec("sim", "/", rules=(rule,), options=options, proof="true")
    return spec._replace(review=review, plan=True, commit_work=True) if review else spec


def attempt(store: Store, run_id: str, outside: Outside, *, probe: bool, by_service: bool = False) -> Run:
    """Claim and work once; the old holder is dead, or its lease has expired."""
    run = store.runs.get(run_id)
    assert run is not None
    driver: Any = CrashingDriver(store.driver, outside)
    crashing: Any = Store(driver)
    dead = run.status.attempt if outside.rng.random() < 0.5 else None
    if dead is None:
        outside.now += LEASE_MS + 1
    owner = Owner(f"owner-{outside.rng.random()}", "host", "boot", 1)
    lease, claimed = crashing.leases.claim(run_id, owner, LEASE_MS, outside.now, dead, from_queue=by_service)
    runtime = SimulatedRuntime(crashing, lease, claimed, outside, probe=probe)
    return run_attempt(crashing, lease, claimed, runtime)
