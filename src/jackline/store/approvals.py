"""A person's word on a call, or a timeout's, and the run that wakes when nothing else is open. It runs nothing."""

from __future__ import annotations

from jackline.crash_points import crash_point
from jackline.domain.events import Fact
from jackline.domain.records import Call, Lease, Receipt, Run
from jackline.domain.states import CallClass, CallState, Decision, RunState, WaitReason
from jackline.domain.transitions import next_run
from jackline.errors import Refused
from jackline.store import ledger_events, rows
from jackline.store.calls import WORDS
from jackline.store.driver import RetryTransaction, Statements
from jackline.store.ledger import next_state, read_call, write_receipt
from jackline.store.parts import RUNNING, ChainEnd, StorePart, append_events, get_chain_end, lock_fenced_head
from jackline.store.record_digests import cover, digest_run

_PERSON = "person"
_TIMEOUT = "timeout"
_OF_DOUBT = {"happened": "happened", "did-not": "did_not", "retry": "did_not", "skip": "abandon"}
_OF_ASKED = frozenset({"allow", "deny"})
_OF_CUT_OFF = "skip"
_WOKEN = frozenset({WaitReason.IN_DOUBT, WaitReason.APPROVAL, WaitReason.HUMAN})


class Approvals(StorePart):
    """The part of the store that people write through."""

    def answer(self, run_id: str, call_id: str, verdict: str, at: int) -> tuple[Call, Run]:
        """A person's word on a call: happened, did-not, retry, skip (in doubt); allow, deny (asked).

        Of one that was cut off and is to be made again: skip.
        """
        answered = self._driver.write(lambda one: self._answer(one, run_id, call_id, verdict, at))
        crash_point("call.judged")
        return answered

    def _answer(self, statements: Statements, run_id: str, call_id: str, verdict: str, at: int) -> tuple[Call, Run]:
        run = self._locked(statements, run_id)
        if run.status.state is RunState.RUNNING and not _over(statements, run_id):
            busy = f"run {run_id} is being worked on by {run.owner}: answer when it waits"
            raise Refused(f"{busy}; if that one is dead, resume the run first")
        call = read_call(statements, run_id, call_id)
        call, fact = _judged(statements, call, verdict, at)
        chain = append_events(statements, run_id, get_chain_end(run), (fact,), at, _PERSON)
        self._move_on(statements, run, chain, at)
        return call, self._found(statements, run_id)

    def expire(self, lease: Lease, at: int, verdict: str, older_than: int) -> list[Call]:
        """Answer what a person was asked before `older_than` and has not answered, with `allow` or `deny`."""
        if verdict not in _OF_ASKED:
            raise Refused(
                f"'{verdict}' is no answer to a call that was asked for: say {' or '.join(sorted(_OF_ASKED))}"
            )
        return self._driver.write(lambda one: _expire(one, lease, at, verdict, older_than))

    def _move_on(self, statements: Statements, run: Run, chain: ChainEnd, at: int) -> None:
        waits = run.status.state is RunState.WAITING and run.status.reason in _WOKEN
        if not waits or _unanswered(statements, run):
            values = {"id": run.id, "after": run.event_seq, "at": at, **chain._asdict()}
            statements.run("move_chain", values)
            return
        queued = next_run(run.status.state, "wake")
        woken = run._replace(status=run.status._replace(state=queued, reason=None, wake_at=None))
        facts = cover((Fact(f"run.{queued}", {"by": "answer"}),), digest_run(woken))
        chain = append_events(statements, run.id, chain, facts, at, _PERSON)
        values = {"id": run.id, "state": str(run.status.state), "to": str(queued), "at": at, **chain._asdict()}
        statements.run("queue_waiting_run", values)


def _expire(statements: Statements, lease: Lease, at: int, verdict: str, older_than: int) -> list[Call]:
    head = lock_fenced_head(statements, lease)
    asked = [rows.parse_call(row) for row in statements.all("asked_calls", {**WORDS, "run_id": lease.run_id})]
    # One word for each question: it answers also those who asked the same again, and later.
    late = {call.key: call for call in reversed(asked) if call.prepared_at < older_than}
    judged = [_asked_judged(statements, call, verdict, at, _TIMEOUT) for call in late.values()]
    if not judged:
        return []
    told = [fact for _, fact in judged]
    chain = append_events(statements, lease.run_id, ChainEnd(head.event_seq, head.chain_head), told, at, _TIMEOUT)
    values = {"id": lease.run_id, "owner": lease.owner, "token": lease.token, "running": RUNNING, "at": at}
    moved = {"after": head.event_seq, "calls": head.calls, **chain._asdict()}
    if statements.run("move_head", values | moved) == 0:
        raise RetryTransaction
    return [call._replace(answer=verdict, finished_at=at) for call in asked if call.key in late]


