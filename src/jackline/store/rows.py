"""Converts records to rows and rows to records: column names and conversions only, no SQL.

The columns of a record are its stored names (`jackline.named.stored_as`), in their order; a row is read by position.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jackline.domain.events import Event
from jackline.domain.limits import Spent
from jackline.domain.records import Attempt, Call, Check, Checkpoint, Notice, Receipt, Run, RunStatus, Turn
from jackline.domain.spec import Spec
from jackline.domain.states import (
    DEFERRED,
    CallClass,
    CallState,
    Decision,
    Failure,
    Phase,
    Proof,
    Replay,
    RunState,
    WaitReason,
)
from jackline.named import stored_dict, stored_names
from jackline.store.driver import Row, clean

if TYPE_CHECKING:
    from jackline.domain.changes import Changes

PROMPT_SHOWN = 200

_SPENT = stored_names(Spent)
_RUN = ("id", "number", "repository", "lineage", "parent")
_STATUS = (
    "state", "reason", "wake_at", "phase", "goal", "failure", "detail", "proof", "token", "step", "turn",
    "iteration", "retries", "cancel_requested", "agent", "windows",
    "review_round", "rounds_from", "tree",
)  # fmt: skip
_REST = ("owner", "event_seq", "chain_head", "created_at", "updated_at", "started_at", "finished_at", "forked_at")
_LISTED = (
    "runs.id", "number", "repository", "path", "agent", "task", "prompt", "state", "reason", "wake_at",
    "phase", "failure", "proof", "token", "iteration", "tokens_input + tokens_output", "usd_micros",
    "runs.created_at", "updated_at", "started_at", "finished_at", "usd_estimated",
)  # fmt: skip
_CASE = (
    "id", "repository", "path", "user_name", "run_id", "status", "request", "problem", "created_at", "updated_at",
    "hypotheses", "evidence", "commands", "learnings", "closeout", "closed_at", "event_seq", "chain_head",
)  # fmt: skip
_REPORT_RUN = (
    "runs.id", "number", "path", "agent", "task", "prompt", "state", "reason", "wake_at", "phase", "failure",
    "SUBSTR(detail, 1, 400)", "proof", "tokens_input + tokens_output", "usd_micros",
    "runs.created_at", "started_at", "finished_at", "event_seq", "archived_at", "usd_estimated",
)  # fmt: skip
_REPORT_ITEM = (
    "id", "kind", "status", "owner_agent", "priority", "attempts", "max_attempts", "SUBSTR(question, 1, 400)",
    "SUBSTR(notes, 1, 400)", "created_at", "updated_at", "finished_at",
)  # fmt: skip
_TURN = stored_names(Turn)[:-1]  # all but `spent`, which has separate columns

COLUMNS: dict[str, tuple[str, ...]] = {
    "run": (*_RUN, *_STATUS, *_SPENT, *_REST),
    "new_run": (*_RUN, *_STATUS, *_SPENT, *_REST, "task", "prompt", "request"),
    "listed": _LISTED,
    "event": stored_names(Event),
    "attempt": stored_names(Attempt),
    "turn": (*_TURN, *_SPENT),
    "check": stored_names(Check),
    "checkpoint": stored_names(Checkpoint),
    "notice": stored_names(Notice),
    "call": stored_names(Call),
    "receipt": stored_names(Receipt),
    "report_run": _REPORT_RUN,
    "report_item": _REPORT_ITEM,
    "report_learning": ("case_id", "number", "at", "SUBSTR(text, 1, 2000)", "status", "data"),
    "report_event": ("stream", "seq", "at", "kind", "actor", "SUBSTR(data, 1, 400)"),
    "report_move": ("stream", "seq", "at", "kind", "data"),
    "case": _CASE,
}
# The class of a record, imported when a query first names the record.
_LATER = {
    "health": "jackline.domain.agent_health:AgentHealth",
    "message": "jackline.domain.records:Message",
    "iteration": "jackline.domain.review_records:Iteration",
    "verdict": "jackline.domain.review_records:Verdict",
    "finding": "jackline.domain.review_records:Finding",
    "worktree": "jackline.domain.records:RunWorktree",
    "queue_entry": "jackline.store.models:QueueEntry",
    "subject_notice": "jackline.domain.records:SubjectNotice",
    "schedule": "jackline.features.schedules.schedule_model:Schedule",
    "fire": "jackline.features.schedules.schedule_model:Fire",
    "delivery": "jackline.features.notify.delivery_store:Delivery",
    "trigger": "jackline.features.triggers.trigger_model:Trigger",
    "trigger_delivery": "jackline.features.triggers.trigger_model:TriggerDelivery",
    "changes": "jackline.domain.changes:Changes",
    "pull_request": "jackline.domain.pull_request:PullRequest",
    "feedback": "jackline.domain.pull_request:Feedback",
    "service": "jackline.features.service.service_store:ServiceRecord",
    "start_failure": "jackline.features.service.service_store:StartFailure",
    "report_turn": "jackline.features.reports.lines:TurnLine",
    "report_check": "jackline.features.reports.lines:CheckLine",
    "reply_code": "jackline.features.replies.reply_code:ReplyCode",
    "item": "jackline.features.work.work_item:WorkItem",
    "entry": "jackline.features.cases.case_model:CaseEntry",
    "bridge_message": "jackline.features.bridge.bridge_message:BridgeMessage",
    "bridge_reader": "jackline.features.bridge.bridge_message:BridgeReader",
}

_CALL_WORDS = ("call_class", "replay", "decision", "state")  # of closed sets
_SPENT_AT = len(_RUN) + len(_STATUS)
_REST_AT = _SPENT_AT + len(_SPENT)

# Sentences that older versions stored in a turn and compared. Digests cover them, so no migration converts them.
_OLD_DETAILS = {"a call waits for a person's word": DEFERRED}

# A look-up is five times as fast as a call of the class, and every call in the ledger needs four.
_CLASSES = {str(one): one for one in CallClass}
_REPLAYS = {str(one): one for one in Replay}
_DECISIONS = {str(one): one for one in Decision}
_STATES = {str(one): one for one in CallState}


def columns(record: str) -> tuple[str, ...]:
    """The columns of a record, in their order."""
    if record not in COLUMNS:
        from importlib import import_module

        module, _, name = _LATER[record].partition(":")
        COLUMNS[record] = stored_names(getattr(import_module(module), name))
    return COLUMNS[record]


def word(value: str | None) -> str | None:
    """A word of a closed set as plain text."""
    return None if value is None else str(value)


def build_parameters(record: Any) -> dict[str, Any]:  # noqa: ANN401 - any of the records
    """Return a record's fields as parameters by stored name, with storable text."""
    values = {}
    for name, value in stored_dict(record).items():
        # str() because a word of a closed set is a subclass of it, which both drivers bind more slowly.
        values[name] = clean(str(value)) if isinstance(value, str) else value
    return values


