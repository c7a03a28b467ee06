"""Writes of cases: entries with unique numbers, and one active case for each place. Files are not its concern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING, Fact
from jackline.errors import CaseRefused, NoCase
from jackline.features.cases.case_model import Case, CaseEntry, CaseStatus, EntryKind, get_case_stream, parse_entry_id
from jackline.features.cases.case_queries import (
    CASE,
    CASE_COLUMNS,
    ENTRY_COLUMNS,
    build_case,
    build_case_values,
    build_entry,
    build_entry_values,
)
from jackline.named import NamedTuple, stored_dict
from jackline.store import redaction
from jackline.store.driver import RetryTransaction, Statements, clean
from jackline.store.parts import ChainEnd, StorePart, append_events, build_not_found
from jackline.store.record_digests import cover, digest_row, digest_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.features.cases.case_model import NewCase

_NO_ENTRY = dict.fromkeys((str(kind) for kind in EntryKind), 0)


class _WrittenBy(NamedTuple):
    """The time and the actor of a write."""

    at: int
    actor: str


class CaseNotebook(StorePart):
    """Writes of cases and their entries."""

    def start(self, new: NewCase, place: str, at: int, actor: str = "") -> Case:
        """Start a case and make it the active one of its place; Refused if an open one is active there.

        Without an actor, the case's user is the actor.
        """
        wanted = redaction.redact_new_case(self.redactor, new)
        by = _WrittenBy(at, clean(actor or new.user_name))
        return self._driver.write(lambda statements: _start_case(statements, wanted, clean(place), by))

    def switch(self, place: str, case_id: str, at: int, actor: str = "") -> Case:
        """Make an open case the active one of a place; Refused for a closed one."""

        def switch(statements: Statements) -> Case:
            case = _lock_open_case(statements, case_id)
            active = _lock_active(statements, clean(place))
            if active != case.id:
                _activate(statements, clean(place), case.id, active, at)
                fact = Fact("case.switched", {"place": clean(place)})
                case = _write_event(statements, case, fact, _WrittenBy(at, clean(actor) or case.user_name))
            return case

        return self._driver.write(switch)

    def add_entry(self, case_id: str, entry: CaseEntry, at: int, actor: str) -> CaseEntry:
        """Add an entry with the next number of its kind (the number of `entry` is ignored); Refused if closed.

        NotFound if evidence names a hypothesis that does not exist.
        """
        wanted = redaction.redact_entry(self.redactor, entry)
        return self._driver.write(
            lambda statements: _add_entry(statements, case_id, wanted, _WrittenBy(at, clean(actor)))
        )

    def change_entry(
        self,
        case_id: str,
        kind: EntryKind,
        number: int,
        status: str,
        at: int,
        actor: str,
        data: Mapping[str, Any] = NOTHING,
    ) -> CaseEntry:
        """Change the status of an entry, and add data; NotFound, or Refused if the case is closed."""
        more = self.redactor.redact_value(dict(data))

        def change(statements: Statements) -> CaseEntry:
            case = _lock_open_case(statements, case_id)
            known = _read_entry(statements, case.id, kind, number)
            entry = known._replace(status=clean(str(status)), data={**known.data, **more}, updated_at=at)
            statements.run("change_entry", {**build_entry_values(entry), "at": at})
            done = "resolved" if kind is EntryKind.HYPOTHESIS else "changed"
            _write_event(statements, case, _build_fact(entry, done, more), _WrittenBy(at, clean(actor)), entry)
            return entry

        return self._driver.write(change)

    def close(self, case_id: str, closeout: Mapping[str, Any], at: int, actor: str) -> Case:
        """Close a case, which is then active nowhere; Refused if it is closed already or was changed meanwhile.

        `closeout["event_seq"]` is the sequence of the case when the caller checked that it may be closed.
        """
        seen = closeout.get("event_seq")
        redacted = self.redactor.redact_value({name: value for name, value in closeout.items() if name != "event_seq"})

        def close(statements: Statements) -> Case:
            case = _lock_open_case(statements, case_id)
            if seen is not None and seen != case.event_seq:
                raise CaseRefused(f"case {case.id} was changed in the meantime: review it, then close it")
            statements.run("clear_active_case", {"case_id": case.id})
            closed = case._replace(status=CaseStatus.CLOSED, closeout=redacted, closed_at=at)
            return _write_status(statements, closed, Fact("case.closed", redacted), _WrittenBy(at, clean(actor)))

        return self._driver.write(close)

    def reopen(self, case_id: str, place: str, at: int, actor: str) -> Case:
        """Reopen a closed case and make it active in a place; Refused if another open one is active there."""

        def reopen(statements: Statements) -> Case:
            case = _lock_case(statements, case_id)
            if case.status is CaseStatus.OPEN:
                raise CaseRefused(f"case {case.id} is open: write to it, or run `jackline case switch {case.id}`")
            active = _refuse_other_active(statements, clean(place), case.id)
            _activate(statements, clean(place), case.id, active, at)
            opened = case._replace(status=CaseStatus.OPEN, closeout={}, closed_at=None)
            fact = Fact("case.reopened", {"place": clean(place)})
            return _write_status(statements, opened, fact, _WrittenBy(at, clean(actor)))

        return self._driver.write(reopen)

    def relocate(self, case_id: str, repository: str, path: str, at: int, actor: str) -> Case:
        """Move a case with its repository; it is then active nowhere."""

        def relocate(statements: Statements) -> Case:
            case = _lock_case(statements, case_id)
            moved = case._replace(repository=clean(repository), path=clean(path))
            statements.run("clear_active_case", {"case_id": case.id})
            statements.run("relocate_case", {"id": case.id, "repository": moved.repository, "path": moved.path})
            fact = Fact("case.moved", {"repository": moved.repository, "path": moved.path, "from": case.path})
            return _write_event(statements, moved, fact, _WrittenBy(at, clean(actor)))

        return self._driver.write(relocate)


def _start_case(statements: Statements, new: NewCase, place: str, by: _WrittenBy) -> Case:
    if new.run_id is not None and statements.one("get_request", {"id": clean(new.run_id)}) is None:
        raise build_not_found(new.run_id)
    active = _refuse_other_active(statements, place)
    case = _insert_case(statements, new, by.at)
    _activate(statements, place, case.id, active, by.at)
    data = {"request": case.request, "repository": case.repository, "path": case.path, "place": place}
    fact = Fact(
        "case.started", {**data, "run": case.run_id, "user": case.user_name, "problem": stored_dict(case.problem)}
    )
    return _write_event(statements, case, fact, by)


def _insert_case(statements: Statements, new: NewCase, at: int) -> Case:
    """Insert the case under the first free id."""
    names = (clean(new.repository), clean(new.path), clean(new.user_name), new.run_id)
    number, case_id = 1, clean(new.id)
    while True:
        case = Case(case_id, *names, CaseStatus.OPEN, clean(new.request), new.problem, at, at, _NO_ENTRY, {})
        if statements.run("add_case", build_case_values(case)):
            return case
        number += 1
        case_id = f"{clean(new.id)}-{number}"


def _add_entry(statements: Statements, case_id: str, entry: CaseEntry, by: _WrittenBy) -> CaseEntry:
    case = _lock_open_case(statements, case_id)
    named = entry.data.get("hypothesis")
    if entry.kind is EntryKind.EVIDENCE and named:
        kind, number = parse_entry_id(str(named)) or (None, 0)
        if kind is not EntryKind.HYPOTHESIS:
            raise _build_no_entry(EntryKind.HYPOTHESIS, str(named))
        entry = entry._replace(data={**entry.data, "hypothesis": _read_entry(statements, case.id, kind, number).id})
    number = case.counts[str(entry.kind)] + 1
    entry = entry._replace(case_id=case.id, number=number, at=by.at, updated_at=by.at)
    statements.run("add_entry", build_entry_values(entry))
    case = case._replace(counts={**case.counts, str(entry.kind): number})
    _write_event(statements, case, _build_fact(entry, "added", entry.data), by, entry, counted=entry.kind)
    return entry


def _build_fact(entry: CaseEntry, done: str, data: Mapping[str, Any]) -> Fact:
    """The event of an entry; of a command's output only the digest."""
    values = {**data, "id": entry.id, "text": clean(entry.text), "status": str(entry.status)}
    if values.get("output"):
        values["output"] = digest_text(str(values["output"]))
    return Fact(f"case.{entry.kind}.{done}", values)


