"""What every part of the store leans on: the driver, the frozen specs, the fence and the chain. No SQL here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackline.domain.events import Event, Fact, place
from jackline.domain.records import Lease, Notice, Run, Spec
from jackline.domain.states import RunState
from jackline.errors import Fenced, NotFound
from jackline.named import NamedTuple
from jackline.store import rows
from jackline.store.driver import Driver, Statements, clean

if TYPE_CHECKING:
    from jackline.domain.secrets import Redactor

RUNNING = str(RunState.RUNNING)
_SPECS_KEPT = 256


class Chain(NamedTuple):
    """Where a stream stands after events were appended."""

    event_seq: int
    chain_head: str


class Head(NamedTuple):
    """What a write to the ledger must know of its run, locked for the length of the transaction."""

    state: str
    owner: str | None
    token: int
    event_seq: int
    chain_head: str
    calls: int
    parent: str | None


class Base:
    """One store over one driver."""

    def __init__(self, driver: Driver, redactor: Redactor | None = None) -> None:
        self._driver = driver
        self._given_redactor = redactor
        self._specs: dict[str, Spec] = {}
        self._secret: bytes | None = None

    @property
    def secret(self) -> bytes:
        """The instance's secret for keys, the same on every host that shares the store."""
        if self._secret is None:
            row = self._driver.read(lambda statements: statements.one("instance_value", {"name": "secret"}))
            self._secret = bytes.fromhex(row[0]) if row else b""
        return self._secret

    @property
    def redactor(self) -> Redactor:
        """What frees everything of secrets before it is written; made on first use, because who only reads has none."""
        if self._given_redactor is None:
            from jackline.domain.secrets import Redactor
            from jackline.domain.secrets.variables import secret_values

            self._given_redactor = Redactor(secret_values(os.environ))
        return self._given_redactor

    def close(self) -> None:
        """Give up the connection."""
        self._driver.close()

    def _spec(self, statements: Statements, run_id: str) -> Spec:
        """A spec never changes, so one that was read once is kept."""
        spec = self._specs.get(run_id)
        if spec is None:
            row = statements.one("get_spec", {"run_id": run_id})
            spec = rows.to_spec((row or ("{}",))[0])
            if len(self._specs) >= _SPECS_KEPT:
                self._specs.clear()
            self._specs[run_id] = spec
        return spec

    def _locked(self, statements: Statements, run_id: str) -> Run:
        row = statements.one("lock_run", {"id": clean(run_id)})
        if row is None:
            raise no_run(run_id)
        return rows.to_run(row, self._spec(statements, run_id))

    def _found(self, statements: Statements, run_id: str) -> Run:
        row = statements.one("get_run", {"id": clean(run_id)})
        if row is None:
            raise no_run(run_id)
        return rows.to_run(row, self._spec(statements, run_id))


def chain_of(run: Run) -> Chain:
    """Where the run's stream stands."""
    return Chain(run.event_seq, run.chain_head)


def fenced_head(statements: Statements, lease: Lease) -> Head:
    """The locked head of the lease's run; Fenced unless the lease is the newest."""
    row = statements.one("lock_ledger", {"id": clean(lease.run_id)})
    if row is None:
        raise Fenced(lease.run_id)
    head = Head(*row)
    if head.owner != lease.owner or head.token != lease.token or head.state != RUNNING:
        raise Fenced(lease.run_id)
    return head


def append(statements: Statements, stream: str, after: Chain, facts: Iterable[Fact], at: int, actor: str) -> Chain:
    """Write events at the end of a stream; the caller writes the new end to the run in the same transaction."""
    seq, head = after
    for fact in facts:
        event = place(fact, stream, seq + 1, at, actor, head)
        write_event(statements, event)
        seq, head = event.seq, event.hash
    return Chain(seq, head)


def write_event(statements: Statements, event: Event) -> None:
    """Write one event down."""
    values = {
        "stream": event.stream,
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "actor": event.actor,
        "data": event.data,
        "hash": event.hash,
    }
    statements.run("add_event", values)


def lease_values(lease: Lease) -> dict[str, object]:
    """What a guarded write compares with."""
    return {"id": lease.run_id, "owner": lease.owner, "token": lease.token, "running": RUNNING}


def no_run(run_id: str) -> NotFound:
    """The id is not known."""
    return NotFound(run_id, what="run", hint="jackline list")


def add_notice(statements: Statements, notice: Notice, head: str) -> None:
    """Put a notice into the outbox; only now is the head known that belongs to the state which it tells."""
    statements.run("add_notice", {**rows.plain(notice), "chain_head": notice.chain_head or head})