def turn_values(turn: Turn) -> dict[str, Any]:
    """A turn as parameters."""
    values = build_parameters(turn)
    del values["spent"]
    return values | stored_dict(turn.spent)


def run_values(run: Run, request: str) -> dict[str, Any]:
    """A new run as parameters."""
    status = run.status
    return {
        "id": run.id,
        "number": run.number,
        "repository": run.repository,
        "lineage": run.lineage,
        "parent": run.parent,
        "owner": run.owner,
        "event_seq": run.event_seq,
        "chain_head": run.chain_head,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "forked_at": run.forked_at,
        **status_values(status),
        **stored_dict(status.spent),
        "state": str(status.state),
        "token": status.attempt,
        "cancel_requested": int(status.cancel_requested),
        "agent": clean(run.agent),
        "task": clean(run.spec.task),
        "prompt": clean(run.spec.prompt[:PROMPT_SHOWN]),
        "request": clean(request),
    }


def status_values(status: RunStatus) -> dict[str, Any]:
    """The columns of a status that a worker may change; cancel requests, calls and wall time belong to others."""
    spent = status.spent
    return {
        "to": str(status.state),
        "reason": word(status.reason),
        "wake_at": status.wake_at,
        "phase": word(status.phase),
        "goal": str(status.goal),
        "failure": word(status.failure),
        "detail": clean(status.detail),
        "proof": str(status.proof),
        "step": status.step,
        "turn": status.turn,
        "iteration": status.iteration,
        "retries": status.retries,
        "agent": clean(status.agent),
        "windows": status.windows,
        "review_round": status.review_round,
        "rounds_from": status.rounds_from,
        "tree": clean(status.tree),
        "iterations": spent.iterations,
        "steps": spent.steps,
        "tokens_input": spent.tokens_input,
        "tokens_output": spent.tokens_output,
        "tokens_cached": spent.tokens_cached,
        "usd_micros": spent.usd_micros,
        "usd_estimated": spent.usd_estimated,
    }