def _over(statements: Statements, run_id: str) -> bool:
    row = statements.one("lease_over", {"id": run_id, **statements.clock()})
    return row is not None and bool(row[0])


def _judged(statements: Statements, call: Call, verdict: str, at: int) -> tuple[Call, Fact]:
    if verdict in _OF_DOUBT and call.state is CallState.IN_DOUBT:
        return _doubt_judged(statements, call, verdict, at)
    asked = call.state is CallState.DENIED and call.decision is Decision.ASK and not call.answer
    if verdict in _OF_ASKED and asked:
        return _asked_judged(statements, call, verdict, at)
    forced = call.id in _forced(statements, call.run_id)
    if verdict == _OF_CUT_OFF and forced:
        return _cut_off_judged(statements, call, verdict, at)
    raise Refused(_unfitting(call, verdict, asked=asked, forced=forced))


def _doubt_judged(statements: Statements, call: Call, verdict: str, at: int) -> tuple[Call, Fact]:
    judged = call._replace(state=next_state(call.id, call.state, _OF_DOUBT[verdict]), answer=verdict, finished_at=at)
    words = {"state": str(call.state), "to": str(judged.state), "answer": verdict}
    statements.run("judge_call", {"run_id": call.run_id, "id": call.id, **words, "at": at})
    receipt: Receipt | bool | None = None
    if judged.state is CallState.DONE and judged.call_class is CallClass.EFFECT:
        receipt = write_receipt(statements, judged, "", _PERSON, at)
    fact = ledger_events.build_settled(judged, _PERSON, receipt=receipt)
    return judged, Fact(fact.kind, {**fact.data, "answer": verdict})


def _asked_judged(statements: Statements, call: Call, verdict: str, at: int, by: str = _PERSON) -> tuple[Call, Fact]:
    values = {
        "run_id": call.run_id,
        "key": call.key,
        "denied": str(call.state),
        "ask": str(call.decision),
        "answer": verdict,
        "at": at,
    }
    asked = [rows.parse_call(row) for row in statements.all("asked_calls", {**WORDS, "run_id": call.run_id})]
    same = [one._replace(answer=verdict, finished_at=at) for one in asked if one.key == call.key]
    statements.run("answer_asked", values)
    fact = ledger_events.build_answered(call, same, verdict, by)
    return call._replace(answer=verdict, finished_at=at), fact


def _cut_off_judged(statements: Statements, call: Call, verdict: str, at: int) -> tuple[Call, Fact]:
    """Nothing waits for it any more; what it is does not change, because nothing happened."""
    words = {"state": str(call.state), "to": str(call.state), "answer": verdict}
    statements.run("judge_call", {"run_id": call.run_id, "id": call.id, **words, "at": at})
    judged = call._replace(answer=verdict, finished_at=at)
    return judged, ledger_events.build_answered(call, (judged,), verdict, _PERSON)


def _forced(statements: Statements, run_id: str) -> set[str]:
    return {rows.parse_call(row).id for row in statements.all("forced_calls", {**WORDS, "run_id": run_id})}


def _unanswered(statements: Statements, run: Run) -> bool:
    if run.status.reason is WaitReason.HUMAN:
        return bool(_forced(statements, run.id))
    row = statements.one("count_unanswered", {**WORDS, "run_id": run.id, "strict": int(run.spec.strict)})
    return row is not None and row[0] > 0


def _unfitting(call: Call, verdict: str, *, asked: bool, forced: bool) -> str:
    if verdict not in _OF_DOUBT and verdict not in _OF_ASKED:
        return f"'{verdict}' is no answer: say {', '.join([*_OF_DOUBT, *sorted(_OF_ASKED)])}"
    if call.state is CallState.IN_DOUBT:
        return f"call {call.id} is in doubt: answer {', '.join(_OF_DOUBT)}"
    if asked:
        return f"call {call.id} was asked for: answer {' or '.join(sorted(_OF_ASKED))}"
    if forced:
        return f"call {call.id} was cut off and is to be made again: answer {_OF_CUT_OFF}, or resume the run"
    if call.answer:
        return f"call {call.id} was answered already, with '{call.answer}': there is nothing to answer"
    return f"call {call.id} is {call.state}: there is nothing to answer"
