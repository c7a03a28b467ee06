"""A run of a predecessor as rows: its chain, its turns, its ledger with receipts. It decides nothing about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import GENESIS, Event, Fact, place
from jackline.domain.records import Call, Run
from jackline.domain.repository import repository_id
from jackline.domain.states import CallClass, CallState
from jackline.store import blobs, importing_clean, ledger_events, rows
from jackline.store.base import Chain, write_event
from jackline.store.driver import Again, clean
from jackline.store.import_contract import Import, ImportedEvent
from jackline.store.leases import charge_spending
from jackline.store.ledger import write_receipt
from jackline.store.record_digests import RECORDS, digest_run, digest_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jackline.domain.secrets import Redactor
    from jackline.store.driver import Statements
    from jackline.store.import_contract import ImportedCall, ImportedRun

_ENGINE = "engine"
_AGENT = "agent"
_IMPORTED = "import"  # who says that an effect happened
_BETWEEN = "\n"  # between the origin of a run and its time


def redacted(redactor: Redactor, new: ImportedRun, at: int, actor: str) -> tuple[ImportedRun, ImportedEvent]:
    """The run as it may be written, and its last event."""
    about = ImportedEvent(at, "run.imported", clean(actor), redactor.value(dict(new.about)))
    return importing_clean.run(redactor, new), about


def look(statements: Statements, new: ImportedRun) -> Import:
    """What would become of it."""
    return _known(statements, new) or Import.IMPORTED


def write(statements: Statements, new: ImportedRun, told: ImportedEvent) -> Import:
    """Write all of it, unless something is here under its id; `told` is the last event."""
    return _known(statements, new) or _add(statements, new, told)


def write_events(statements: Statements, events: Iterable[Event]) -> None:
    """Write them down; only after the row of their stream, at which two importers meet."""
    for event in events:
        write_event(statements, event)


def placed(stream: str, after: Chain, events: Iterable[ImportedEvent]) -> tuple[list[Event], Chain]:
    """Events at the end of a stream, each with a time and an actor of its own; and where the stream stands then."""
    made: list[Event] = []
    seq, head = after
    for one in events:
        event = place(Fact(one.kind, one.data), stream, seq + 1, one.at, one.actor, head)
        made.append(event)
        seq, head = event.seq, event.hash
    return made, Chain(seq, head)


def _known(statements: Statements, new: ImportedRun) -> Import | None:
    """What is here under its id; None if nothing is."""
    row = statements.one("get_request", {"id": new.id})
    if row is None:
        return None
    origin, _, since = str(row[0]).partition(_BETWEEN)
    # One that was not finished when it was imported may have got its time since.
    same_time = since == clean(new.since) or not (since and new.since)
    return Import.ALREADY if origin == clean(new.origin) and same_time else Import.TAKEN


def _add(statements: Statements, new: ImportedRun, told: ImportedEvent) -> Import:
    run = _run(statements, new)
    if statements.run("add_run", rows.run_values(run, f"{new.origin}{_BETWEEN}{new.since}")) == 0:
        raise Again  # the same id was made by somebody else since we looked
    spec = rows.spec_text(new.spec)
    statements.run("add_spec", {"run_id": run.id, "spec": spec})
    _put_records(statements, new)
    charge_spending(statements, run.agent, new.finished_at, new.life.spent)
    calls = [event for number, call in enumerate(new.calls, 1) for event in _put_call(statements, run.id, call, number)]
    between = sorted((*new.events, *calls), key=lambda event: event.at)
    ended = ImportedEvent(new.finished_at, f"run.{new.life.state}", _ENGINE, _end(new))
    told = told._replace(data={**told.data, RECORDS: digest_run(run)})
    events, chain = placed(run.id, Chain(0, GENESIS), (_created(run, spec), *between, ended, told))
    write_events(statements, events)
    statements.run("move_chain", {"id": run.id, "after": 0, "at": new.updated_at, **chain._asdict()})
    return Import.IMPORTED


def _run(statements: Statements, new: ImportedRun) -> Run:
    repository = repository_id(new.repository)
    statements.run("add_repository", {"id": repository, "path": new.repository, "at": new.created_at})
    number = (statements.one("take_number", {"id": repository}) or (0,))[0]
    names = (new.id, number, repository, new.id, None)
    times = (new.created_at, new.updated_at, new.started_at, new.finished_at)
    return Run(*names, new.spec, new.life, None, 0, GENESIS, *times)


def _put_records(statements: Statements, new: ImportedRun) -> None:
    for turn in new.turns:
        statements.run("put_turn", rows.turn_values(turn._replace(run_id=new.id)))
    for attempt in new.attempts:
        statements.run("add_attempt", rows.plain(attempt._replace(run_id=new.id)))
    if new.changes is not None:
        statements.run("put_changes", rows.changes_values(new.id, new.changes, new.finished_at))


def _created(run: Run, spec: str) -> ImportedEvent:
    data = {
        "number": run.number,
        "agent": run.spec.agent,
        "task": run.spec.task,
        "parent": None,
        "spec": digest_text(spec),
    }
    return ImportedEvent(run.created_at, "run.created", _ENGINE, data)


def _end(new: ImportedRun) -> dict[str, object]:
    life = new.life
    return {} if life.failure is None else {"failure": str(life.failure), "detail": life.detail}


def _put_call(statements: Statements, run_id: str, given: ImportedCall, number: int) -> Iterator[ImportedEvent]:
    """The call as it stood in the end, and the two events that tell of it."""
    call = _stored(statements, given.call._replace(run_id=run_id), given)
    statements.run("add_call", {**rows.call_values(call), "number": number})
    proves = call.call_class is CallClass.EFFECT and call.state is CallState.DONE
    receipt = write_receipt(statements, call, given.external_id, _IMPORTED, given.ended_at) if proves else None
    before = ledger_events.build_intended("call.prepared", call._replace(reason=""))
    yield ImportedEvent(call.prepared_at, before.kind, _AGENT, before.data)
    after = ledger_events.build_settled(call, _IMPORTED, given.external_id, receipt=receipt)
    yield ImportedEvent(given.ended_at, after.kind, _IMPORTED, after.data)


def _stored(statements: Statements, call: Call, given: ImportedCall) -> Call:
    """With its large texts where such texts are kept."""
    input_, output = blobs.split_text(call.input), blobs.split_text(call.output)
    blobs.write_blob(statements, call.run_id, input_)
    blobs.write_blob(statements, call.run_id, output)
    call = call._replace(input=input_.shown, input_ref=input_.ref, output=output.shown, output_ref=output.ref)
    return call if call.state is CallState.IN_DOUBT else call._replace(finished_at=given.ended_at)