def _write_event(
    statements: Statements,
    case: Case,
    fact: Fact,
    by: _WrittenBy,
    entry: CaseEntry | None = None,
    *,
    counted: EntryKind | None = None,
) -> Case:
    """Write the event, and the new end of the chain to the case; `case` and `entry` are as they are after the write."""
    records = digest_case(case) | ({} if entry is None else digest_entry(entry))
    chain = append_events(
        statements, get_case_stream(case.id), ChainEnd(case.event_seq, case.chain_head), cover((fact,), records), *by
    )
    counts = _NO_ENTRY if counted is None else {**_NO_ENTRY, str(counted): 1}
    values = {"id": case.id, "after": case.event_seq, "at": by.at, **chain._asdict(), **counts}
    if statements.run("move_case", values) == 0:
        raise RetryTransaction
    return case._replace(updated_at=by.at, **chain._asdict())


def _write_status(statements: Statements, case: Case, fact: Fact, by: _WrittenBy) -> Case:
    """Write the case's new status together with its event."""
    facts = cover((fact,), digest_case(case))
    chain = append_events(statements, get_case_stream(case.id), ChainEnd(case.event_seq, case.chain_head), facts, *by)
    values = {**build_case_values(case), "after": case.event_seq, "at": by.at, **chain._asdict()}
    if statements.run("set_case_status", values) == 0:
        raise RetryTransaction
    return case._replace(updated_at=by.at, **chain._asdict())


