"""Runs one turn of an agent: capture every byte, parse its output, report its end. It decides nothing."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from jackline import crash_points
from jackline.clock import boot_ms
from jackline.domain.agent_health import AgentHealth, build_health, find_resting_agents, is_limited
from jackline.domain.events import Fact
from jackline.domain.limits import Spent, find_exhausted_limit
from jackline.domain.outcome import Outcome, UsageMeter, get_usage, subtract_usage
from jackline.domain.prices import PriceTable
from jackline.domain.records import SessionUse
from jackline.domain.run_inputs import StopReason, TurnEnded
from jackline.domain.run_totals import count_idle_turns
from jackline.domain.states import DEFERRED, Failure, Role, WaitReason
from jackline.engine import threads
from jackline.engine.attempt import RunInput
from jackline.engine.check import find_pending_checks
from jackline.engine.gate_socket import find_hooks
from jackline.engine.observed_calls import CallObserver, HookAudit
from jackline.engine.recovery import estimate_unreported_usage, find_undone_calls
from jackline.engine.streams import LineSplitter, RedactedFile
from jackline.errors import SessionTaken
from jackline.extensions import call_hook
from jackline.named import NamedTuple
from jackline.store.models import RunChange
from jackline.store.spending import find_next_day

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter, Launch
    from jackline.domain.changes import Changes
    from jackline.domain.outcome import AgentEvent, Exit, Usage
    from jackline.domain.records import Lease, Run, Turn
    from jackline.domain.run_inputs import StartTurn
    from jackline.engine.call_ledger import CallLedger
    from jackline.engine.process import Child, Chunk, Warden
    from jackline.engine.review_seat import ReviewSeat
    from jackline.engine.streams import OutputLine
    from jackline.engine.turn_plan import TurnPlan
    from jackline.store.store import Store

_FLUSH_S = 0.25
_BATCH = 100
_MOST_FACTS = 5_000  # events per turn; the raw transcript has the rest
_TEXT = 20_000
_TEXT_END = 4_000  # of these, from the end of a message: a done signal is there
_ANSWER = 150_000  # characters of a reviewer's answer
_SHORT = 200
_DECISIVE = frozenset({"end", "error", "limit", "session"})  # kinds that say how a turn ended; stored at once
_MOST_DECISIVE = 100  # the last ones matter; an agent that repeats itself must not fill our memory
_TAIL_BYTES = 8_192  # of stderr, where a CLI writes why it ends
_TIMEOUTS: dict[StopReason | None, Failure] = {StopReason.WALL: Failure.TIMEOUT, StopReason.IDLE: Failure.IDLE}
_DAY_SPENT = "the day's budget is spent; the next day starts at 00:00 UTC"
_LOST = Outcome(failure=Failure.CRASHED, detail="the agent's end was not seen")


class TurnServices(NamedTuple):
    """The parts of an attempt that its turns use."""

    store: Store
    lease: Lease
    ledger: CallLedger
    now: Callable[[], int]
    post: Callable[[RunInput | BaseException], None]
    stop: Callable[[StopReason, str], None]
    survey: Callable[[], Changes | None]  # the run's changes in its repository; None: git could not tell
    read_tree: Callable[[], str] = lambda: ""  # the content of the workspace now; empty if git cannot tell
    open_seat: Callable[[Run, StartTurn], ReviewSeat | None] = lambda _run, _order: None  # for a review
    prices: PriceTable = PriceTable()


class TurnJob:
    """A running turn: one thread reads the agent's output until it has ended, then posts the end."""

    def __init__(
        self,
        services: TurnServices,
        run: Run,
        adapter: Adapter,
        plan: TurnPlan,
        folder: str,
        reserved: int | None = None,
        seat: ReviewSeat | None = None,
    ) -> None:
        """Prepare a turn that is stored already; nothing starts yet. `reserved` is its part of a day's budget."""
        self._seat = seat
        turn = plan.turn
        self._services, self._run, self._adapter, self._turn = services, run, adapter, turn
        self._resumed = turn.session if plan.request.resume else None
        self._knows_session = plan.request.resume or bool(plan.request.fork_of)
        self._other_session = ""  # begun by the agent instead of the one that it should have resumed
        base = os.path.join(folder, "turns", f"{turn.number:04d}-{turn.role}")
        os.makedirs(os.path.dirname(base), mode=0o700, exist_ok=True)
        self._redactor = services.store.redactor
        self._raw = {name: RedactedFile(f"{base}.{name}", self._redactor.values) for name in ("stdout", "stderr")}
        self._splitter = LineSplitter()
        self._facts: list[Fact] = []
        self._pending_since = 0
        self._fact_count = 0
        self._tools: dict[str, str] = {}  # the agent's id of a call → its tool
        self._decisive: list[AgentEvent] = []
        self._tail = b""
        self._reserved = reserved
        self._model = plan.request.model
        self._is_price_known = True
        self._meter = UsageMeter(plan.before, self._estimate_cost)
        self._observer: CallObserver | HookAudit | None = None  # an agent at the socket reports its calls by our ids
        if find_hooks(adapter) is not None:
            self._observer = HookAudit(services.ledger, services.stop)
        elif adapter.declaration.gate != "enforced":
            self._observer = CallObserver(services.ledger)
        self._raw_lines = 0
        self._in_pieces = False
        self._owns_session = True
        self._has_worked = False  # whether the model has answered in this turn
        self._health: AgentHealth | None = None  # to store with the next events
        self.last_output = boot_ms()
        self.stopped_for: StopReason | None = None
        self._has_asked_to_stop = False  # because a budget is spent; the agent may end before it is stopped
        self.over = False  # the agent has ended: no timeout applies while its end is processed
        self.child: Child | None = None

    @property
    def agent(self) -> str:
        """The name of the agent that runs it."""
        return self._turn.agent

    def start(self, warden: Warden, launch: Launch, env: dict[str, str], workspace: str) -> None:
        """Spawn the agent and begin to read its output."""
        crash_points.crash_point("turn.spawning")
        self.child = warden.spawn(launch.argv, env, workspace, stdin=launch.stdin)
        crash_points.crash_point("turn.spawned")
        self.last_output = boot_ms()
        threads.start_thread("turn", partial(self._watch, self.child), self._services.post)

    def give_up(self) -> None:
        """Close the files of a turn that was not started, or has ended."""
        for raw in self._raw.values():
            raw.close()

    # output

    def _watch(self, child: Child) -> None:
        try:
            self._read_output(child)
            self._services.ledger.stop_for_ungated()
            exit_ = child.wait()
            self.over = True
            crash_points.crash_point("turn.exited")
            self._services.post(self._build_end(exit_))
        finally:
            child.close()
            self.give_up()

    def _read_output(self, child: Child) -> None:
        while not child.drained:
            chunks = child.read(_FLUSH_S if self._facts else None)
            for chunk in chunks:
                self._take_chunk(chunk)
            # Also between the lines of an agent that never pauses: people watch.
            if not chunks or (self._facts and boot_ms() - self._pending_since >= _FLUSH_S * 1000):
                self._flush()
        self._raw["stdout"].finish()
        self._take_lines(self._splitter.end())
        self._keep_tail(self._raw["stderr"].finish())
        self._flush()

    def _take_chunk(self, chunk: Chunk) -> None:
        self.last_output = boot_ms()
        masked = self._raw[chunk.source].write(chunk.data)
        if chunk.source == "stdout":  # parsed unmasked: the keys of calls are computed from it
            self._take_lines(self._splitter.feed(chunk.data))
        else:
            self._keep_tail(masked)

    def _keep_tail(self, masked: bytes) -> None:
        self._tail = (self._tail + masked)[-_TAIL_BYTES:]

    def _take_lines(self, lines: list[OutputLine]) -> None:
        for line in lines:
            if line.truncated:
                self._raw_lines += 1
                continue
            for event in self._adapter.parse(line.data):
                if event.kind == "raw":
                    self._raw_lines += 1
                elif event.usage is not None:
                    self._note_work(event)
                    self._store_event(self._charge(event), line.offset)
                else:
                    self._note_work(event)
                    self._process_event(event)
                    self._store_event(self._name_tool(event), line.offset)

    def _note_work(self, event: AgentEvent) -> None:
        """The first call or output of the model shows that a limit from before this turn is over."""
        has_output = event.usage is not None and event.usage.tokens_output > 0
        if self._has_worked or not (has_output or event.kind == "call.started"):
            return
        self._has_worked = True
        known = self._services.store.records.get_health().get(self._turn.agent)
        if known is not None and is_limited(known) and known.at < self._turn.started_at:
            self._health = AgentHealth(self._turn.agent, at=self._services.now())

    def _process_event(self, event: AgentEvent) -> None:
        if event.kind in _DECISIVE:
            self._decisive = [*self._decisive, event][-_MOST_DECISIVE:]
        self._keep_message(event)
        if event.kind == "session":
            self._take_session(event.text)
        if self._observer is not None:
            self._observer.observe_event(event)
        elif event.kind == "call.started" and not self._services.ledger.has_allowed(str(event.data.get("call", ""))):
            self._services.stop(StopReason.UNGATED, f"{event.data.get('tool')} ran without asking the gate")

    def _name_tool(self, event: AgentEvent) -> AgentEvent:
        """Name the tool of a call that ends: most agents name it only when the call starts."""
        call = str(event.data.get("call", ""))
        if event.kind == "call.started":
            self._tools[call] = str(event.data.get("tool", ""))
        elif event.kind == "call.finished" and "tool" not in event.data and call in self._tools:
            return event._replace(data={**event.data, "tool": self._tools[call]})
        return event

    def _keep_message(self, event: AgentEvent) -> None:
        """Keep the last message; some agents print it in pieces, one line after the other."""
        is_line = event.kind == "message" and event.data.get("line") is True
        is_piece = is_line or (event.kind == "message" and event.data.get("delta") is True)
        if event.kind == "message":
            before = self._turn.last_message if is_piece and self._in_pieces else ""
            text = f"{before}\n{event.text}" if before and is_line else before + event.text
            if len(text) > _TEXT:  # redacted before it is cut: the redactor would not recognize half a secret
                text = cut_message(self._redactor.redact(text), self._turn.role)
            self._turn = self._turn._replace(last_message=text)
        self._in_pieces = is_piece

    def _cut(self, text: str) -> str:
        return text if len(text) <= _TEXT else self._redactor.redact(text)[:_TEXT]

    def _take_session(self, session: str) -> None:
        """End an agent that silently begins another session than the one to resume: it does not know the task."""
        if self._resumed is not None and session != self._resumed:
            self._other_session = session
            self._meter = UsageMeter(
                price=self._estimate_cost
            )  # the totals of the other session are not those of this one
            if self.child is not None:
                self.child.kill()
            return
        self._turn = self._turn._replace(session=session)

    def _charge(self, event: AgentEvent) -> AgentEvent:
        """Charge reported usage; the event is stored with the difference to the last report."""
        before = self._meter.total
        used = self._meter.add(event)
        if spent := self._find_spent_budget():
            self._has_asked_to_stop = True
            self._services.stop(StopReason.BUDGET, spent)
        return event._replace(usage=subtract_usage(used, before))

    def _find_spent_budget(self) -> str:
        """Why the turn may not continue; empty if it may."""
        used = self._meter.total
        # Steps and iterations are counted when they begin: only reported usage can run out in the middle.
        limits = self._run.spec.limits._replace(wall_ms=None, iterations=None, steps=None, calls=None)
        spent = find_exhausted_limit(limits, self._run.status.spent.plus(**used._asdict()))
        if spent:
            return f"budget spent: {spent}"
        is_day_spent = self._reserved is not None and used.usd_micros >= self._reserved
        return _DAY_SPENT if is_day_spent else ""

    def _explain_budget(self, outcome: Outcome, at: int) -> Outcome:
        """Add which budget was spent, if the agent stopped by itself, and when a new day's budget starts."""
        spent = self._find_spent_budget()
        if outcome.waits is WaitReason.BUDGET and spent:
            outcome = outcome._replace(detail=spent)
        is_over = outcome.waits is WaitReason.BUDGET or self._has_asked_to_stop
        return outcome._replace(resets_at=find_next_day(at)) if is_over and spent == _DAY_SPENT else outcome

    def _estimate_cost(self, model: str, usage: Usage) -> float:
        family, model = self._adapter.declaration.prices, model or self._model
        found = self._services.prices.find_price(family, model)
        if self._is_price_known and not found.known:  # once per turn
            self._is_price_known = False
            data = {"agent": self.agent, "model": model or "default", "input": found.price.input}
            self._facts.append(Fact("cost.assumed", {**data, "output": found.price.output}))
        return found.price.compute_cost(usage)

    # records

    def _store_event(self, event: AgentEvent, offset: int) -> None:
        self._fact_count += 1
        full = self._fact_count > _MOST_FACTS
        if not full:
            self._pending_since = self._pending_since if self._facts else boot_ms()
            self._facts.append(_build_fact(event._replace(text=self._cut(event.text)), offset))
        # Usage and session must not wait for the end of the turn, however much was printed before.
        due = event.kind == "session" or self._fact_count % _BATCH == 0
        if event.kind in _DECISIVE or len(self._facts) >= _BATCH or (full and due):
            self._flush(always=full and due)

    def _flush(self, *, always: bool = False) -> None:
        facts, self._facts = tuple(self._facts), []
        if not facts and not always:
            return
        services = self._services
        change = RunChange(
            at=services.now(),
            facts=facts,
            turn=self._build_turn(),
            session=self._find_session(),
            health=self._health,
            actor="agent",
        )
        self._health = None
        try:
            services.store.leases.write_change(services.lease, change)
        except SessionTaken:  # an agent that numbers its sessions from one: another run owns this one
            self._owns_session = False
            services.store.leases.write_change(services.lease, change._replace(session=None))

    def _find_session(self) -> SessionUse | None:
        return build_session_use(self._turn) if self._turn.session and self._owns_session else None

    def _build_turn(self) -> Turn:
        return self._turn._replace(
            raw_lines=self._raw_lines,
            stdout_bytes=self._raw["stdout"].size,
            stderr_bytes=self._raw["stderr"].size,
            spent=Spent(**self._meter.total._asdict()),
        )

    # the end

    def _build_end(self, exit_: Exit | None) -> RunInput:
        services, store = self._services, self._services.store
        changes = services.survey() if self._seat is None else None
        at, timeout = services.now(), _TIMEOUTS.get(self.stopped_for)
        outcome = self._explain_budget(self._require_commit(self._classify_exit(exit_), changes), at)
        outcome = self._wait_for_answers(outcome)
        turn = self._build_turn()._replace(
            ended_at=at,
            exit_code=exit_.code if exit_ else None,
            failure=timeout or outcome.failure,
            detail=DEFERRED if outcome.deferred else outcome.detail,
        )
        if self.stopped_for is not None or outcome.failure is Failure.CRASHED:
            calls = sum(call.turn == turn.number for call in store.calls.list_all(self._run.id))
            family = self._adapter.declaration.prices
            turn = estimate_unreported_usage(turn, services.prices, family, self._model, calls)
        known = store.records.get_health()
        health = build_health(turn.agent, outcome, at, known.pop(turn.agent, None), turn.started_at)
        others = known.values()
        ended = TurnEnded(
            at=at,
            outcome=outcome,
            usage=get_usage(turn.spent),
            open_calls=len(store.calls.list_open(self._run.id)),
            resting=find_resting_agents([*others, health] if health else others, at),
            forced=len(services.ledger.replay),
            checks=find_pending_checks(store, self._run) if outcome.ended_well and turn.role == Role.WORK else (),
            idle=self._count_idle_turns(turn) if self.stopped_for is StopReason.IDLE else 0,
            undone=find_undone_calls(store, self._run.id),
        )
        ended = self._note_done_signal(ended, turn)
        session = self._find_session()
        if outcome.session_lost:
            session = build_session_use(turn._replace(session=""))
        received = RunInput(ended, turn=turn, session=session, health=health, changes=changes)
        return received if self._seat is None else self._add_review(received, ended, turn, self._seat)

    def _note_done_signal(self, ended: TurnEnded, turn: Turn) -> TurnEnded:
        signal = self._run.spec.done_signal
        if not signal or turn.role != Role.WORK or not ended.outcome.ended_well:
            return ended
        from jackline.domain.review_prompts import has_done_signal

        if has_done_signal(turn.last_message, signal):
            return ended
        return ended._replace(is_done=False, tree=self._services.read_tree())

    def _add_review(self, received: RunInput, ended: TurnEnded, turn: Turn, seat: ReviewSeat) -> RunInput:
        """Add the verdict of a reviewer, and undo what it changed."""
        from jackline.engine.review_copy import ReviewCopyFailed

        try:
            result = seat.finish(turn, ended.at, has_answered=ended.outcome.ended_well)
        except ReviewCopyFailed as error:
            failed = Outcome(failure=Failure.REVIEW, detail=str(error))
            return received._replace(input=ended._replace(outcome=failed))
        reviewed = ended._replace(
            tree=result.tree, verdict=result.verdict, findings=result.findings, verdict_problem=result.verdict_problem
        )
        return received._replace(input=reviewed, verdict=result.verdict, findings=result.changed, facts=result.facts)

    def _count_idle_turns(self, turn: Turn) -> int:
        store, run_id = self._services.store, self._run.id
        turns = [*(one for one in store.records.list_turns(run_id) if one.number != turn.number), turn]
        with_calls = {call.turn for call in store.calls.list_all(run_id)}
        return count_idle_turns(turns, store.records.list_attempts(run_id), with_calls)

    def _require_commit(self, outcome: Outcome, changes: Changes | None) -> Outcome:
        needs_commit = self._run.spec.requires_commit and not self._run.spec.commit_work  # else the host commits
        if not outcome.ended_well or not needs_commit or self._turn.role != Role.WORK:
            return outcome
        if changes is None:
            return Outcome(failure=Failure.NO_COMMIT, detail="git could not tell whether this run has made a commit")
        if changes.commits:
            return outcome
        return Outcome(
            failure=Failure.NO_COMMIT, detail="the agent reports that it is done, but this run has made no commit"
        )

    def _wait_for_answers(self, outcome: Outcome) -> Outcome:
        """A run whose agent is done, and has not got the answer to a question, waits for it.

        If all are answered by the time the run would park, it continues at once.
        """
        if not outcome.ended_well or self._seat is not None:
            return outcome
        store, run_id = self._services.store, self._run.id
        questions = store.approvals.list_open_questions(run_id)
        questions = questions or [line for lines in call_hook("unread_answers", store, run_id) for line in lines]
        if not questions:
            return outcome
        detail = f"the agent asks: {'; '.join(questions)}"[:_TEXT]
        return outcome._replace(waits=WaitReason.HUMAN, detail=detail, asks=True)

    def _classify_exit(self, exit_: Exit | None) -> Outcome:
        if exit_ is None:
            return _LOST
        if self._other_session:
            detail = f"it began session {self._other_session} instead of {self._resumed}"
            return Outcome(failure=Failure.AGENT_ERROR, detail=detail, session_lost=True)
        tail = self._tail.decode("utf-8", "replace")
        outcome = self._adapter.classify(exit_, tuple(self._decisive), tail)
        # Only a session that was asked for can be lost; otherwise one fresh session would follow another forever.
        return outcome if self._knows_session else outcome._replace(session_lost=False)


def cut_message(text: str, role: str) -> str:
    """A long message without its middle; of a reviewer only the end, where its verdict is."""
    if role == Role.REVIEW:
        return text[-_ANSWER:]
    return text if len(text) <= _TEXT else f"{text[: _TEXT - _TEXT_END]}\n…\n{text[-_TEXT_END + 3 :]}"


def build_session_use(turn: Turn) -> SessionUse:
    """The session of a turn, with what it was opened for. A plan and the work on it share one."""
    role = str(Role.REVIEW if turn.role == Role.REVIEW else Role.WORK)
    return SessionUse(
        agent=turn.agent, session=turn.session or "", role=role, seat=turn.seat, review_round=turn.review_round
    )


def _build_fact(event: AgentEvent, offset: int) -> Fact:
    """An event that points to the details: the ledger has a call's input and output, the transcript every byte."""
    data = {
        name: value
        for name, value in event.data.items()
        if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _SHORT)
    }
    data["offset"] = offset
    if event.text:
        data["text"] = event.text
    if event.usage is not None:
        data.update(event.usage._asdict())
    return Fact(f"agent.{event.kind}", data)
