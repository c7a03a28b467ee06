"""Leases and the fenced write: who works on a run, and what they may change of it. The heart decides what."""

from __future__ import annotations

from jackline.domain.events import Fact
from jackline.domain.records import Lease, Life, Owner, Run
from jackline.domain.states import TERMINAL, Phase, RunState, StepKind
from jackline.domain.transitions import RUN, next_run, run_sources
from jackline.errors import Busy, CancelWanted, Fenced, Refused, SessionTaken
from jackline.faults import reach
from jackline.store import covering, redacting, rows, spending
from jackline.store.base import RUNNING, Base, add_notice, append, chain_of, fenced_head, lease_values
from jackline.store.contract import Change
from jackline.store.driver import Statements, clean

_STEP_KINDS = {
    Phase.RECOVERING: StepKind.RECOVERY,
    Phase.PLANNING: StepKind.TURN,
    Phase.WORKING: StepKind.TURN,
    Phase.REVIEWING: StepKind.VERDICT,
    Phase.PROVING: StepKind.CHECK,
}
_AFTER_RUNNING = frozenset(after for (before, _), after in RUN.items() if before is RunState.RUNNING)
_LOST = "lost"  # the outcome of an attempt that never said how it ended


class Leases(Base):
    """The part of the store that workers write through."""

    def claim(self, run_id: str, owner: Owner, lease_ms: int, at: int, dead: int | None = None) -> tuple[Lease, Run]:
        """Take the run as a new attempt; a running one only if its lease ran out or its attempt is `dead`."""
        taken = self._driver.write(lambda one: self._claim(one, run_id, owner, lease_ms, at, dead))
        reach("run.claimed")
        return taken

    def _claim(
        self, statements: Statements, run_id: str, owner: Owner, lease_ms: int, at: int, dead: int | None
    ) -> tuple[Lease, Run]:
        run = self._locked(statements, run_id)
        clock = statements.clock()
        _refuse_claim(statements, run, {"id": run_id, **clock}, dead)
        lease = Lease(run_id, clean(owner.name), run.life.attempt + 1)
        end = {"run_id": run_id, "at": at, "outcome": _LOST}
        statements.run("end_attempts", end)
        statements.run("end_steps", end)
        chain = append(statements, run_id, chain_of(run), (_claimed(run, owner),), at, "engine")
        statements.run("take_lease", {**clock, **_taken(run, lease, lease_ms, at), **chain._asdict()})
        statements.run("add_attempt", _attempt(owner, lease, at))
        return lease, self._found(statements, run_id)

    def renew(self, lease: Lease, lease_ms: int, wall_ms: int) -> bool:
        """Move the lease on and add `wall_ms` to what was spent; True if a cancel was requested."""

        def move(statements: Statements) -> bool:
            values = {**lease_values(lease), **statements.clock(), "lease_ms": lease_ms, "wall_ms": wall_ms}
            row = statements.one("renew_lease", values)
            if row is None:
                raise Fenced(lease.run_id)
            return bool(row[0])

        return self._driver.write(move)

    def cancel_wanted(self, run_id: str) -> bool:
        """Whether a cancel was requested: one cheap read."""
        row = self._driver.read(lambda statements: statements.one("cancel_wanted", {"id": clean(run_id)}))
        return row is not None and bool(row[0])

    def note_warden(self, lease: Lease, pid: int, started: int) -> None:
        """Remember the attempt's warden, so that a later attempt can end it."""

        def note(statements: Statements) -> None:
            fenced_head(statements, lease)
            values = {"run_id": lease.run_id, "token": lease.token, "pid": pid, "started": started}
            statements.run("note_warden", values)

        self._driver.write(note)

    def write(self, lease: Lease, change: Change) -> Run:
        """The one fenced write of a worker; gives back the run as it now is, with what others changed."""
        clean_change = redacting.change(self.redactor, change)
        run = self._driver.write(lambda statements: self._write(statements, lease, clean_change))
        reach("advance.committed")
        return run

    def _write(self, statements: Statements, lease: Lease, change: Change) -> Run:
        row = statements.one("lock_run", {"id": clean(lease.run_id)})
        if row is None:
            raise Fenced(lease.run_id)
        run = rows.to_run(row, self._spec(statements, lease.run_id))
        if not _held(run, lease):
            raise Fenced(lease.run_id)
        actor = clean(change.actor)
        chain = append(statements, run.id, chain_of(run), covering.covered(change), change.at, actor)
        run = run._replace(updated_at=change.at, event_seq=chain.event_seq, chain_head=chain.chain_head)
        _put_records(statements, run, change)
        run = _advance(statements, run, lease, change)
        reach("advance.begun")
        return run


def _held(run: Run, lease: Lease) -> bool:
    same = run.owner == lease.owner and run.life.attempt == lease.token
    return same and run.life.state is RunState.RUNNING


def _refuse_claim(statements: Statements, run: Run, values: dict[str, object], dead: int | None) -> None:
    state = run.life.state
    if run.spec.imported:
        raise Refused(f"run {run.id} was imported from {run.spec.imported}: it is kept to be read; start another run")
    if run.spec.unknown:
        names = ", ".join(run.spec.unknown)
        raise Refused(f"run {run.id} was created by a newer jackline and has settings unknown to this one: {names}")
    if state not in run_sources("claim"):
        raise Refused(f"run {run.id} is {state}; nothing reopens it: fork it")
    if state is not RunState.RUNNING or dead == run.life.attempt:
        return
    over = statements.one("lease_over", values)
    if not (over and over[0]):
        raise Busy(run.id, owner=run.owner)


