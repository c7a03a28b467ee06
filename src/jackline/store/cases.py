"""Notebooks of investigations: entries with numbers that are never doubled, one active case for each place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.case import Case, CaseStatus, Entry, EntryKind, numbered, stream_of
from jackline.domain.events import NOTHING, Fact
from jackline.errors import CaseRefused, NoCase
from jackline.named import NamedTuple, stored_dict
from jackline.store import case_rows as rows
from jackline.store import redacting
from jackline.store.base import Chain, append, no_run
from jackline.store.case_reading import CaseReading
from jackline.store.driver import Again, Statements, clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.store.state_contract import NewCase

_NO_ENTRY = dict.fromkeys((str(kind) for kind in EntryKind), 0)


class _Written(NamedTuple):
    """By whom something is written, and when."""

    at: int
    actor: str


class Cases(CaseReading):
    """The part of the store that writes them."""

    def start_case(self, new: NewCase, place: str, at: int, actor: str = "") -> Case:
        """Begin a case, and make it the active one of its place; Refused if an open one is active there."""
        wanted = redacting.new_case(self.redactor, new)
        by = _Written(at, clean(actor or new.user_name))
        return self._driver.write(lambda statements: _start(statements, wanted, clean(place), by))

    def switch_case(self, place: str, case_id: str, at: int, actor: str = "") -> Case:
        """Make an open case the active one of a place; Refused for a closed one."""

        def switch(statements: Statements) -> Case:
            case = _open(statements, case_id)
            seen = _active(statements, clean(place))
            if seen != case.id:
                _activate(statements, clean(place), case.id, seen, at)
                fact = Fact("case.switched", {"place": clean(place)})
                case = _move(statements, case, fact, _Written(at, clean(actor) or case.user_name))
            return case

        return self._driver.write(switch)

    def add_entry(self, case_id: str, entry: Entry, at: int, actor: str) -> Entry:
        """Add an entry with the next number of its kind (that of `entry` is not looked at); Refused when closed.

        Of evidence, NotFound if the hypothesis that its data names is not there.
        """
        wanted = redacting.entry(self.redactor, entry)
        return self._driver.write(lambda statements: _add(statements, case_id, wanted, _Written(at, clean(actor))))

    def change_entry(
        self,
        case_id: str,
        kind: EntryKind,
        number: int,
        status: str,
        at: int,
        actor: str,
        data: Mapping[str, Any] = NOTHING,
    ) -> Entry:
        """Give an entry another status, and more data; NotFound, or Refused when the case is closed."""
        more = self.redactor.value(dict(data))

        def change(statements: Statements) -> Entry:
            case = _open(statements, case_id)
            known = _entry(statements, case.id, kind, number)
            entry = known._replace(status=clean(str(status)), data={**known.data, **more}, updated_at=at)
            statements.run("change_entry", {**rows.entry_values(entry), "at": at})
            done = "resolved" if kind is EntryKind.HYPOTHESIS else "changed"
            _move(statements, case, _told(entry, done, more), _Written(at, clean(actor)))
            return entry

        return self._driver.write(change)

    def close_case(self, case_id: str, closeout: Mapping[str, Any], at: int, actor: str) -> Case:
        """Close it, and let it be active nowhere; Refused if it is closed already, or was written to meanwhile.

        `closeout["event_seq"]` is the case's own when whoever closes it looked whether it may be closed.
        """
        seen = closeout.get("event_seq")
        told = self.redactor.value({name: value for name, value in closeout.items() if name != "event_seq"})

        def close(statements: Statements) -> Case:
            case = _open(statements, case_id)
            if seen is not None and seen != case.event_seq:
                raise CaseRefused(f"case {case.id} was written to meanwhile: look at it again, then close it")
            statements.run("clear_active_case", {"case_id": case.id})
            closed = case._replace(status=CaseStatus.CLOSED, closeout=told, closed_at=at)
            return _turned(statements, closed, Fact("case.closed", told), _Written(at, clean(actor)))

        return self._driver.write(close)

    def reopen_case(self, case_id: str, place: str, at: int, actor: str) -> Case:
        """Open a closed case again and make it active there; Refused if another open one is."""

        def reopen(statements: Statements) -> Case:
            case = _locked(statements, case_id)
            if case.status is CaseStatus.OPEN:
                raise CaseRefused(f"case {case.id} is open: write to it, or `jackline case switch {case.id}`")
            seen = _free(statements, clean(place), case.id)
            _activate(statements, clean(place), case.id, seen, at)
            opened = case._replace(status=CaseStatus.OPEN, closeout={}, closed_at=None)
            fact = Fact("case.reopened", {"place": clean(place)})
            return _turned(statements, opened, fact, _Written(at, clean(actor)))

        return self._driver.write(reopen)

    def relocate_case(self, case_id: str, repository: str, path: str, at: int, actor: str) -> Case:
        """Let a case follow its repository to where that has been moved; it is active nowhere then."""

        def relocate(statements: Statements) -> Case:
            case = _locked(statements, case_id)
            moved = case._replace(repository=clean(repository), path=clean(path))
            statements.run("clear_active_case", {"case_id": case.id})
            statements.run("relocate_case", {"id": case.id, "repository": moved.repository, "path": moved.path})
            fact = Fact("case.moved", {"repository": moved.repository, "path": moved.path, "from": case.path})
            return _move(statements, moved, fact, _Written(at, clean(actor)))

        return self._driver.write(relocate)


def _start(statements: Statements, new: NewCase, place: str, by: _Written) -> Case:
    if new.run_id is not None and statements.one("get_request", {"id": clean(new.run_id)}) is None:
        raise no_run(new.run_id)
    seen = _free(statements, place)
    case = _inserted(statements, new, by.at)
    _activate(statements, place, case.id, seen, by.at)
    data = {"request": case.request, "repository": case.repository, "path": case.path, "place": place}
    fact = Fact(
        "case.started", {**data, "run": case.run_id, "user": case.user_name, "problem": stored_dict(case.problem)}
    )
    return _move(statements, case, fact, by)


def _inserted(statements: Statements, new: NewCase, at: int) -> Case:
    """The new row, under the first id that is free."""
    names = (clean(new.repository), clean(new.path), clean(new.user_name), new.run_id)
    number, case_id = 1, clean(new.id)
    while True:
        case = Case(case_id, *names, CaseStatus.OPEN, clean(new.request), new.problem, at, at, _NO_ENTRY, {})
        if statements.run("add_case", rows.case_values(case)):
            return case
        number += 1
        case_id = f"{clean(new.id)}-{number}"


def _add(statements: Statements, case_id: str, entry: Entry, by: _Written) -> Entry:
    case = _open(statements, case_id)
    named = entry.data.get("hypothesis")
    if entry.kind is EntryKind.EVIDENCE and named:
        kind, number = numbered(str(named)) or (None, 0)
        if kind is not EntryKind.HYPOTHESIS:
            raise _no_entry(EntryKind.HYPOTHESIS, str(named))
        entry = entry._replace(data={**entry.data, "hypothesis": _entry(statements, case.id, kind, number).id})
    number = case.counts[str(entry.kind)] + 1
    entry = entry._replace(case_id=case.id, number=number, at=by.at, updated_at=by.at)
    statements.run("add_entry", rows.entry_values(entry))
    _move(statements, case, _told(entry, "added", entry.data), by, entry.kind)
    return entry


def _told(entry: Entry, done: str, data: Mapping[str, Any]) -> Fact:
    """What the event says; of what a command printed only the digest, which still shows that it was altered."""
    said = {**data, "id": entry.id, "text": clean(entry.text), "status": str(entry.status)}
    if said.get("output"):
        from jackline.domain.evidence import digest

        said["output"] = digest(str(said["output"]))
    return Fact(f"case.{entry.kind}.{done}", said)


def _move(statements: Statements, case: Case, fact: Fact, by: _Written, counted: EntryKind | None = None) -> Case:
    """Write the event, and the new end of the chain to the case."""
    chain = append(statements, stream_of(case.id), Chain(case.event_seq, case.chain_head), (fact,), *by)
    counts = _NO_ENTRY if counted is None else {**_NO_ENTRY, str(counted): 1}
    values = {"id": case.id, "after": case.event_seq, "at": by.at, **chain._asdict(), **counts}
    if statements.run("move_case", values) == 0:
        raise Again
    return case._replace(updated_at=by.at, **chain._asdict())


def _turned(statements: Statements, case: Case, fact: Fact, by: _Written) -> Case:
    """Write the case's new status together with its event."""
    chain = append(statements, stream_of(case.id), Chain(case.event_seq, case.chain_head), (fact,), *by)
    values = {**rows.case_values(case), "after": case.event_seq, "at": by.at, **chain._asdict()}
    if statements.run("set_case_status", values) == 0:
        raise Again
    return case._replace(updated_at=by.at, **chain._asdict())


