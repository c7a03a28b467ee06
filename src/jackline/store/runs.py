"""Runs: create, cancel, find and list them. Claims and the writes of workers are in `leases`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.crash_points import crash_point
from jackline.domain.agent_ref import MARK
from jackline.domain.events import ENGINE, GENESIS, PERSON, Fact
from jackline.domain.ids import as_number, repository_id
from jackline.domain.records import Repository, Run, RunStatus
from jackline.domain.states import TERMINAL, CallClass, CallState, RunState, WaitReason, format_run_state
from jackline.errors import Conflict, Refused
from jackline.named import NamedTuple
from jackline.store import rows
from jackline.store.driver import RetryTransaction, Row, Statements, clean
from jackline.store.models import RunMark, RunSummary
from jackline.store.parts import StorePart, add_notice, append_events, append_run_events, build_not_found, get_chain_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.records import Call, Notice
    from jackline.store.models import NewRun, QueueOptions, RunQuery, TmuxSession

_LAST = "\U0010ffff"  # sorts after every other character, byte by byte
_REPEATS_FREELY = frozenset({CallClass.READ, CallClass.LOCAL})


class IdleEnd(NamedTuple):
    """How a run that no worker has is cancelled."""

    at: int
    notice_id: str
    detail: str
    data: Mapping[str, object]  # of the event
    actor: str


class RunStore(StorePart):
    """The part of the store that creates runs, finds them, and ends those without a worker."""

    def create(self, new: NewRun, at: int, queue: QueueOptions | None = None) -> tuple[Run, bool]:
        """The run and whether it is new; Conflict if another request has the id, NotFound if the parent is unknown.

        With `queue`, a service starts it. If a run with the same dedupe key has not ended, that one is returned.
        """
        return self.create_all([(new, queue)], at)[0]

    def create_all(self, wanted: Sequence[tuple[NewRun, QueueOptions | None]], at: int) -> list[tuple[Run, bool]]:
        """Create several runs in one transaction: all of them, or none."""
        from jackline.store import redaction

        redacted = [(redaction.redact_new_run(self.redactor, new), queue) for new, queue in wanted]
        created = self._driver.write(
            lambda statements: [
                self._create(statements, new, at, queue, position) for position, (new, queue) in enumerate(redacted)
            ]
        )
        crash_point("run.created")
        return created

    def _create(
        self, statements: Statements, new: NewRun, at: int, queue: QueueOptions | None, position: int
    ) -> tuple[Run, bool]:
        known = statements.one("get_request", {"id": new.id})
        if known is not None:
            if known[0] not in (clean(new.request), *new.old_requests):
                raise Conflict(new.id)
            return self._get_run(statements, new.id), False
        owner = self._store.queue.find_dedupe_owner(statements, queue.dedupe) if queue else None
        if owner is not None:
            return self._get_run(statements, owner), False
        lineage = new.id if new.parent is None else self._get_run(statements, new.parent).lineage
        run = _build_run(statements, new, lineage, at)
        if statements.run("add_run", rows.run_values(run, new.request)) == 0:
            raise RetryTransaction  # another process created the same id since we looked
        spec = rows.dump_spec(new.spec)
        statements.run("add_spec", {"run_id": run.id, "spec": spec})
        chain = append_run_events(statements, run, (_build_created(run, spec),), at, ENGINE)
        if new.ping:
            statements.run("add_ping", {"run_id": run.id, "url": clean(new.ping)})
        if run.spec.worktree.name:
            self._store.worktrees.add_within(statements, run)
        if queue is not None:
            self._store.queue.add_within(statements, run.id, queue, at, position)
        return run._replace(event_seq=chain.event_seq, chain_head=chain.chain_head), True

    def request_cancel(self, run_id: str, at: int, notice_id: str) -> Run:
        """Ask a running run to stop, or end one that is queued or waiting, with a notice; a terminal state refuses.

        If the run is ended here, its calls without an outcome are settled: no worker will come back for them.
        """
        return self._driver.write(lambda statements: self._cancel(statements, run_id, at, notice_id))

    def _cancel(self, statements: Statements, run_id: str, at: int, notice_id: str) -> Run:
        run = self._lock_run(statements, run_id)
        state = run.status.state
        if state in TERMINAL:
            raise Refused(f"run {run_id} {format_run_state(state)}: there is nothing to cancel")
        if state is not RunState.RUNNING:
            end = IdleEnd(at=at, notice_id=notice_id, detail=run.status.detail, data={"by": "request"}, actor=PERSON)
            return self.end_idle(statements, run, end)
        if not run.status.cancel_requested:  # only its worker may end it
            chain = append_events(statements, run_id, get_chain_end(run), (Fact("cancel.requested"),), at, PERSON)
            statements.run("request_cancel", {"id": run_id, "state": str(state), "at": at, **chain._asdict()})
        return self._get_run(statements, run_id)

    def put_tmux_session(self, run_id: str, session: TmuxSession) -> None:
        """Store the terminal session in which the run is started, instead of an earlier one."""
        values = {"run_id": clean(run_id), **session._asdict()}
        self._driver.write(lambda statements: statements.run("put_tmux_session", values))

    def end_idle(self, statements: Statements, run: Run, end: IdleEnd) -> Run:
        """Cancel a locked run that no worker has, with a notice; its calls without an outcome are settled."""
        from jackline.domain.notices import build_notice
        from jackline.domain.transitions import next_run
        from jackline.store.record_digests import cover, digest_run

        before, after = run.status.state, next_run(run.status.state, "cancel")
        status = run.status._replace(state=after, reason=None, wake_at=None)
        settled = _settle_open_calls(statements, run.id, end.at)
        digests = digest_run(run._replace(status=status, finished_at=end.at))
        facts = cover((*settled, Fact(f"run.{after}", end.data)), digests)
        chain = append_events(statements, run.id, get_chain_end(run), facts, end.at, end.actor)
        values = {"id": run.id, "state": str(before), "to": str(after), "detail": clean(end.detail), "at": end.at}
        statements.run("cancel_idle_run", {**values, **chain._asdict()})
        run = self._get_run(statements, run.id)
        notice = build_notice(end.notice_id, run.id, run.spec, run.status, end.at)
        if notice is not None:
            add_notice(statements, _mention_open_effects(statements, notice), run.chain_head)
        return run

    def get(self, run_id: str) -> Run | None:
        """One run by its whole id."""

        def read(statements: Statements) -> Run | None:
            row = statements.one("get_run", {"id": clean(run_id)})
            return None if row is None else self._to_run(statements, clean(run_id), row)

        return self._driver.read(read)

    def is_known(self, run_id: str, dedupe: str = "") -> bool:
        """Whether a run has this id, or has this dedupe key and has not ended."""

        def read(statements: Statements) -> bool:
            if statements.one("get_request", {"id": clean(run_id)}) is not None:
                return True
            return bool(dedupe) and self._store.queue.find_dedupe_owner(statements, dedupe) is not None

        return self._driver.read(read)

    def get_mark(self, run_id: str) -> RunMark:
        """What changes when a run is answered, continued or ended: one cheap row."""
        row = self._one("get_run_mark", {"id": clean(run_id)})
        if row is None:
            raise build_not_found(run_id)
        state, reason, event_seq, attempt, wake_at = row
        return RunMark(
            state=RunState(state),
            reason=WaitReason(reason) if reason else None,
            event_seq=event_seq,
            attempt=attempt,
            wake_at=wake_at,
        )

    def find_matching(self, text: str, repository: str | None, limit: int = 10) -> list[RunSummary]:
        """Runs whose id is `text`; else whose number (`#12`) it is; else whose id begins or ends with it.

        `repository` is an id (see `domain.ids`); without it no number is looked for.
        """
        wanted, number = clean(text), as_number(clean(text))

        def read(statements: Statements) -> list[Row]:
            found = statements.all("find_run", {"id": wanted})
            if not found and number is not None and repository is not None:
                found = statements.all("find_number", {"repository": repository, "number": number})
            if not found and wanted:
                found = statements.all("find_prefix", {"low": wanted, "high": wanted + _LAST, "limit": limit})
                known = {row[0] for row in found}
                ending = statements.all("find_suffix", {"end": wanted, "limit": limit})
                found = [*found, *(row for row in ending if row[0] not in known)][:limit]
            return found

        return [RunSummary(*row) for row in self._driver.read(read)]

    def list_page(self, query: RunQuery) -> list[RunSummary]:
        """Newest first; the cost does not grow with the number of runs."""

        def read(statements: Statements) -> list[Row]:
            sql, values = build_listing(query, _list_agents(statements, query.agent))
            return statements.listing(sql, values)

        return [RunSummary(*row) for row in self._driver.read(read)]

    def list_repositories(self) -> list[Repository]:
        """Every repository in which a run was created."""
        return [Repository(*row) for row in self._all("all_repositories", {})]

    def list_ancestors(self, run_id: str) -> list[tuple[str, int | None]]:
        """The runs that this one was forked from, nearest first, each with the last step that the fork knows."""
        return [(parent, step) for parent, step in self._all("ancestors", {"run_id": clean(run_id)})]


def _build_run(statements: Statements, new: NewRun, lineage: str, at: int) -> Run:
    path = clean(new.repository)
    repository = repository_id(path)
    statements.run("add_repository", {"id": repository, "path": path, "at": at})
    number = (statements.one("take_number", {"id": repository}) or (0,))[0]
    forked_at = None if new.parent is None else new.forked_at
    names = (new.id, number, repository, lineage, new.parent)
    return Run(*names, new.spec, RunStatus(agent=new.spec.agent), None, 0, GENESIS, at, at, forked_at=forked_at)


def _build_created(run: Run, spec: str) -> Fact:
    """The first event of a run. The digest of the spec shows a policy that was altered after the run began."""
    from jackline.store.record_digests import RECORDS, digest_run, digest_text

    data = {"number": run.number, "agent": run.spec.agent, "task": run.spec.task, "parent": run.parent}
    fork = {} if run.forked_at is None else {"forked_at": run.forked_at, "lineage": run.lineage}
    return Fact("run.created", {**data, **fork, "spec": digest_text(spec), RECORDS: digest_run(run)})


# calls without an outcome, when their run is cancelled


def _read_open_calls(statements: Statements, run_id: str) -> list[Call]:
    from jackline.store.calls import WORDS

    return [rows.parse_call(row) for row in statements.all("open_calls", {**WORDS, "run_id": run_id})]


def _settle_open_calls(statements: Statements, run_id: str, at: int) -> tuple[Fact, ...]:
    """Settle the calls that are still prepared: one that may have happened is in doubt, the rest are given up."""
    from jackline.domain.transitions import next_call
    from jackline.store.ledger import build_outcome
    from jackline.store.ledger_events import build_settled

    facts = []
    for call in _read_open_calls(statements, run_id):
        if call.state is CallState.PREPARED:
            state = next_call(call.state, "abandon" if call.call_class in _REPEATS_FREELY else "doubt")
            ended = None if state is CallState.IN_DOUBT else at
            settled = call._replace(state=state, reason="its run was cancelled", finished_at=ended)
            statements.run("settle_call", build_outcome(settled, call.state))
            facts.append(build_settled(settled, "cancel"))
    return tuple(facts)


def _mention_open_effects(statements: Statements, notice: Notice) -> Notice:
    """The notice of the run's end, with the number of effects whose outcome is unknown."""
    count = sum(call.call_class is CallClass.EFFECT for call in _read_open_calls(statements, notice.run_id))
    if not count:
        return notice
    stay = f"{count} effect stays" if count == 1 else f"{count} effects stay"
    line = f"{stay} in doubt: jackline receipts {notice.run_id}"
    return notice._replace(body=f"{notice.body}\n{line}" if notice.body else line)


