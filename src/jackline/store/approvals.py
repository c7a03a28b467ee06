"""Answers to calls, of a person or a timeout; a run that waits for nothing else is queued again. It runs nothing."""

from __future__ import annotations

from jackline.crash_points import crash_point
from jackline.domain.call_gate import ALWAYS, APPROVALS, NOT_NOW, can_approve_always
from jackline.domain.events import PERSON, Fact
from jackline.domain.records import Call, Lease, Receipt, Run
from jackline.domain.states import TERMINAL, CallClass, CallState, Decision, RunState, WaitReason, format_run_state
from jackline.domain.transitions import next_run
from jackline.errors import Refused
from jackline.store import ledger_events, rows
from jackline.store.calls import WORDS
from jackline.store.driver import RetryTransaction, Statements
from jackline.store.ledger import next_state, read_call, write_receipt
from jackline.store.parts import (
    ChainEnd,
    StorePart,
    append_events,
    build_lease_values,
    get_chain_end,
    lock_fenced_head,
    read_open_questions,
)
from jackline.store.record_digests import cover, digest_run

_TIMEOUT = "timeout"
_ON_ASK = "on_ask"
_DOUBT_ANSWERS = {"happened": "happened", "did-not": "did_not", "retry": "did_not", "skip": "abandon"}
_TIMEOUT_ANSWERS = frozenset({"allow", "deny"})
_APPROVAL_ANSWERS = frozenset({*APPROVALS, "deny"})
_SKIP = "skip"
_WAKING = frozenset({WaitReason.IN_DOUBT, WaitReason.APPROVAL, WaitReason.HUMAN})


class Approvals(StorePart):
    """The part of the store that people write through."""

    def answer(self, run_id: str, call_id: str, verdict: str, at: int) -> tuple[Call, Run]:
        """A person's answer to a call: happened, did-not, retry, skip (in doubt); allow, always, deny (needs approval).

        `always` also approves the calls of the same rule with the same target, waiting ones and later ones.
        For a call that was interrupted and has to be made again: skip.
        """
        answered = self._driver.write(lambda one: self.answer_within(one, run_id, call_id, verdict, at))
        crash_point("call.judged")
        return answered

    def answer_within(
        self, statements: Statements, run_id: str, call_id: str, verdict: str, at: int, via: str = ""
    ) -> tuple[Call, Run]:
        """The same in a transaction of the caller; Refused before anything is written. `via`: how the answer came."""
        run = self._lock_run(statements, run_id)
        call = read_call(statements, run_id, call_id)
        if run.status.state in TERMINAL and not call.answer:
            raise Refused(_explain_ended(run))
        if run.status.state is RunState.RUNNING:
            lease_over = statements.one("lease_over", {"id": run_id, **statements.clock()})
            if not (lease_over and lease_over[0]):
                busy = f"run {run_id} is being worked on by {run.owner}: answer when it waits"
                raise Refused(f"{busy}; if that worker is dead, resume the run first")
        call, fact = _apply_answer(statements, call, verdict, at)
        if via:
            fact = Fact(fact.kind, {**fact.data, "via": via})
        chain = append_events(statements, run_id, get_chain_end(run), (fact,), at, PERSON)
        self._wake_if_answered(statements, run, chain, at)
        return call, self._get_run(statements, run_id)

    def expire(self, lease: Lease, at: int, verdict: str, older_than: int) -> list[Call]:
        """Answer the calls that were asked before `older_than` and have no answer, with `allow` or `deny`."""
        if verdict not in _TIMEOUT_ANSWERS:
            answers = " or ".join(sorted(_TIMEOUT_ANSWERS))
            raise Refused(f"'{verdict}' is not an answer to a call that needs approval; use {answers}")
        return self._driver.write(lambda one: _expire(one, lease, at, verdict, older_than))

    def list_open_questions(self, run_id: str) -> list[str]:
        """The questions of the run's agent that a person has not answered, oldest first."""
        return self._driver.read(lambda statements: read_open_questions(statements, run_id))

    def wake_asking_run(self, statements: Statements, run_id: str, at: int) -> None:
        """Queue the run again in the transaction that closes a question of its agent, if it waits for nothing else."""
        if statements.one("lock_run", {"id": run_id}) is None:  # asked for a run of another home
            return
        run = self._get_run(statements, run_id)
        if run.status.state is RunState.WAITING and run.status.reason is WaitReason.HUMAN:
            self._wake_if_answered(statements, run, get_chain_end(run), at)

    def set_aside(self, lease: Lease, at: int) -> list[Call]:
        """Close the questions without an answer: no process waits now, and the same call may ask again later."""
        return self._driver.write(lambda one: _expire(one, lease, at, NOT_NOW, at + 1, _ON_ASK))

    def _wake_if_answered(self, statements: Statements, run: Run, chain: ChainEnd, at: int) -> None:
        waits = run.status.state is RunState.WAITING and run.status.reason in _WAKING
        if not waits or _has_unanswered(statements, run):
            statements.run("move_chain", {"id": run.id, "after": run.event_seq, "at": at, **chain._asdict()})
            return
        queued = next_run(run.status.state, "wake")
        woken = run._replace(status=run.status._replace(state=queued, reason=None, wake_at=None))
        facts = cover((Fact(f"run.{queued}", {"by": "answer"}),), digest_run(woken))
        chain = append_events(statements, run.id, chain, facts, at, PERSON)
        values = {"id": run.id, "state": str(run.status.state), "to": str(queued), "at": at, **chain._asdict()}
        statements.run("queue_waiting_run", values)


