"""Writes to a case: hypotheses, evidence, commands, learnings, and the choice of the active case.

Each function is one transaction; the files and the dashboard are updated after it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from jackline.clock import wall_ms
from jackline.errors import CaseRefused, NoCase, UsageError
from jackline.features.cases import case_files, location
from jackline.features.cases.case_model import (
    CaseEntry,
    CommandStatus,
    EntryKind,
    HypothesisStatus,
    LearningKind,
    RepoAction,
    parse_entry_id,
)

if TYPE_CHECKING:
    from enum import StrEnum

    from jackline.app.home import Home
    from jackline.features.cases.case_model import Case
    from jackline.features.cases.case_store import CaseNotebook
    from jackline.features.cases.location import CaseLocation

LONGEST_TEXT = 16_384
_LONGEST_PATH = 4_096


def add_hypothesis(home: Home, text: str, *, case_id: str | None = None, at: CaseLocation | None = None) -> CaseEntry:
    """Add an open hypothesis."""
    return _add(home, EntryKind.HYPOTHESIS, text, HypothesisStatus.OPEN, {}, case_id, at)


def resolve_hypothesis(
    home: Home, name: str, status: str, note: str = "", *, case_id: str | None = None, at: CaseLocation | None = None
) -> CaseEntry:
    """Set the status of a hypothesis (`H001`); it can be set again."""
    refuse_unknown_word(HypothesisStatus, status, "--status")
    at = at or location.get_location(home)
    case = location.choose_case(home, case_id, at)
    kind, number = parse_entry_id(name) or (None, 0)
    if kind is not EntryKind.HYPOTHESIS:
        raise _build_missing_hypothesis(name)
    data = {"note": check_text(note, "the note")} if note else {}
    entry = _open_notebook(home).change_entry(case.id, kind, number, status, wall_ms(), at.actor, data)
    case_files.update_case(home, case.id)
    return entry


def add_evidence(
    home: Home, text: str, hypothesis: str | None = None, *, case_id: str | None = None, at: CaseLocation | None = None
) -> CaseEntry:
    """Add evidence, with or without a hypothesis."""
    if hypothesis is not None and (parse_entry_id(hypothesis) or (None,))[0] is not EntryKind.HYPOTHESIS:
        raise _build_missing_hypothesis(hypothesis)
    data = {"hypothesis": hypothesis} if hypothesis else {}
    return _add(home, EntryKind.EVIDENCE, text, "", data, case_id, at)


def add_command(
    home: Home, command: str, status: str, note: str = "", *, case_id: str | None = None, at: CaseLocation | None = None
) -> CaseEntry:
    """Add a command that was run elsewhere, or could not be run, and its result."""
    refuse_unknown_word(CommandStatus, status, "--status")
    data = {"note": check_text(note, "the note")} if note else {}
    return _add(home, EntryKind.COMMAND, command, status, data, case_id, at)


def add_learning(
    home: Home,
    summary: str,
    *,
    kind: str,
    repo_action: str,
    path: str = "",
    reason: str = "",
    case_id: str | None = None,
    at: CaseLocation | None = None,
) -> CaseEntry:
    """Add a learning, with the file in the repository that records it or a reason why there is none."""
    refuse_unknown_word(LearningKind, kind, "--kind")
    refuse_unknown_word(RepoAction, repo_action, "--repo-action")
    at = at or location.get_location(home)
    case = location.choose_case(home, case_id, at)
    data = {"kind": kind, **_build_artifact(case, at, repo_action, path, reason)}
    return _add(home, EntryKind.LEARNING, summary, repo_action, data, case.id, at)


def amend_learning(
    home: Home,
    name: str,
    *,
    repo_action: str,
    path: str = "",
    reason: str = "",
    case_id: str | None = None,
    at: CaseLocation | None = None,
) -> CaseEntry:
    """Change the file or the reason of a learning (`L001`)."""
    refuse_unknown_word(RepoAction, repo_action, "--repo-action")
    at = at or location.get_location(home)
    case = location.choose_case(home, case_id, at)
    kind, number = parse_entry_id(name) or (None, 0)
    if kind is not EntryKind.LEARNING:
        raise NoCase(name[:100], what="learning", hint="jackline case learning review")
    data = {"path": "", "reason": "", **_build_artifact(case, at, repo_action, path, reason)}
    entry = _open_notebook(home).change_entry(case.id, kind, number, repo_action, wall_ms(), at.actor, data)
    case_files.update_case(home, case.id)
    return entry


def switch_case(home: Home, case_id: str, *, at: CaseLocation | None = None) -> Case:
    """Make another open case of this repository the active one here."""
    at = at or location.get_location(home)
    case = _refuse_foreign(home, location.find_case(home, case_id), at)
    case = _open_notebook(home).switch(at.active_key, case.id, wall_ms(), at.actor)
    case_files.update_case(home, case.id)
    return case


def reopen_case(home: Home, case_id: str | None = None, *, at: CaseLocation | None = None) -> Case:
    """Reopen a closed case and make it the active one; without an id, the case closed last here."""
    at = at or location.get_location(home)
    case = (
        _find_last_closed(home, at) if case_id is None else _refuse_foreign(home, location.find_case(home, case_id), at)
    )
    case = _open_notebook(home).reopen(case.id, at.active_key, wall_ms(), at.actor)
    case_files.update_case(home, case.id)
    return case


def refuse_unknown_word(words: type[StrEnum], text: str, what: str) -> None:
    """UsageError unless the text is a member of an enumeration."""
    if text not in {str(one) for one in words}:
        raise UsageError(f"{what} '{text[:100]}' is not known: use one of {', '.join(words)}")


def check_text(text: str, what: str) -> str:
    """A text without surrounding blanks; UsageError if it is empty or too long."""
    text = text.strip()
    if not text:
        raise UsageError(f"{what} is empty")
    if len(text) > LONGEST_TEXT:
        raise UsageError(
            f"{what} has {len(text)} characters, more than {LONGEST_TEXT}: put it into a file and name the file"
        )
    return text


def _add(
    home: Home,
    kind: EntryKind,
    text: str,
    status: str,
    data: dict[str, Any],
    case_id: str | None,
    at: CaseLocation | None,
) -> CaseEntry:
    at = at or location.get_location(home)
    text = check_text(text, f"the {kind}")
    case = location.choose_case(home, case_id, at)
    entry = CaseEntry(
        case_id=case.id, kind=kind, number=0, at=0, updated_at=0, text=text, status=str(status), data=data
    )
    entry = _open_notebook(home).add_entry(case.id, entry, wall_ms(), at.actor)
    case_files.update_case(home, case.id)
    return entry


def _build_missing_hypothesis(name: str) -> NoCase:
    return NoCase(name[:100], what="hypothesis", hint="jackline case hypothesis list")


def _build_artifact(case: Case, at: CaseLocation, repo_action: str, path: str, reason: str) -> dict[str, str]:
    if repo_action == RepoAction.NONE:
        if path or not reason:
            raise UsageError("--repo-action none needs --reason and takes no --path")
        return {"reason": check_text(reason, "the reason")}
    if reason or not path:
        raise UsageError(f"--repo-action {repo_action} needs --path; --reason is only for --repo-action none")
    return {"path": resolve_repository_path(case.path, path, at.folder)}


def resolve_repository_path(root: str, path: str, folder: str) -> str:
    """A path typed in the folder, relative to the root of the repository; UsageError if it is outside."""
    flag = f"--path '{path[:200]}'"
    if len(path) > _LONGEST_PATH:
        raise UsageError(f"{flag}… is too long for a path: name the file relative to the root of the repository")
    resolved = None if "\0" in path or not path.strip() else _resolve_path(root, path, folder)
    if resolved is None or resolved == root or not _is_in(root, resolved):
        raise UsageError(f"{flag} is not a file in {root}: the repository must record the learning")
    if os.path.isdir(resolved) and not os.path.islink(resolved):
        raise UsageError(f"{flag} is a folder: name the file in it that records the learning")
    try:
        resolved.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{flag} has a name that is not UTF-8: rename the file") from None
    return os.path.relpath(resolved, root)


def _resolve_path(root: str, path: str, folder: str) -> str:
    """The path relative to the folder or to the root, whichever exists; links to folders are resolved for git."""
    typed = os.path.normpath(os.path.join(folder if _is_in(root, folder) else root, path))
    from_root = os.path.normpath(os.path.join(root, path))
    either = (typed, from_root) if _is_in(root, from_root) else (typed,)
    there = [one for one in either if os.path.lexists(one)]
    soon = [one for one in either if os.path.isdir(os.path.dirname(one))]
    best = [*there, *soon, typed][0]
    return os.path.join(os.path.realpath(os.path.dirname(best)), os.path.basename(best))


def _is_in(root: str, path: str) -> bool:
    return path == root or path.startswith(os.path.join(root, ""))


def _refuse_foreign(home: Home, case: Case, at: CaseLocation) -> Case:
    """CaseRefused for a case of another run or repository; a repository that was moved here takes its cases along."""
    if at.run_id is not None and case.run_id != at.run_id:
        raise CaseRefused(f"case {case.id} does not belong to run {at.run_id}: use --case where you need it")
    if at.run_id is not None or case.repository == at.repository:
        return case
    if os.path.lexists(case.path) or not os.path.isdir(case_files.get_case_folder(case._replace(path=at.path))):
        raise CaseRefused(f"case {case.id} belongs to {case.path}: change to that folder, or use --case")
    return _open_notebook(home).relocate(case.id, at.repository, at.path, wall_ms(), at.actor)


def _find_last_closed(home: Home, at: CaseLocation) -> Case:
    from jackline.features.cases.case_model import CaseQuery, CaseStatus

    if (known := location.find_active(home, at)) is not None:
        raise CaseRefused(f"case {known.id} is open and active here: there is nothing to reopen")
    query = CaseQuery(repository=at.repository, status=str(CaseStatus.CLOSED), run_id=at.run_id)
    found = location.list_cases(home, query)
    # Outside a run, cases of runs are reopened by id only.
    own = [case for case in found if case.run_id == at.run_id and (at.run_id or case.user_name == at.user_name)]
    if not own:
        raise CaseRefused(f"none of the newest closed cases here is yours: see `{location.LIST}`")
    return max(own, key=lambda case: (case.closed_at or 0, case.id))


def _open_notebook(home: Home) -> CaseNotebook:
    """The writes of a notebook; imported here, because commands that only read do without them."""
    from jackline.features.cases.case_store import CaseNotebook

    return CaseNotebook(home.store(create=True))