# the list of runs

_PLACE = "runs.id AS id, runs.created_at AS created_at"
# From the few runs of the session to their rows, never through all the newest runs until one matches.
_FROM_SESSION = (
    "(SELECT run_id FROM sessions WHERE session = :session UNION "
    "SELECT run_id FROM review_sessions WHERE session = :session) AS owners CROSS JOIN runs"
)


def _list_agents(statements: Statements, agent: str | None) -> tuple[str, ...]:
    """The agent and those of its accounts that have runs: one look into the index for each."""
    if agent is None or MARK in agent:
        return () if agent is None else (agent,)
    found, after = [agent], f"{agent}{MARK}"
    while row := statements.one("next_agent", {"after": clean(after), "before": clean(f"{agent}{chr(ord(MARK) + 1)}")}):
        if row[0] is None:
            break
        found.append(after := str(row[0]))
    return tuple(found)


def build_listing(query: RunQuery, agents: tuple[str, ...] = ()) -> tuple[str, dict[str, object]]:
    """The SQL of a page of the list, and its parameters; `agents` are the references that count as the query's agent.

    Every part reads one index from its newest end and stops after a page, so that the cost does not grow with the
    number of runs. Several states are several parts that are merged: `IN (...)` would sort everything that matches.
    """
    values: dict[str, object] = {"limit": max(0, query.limit)}
    shared = _build_conditions(query, values)
    states = {f"state_{place}": str(state) for place, state in enumerate(dict.fromkeys(query.states))}
    named = agents or (() if query.agent is None else (query.agent,))
    values |= {f"agent_{place}": clean(agent) for place, agent in enumerate(named)}
    conditions: list[list[str]] = [[f"runs.agent = :agent_{place}"] for place in range(len(named))] or [[]]
    if states:
        conditions = [[*one, f"runs.state = :{name}"] for one in conditions for name in states]
    build_part = _build_part if query.session is None else _build_session_part
    found = " UNION ALL ".join(build_part([*shared, *one]) for one in conditions)
    return (
        f"SELECT {', '.join(rows.columns('listed'))} FROM ("  # noqa: S608 - values are parameters
        f"SELECT id FROM ({found}) AS merged ORDER BY created_at DESC, id DESC LIMIT :limit) AS found "
        "JOIN runs ON runs.id = found.id JOIN repositories AS places ON places.id = runs.repository "
        "ORDER BY runs.created_at DESC, runs.id DESC"
    ), values | states


def _build_part(conditions: list[str]) -> str:
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    order = "ORDER BY runs.created_at DESC, runs.id DESC LIMIT :limit"
    return f"SELECT id, created_at FROM (SELECT {_PLACE} FROM runs{where} {order}) AS part"  # noqa: S608


def _build_session_part(conditions: list[str]) -> str:
    return f"SELECT {_PLACE} FROM {_FROM_SESSION} WHERE {' AND '.join(conditions)}"  # noqa: S608


def _build_conditions(query: RunQuery, values: dict[str, object]) -> list[str]:
    conditions = []
    for name in ("task", "repository"):
        value = getattr(query, name)
        if value is not None:
            conditions.append(f"runs.{name} = :{name}")
            values[name] = clean(value)
    if query.session is not None:
        conditions.append("runs.id = owners.run_id")
        values["session"] = clean(query.session)
    if query.since is not None:
        conditions.append("runs.created_at >= :since")
        values["since"] = query.since
    if query.before is not None:
        conditions.append("(runs.created_at, runs.id) < (:before_at, :before_id)")
        values["before_at"], values["before_id"] = query.before
    return conditions
