"""What is imported, freed of secrets and made storable before it is written. It reads and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.store import redacting
from jackline.store.contract import Change
from jackline.store.driver import clean
from jackline.store.import_contract import ImportedCall, ImportedEvent
from jackline.store.state_contract import NewCase, NewItem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.domain.case import Case, Entry
    from jackline.domain.records import Spec, Turn
    from jackline.domain.secrets import Redactor
    from jackline.domain.work import WorkItem
    from jackline.store.import_contract import ImportedRun


def run(redactor: Redactor, new: ImportedRun) -> ImportedRun:
    """A run with everything that belongs to it."""
    change = redacting.change(redactor, Change(0, life=new.life, changes=new.changes))
    return new._replace(
        origin=clean(new.origin),
        since=clean(new.since),
        repository=clean(new.repository),
        spec=_spec(redactor, new.spec),
        life=change.life or new.life,
        events=tuple(events(redactor, new.events)),
        turns=tuple(_turn(redactor, turn) for turn in new.turns),
        calls=tuple(_call(redactor, call) for call in new.calls),
        changes=change.changes,
    )


def item(redactor: Redactor, given: WorkItem) -> WorkItem:
    """A work item; as if it were put into the queue here."""
    new = NewItem(given.id, given.kind, given.payload, notes=given.notes, question=given.question)
    told = redacting.new_item(redactor, new)
    return given._replace(
        id=clean(given.id),
        kind=clean(given.kind),
        payload=clean(told.payload),
        notes=clean(told.notes),
        question=clean(told.question),
    )


def case(redactor: Redactor, given: Case) -> Case:
    """A case without its entries."""
    new = NewCase(given.id, given.repository, given.path, given.user_name, given.request, given.problem)
    told = redacting.new_case(redactor, new)
    closeout = redactor.value(dict(given.closeout))
    return given._replace(id=clean(given.id), request=clean(told.request), problem=told.problem, closeout=closeout)


def entry(redactor: Redactor, given: Entry) -> Entry:
    """One line of a notebook."""
    told = redacting.entry(redactor, given)
    return told._replace(text=clean(told.text), status=clean(str(told.status)))


def events(redactor: Redactor, given: Iterable[ImportedEvent]) -> list[ImportedEvent]:
    """Events with their data."""
    return [
        ImportedEvent(one.at, clean(one.kind), clean(redactor.redact(one.actor)), redactor.value(dict(one.data)))
        for one in given
    ]


def _spec(redactor: Redactor, spec: Spec) -> Spec:
    """Nobody will carry it out: its proof, too, is only read."""
    return redacting.spec(redactor, spec)._replace(proof=redactor.redact(spec.proof))


def _turn(redactor: Redactor, turn: Turn) -> Turn:
    return redacting.change(redactor, Change(0, turn=turn)).turn or turn


def _call(redactor: Redactor, given: ImportedCall) -> ImportedCall:
    call = given.call
    told = call._replace(
        id=clean(call.id),
        tool=clean(redactor.redact(call.tool)),
        rule=clean(redactor.redact(call.rule)),
        key=clean(call.key),
        target=clean(redactor.redact(call.target)),
        input=clean(redactor.json(call.input)),
        output=clean(redactor.json(call.output)),
        reason=clean(redactor.redact(call.reason)),
        agent_call=clean(call.agent_call),
    )
    return ImportedCall(told, given.ended_at, clean(redactor.redact(given.external_id)))
