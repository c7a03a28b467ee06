"""Leases: claims of runs, and the fenced writes of their workers. The run machine decides what is written."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from jackline.crash_points import crash_point
from jackline.domain.events import ENGINE, Fact
from jackline.domain.records import Lease, Owner, Run, RunStatus
from jackline.domain.run_totals import LOST
from jackline.domain.states import TERMINAL, Failure, Phase, Role, RunState, StepKind, format_run_state
from jackline.domain.transitions import RUN, next_run, run_sources
from jackline.errors import Busy, CancelWanted, Fenced, Overtaken, QuestionsAnswered, Refused, SessionTaken
from jackline.store import redaction, rows
from jackline.store.driver import Statements, clean
from jackline.store.models import RunChange
from jackline.store.parts import (
    PingEvent,
    StorePart,
    add_notice,
    add_ping,
    append_events,
    build_lease_values,
    get_chain_end,
    lock_fenced_head,
    read_open_questions,
)
from jackline.store.record_digests import cover, digest_run, digest_step_records
from jackline.store.spending import charge_spending, report_day_budget, settle_reservation

if TYPE_CHECKING:
    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.records import SessionUse

_STEP_KINDS = {
    Phase.RECOVERING: StepKind.RECOVERY,
    Phase.PLANNING: StepKind.TURN,
    Phase.WORKING: StepKind.TURN,
    Phase.REVIEWING: StepKind.VERDICT,
    Phase.PROVING: StepKind.CHECK,
    Phase.PUBLISHING: StepKind.PUBLICATION,
}
# A recovery still has to charge the turn that a dead worker left.
_SPENDING_PHASES = frozenset({Phase.PLANNING, Phase.WORKING, Phase.REVIEWING, Phase.RECOVERING})
_get_covered = attrgetter("state", "reason", "wake_at", "failure", "proof")
_AFTER_RUNNING = frozenset(after for (before, _), after in RUN.items() if before is RunState.RUNNING)


class Leases(StorePart):
    """The part of the store that workers write through."""

    def claim(
        self,
        run_id: str,
        owner: Owner,
        lease_ms: int,
        at: int,
        dead: int | None = None,
        seen: RunStatus | None = None,
        *,
        from_queue: bool = False,
    ) -> tuple[Lease, Run]:
        """Take the run as a new attempt; Busy if it is running, unless its lease ran out or its attempt is `dead`.

        `seen` is the status that the caller knows: Overtaken if another process has ended the run since.
        `from_queue`: not a person but a service continues it. Overtaken if another process has changed the run at all;
        NotStartable if it is the first attempt, and the queue does not let the run start now.
        """

        def take(statements: Statements) -> tuple[Lease, Run]:
            run = self._lock_run(statements, run_id)
            _refuse_overtaken(run, seen, only_as_seen=from_queue)
            if from_queue and run.status.state is RunState.QUEUED and not run.status.attempt:
                self._store.queue.refuse_unstartable(statements, run_id, at)
            if not from_queue:  # a person continues it
                run = run._replace(status=_restart_counts(run.status))
            return self._claim(statements, run, owner, lease_ms, at, dead)

        claimed = self._driver.write(take)
        crash_point("run.claimed")
        return claimed

    def _claim(
        self,
        statements: Statements,
        run: Run,
        owner: Owner,
        lease_ms: int,
        at: int,
        dead: int | None,
    ) -> tuple[Lease, Run]:
        run_id = run.id
        clock = statements.clock()
        refuse_claim(statements, run, {"id": run_id, **clock}, dead)
        lease = Lease(run_id=run_id, owner=clean(owner.name), token=run.status.attempt + 1)
        if run.status.attempt:  # it may have ended without a write
            end = {"run_id": run_id, "at": at, "outcome": LOST}
            statements.run("end_attempts", end)
            statements.run("end_steps", end)
        data = {
            "token": lease.token,
            "owner": owner.name,
            "host": owner.host,
            "takeover": run.status.state is RunState.RUNNING,
        }
        claimed = _claim_run(run, lease, at)
        facts = cover((Fact("run.claimed", data),), digest_run(claimed))
        chain = append_events(statements, run_id, get_chain_end(run), facts, at, ENGINE)
        claimed = claimed._replace(event_seq=chain.event_seq, chain_head=chain.chain_head)
        statements.run("take_lease", {**clock, **_build_claim_values(run, claimed, lease_ms)})
        statements.run("add_attempt", _build_attempt_values(owner, lease, at))
        if lease.token == 1:
            add_ping(statements, PingEvent.START, run_id, "", at)
        return lease, claimed

    def renew(self, lease: Lease, lease_ms: int, wall_ms: int) -> bool:
        """Extend the lease and add `wall_ms` to the time spent; True if a cancel was requested, Fenced if lost."""

        def move(statements: Statements) -> bool:
            values = {**build_lease_values(lease), **statements.clock(), "lease_ms": lease_ms, "wall_ms": wall_ms}
            row = statements.one("renew_lease", values)
            if row is None:
                raise Fenced(lease.run_id)
            return bool(row[0])

        return self._driver.write(move)

    def is_cancel_requested(self, run_id: str) -> bool:
        """Whether a cancel was requested: one cheap read."""
        row = self._one("get_cancel_requested", {"id": clean(run_id)})
        return row is not None and bool(row[0])

    def record_warden(self, lease: Lease, pid: int, started: int) -> None:
        """Record the attempt's warden, so that a later attempt can end it."""

        def note(statements: Statements) -> None:
            lock_fenced_head(statements, lease)
            values = {"run_id": lease.run_id, "token": lease.token, "pid": pid, "started": started}
            statements.run("set_warden", values)

        self._driver.write(note)

    def write_change(self, lease: Lease, change: RunChange) -> Run:
        """The fenced write of a worker; returns the run as it is now.

        Cancel requests, calls and wall time are changed by others and never overwritten by `change.status`. A notice
        without a chain head gets the head of this write. A run whose end was requested meanwhile cannot wait:
        CancelWanted, and nothing is written. One whose agent's questions were answered meanwhile: QuestionsAnswered.
        """
        clean_change = redaction.redact_change(self.redactor, change)
        run = self._driver.write(lambda statements: self._write(statements, lease, clean_change))
        crash_point("advance.committed")
        return run

    def _write(self, statements: Statements, lease: Lease, change: RunChange) -> Run:
        row = statements.one("lock_run", {"id": clean(lease.run_id)})
        if row is None:
            raise Fenced(lease.run_id)
        run = rows.parse_run(row, self._store.get_claimed_spec(statements, lease.run_id))
        if run.owner != lease.owner or run.status.attempt != lease.token or run.status.state is not RunState.RUNNING:
            raise Fenced(lease.run_id)
        status = run.status if change.status is None else _merge_status(run.id, run.status, change.status)
        if change.asks and not read_open_questions(statements, run.id):
            raise QuestionsAnswered(run.id)  # an answer finds the run waiting, or is seen here: both lock its row
        finished_at = change.at if status.state in TERMINAL else None
        after = run._replace(status=status, updated_at=change.at, finished_at=finished_at)
        facts = cover(change.facts, _digest_rows(run, after, change))
        chain = append_events(statements, run.id, get_chain_end(run), facts, change.at, clean(change.actor))
        after = after._replace(event_seq=chain.event_seq, chain_head=chain.chain_head)
        _put_records(statements, after, change)
        _advance(statements, run, after, lease, change)
        crash_point("advance.begun")
        return after if status.state is RunState.RUNNING else after._replace(owner=None)