def _expire(
    statements: Statements, lease: Lease, at: int, verdict: str, older_than: int, by: str = _TIMEOUT
) -> list[Call]:
    head = lock_fenced_head(statements, lease)
    asked = read_asked(statements, lease.run_id)
    # One answer for each question: it is also for later calls that asked the same.
    late = {call.key: call for call in reversed(asked) if call.prepared_at < older_than}
    facts = [answer_asked(statements, call, verdict, at, by)[1] for call in late.values()]
    if not facts:
        return []
    chain = append_events(statements, lease.run_id, ChainEnd(head.event_seq, head.chain_head), facts, at, by)
    moved = {"previous": head.chain_head, "calls": head.calls, "at": at, **chain._asdict()}
    if statements.run("move_head", {**build_lease_values(lease), **moved}) == 0:
        raise RetryTransaction
    return [call._replace(answer=verdict, finished_at=at) for call in asked if call.key in late]


def _apply_answer(statements: Statements, call: Call, verdict: str, at: int) -> tuple[Call, Fact]:
    """Write the answer to the call; Refused if it does not fit."""
    if verdict in _DOUBT_ANSWERS and call.state is CallState.IN_DOUBT:
        return _answer_doubt(statements, call, verdict, at)
    asked = call.state is CallState.DENIED and call.decision is Decision.ASK and not call.answer
    if verdict in _APPROVAL_ANSWERS and asked:
        return answer_asked(statements, call, verdict, at, PERSON)
    forced = call.id in _read_forced(statements, call.run_id)
    if verdict == _SKIP and forced:  # its state stays: nothing happened, and now nothing waits for it
        answered = call._replace(answer=verdict, finished_at=at)
        _write_answer(statements, call, answered, at)
        return answered, ledger_events.build_answered(call, (answered,), verdict, PERSON)
    raise Refused(_explain_refusal(call, verdict, asked=asked, forced=forced))


def _answer_doubt(statements: Statements, call: Call, verdict: str, at: int) -> tuple[Call, Fact]:
    state = next_state(call.id, call.state, _DOUBT_ANSWERS[verdict])
    answered = call._replace(state=state, answer=verdict, finished_at=at)
    _write_answer(statements, call, answered, at)
    receipt: Receipt | bool | None = None
    if answered.state is CallState.DONE and answered.call_class is CallClass.EFFECT:
        receipt = write_receipt(statements, answered, "", PERSON, at)
    fact = ledger_events.build_settled(answered, PERSON, receipt=receipt)
    return answered, Fact(fact.kind, {**fact.data, "answer": verdict})


def answer_asked(statements: Statements, call: Call, verdict: str, at: int, by: str) -> tuple[Call, Fact]:
    """Write the answer to every call that asks the same question."""
    values = {
        "run_id": call.run_id,
        "denied": str(call.state),
        "ask": str(call.decision),
        "answer": verdict,
        "at": at,
    }
    covers = verdict == ALWAYS and can_approve_always(call.rule, call.target)
    asked = [
        one
        for one in read_asked(statements, call.run_id)
        if one.key == call.key or (covers and (one.rule, one.target) == (call.rule, call.target))
    ]
    for key in dict.fromkeys(one.key for one in asked):
        statements.run("answer_asked", {**values, "key": key})
    answered = [one._replace(answer=verdict, finished_at=at) for one in asked]
    fact = ledger_events.build_answered(call, answered, verdict, by)
    return call._replace(answer=verdict, finished_at=at), fact


def _write_answer(statements: Statements, before: Call, after: Call, at: int) -> None:
    words = {"state": str(before.state), "to": str(after.state), "answer": after.answer}
    statements.run("judge_call", {"run_id": before.run_id, "id": before.id, **words, "at": at})


def read_asked(statements: Statements, run_id: str) -> list[Call]:
    """The calls of a run that wait for approval."""
    return [rows.parse_call(row) for row in statements.all("asked_calls", {**WORDS, "run_id": run_id})]


def _read_forced(statements: Statements, run_id: str) -> set[str]:
    return {rows.parse_call(row).id for row in statements.all("forced_calls", {**WORDS, "run_id": run_id})}


def _has_unanswered(statements: Statements, run: Run) -> bool:
    if run.status.reason is WaitReason.HUMAN:
        return bool(_read_forced(statements, run.id) or read_open_questions(statements, run.id))
    row = statements.one("count_unanswered", {**WORDS, "run_id": run.id, "strict": int(run.spec.strict)})
    return row is not None and row[0] > 0


def _explain_ended(run: Run) -> str:
    if run.status.state is RunState.FAILED:
        return f"run {run.id} has failed: resume it, and answer when it asks again"
    return f"run {run.id} {format_run_state(run.status.state)}: its calls can no longer be answered"


def _explain_refusal(call: Call, verdict: str, *, asked: bool, forced: bool) -> str:
    if verdict not in _DOUBT_ANSWERS and verdict not in _APPROVAL_ANSWERS:
        return f"'{verdict}' is not an answer; use {', '.join([*_DOUBT_ANSWERS, *sorted(_APPROVAL_ANSWERS)])}"
    if call.state is CallState.IN_DOUBT:
        return f"call {call.id} is in doubt: answer {', '.join(_DOUBT_ANSWERS)}"
    if asked:
        return f"call {call.id} needs approval: answer {', '.join(sorted(_APPROVAL_ANSWERS))}"
    if forced:
        return f"call {call.id} was interrupted and has to be made again: answer {_SKIP}, or resume the run"
    if call.answer:
        return f"call {call.id} was answered already, with '{call.answer}': there is nothing to answer"
    return f"call {call.id} is {call.state}: there is nothing to answer"
