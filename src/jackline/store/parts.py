"""Shared by the parts of the store: the base class of a part, the fence, and the chain of events. No SQL here."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from jackline.domain.events import Event, Fact, place
from jackline.domain.records import Lease, Notice, Run
from jackline.domain.states import RunState
from jackline.errors import Fenced, NotFound
from jackline.named import NamedTuple, stored_dict
from jackline.store import rows
from jackline.store.driver import Row, Statements, Values, clean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.secrets.redactor import Redactor
    from jackline.store.store import Store

RUNNING = str(RunState.RUNNING)
PING_CHANNEL = "(ping)"  # of deliveries; no channel of a person can have this name


class PingEvent(StrEnum):
    """The kinds of requests to the address of a run."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"


_PINGS = {
    f"run.{RunState.SUCCEEDED}": PingEvent.SUCCESS,
    f"run.{RunState.FAILED}": PingEvent.FAIL,
    f"run.{RunState.CANCELLED}": PingEvent.FAIL,
}


class ChainEnd(NamedTuple):
    """The end of a stream of events."""

    event_seq: int
    chain_head: str


class RunHead(NamedTuple):
    """The columns of a run that a ledger write needs; the row is locked until the transaction ends."""

    state: str
    owner: str | None
    token: int
    event_seq: int
    chain_head: str
    calls: int
    parent: str | None


class StorePart:
    """One part of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._driver = store.driver

    @property
    def redactor(self) -> Redactor:
        """Removes secrets from everything before it is written."""
        return self._store.redactor

    def _all(self, query: str, values: Values) -> list[Row]:
        return self._driver.read(lambda statements: statements.all(query, values))

    def _one(self, query: str, values: Values) -> Row | None:
        return self._driver.read(lambda statements: statements.one(query, values))

    def _lock_run(self, statements: Statements, run_id: str) -> Run:
        """The run, locked until the transaction ends; NotFound if there is none."""
        return self._to_run(statements, run_id, statements.one("lock_run", {"id": clean(run_id)}))

    def _get_run(self, statements: Statements, run_id: str) -> Run:
        """The run; NotFound if there is none."""
        return self._to_run(statements, run_id, statements.one("get_run", {"id": clean(run_id)}))

    def _to_run(self, statements: Statements, run_id: str, row: Row | None) -> Run:
        if row is None:
            raise build_not_found(run_id)
        return rows.parse_run(row, self._store.load_spec(statements, run_id))


def read_open_questions(statements: Statements, run_id: str) -> list[str]:
    """The questions of the run's agent that a person has not answered, oldest first."""
    from jackline.extensions import call_hook

    return [text for texts in call_hook("open_questions", statements, run_id) for text in texts]


def get_chain_end(run: Run) -> ChainEnd:
    """The end of the run's stream."""
    return ChainEnd(run.event_seq, run.chain_head)


def lock_fenced_head(statements: Statements, lease: Lease) -> RunHead:
    """The locked head of the lease's run; Fenced unless the lease is the newest."""
    row = statements.one("lock_ledger", {"id": clean(lease.run_id)})
    if row is None:
        raise Fenced(lease.run_id)
    head = RunHead(*row)
    if head.owner != lease.owner or head.token != lease.token or head.state != RUNNING:
        raise Fenced(lease.run_id)
    return head


def append_events(
    statements: Statements, stream: str, after: ChainEnd, facts: Iterable[Fact], at: int, actor: str
) -> ChainEnd:
    """Write events at the end of a stream; the caller writes the new end to the stream's row, in the transaction."""
    seq, head = after
    for fact in facts:
        event = place(fact, stream, seq + 1, at, actor, head)
        write_event(statements, event)
        seq, head = event.seq, event.hash
    return ChainEnd(seq, head)


def append_run_events(statements: Statements, run: Run, facts: Iterable[Fact], at: int, actor: str) -> ChainEnd:
    """Write events at the end of a locked run's stream, and that end to the run."""
    chain = append_events(statements, run.id, get_chain_end(run), facts, at, actor)
    statements.run("move_chain", {"id": run.id, "after": run.event_seq, "at": at, **chain._asdict()})
    return chain


def write_event(statements: Statements, event: Event) -> None:
    """Write one event."""
    statements.run("add_event", stored_dict(event))


def build_lease_values(lease: Lease) -> dict[str, object]:
    """The parameters of a guarded write."""
    return {"id": lease.run_id, "owner": lease.owner, "token": lease.token, "running": RUNNING}


def build_not_found(run_id: str) -> NotFound:
    """The error for an unknown run id."""
    return NotFound(run_id, what="run", hint="jackline list")


def add_notice(statements: Statements, notice: Notice, head: str) -> None:
    """Put a notice into the outbox, with the chain head of the state that it announces."""
    statements.run("add_notice", {**rows.build_parameters(notice), "chain_head": notice.chain_head or head})
    event = _PINGS.get(notice.kind)
    if event is not None:
        add_ping(statements, event, notice.run_id, f":{notice.id}", notice.created_at)


def add_ping(statements: Statements, event: PingEvent, run_id: str, more: str, at: int) -> None:
    """Let the run's address be requested, if it has one; `more` tells the ends of a run that is resumed apart."""
    values = {"id": f"ping.{event}:{clean(run_id)}{more}", "channel": PING_CHANNEL, "run_id": clean(run_id), "at": at}
    statements.run("add_ping_delivery", values)