def _restart_counts(status: RunStatus) -> RunStatus:
    """The status of a run that a person continues: what ends with a person is counted from here."""
    is_lost = status.state is RunState.RUNNING  # a crash is no decision about the reviews
    return status._replace(windows=0, rounds_from=status.rounds_from if is_lost else status.review_round)


def _digest_rows(before: Run, after: Run, change: RunChange) -> dict[str, str]:
    """The digests of the rows that the change writes; of the run's row only if a covered column may have changed."""
    records = dict(digest_step_records(change))
    old, new = before.status, after.status
    if _get_covered(old) != _get_covered(new) or any(fact.kind.startswith("run.") for fact in change.facts):
        if new.state is RunState.RUNNING:  # `advance_run` leaves these columns as they are
            after = after._replace(status=new._replace(reason=old.reason, wake_at=old.wake_at))
        records |= digest_run(after)
    return records


def _claim_run(run: Run, lease: Lease, at: int) -> Run:
    """The run as `take_lease` leaves it."""
    before = run.status
    status = before._replace(
        state=next_run(before.state, "claim"),
        reason=None,
        wake_at=None,
        phase=Phase.RECOVERING,
        failure=None,
        detail="",
        attempt=lease.token,
        # Resuming a failed run withdraws its cancel request.
        cancel_requested=before.cancel_requested and before.state is not RunState.FAILED,
    )
    started_at = at if run.started_at is None else run.started_at
    return run._replace(status=status, owner=lease.owner, updated_at=at, started_at=started_at, finished_at=None)


