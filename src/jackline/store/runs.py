"""Runs: created once, cancelled by request. Who works on them: `store.leases`; how they are found: `store.finding`."""

from __future__ import annotations

from jackline.domain.events import GENESIS, Fact
from jackline.domain.evidence import RECORDS, digest
from jackline.domain.notices import notice_of
from jackline.domain.records import Life, Run
from jackline.domain.repository import repository_id
from jackline.domain.states import TERMINAL, RunState
from jackline.domain.transitions import next_run
from jackline.errors import Conflict, Refused
from jackline.faults import reach
from jackline.store import leaving, redacting, rows
from jackline.store.base import Base, add_notice, append, chain_of
from jackline.store.contract import NewRun
from jackline.store.driver import Again, Statements, clean


class Runs(Base):
    """The part of the store that makes runs, and ends those that nobody works on."""

    def create_run(self, new: NewRun, at: int) -> tuple[Run, bool]:
        """The run and whether it is new; Conflict if the id is taken by another request."""
        clean_run = redacting.new_run(self.redactor, new)
        made = self._driver.write(lambda statements: self._create(statements, clean_run, at))
        reach("run.created")
        return made

    def _create(self, statements: Statements, new: NewRun, at: int) -> tuple[Run, bool]:
        known = statements.one("get_request", {"id": new.id})
        if known is not None:
            if known[0] not in (clean(new.request), new.old_request):
                raise Conflict(new.id)
            return self._found(statements, new.id), False
        run = self._new_run(statements, new, at)
        if statements.run("add_run", rows.run_values(run, new.request)) == 0:
            raise Again  # the same id was made by somebody else since we looked
        spec = rows.spec_text(new.spec)
        statements.run("add_spec", {"run_id": run.id, "spec": spec})
        chain = append(statements, run.id, chain_of(run), (_created(run, spec),), at, "engine")
        statements.run("move_chain", {"id": run.id, "after": run.event_seq, "at": at, **chain._asdict()})
        self._specs[run.id] = new.spec
        return run._replace(event_seq=chain.event_seq, chain_head=chain.chain_head), True

    def _new_run(self, statements: Statements, new: NewRun, at: int) -> Run:
        lineage = new.id if new.parent is None else self._found(statements, new.parent).lineage
        path = clean(new.repository)
        repository = repository_id(path)
        statements.run("add_repository", {"id": repository, "path": path, "at": at})
        number = (statements.one("take_number", {"id": repository}) or (0,))[0]
        names = (new.id, number, repository, lineage, new.parent)
        forked_at = None if new.parent is None else new.forked_at
        life = Life(agent=new.spec.agent)
        return Run(*names, new.spec, life, None, 0, GENESIS, at, at, forked_at=forked_at)

    def request_cancel(self, run_id: str, at: int, notice_id: str) -> Run:
        """Ask a running run to stop, or end one that is queued or waiting; Refused by a terminal state."""
        return self._driver.write(lambda statements: self._cancel(statements, run_id, at, notice_id))

    def _cancel(self, statements: Statements, run_id: str, at: int, notice_id: str) -> Run:
        run = self._locked(statements, run_id)
        if run.life.state in TERMINAL:
            raise Refused(f"run {run_id} is {run.life.state} already: there is nothing to cancel")
        if run.life.state is RunState.RUNNING and run.life.cancel_requested:
            return run
        asked = run.life.state is RunState.RUNNING  # its worker ends it; nobody else may
        after = run.life.state if asked else next_run(run.life.state, "cancel")
        fact = Fact("cancel.requested") if asked else Fact(f"run.{after}", {"by": "request"})
        left = () if asked else leaving.settle_open(statements, run_id, at)
        chain = append(statements, run_id, chain_of(run), (*left, fact), at, "person")
        values = {"id": run_id, "state": str(run.life.state), "to": str(after), "at": at, **chain._asdict()}
        statements.run("ask_cancel" if asked else "end_idle", values)
        run = self._found(statements, run_id)
        notice = notice_of(notice_id, run_id, run.spec, run.life, at)
        if notice is not None:
            add_notice(statements, leaving.told(statements, notice), run.chain_head)
        return run


def _created(run: Run, spec: str) -> Fact:
    """With the digest of the spec: a policy that was altered after the run began is seen.

    And with the records that are written along with it, of which there are none: those that come later will be named.
    """
    data = {"number": run.number, "agent": run.spec.agent, "task": run.spec.task, "parent": run.parent}
    fork = {} if run.forked_at is None else {"forked_at": run.forked_at, "lineage": run.lineage}
    return Fact("run.created", {**data, **fork, "spec": digest(spec), RECORDS: {}})