def _claimed(run: Run, owner: Owner) -> Fact:
    takeover = run.life.state is RunState.RUNNING
    data = {"token": run.life.attempt + 1, "owner": owner.name, "host": owner.host, "takeover": takeover}
    return Fact("run.claimed", data)


def _taken(run: Run, lease: Lease, lease_ms: int, at: int) -> dict[str, object]:
    # Who resumes a failed run has changed their mind about cancelling it.
    reopened = run.life.state is RunState.FAILED
    return {
        "id": run.id,
        "state": str(run.life.state),
        "before": run.life.attempt,
        "to": str(next_run(run.life.state, "claim")),
        "phase": str(Phase.RECOVERING),
        "token": lease.token,
        "owner": lease.owner,
        "lease_ms": lease_ms,
        "cancel_requested": int(run.life.cancel_requested and not reopened),
        "at": at,
    }


def _attempt(owner: Owner, lease: Lease, at: int) -> dict[str, object]:
    return {
        **rows.plain(owner),
        "run_id": lease.run_id,
        "token": lease.token,
        "owner": lease.owner,
        "warden_pid": None,
        "warden_started": None,
        "started_at": at,
        "ended_at": None,
        "outcome": None,
    }


def _put_records(statements: Statements, run: Run, change: Change) -> None:
    if change.turn is not None:
        statements.run("put_turn", rows.turn_values(change.turn))
    if change.check is not None:
        statements.run("put_check", rows.plain(change.check))
    if change.session is not None:
        agent, session = change.session
        values = {"run_id": run.id, "agent": clean(agent), "session": clean(session), "at": change.at}
        _take_session(statements, values)
        statements.run("put_session", values)
    if change.health is not None:
        statements.run("put_health", rows.plain(change.health))
    if change.checkpoint is not None:
        statements.run("put_checkpoint", rows.plain(change.checkpoint))
    if change.notice is not None:
        add_notice(statements, change.notice, run.chain_head)
    if change.changes is not None:
        statements.run("put_changes", rows.changes_values(run.id, change.changes, change.at))


def _take_session(statements: Statements, values: dict[str, object]) -> None:
    if values["session"] and statements.run("take_session", values) == 0:
        row = statements.one("owner_of_session", values)
        owner = row[0] if row else "another run"
        raise SessionTaken(values["session"], owner=owner)


def _advance(statements: Statements, run: Run, lease: Lease, change: Change) -> Run:
    """Write the new life; what others change meanwhile (cancel requests, calls, wall time) stays as it is."""
    life = run.life if change.life is None else _kept(run.id, run.life, change.life)
    ended = life.state is not RunState.RUNNING
    finished_at = change.at if life.state in TERMINAL else None
    values = {
        **lease_values(lease),
        **rows.life_values(life),
        "event_seq": run.event_seq,
        "chain_head": run.chain_head,
        "finished_at": finished_at,
        "at": change.at,
    }
    if statements.run("stand_down" if ended else "go_on", values) == 0:
        raise Fenced(lease.run_id)
    spending.add(statements, run, life, change)
    _step(statements, run, life, change)
    if not ended:
        return run._replace(life=life)
    outcome = str(life.reason or life.state)
    statements.run("end_attempts", {"run_id": run.id, "at": change.at, "outcome": outcome})
    return run._replace(life=life, owner=None, finished_at=finished_at)


def _kept(run_id: str, before: Life, wanted: Life) -> Life:
    if wanted.state not in _AFTER_RUNNING:
        raise Refused(f"a running run cannot become {wanted.state}")
    if before.cancel_requested and wanted.state is RunState.WAITING:
        raise CancelWanted(run_id)  # else the request would sleep with the run, and nobody would heed it
    spent = wanted.spent._replace(calls=before.spent.calls, wall_ms=before.spent.wall_ms)
    return wanted._replace(
        attempt=before.attempt,
        cancel_requested=before.cancel_requested,
        detail=clean(wanted.detail),
        agent=wanted.agent or before.agent,
        spent=spent,
    )


def _step(statements: Statements, run: Run, life: Life, change: Change) -> None:
    """A step ends when the next one begins, or the attempt does."""
    grown = life.step > run.life.step
    if grown or life.state is not RunState.RUNNING:
        values = {"run_id": run.id, "at": change.at, "outcome": _outcome(life, change)}
        statements.run("end_steps", values)
    if grown and life.phase is not None:
        kind = str(_STEP_KINDS[life.phase])
        place = {"run_id": run.id, "step": life.step, "attempt": life.attempt}
        statements.run("add_step", {**place, "kind": kind, "at": change.at})


def _outcome(life: Life, change: Change) -> str:
    if change.turn is not None and change.turn.failure:
        return str(change.turn.failure)
    if change.check is not None and change.check.exit_code:
        return "refuted"
    return "ended" if str(life.state) == RUNNING else str(life.state)