def _refuse_overtaken(run: Run, seen: RunStatus | None, *, only_as_seen: bool) -> None:
    """Raise Overtaken if another process has ended the run since it was seen; with `only_as_seen`, or changed it."""
    if seen is None:
        return
    now = run.status
    is_taken = (now.state, now.attempt) != (seen.state, seen.attempt)
    if (is_taken and now.state in TERMINAL) or (only_as_seen and (is_taken or now.reason is not seen.reason)):
        raise Overtaken(run.id, state=now.state)


def refuse_claim(statements: Statements, run: Run, values: dict[str, object], dead: int | None) -> None:
    """Raise Refused or Busy unless the run may be claimed now."""
    state = run.status.state
    if run.spec.imported:
        raise Refused(f"run {run.id} was imported from {run.spec.imported}: it is read-only; start another run")
    if run.spec.unknown:
        names = ", ".join(run.spec.unknown)
        raise Refused(f"run {run.id} was created by a newer jackline and has settings unknown to this one: {names}")
    if state not in run_sources("claim"):
        raise Refused(f"run {run.id} {format_run_state(state)} and cannot be resumed: fork it")
    if state is not RunState.RUNNING or dead == run.status.attempt:
        return
    over = statements.one("lease_over", values)
    if not (over and over[0]):
        raise Busy(run.id, owner=run.owner)


def _build_claim_values(before: Run, claimed: Run, lease_ms: int) -> dict[str, object]:
    status = claimed.status
    return {
        "id": before.id,
        "state": str(before.status.state),
        "before": before.status.attempt,
        "to": str(status.state),
        "phase": rows.word(status.phase),
        "token": status.attempt,
        "owner": claimed.owner,
        "lease_ms": lease_ms,
        "cancel_requested": int(status.cancel_requested),
        "windows": status.windows,
        "rounds_from": status.rounds_from,
        "event_seq": claimed.event_seq,
        "chain_head": claimed.chain_head,
        "at": claimed.updated_at,
    }


def _build_attempt_values(owner: Owner, lease: Lease, at: int) -> dict[str, object]:
    return {
        **rows.build_parameters(owner),
        "run_id": lease.run_id,
        "token": lease.token,
        "owner": lease.owner,
        "warden_pid": None,
        "warden_started": None,
        "started_at": at,
        "ended_at": None,
        "outcome": None,
    }


def _put_records(statements: Statements, run: Run, change: RunChange) -> None:
    if change.turn is not None:
        statements.run("put_turn", rows.turn_values(change.turn))
        if change.last_message:
            statements.run("give_messages", {"run_id": run.id, "turn": change.turn.number, "last": change.last_message})
    if change.check is not None:
        statements.run("put_check", rows.build_parameters(change.check))
    if change.session is not None:
        _put_session(statements, run.id, change.session, change.at)
    _put_review(statements, change)
    _put_pull_request(statements, run.id, change)
    if change.health is not None:
        _put_health(statements, run.id, change.health, is_reported=change.notice is not None)
    if change.checkpoint is not None:
        statements.run("put_checkpoint", rows.build_parameters(change.checkpoint))
    if change.notice is not None:
        add_notice(statements, change.notice, run.chain_head)
    if change.changes is not None:
        statements.run("put_changes", rows.changes_values(run.id, change.changes, change.at))


def _put_session(statements: Statements, run_id: str, use: SessionUse, at: int) -> None:
    values = {**use._asdict(), "run_id": run_id, "agent": clean(use.agent), "session": clean(use.session), "at": at}
    if use.session and statements.run("take_session", values) == 0:
        owner = statements.one("owner_of_session", values)
        raise SessionTaken(str(values["session"]), owner=owner[0] if owner else "another run")
    statements.run("put_review_session" if use.role == Role.REVIEW else "put_session", values)