def _locked(statements: Statements, case_id: str) -> Case:
    row = statements.one("lock_case", {"id": clean(case_id)})
    if row is None:
        raise no_case(case_id)
    return rows.to_case(row)


def _open(statements: Statements, case_id: str) -> Case:
    case = _locked(statements, case_id)
    if case.status is CaseStatus.CLOSED:
        raise CaseRefused(f"case {case.id} is closed: `jackline case reopen {case.id}` opens it again")
    return case


def _entry(statements: Statements, case_id: str, kind: EntryKind, number: int) -> Entry:
    row = statements.one("get_entry", {"case_id": case_id, "kind": str(kind), "number": number})
    if row is None:
        raise _no_entry(kind, Entry(case_id, kind, number, 0, 0, "").id)
    return rows.to_entry(row)


def _active(statements: Statements, place: str) -> str:
    """The id of the place's active case, locked; empty if there is none."""
    row = statements.one("lock_active_case", {"place": place})
    return "" if row is None else str(row[0])


def _free(statements: Statements, place: str, but: str = "") -> str:
    """What `_active` says; Refused if that is an open case and another than `but`."""
    seen = _active(statements, place)
    row = statements.one("get_case", {"id": seen}) if seen not in {"", but} else None
    if row is not None and rows.to_case(row).status is CaseStatus.OPEN:
        raise CaseRefused(f"case {seen} is open and active here: close it, or `jackline case switch` to another first")
    return seen


def _activate(statements: Statements, place: str, case_id: str, seen: str, at: int) -> None:
    values = {"place": place, "case_id": case_id, "seen": seen, "at": at}
    if statements.run("set_active_case", values) == 0:
        raise Again  # the place has got another case since we looked


def no_case(case_id: str) -> NoCase:
    """The id is not known."""
    return NoCase(case_id, what="case", hint="jackline case list")


def _no_entry(kind: EntryKind, name: str) -> NoCase:
    return NoCase(name, what=str(kind), hint="jackline case status")