def dump_spec(spec: Spec) -> str:
    """A spec as JSON in plain ASCII, so that no character of a prompt is lost to either database."""
    return json.dumps(spec.to_dict(), separators=(",", ":"))


@lru_cache(maxsize=32)
def parse_spec(text: str) -> Spec:
    """A spec from its JSON; kept, because a service reads a run with one store and claims it with another."""
    return Spec.from_dict(json.loads(text))


def parse_run(row: Row, spec: Spec) -> Run:
    """A run from the columns of `{run}`."""
    run_id, number, repository, lineage, parent = row[: len(_RUN)]
    owner, event_seq, chain_head, created_at, updated_at, started_at, finished_at, forked_at = row[_REST_AT:]
    return Run(
        id=run_id,
        number=number,
        repository=repository,
        lineage=lineage,
        parent=parent,
        spec=spec,
        status=parse_status(row),
        owner=owner,
        event_seq=event_seq,
        chain_head=chain_head,
        created_at=created_at,
        updated_at=updated_at,
        started_at=started_at,
        finished_at=finished_at,
        forked_at=forked_at,
    )


def parse_status(row: Row) -> RunStatus:
    """The status of a run, from the columns of `{run}`."""
    (
        state, reason, wake_at, phase, goal, failure, detail, proof, token, step, turn, iteration, retries,
        cancel_requested, agent, windows, review_round, rounds_from, tree,
    ) = row[len(_RUN) : _SPENT_AT]  # fmt: skip
    return RunStatus(
        state=RunState(state),
        reason=WaitReason(reason) if reason else None,
        wake_at=wake_at,
        phase=Phase(phase) if phase else None,
        goal=Phase(goal),
        failure=Failure(failure) if failure else None,
        detail=detail,
        proof=Proof(proof),
        attempt=token,
        step=step,
        turn=turn,
        iteration=iteration,
        retries=retries,
        cancel_requested=bool(cancel_requested),
        spent=Spent(*row[_SPENT_AT:_REST_AT]),
        agent=agent,
        windows=windows,
        review_round=review_round,
        rounds_from=rounds_from,
        tree=tree,
    )


def call_values(call: Call) -> dict[str, Any]:
    """A call as parameters; its text is storable already."""
    values = stored_dict(call)
    for name in _CALL_WORDS:
        values[name] = str(values[name])
    return values


def parse_call(row: Row) -> Call:
    """A call from the columns of `{call}`."""
    kinds = (_CLASSES[row[7]], _REPLAYS[row[8]], _DECISIONS[row[9]])
    values = [*row[:7], *kinds, *row[10:15], _STATES[row[15]], *row[16:]]
    return Call(*values)


def changes_values(run_id: str, changes: Changes, at: int) -> dict[str, Any]:
    """The changes of a run as parameters."""
    return {**stored_dict(changes), "commits": json.dumps(changes.commits), "run_id": run_id, "at": at}


def parse_changes(row: Row) -> Changes:
    """The changes of a run from the columns of `{changes}`."""
    from jackline.domain.changes import Changes

    return Changes(tuple(json.loads(row[0])), *row[1:])


def parse_turn(row: Row) -> Turn:
    """A turn from the columns of `{turn}`."""
    values = [*row[: len(_TURN)], Spent(*row[len(_TURN) :])]
    turn = Turn(*values)
    return turn._replace(detail=_OLD_DETAILS[turn.detail]) if turn.detail in _OLD_DETAILS else turn
