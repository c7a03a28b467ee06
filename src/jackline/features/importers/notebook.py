"""Notebooks in `.agents/runs/ID`: read as a case and its entries. Read-only."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from jackline.app import identity, paths
from jackline.domain.ids import repository_id
from jackline.features.cases.case_model import (
    Case,
    CaseEntry,
    CaseStatus,
    CommandStatus,
    EntryKind,
    HypothesisStatus,
    LearningKind,
    Problem,
    RepoAction,
    parse_entry_id,
)
from jackline.features.importers import source_files
from jackline.features.importers.clean_values import (
    SizeBudget,
    clean_json,
    clean_text,
    clean_texts,
    parse_moment,
    parse_stamp,
)
from jackline.features.importers.import_records import NOTEBOOK, FoundCase, Source, SourceFile, Troubles, build_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FILES = {
    EntryKind.HYPOTHESIS: "hypotheses.jsonl",
    EntryKind.EVIDENCE: "evidence.jsonl",
    EntryKind.COMMAND: "commands.jsonl",
    EntryKind.LEARNING: "learning.jsonl",
}
_TEXTS = {EntryKind.COMMAND: "command", EntryKind.LEARNING: "summary"}
_STATUSES: Mapping[EntryKind, tuple[str, frozenset[str]]] = {
    EntryKind.HYPOTHESIS: ("status", frozenset(HypothesisStatus)),
    EntryKind.COMMAND: ("status", frozenset(CommandStatus)),
    EntryKind.LEARNING: ("repo_action", frozenset(RepoAction)),
}
_DATA = {
    EntryKind.EVIDENCE: ("hypothesis",),
    EntryKind.COMMAND: ("exit_code", "output", "duration_ms"),
    EntryKind.LEARNING: ("kind", "path", "reason"),
    EntryKind.HYPOTHESIS: ("note",),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_ACTIVE = "ACTIVE"  # the file that names the active case
_MOST_ENTRIES = 10_000  # of one kind
_MOST_NUMBER = 10**9
_LITTLE = 1_000  # characters of a text, where there is too much of it


def read(source: Source, troubles: Troubles) -> Iterator[FoundCase]:
    """The one case of the folder."""
    capsule = os.path.join(source.path, "problem.json")
    told = source_files.read_optional_object(capsule, troubles)
    if told is None and not os.path.lexists(capsule):
        troubles.add(capsule, "", "it is missing: the request is unknown")
    case = _case(source.path, told or {}, troubles)
    entries = tuple(entry for kind in EntryKind for entry in _Notes(source.path, case, kind, troubles).read())
    hypotheses = {entry.id for entry in entries if entry.kind is EntryKind.HYPOTHESIS}
    entries = tuple(_with_known_hypothesis(entry, hypotheses, source.path, troubles) for entry in entries)
    updated = max((entry.updated_at for entry in entries), default=case.updated_at)
    case = case._replace(updated_at=max(case.updated_at, updated))
    other_id = f"{case.id[:100]}-{build_digest(NOTEBOOK, case.repository, case.id)[:8]}"
    yield FoundCase(case=case, entries=entries, other_id=other_id, files=tuple(_originals(source.path)))


def _originals(folder: str) -> Iterator[SourceFile]:
    for name in ("problem.json", *_FILES.values(), "closeout.json", "closeout.md"):
        path = os.path.join(folder, name)
        if source_files.get_size(path):
            yield SourceFile(source=path, name=name)


def _case(folder: str, told: Mapping[str, Any], troubles: Troubles) -> Case:
    path = paths.find_repository(_root(folder))
    repository, name = repository_id(path), os.path.basename(folder)
    given = told.get("id")
    case_id = next((one for one in (given, name) if isinstance(one, str) and _is_name(one)), None)
    created = parse_moment(told.get("created_at")) or parse_stamp(name) or source_files.get_modified(folder)
    case = Case(
        id=case_id or f"{NOTEBOOK}-{build_digest(NOTEBOOK, repository, name)}",
        repository=repository,
        path=path,
        user_name=identity.find_user_name(),
        run_id=None,
        status=CaseStatus.OPEN,
        request=clean_text(told.get("request"), source_files.MOST_LINE),
        problem=_problem(told),
        created_at=created,
        updated_at=created,
    )
    return _closed(case, folder, troubles)


def _is_name(text: str) -> bool:
    """Whether a case folder can have this name."""
    return _NAME.fullmatch(text) is not None and ".." not in text and text != _ACTIVE


def _root(folder: str) -> str:
    """The folder with `.agents`, else the parent."""
    above = os.path.dirname(folder)
    if (os.path.basename(os.path.dirname(above)), os.path.basename(above)) == (".agents", "runs"):
        return os.path.dirname(os.path.dirname(above))
    return above


def _problem(told: Mapping[str, Any]) -> Problem:
    dirty = told.get("dirty_worktree")
    return Problem(
        intent=clean_text(told.get("intent")),
        target_properties=clean_texts(told.get("target_properties")),
        intake_plan=clean_json(told.get("intake_plan")),
        expected_verification=clean_texts(told.get("expected_verification")),
        risks=clean_texts(told.get("risks")),
        non_goals=clean_texts(told.get("non_goals")),
        dirty_worktree=clean_texts(dirty.get("paths") if isinstance(dirty, dict) else dirty),
    )


def _closed(case: Case, folder: str, troubles: Troubles) -> Case:
    """A case with a closeout file is closed, also if the file is unreadable."""
    path = os.path.join(folder, "closeout.json")
    told = source_files.read_optional_object(path, troubles)
    if told is None and not os.path.lexists(path):
        return case
    told = told or {}
    at = parse_moment(told.get("closed_at")) or case.created_at
    closeout = {
        "summary": clean_text(told.get("summary")),
        "verification": clean_json(told.get("verification")) or [],
        "risks": list(clean_texts(told.get("residual_risks"))),
        "imported": NOTEBOOK,
    }
    return case._replace(status=CaseStatus.CLOSED, closeout=closeout, closed_at=at, updated_at=at)


class _Notes:
    """Reads the entries of one kind; duplicate numbers get new ones."""

    def __init__(self, folder: str, case: Case, kind: EntryKind, troubles: Troubles) -> None:
        self._path = os.path.join(folder, _FILES[kind])
        self._case, self._kind, self._troubles = case, kind, troubles
        self._found: list[tuple[int | None, CaseEntry]] = []  # with the number that each had
        self._room = SizeBudget()

    def read(self) -> list[CaseEntry]:
        at = self._case.created_at
        for line, told in source_files.read_lines(self._path, self._troubles):
            at = parse_moment(told.get("timestamp")) or parse_moment(told.get("created_at")) or at
            number = self._number(told.get("id"))
            if told.get("event") == "resolve":
                self._resolve(number, told, at, line)
            elif len(self._found) < _MOST_ENTRIES:
                self._found.append((number, self._entry(told, at, line)))
            else:
                self._say(line, f"there are more than {_MOST_ENTRIES}: this one was left out")
        return self._renumbered()

    def _number(self, told: object) -> int | None:
        found = parse_entry_id(told) if isinstance(told, str) else None
        fits = found is not None and found[0] is self._kind and 0 < found[1] < _MOST_NUMBER
        return found[1] if found is not None and fits else None

    def _entry(self, told: Mapping[str, Any], at: int, line: int) -> CaseEntry:
        text = clean_text(told.get(_TEXTS.get(self._kind, "text")))
        if not text:
            self._say(line, f"it has no {_TEXTS.get(self._kind, 'text')}")
        updated = parse_moment(told.get("updated_at")) or at
        status, data = self._status(told, line), self._data(told, line)
        if not self._room.reserve([text, data]):
            self._say(line, "there is too much text: it was shortened")
            text, data = clean_text(text, _LITTLE), {}
        return CaseEntry(
            case_id=self._case.id,
            kind=self._kind,
            number=0,
            at=at,
            updated_at=max(at, updated),
            text=text,
            status=status,
            data=data,
        )

    def _status(self, told: Mapping[str, Any], line: int) -> str:
        if self._kind not in _STATUSES:
            return ""
        field, known = _STATUSES[self._kind]
        status = told.get(field)
        if isinstance(status, str) and status in known:
            return status
        if self._kind is EntryKind.HYPOTHESIS and status is None:
            return HypothesisStatus.OPEN
        self._say(line, f"its {field} is none of {', '.join(sorted(known))}")
        return {EntryKind.HYPOTHESIS: HypothesisStatus.OPEN, EntryKind.COMMAND: CommandStatus.SKIPPED}.get(
            self._kind, RepoAction.NONE
        )

    def _data(self, told: Mapping[str, Any], line: int) -> dict[str, Any]:
        data = {name: clean_json(told[name]) for name in _DATA[self._kind] if told.get(name) is not None}
        if self._kind is EntryKind.LEARNING and data.get("kind") not in set(LearningKind):
            self._say(line, "its kind is none that is known")
        return data

    def _resolve(self, number: int | None, told: Mapping[str, Any], at: int, line: int) -> None:
        """A resolution applies to every hypothesis with that number."""
        places = [place for place, (had, _) in enumerate(self._found) if had is not None and had == number]
        if not places or self._kind is not EntryKind.HYPOTHESIS:
            self._say(line, "it resolves a hypothesis that is not there")
            return
        note = clean_text(told.get("note"))
        for place in places:
            had, entry = self._found[place]
            data = {**entry.data, "note": note} if note else entry.data
            resolved = entry._replace(status=self._status(told, line), updated_at=max(at, entry.at), data=data)
            self._found[place] = (had, resolved)

    def _renumbered(self) -> list[CaseEntry]:
        """In order; the first entry keeps a duplicate number, the others get new numbers at the end."""
        highest = max((had for had, _ in self._found if had is not None), default=0)
        taken: set[int] = set()
        entries = []
        for had, entry in self._found:
            number = had
            if number is None or number in taken:
                highest += 1
                number = highest
                why = "it has no id" if had is None else f"its id {entry._replace(number=had).id} was given twice"
                self._troubles.note(self._path, "", f"{why}: it is {entry._replace(number=number).id} now")
            taken.add(number)
            entries.append(entry._replace(number=number))
        return sorted(entries, key=lambda one: one.number)

    def _say(self, line: int, reason: str) -> None:
        self._troubles.add(self._path, f"line {line}", reason)


def _with_known_hypothesis(entry: CaseEntry, hypotheses: set[str], folder: str, troubles: Troubles) -> CaseEntry:
    named = entry.data.get("hypothesis")
    if entry.kind is not EntryKind.EVIDENCE or named is None or str(named) in hypotheses:
        return entry
    path = os.path.join(folder, _FILES[entry.kind])
    troubles.note(path, entry.id, "it names a missing hypothesis: it was imported without one")
    return entry._replace(data={name: value for name, value in entry.data.items() if name != "hypothesis"})