def _put_review(statements: Statements, change: RunChange) -> None:
    if change.iteration is not None:
        statements.run("put_iteration", rows.build_parameters(change.iteration))
    if change.verdict is not None:
        statements.run("put_verdict", rows.build_parameters(change.verdict))
    for finding in change.findings:
        statements.run("put_finding", rows.build_parameters(finding))


def _put_pull_request(statements: Statements, run_id: str, change: RunChange) -> None:
    if change.pull_request is not None:
        statements.run("put_pull_request", rows.build_parameters(change.pull_request))
    for one in change.feedback:
        statements.run("add_feedback", rows.build_parameters(one))
    if change.turn is not None and change.turn.ended_at is None and change.turn.role == Role.WORK:
        statements.run("give_feedback", {"run_id": run_id, "turn": change.turn.number})  # its prompt has all of it


def _put_health(statements: Statements, run_id: str, health: AgentHealth, *, is_reported: bool) -> None:
    """Store an agent's health; an agent that is not logged in is a notice, unless the run's own notice reports that."""
    if health.failure == Failure.AUTHENTICATION and not is_reported:
        known = {agent: failure for agent, failure, *_ in statements.all("all_health", {})}
        if known.get(health.agent) != health.failure:
            from jackline.domain.notices import build_log_in_notice

            notice = build_log_in_notice(health, run_id)
            statements.run("add_subject_notice", rows.build_parameters(notice))
    statements.run("put_health", rows.build_parameters(health))


def _advance(statements: Statements, before: Run, after: Run, lease: Lease, change: RunChange) -> None:
    """Write the new status; columns that others change meanwhile (cancel requests, calls, wall time) stay."""
    status = after.status
    is_ended = status.state is not RunState.RUNNING
    values = {
        **build_lease_values(lease),
        **rows.status_values(status),
        "event_seq": after.event_seq,
        "chain_head": after.chain_head,
        "finished_at": after.finished_at,
        "at": change.at,
    }
    if statements.run("park_or_finish_run" if is_ended else "advance_run", values) == 0:
        raise Fenced(lease.run_id)
    # `after` may already name the agent that takes over.
    agent = change.turn.agent if change.turn is not None else before.agent
    has_ended = change.turn is not None and change.turn.ended_at is not None
    day = None
    if has_ended or (change.status is not None and status.phase not in _SPENDING_PHASES):
        day = settle_reservation(statements, after.id)
    charge_spending(statements, agent, change.at, status.spent, before.status.spent, day)
    if change.day_budget:
        report_day_budget(statements, day, change.day_budget, change.at)
    _write_step(statements, before, status, change)
    if is_ended:
        outcome = str(status.reason or status.state)
        statements.run("end_attempts", {"run_id": after.id, "at": change.at, "outcome": outcome})


def _merge_status(run_id: str, before: RunStatus, wanted: RunStatus) -> RunStatus:
    if wanted.state not in _AFTER_RUNNING:
        raise Refused(f"a running run cannot become {wanted.state}")
    if before.cancel_requested and wanted.state is RunState.WAITING:
        raise CancelWanted(run_id)  # else the request would wait with the run, and no worker would see it
    spent = wanted.spent._replace(calls=before.spent.calls, wall_ms=before.spent.wall_ms)
    return wanted._replace(
        attempt=before.attempt,
        cancel_requested=before.cancel_requested,
        detail=clean(wanted.detail),
        agent=wanted.agent or before.agent,
        spent=spent,
    )


def _write_step(statements: Statements, run: Run, status: RunStatus, change: RunChange) -> None:
    """A step ends when the next one begins or the attempt ends."""
    grown = status.step > run.status.step
    if grown or status.state is not RunState.RUNNING:
        outcome = "ended" if status.state is RunState.RUNNING else str(status.state)
        if change.turn is not None and change.turn.failure:
            outcome = str(change.turn.failure)
        elif change.check is not None and change.check.exit_code:
            outcome = "refuted"
        statements.run("end_steps", {"run_id": run.id, "at": change.at, "outcome": outcome})
    if grown and status.phase is not None:
        step = {"run_id": run.id, "step": status.step, "attempt": status.attempt}
        kind = str(_STEP_KINDS[status.phase])
        statements.run("add_step", {**step, "kind": kind, "at": change.at})