def _lock_case(statements: Statements, case_id: str) -> Case:
    row = statements.one("lock_case", {"id": clean(case_id)})
    if row is None:
        raise NoCase(case_id, what="case", hint="jackline case list")
    return build_case(row)


def _lock_open_case(statements: Statements, case_id: str) -> Case:
    case = _lock_case(statements, case_id)
    if case.status is CaseStatus.CLOSED:
        raise CaseRefused(f"case {case.id} is closed: `jackline case reopen {case.id}` opens it again")
    return case


def _read_entry(statements: Statements, case_id: str, kind: EntryKind, number: int) -> CaseEntry:
    row = statements.one("get_entry", {"case_id": case_id, "kind": str(kind), "number": number})
    if row is None:
        raise _build_no_entry(
            kind, CaseEntry(case_id=case_id, kind=kind, number=number, at=0, updated_at=0, text="").id
        )
    return build_entry(row)


def _lock_active(statements: Statements, place: str) -> str:
    """The id of the place's active case, locked; empty if there is none."""
    row = statements.one("lock_active_case", {"place": place})
    return "" if row is None else str(row[0])


def _refuse_other_active(statements: Statements, place: str, allowed: str = "") -> str:
    """The id of the place's active case, locked; Refused if it is open and not `allowed`."""
    seen = _lock_active(statements, place)
    row = statements.one("get_case", {"id": seen}) if seen not in {"", allowed} else None
    if row is not None and build_case(row).status is CaseStatus.OPEN:
        raise CaseRefused(
            f"case {seen} is open and active here: close it, or `jackline case switch` to another one first"
        )
    return seen


def _activate(statements: Statements, place: str, case_id: str, seen: str, at: int) -> None:
    values = {"place": place, "case_id": case_id, "seen": seen, "at": at}
    if statements.run("set_active_case", values) == 0:
        raise RetryTransaction  # another case became active since we looked


def _build_no_entry(kind: EntryKind, name: str) -> NoCase:
    return NoCase(name, what=str(kind), hint="jackline case status")


def digest_case(case: Case) -> dict[str, str]:
    """The digest of a case's row as it is after the write."""
    return {CASE: digest_row(build_case_values(case), CASE_COLUMNS)}


def digest_entry(entry: CaseEntry) -> dict[str, str]:
    """The digest of an entry's row."""
    return {entry.id: digest_row(build_entry_values(entry), ENTRY_COLUMNS)}
