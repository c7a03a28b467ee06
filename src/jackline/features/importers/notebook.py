"""Notebooks in `.agents/runs/ID`: read as a case and its entries. Read-only."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from jackline.app import identity
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
from jackline.worktrees import find_worktree

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
# A name that a case folder can have; ACTIVE is the file that names the active case.
_CASE_NAME = re.compile(r"(?!ACTIVE\Z)(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_MOST_ENTRIES = 10_000  # of one kind
_MOST_NUMBER = 10**9
_LITTLE = 1_000  # characters of a text, where there is too much of it


def read(source: Source, troubles: Troubles) -> Iterator[FoundCase]:
    """The one case of the folder."""
    path = os.path.join(source.path, "problem.json")
    capsule = source_files.read_optional_object(path, troubles)
    if capsule is None and not os.path.lexists(path):
        troubles.add(path, "", "it is missing: the request is unknown")
    case = _build_case(source.path, capsule or {}, troubles)
    entries = tuple(entry for kind in EntryKind for entry in _Notes(source.path, case, kind, troubles).read())
    hypotheses = {entry.id for entry in entries if entry.kind is EntryKind.HYPOTHESIS}
    entries = tuple(_drop_unknown_hypothesis(entry, hypotheses, source.path, troubles) for entry in entries)
    updated = max((entry.updated_at for entry in entries), default=case.updated_at)
    case = case._replace(updated_at=max(case.updated_at, updated))
    other_id = f"{case.id[:100]}-{build_digest(NOTEBOOK, case.repository, case.id)[:8]}"
    names = ("problem.json", *_FILES.values(), "closeout.json", "closeout.md")
    originals = [SourceFile(source=os.path.join(source.path, name), name=name) for name in names]
    files = tuple(one for one in originals if source_files.get_size(one.source))
    yield FoundCase(case=case, entries=entries, other_id=other_id, files=files)


def _build_case(folder: str, capsule: Mapping[str, Any], troubles: Troubles) -> Case:
    path = find_worktree(_find_root(folder))
    repository, name = repository_id(path), os.path.basename(folder)
    case_id = next(
        (one for one in (capsule.get("id"), name) if isinstance(one, str) and _CASE_NAME.fullmatch(one)), None
    )
    created = parse_moment(capsule.get("created_at")) or parse_stamp(name) or source_files.get_modified(folder)
    case = Case(
        id=case_id or f"{NOTEBOOK}-{build_digest(NOTEBOOK, repository, name)}",
        repository=repository,
        path=path,
        user_name=identity.find_user_name(),
        run_id=None,
        status=CaseStatus.OPEN,
        request=clean_text(capsule.get("request"), source_files.MOST_LINE),
        problem=_build_problem(capsule),
        created_at=created,
        updated_at=created,
    )
    return _apply_closeout(case, folder, troubles)


def _find_root(folder: str) -> str:
    """The folder with `.agents`, else the parent."""
    above = os.path.dirname(folder)
    if (os.path.basename(os.path.dirname(above)), os.path.basename(above)) == (".agents", "runs"):
        return os.path.dirname(os.path.dirname(above))
    return above


def _build_problem(capsule: Mapping[str, Any]) -> Problem:
    dirty = capsule.get("dirty_worktree")
    return Problem(
        intent=clean_text(capsule.get("intent")),
        target_properties=clean_texts(capsule.get("target_properties")),
        intake_plan=clean_json(capsule.get("intake_plan")),
        expected_verification=clean_texts(capsule.get("expected_verification")),
        risks=clean_texts(capsule.get("risks")),
        non_goals=clean_texts(capsule.get("non_goals")),
        dirty_worktree=clean_texts(dirty.get("paths") if isinstance(dirty, dict) else dirty),
    )


def _apply_closeout(case: Case, folder: str, troubles: Troubles) -> Case:
    """A case with a closeout file is closed, also if the file is unreadable."""
    path = os.path.join(folder, "closeout.json")
    closing = source_files.read_optional_object(path, troubles)
    if closing is None and not os.path.lexists(path):
        return case
    closing = closing or {}
    at = parse_moment(closing.get("closed_at")) or case.created_at
    closeout = {
        "summary": clean_text(closing.get("summary")),
        "verification": clean_json(closing.get("verification")) or [],
        "risks": list(clean_texts(closing.get("residual_risks"))),
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
        for line, values in source_files.read_lines(self._path, self._troubles):
            at = parse_moment(values.get("timestamp")) or parse_moment(values.get("created_at")) or at
            found = parse_entry_id(values["id"]) if isinstance(values.get("id"), str) else None
            number = found[1] if found and found[0] is self._kind and 0 < found[1] < _MOST_NUMBER else None
            if values.get("event") == "resolve":
                self._resolve(number, values, at, line)
            elif len(self._found) < _MOST_ENTRIES:
                self._found.append((number, self._build_entry(values, at, line)))
            else:
                self._report(line, f"there are more than {_MOST_ENTRIES}: this one was left out")
        return self._renumber()

    def _build_entry(self, values: Mapping[str, Any], at: int, line: int) -> CaseEntry:
        text = clean_text(values.get(_TEXTS.get(self._kind, "text")))
        if not text:
            self._report(line, f"it has no {_TEXTS.get(self._kind, 'text')}")
        updated = parse_moment(values.get("updated_at")) or at
        status = self._read_status(values, line)
        data = {name: clean_json(values[name]) for name in _DATA[self._kind] if values.get(name) is not None}
        if self._kind is EntryKind.LEARNING and data.get("kind") not in set(LearningKind):
            self._report(line, "its kind is none that is known")
        if not self._room.reserve([text, data]):
            self._report(line, "there is too much text: it was shortened")
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

    def _read_status(self, values: Mapping[str, Any], line: int) -> str:
        if self._kind not in _STATUSES:
            return ""
        field, known = _STATUSES[self._kind]
        status = values.get(field)
        if isinstance(status, str) and status in known:
            return status
        if self._kind is EntryKind.HYPOTHESIS and status is None:
            return HypothesisStatus.OPEN
        self._report(line, f"its {field} is none of {', '.join(sorted(known))}")
        return {EntryKind.HYPOTHESIS: HypothesisStatus.OPEN, EntryKind.COMMAND: CommandStatus.SKIPPED}.get(
            self._kind, RepoAction.NONE
        )

    def _resolve(self, number: int | None, values: Mapping[str, Any], at: int, line: int) -> None:
        """A resolution applies to every hypothesis with that number."""
        places = [place for place, (had, _) in enumerate(self._found) if had is not None and had == number]
        if not places or self._kind is not EntryKind.HYPOTHESIS:
            self._report(line, "it resolves a hypothesis that is not there")
            return
        note = clean_text(values.get("note"))
        for place in places:
            had, entry = self._found[place]
            data = {**entry.data, "note": note} if note else entry.data
            resolved = entry._replace(status=self._read_status(values, line), updated_at=max(at, entry.at), data=data)
            self._found[place] = (had, resolved)

    def _renumber(self) -> list[CaseEntry]:
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

    def _report(self, line: int, reason: str) -> None:
        self._troubles.add(self._path, f"line {line}", reason)


def _drop_unknown_hypothesis(entry: CaseEntry, hypotheses: set[str], folder: str, troubles: Troubles) -> CaseEntry:
    named = entry.data.get("hypothesis")
    if entry.kind is not EntryKind.EVIDENCE or named is None or str(named) in hypotheses:
        return entry
    path = os.path.join(folder, _FILES[entry.kind])
    troubles.note(path, entry.id, "it names a missing hypothesis: it was imported without one")
    return entry._replace(data={name: value for name, value in entry.data.items() if name != "hypothesis"})
