"""Writes imported data, once: an import never changes existing records. A dry run only reads.

Each run, item or case is written in one transaction, redacted. The import feature decides what is imported.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.events import ENGINE, GENESIS, Event, Fact, canonical, place
from jackline.domain.ids import repository_id
from jackline.domain.records import Call, Run
from jackline.domain.states import CallClass, CallState
from jackline.features.cases import case_model as cases
from jackline.features.cases import case_queries
from jackline.features.cases.case_model import NewCase
from jackline.features.cases.case_store import digest_case, digest_entry
from jackline.features.importers.imported_records import ImportedCall, ImportedEvent, ImportResult
from jackline.features.work import work_item
from jackline.features.work.item_queries import build_item, build_item_values
from jackline.features.work.item_store import digest_item
from jackline.features.work.work_item import NewItem
from jackline.store import blobs, ledger_events, redaction, rows
from jackline.store.driver import RetryTransaction, clean
from jackline.store.ledger import write_receipt
from jackline.store.models import RunChange
from jackline.store.parts import ChainEnd, StorePart, write_event
from jackline.store.record_digests import RECORDS, digest_run, digest_text
from jackline.store.spending import charge_spending

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.importers.imported_records import ImportedRun
    from jackline.features.work.work_item import WorkItem
    from jackline.secrets.redactor import Redactor
    from jackline.store.driver import Statements

_AGENT = "agent"
_ORIGIN = "import"  # the origin of receipts
_BETWEEN = "\n"  # between the origin of a run and its time
_NUMBER = "id"  # the key under which an event of a stream keeps its number there


class Imports(StorePart):
    """Writes of imported runs, items, cases and events."""

    def import_run(self, new: ImportedRun, at: int, actor: str, *, rehearse: bool = False) -> ImportResult:
        """Write a run with all its records; its chain goes from `run.created` to `run.imported`."""
        if rehearse:
            return self._driver.read(lambda one: _find_run(one, new) or ImportResult.IMPORTED)
        last = ImportedEvent(
            at=at, kind="run.imported", actor=clean(actor), data=self.redactor.redact_value(dict(new.about))
        )
        redacted = _redact_run(self.redactor, new)
        return self._driver.write(lambda one: _find_run(one, redacted) or _add_run(one, redacted, last))

    def import_item(
        self, item: WorkItem, events: Sequence[ImportedEvent], at: int, actor: str, *, rehearse: bool = False
    ) -> ImportResult:
        """Write an item with its events, then `work.imported`; TAKEN if its kind or payload differs."""
        wanted = _redact_item(self.redactor, item)
        if rehearse:
            return self._driver.read(lambda one: _find_item(one, wanted) or ImportResult.IMPORTED)
        about = {
            "kind": wanted.kind,
            "payload": digest_text(wanted.payload),
            "status": str(wanted.status),
            "events": len(events),
            **({} if wanted.owner_agent is None else {"owner": wanted.owner_agent}),
            RECORDS: digest_item(wanted),
        }
        last = ImportedEvent(at=at, kind="work.imported", actor=clean(actor), data=about)
        kept = [*_redact_events(self.redactor, events), last]
        return self._driver.write(lambda one: _find_item(one, wanted) or _add_item(one, wanted, kept))

    def import_case(
        self, case: Case, entries: Sequence[CaseEntry], at: int, actor: str, *, rehearse: bool = False
    ) -> ImportResult:
        """Write a case with its entries, active nowhere; TAKEN if its request or its repository differs."""
        wanted = _redact_case(self.redactor, case)
        if rehearse:
            return self._driver.read(lambda one: _find_case(one, wanted) or ImportResult.IMPORTED)
        redacted = [redaction.redact_entry(self.redactor, entry) for entry in entries]
        kept = [
            entry._replace(case_id=wanted.id, text=clean(entry.text), status=clean(str(entry.status)))
            for entry in redacted
        ]
        # The next entry gets a number above every one that was ever given.
        counts = {
            str(kind): max((entry.number for entry in kept if entry.kind is kind), default=0)
            for kind in cases.EntryKind
        }
        wanted = wanted._replace(counts=counts)
        event = ImportedEvent(at=at, kind="case.imported", actor=clean(actor), data=_describe_case(wanted, kept))
        return self._driver.write(lambda one: _find_case(one, wanted) or _add_case(one, wanted, kept, event))

    def import_events(self, stream: str, events: Sequence[tuple[int, ImportedEvent]], *, rehearse: bool = False) -> int:
        """Write numbered events at the end of a stream, if their numbers are above the last one there; how many."""
        if rehearse:
            return self._driver.read(lambda one: len(_select_newer(one, stream, events)))
        redacted = _redact_events(self.redactor, [event for _, event in events])
        numbered = [(number, event) for (number, _), event in zip(events, redacted, strict=True)]
        return self._driver.write(lambda one: _add_events(one, stream, numbered))


# runs


def _write_events(statements: Statements, events: Iterable[Event]) -> None:
    """Write events; only after the row of their stream, at which two importers meet."""
    for event in events:
        write_event(statements, event)


def _place_events(stream: str, after: ChainEnd, events: Iterable[ImportedEvent]) -> tuple[list[Event], ChainEnd]:
    """Events at the end of a stream, each with its own time and actor, and the new end of the stream."""
    made: list[Event] = []
    seq, head = after
    for one in events:
        event = place(Fact(one.kind, one.data), stream, seq + 1, one.at, one.actor, head)
        made.append(event)
        seq, head = event.seq, event.hash
    return made, ChainEnd(seq, head)


def _find_run(statements: Statements, new: ImportedRun) -> ImportResult | None:
    """The result if the store has a run of this id; else None."""
    row = statements.one("get_request", {"id": new.id})
    if row is None:
        return None
    origin, _, since = str(row[0]).partition(_BETWEEN)
    # A run that was not finished when it was imported may have got its time since.
    same_time = since == clean(new.since) or not (since and new.since)
    return ImportResult.ALREADY if origin == clean(new.origin) and same_time else ImportResult.TAKEN


def _add_run(statements: Statements, new: ImportedRun, last: ImportedEvent) -> ImportResult:
    run = _build_run(statements, new)
    if statements.run("add_run", rows.run_values(run, f"{new.origin}{_BETWEEN}{new.since}")) == 0:
        raise RetryTransaction  # another process created the same id since we looked
    spec = rows.dump_spec(new.spec)
    statements.run("add_spec", {"run_id": run.id, "spec": spec})
    for turn in new.turns:
        statements.run("put_turn", rows.turn_values(turn._replace(run_id=new.id)))
    for attempt in new.attempts:
        statements.run("add_attempt", rows.build_parameters(attempt._replace(run_id=new.id)))
    if new.changes is not None:
        statements.run("put_changes", rows.changes_values(new.id, new.changes, new.finished_at))
    charge_spending(statements, run.agent, new.finished_at, new.status.spent)
    calls = [event for number, call in enumerate(new.calls, 1) for event in _put_call(statements, run.id, call, number)]
    between = sorted((*new.events, *calls), key=lambda event: event.at)
    status = new.status
    failure = {} if status.failure is None else {"failure": str(status.failure), "detail": status.detail}
    ended = ImportedEvent(at=new.finished_at, kind=f"run.{status.state}", actor=ENGINE, data=failure)
    last = last._replace(data={**last.data, RECORDS: digest_run(run)})
    events, chain = _place_events(run.id, ChainEnd(0, GENESIS), (_build_created(run, spec), *between, ended, last))
    _write_events(statements, events)
    statements.run("move_chain", {"id": run.id, "after": 0, "at": new.updated_at, **chain._asdict()})
    return ImportResult.IMPORTED


def _build_run(statements: Statements, new: ImportedRun) -> Run:
    repository = repository_id(new.repository)
    statements.run("add_repository", {"id": repository, "path": new.repository, "at": new.created_at})
    number = (statements.one("take_number", {"id": repository}) or (0,))[0]
    names = (new.id, number, repository, new.id, None)
    times = (new.created_at, new.updated_at, new.started_at, new.finished_at)
    return Run(*names, new.spec, new.status, None, 0, GENESIS, *times)


def _build_created(run: Run, spec: str) -> ImportedEvent:
    data = {
        "number": run.number,
        "agent": run.spec.agent,
        "task": run.spec.task,
        "parent": None,
        "spec": digest_text(spec),
    }
    return ImportedEvent(at=run.created_at, kind="run.created", actor=ENGINE, data=data)


def _put_call(statements: Statements, run_id: str, imported: ImportedCall, number: int) -> Iterator[ImportedEvent]:
    """Write a call in its last state; yields its two events."""
    call = _store_texts(statements, imported.call._replace(run_id=run_id), imported)
    statements.run("add_call", {**rows.call_values(call), "number": number})
    proves = call.call_class is CallClass.EFFECT and call.state is CallState.DONE
    receipt = write_receipt(statements, call, imported.external_id, _ORIGIN, imported.ended_at) if proves else None
    before = ledger_events.build_intended("call.prepared", call._replace(reason=""))
    yield ImportedEvent(at=call.prepared_at, kind=before.kind, actor=_AGENT, data=before.data)
    after = ledger_events.build_settled(call, _ORIGIN, imported.external_id, receipt=receipt)
    yield ImportedEvent(at=imported.ended_at, kind=after.kind, actor=_ORIGIN, data=after.data)


def _store_texts(statements: Statements, call: Call, imported: ImportedCall) -> Call:
    """The call after its large texts are stored as blobs."""
    input_, output = blobs.split_text(call.input), blobs.split_text(call.output)
    blobs.write_blob(statements, call.run_id, input_)
    blobs.write_blob(statements, call.run_id, output)
    call = call._replace(input=input_.shown, input_ref=input_.ref, output=output.shown, output_ref=output.ref)
    return call if call.state is CallState.IN_DOUBT else call._replace(finished_at=imported.ended_at)


# work items


def _find_item(statements: Statements, wanted: WorkItem) -> ImportResult | None:
    row = statements.one("get_item", {"id": wanted.id})
    if row is None:
        return None
    here = build_item(row)
    return ImportResult.ALREADY if (here.kind, here.payload) == (wanted.kind, wanted.payload) else ImportResult.TAKEN


def _add_item(statements: Statements, wanted: WorkItem, events: Sequence[ImportedEvent]) -> ImportResult:
    made, chain = _place_events(work_item.get_item_stream(wanted.id), ChainEnd(0, GENESIS), events)
    if statements.run("add_item", build_item_values(wanted._replace(**chain._asdict()))) == 0:
        raise RetryTransaction  # another process created the same id since we looked
    _write_events(statements, made)
    return ImportResult.IMPORTED


# cases


def _find_case(statements: Statements, wanted: Case) -> ImportResult | None:
    row = statements.one("get_case", {"id": wanted.id})
    if row is None:
        return None
    here = case_queries.build_case(row)
    # If the capsule could not be read, the request is unknown.
    same_request = here.request == wanted.request or not (here.request and wanted.request)
    return ImportResult.ALREADY if here.repository == wanted.repository and same_request else ImportResult.TAKEN


def _add_case(statements: Statements, wanted: Case, entries: Sequence[CaseEntry], event: ImportedEvent) -> ImportResult:
    events, chain = _place_events(cases.get_case_stream(wanted.id), ChainEnd(0, GENESIS), (event,))
    made = wanted._replace(**chain._asdict())
    if statements.run("add_case", case_queries.build_case_values(made)) == 0:
        raise RetryTransaction
    _write_events(statements, events)
    for entry in entries:
        statements.run("add_entry", case_queries.build_entry_values(entry))
    return ImportResult.IMPORTED


def _describe_case(case: Case, entries: Sequence[CaseEntry]) -> dict[str, object]:
    """The data of `case.imported`, with digests of the entries, which have no events."""
    texts = [[entry.id, entry.at, entry.text, str(entry.status), dict(entry.data)] for entry in entries]
    counts = {str(kind): sum(entry.kind is kind for entry in entries) for kind in cases.EntryKind}
    records = digest_case(case)
    for entry in entries:
        records |= digest_entry(entry)
    about = {"request": case.request, "status": str(case.status), **counts}
    return {**about, "entries": digest_text(clean(canonical(texts))), RECORDS: records}


# events of other streams


def _select_newer(
    statements: Statements, stream: str, events: Sequence[tuple[int, ImportedEvent]]
) -> list[tuple[int, ImportedEvent]]:
    row = statements.one("last_data_of_stream", {"stream": stream})
    last = json.loads(row[0]).get(_NUMBER, 0) if row is not None else None
    return [(number, event) for number, event in events if last is None or number > last]


def _add_events(statements: Statements, stream: str, events: Sequence[tuple[int, ImportedEvent]]) -> int:
    if not events:
        return 0
    at = events[-1][1].at
    statements.run("add_stream", {"id": stream, "at": at})
    seq, head = statements.one("lock_stream", {"id": stream}) or (0, GENESIS)
    newer = _select_newer(statements, stream, events)
    kept = (event._replace(data={**event.data, _NUMBER: number}) for number, event in newer)
    made, chain = _place_events(stream, ChainEnd(seq, head), kept)
    _write_events(statements, made)
    statements.run("move_stream", {"id": stream, "after": seq, "at": at, **chain._asdict()})
    return len(newer)


# redaction


def _redact_run(redactor: Redactor, new: ImportedRun) -> ImportedRun:
    """A run with all its records, redacted and storable."""
    change = redaction.redact_change(redactor, RunChange(0, status=new.status, changes=new.changes))
    return new._replace(
        origin=clean(new.origin),
        since=clean(new.since),
        repository=clean(new.repository),
        # An imported run is never executed, so its proof is redacted, too.
        spec=redaction.redact_spec(redactor, new.spec)._replace(proof=redactor.redact(new.spec.proof)),
        status=change.status or new.status,
        events=tuple(_redact_events(redactor, new.events)),
        turns=tuple(redaction.redact_change(redactor, RunChange(0, turn=turn)).turn or turn for turn in new.turns),
        calls=tuple(_redact_call(redactor, call) for call in new.calls),
        changes=change.changes,
    )


def _redact_item(redactor: Redactor, item: WorkItem) -> WorkItem:
    """A work item, redacted as if it were enqueued here."""
    new = NewItem(id=item.id, kind=item.kind, payload=item.payload, notes=item.notes, question=item.question)
    redacted = redaction.redact_new_item(redactor, new)
    return item._replace(
        id=clean(item.id),
        kind=clean(item.kind),
        payload=clean(redacted.payload),
        notes=clean(redacted.notes),
        question=clean(redacted.question),
    )


def _redact_case(redactor: Redactor, case: Case) -> Case:
    """A case, without its entries."""
    new = NewCase(
        id=case.id,
        repository=case.repository,
        path=case.path,
        user_name=case.user_name,
        request=case.request,
        problem=case.problem,
    )
    redacted = redaction.redact_new_case(redactor, new)
    closeout = redactor.redact_value(dict(case.closeout))
    return case._replace(
        id=clean(case.id), request=clean(redacted.request), problem=redacted.problem, closeout=closeout
    )


def _redact_events(redactor: Redactor, events: Iterable[ImportedEvent]) -> list[ImportedEvent]:
    """Events, with their data."""
    return [
        ImportedEvent(
            at=one.at,
            kind=clean(one.kind),
            actor=clean(redactor.redact(one.actor)),
            data=redactor.redact_value(dict(one.data)),
        )
        for one in events
    ]


def _redact_call(redactor: Redactor, imported: ImportedCall) -> ImportedCall:
    call = imported.call
    redacted = call._replace(
        id=clean(call.id),
        tool=clean(redactor.redact(call.tool)),
        rule=clean(redactor.redact(call.rule)),
        key=clean(call.key),
        target=clean(redactor.redact(call.target)),
        input=clean(redactor.redact_json(call.input)),
        output=clean(redactor.redact_json(call.output)),
        reason=clean(redactor.redact(call.reason)),
        agent_call=clean(call.agent_call),
    )
    return ImportedCall(
        call=redacted, ended_at=imported.ended_at, external_id=clean(redactor.redact(imported.external_id))
    )
