"""Decides whether a learning is resolved: it is in a tracked file, or has a reason why not. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.cases.case_model import CaseStatus, EntryKind
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from jackline.features.cases.case_model import Case, CaseEntry

REVIEW_COMMAND = "jackline case learning review --require-resolved"


def build_resume_section(case_ids: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The open cases of a run, as a section of the resume prompt: its title and its items."""
    return "Your open cases; `jackline case handoff` prints what you need to know about them:", case_ids


class UnresolvedLearning(NamedTuple):
    """An unresolved learning, and what it lacks."""

    entry: CaseEntry
    lacks: str


def find_paths(entries: Iterable[CaseEntry]) -> tuple[str, ...]:
    """The files named by learnings without a reason, without duplicates: to look up in git."""
    named = (
        str(one.data.get("path") or "")
        for one in entries
        if one.kind is EntryKind.LEARNING and not one.data.get("reason")
    )
    return tuple(dict.fromkeys(path for path in named if path))


def find_unresolved(entries: Iterable[CaseEntry], tracked: Collection[str] | None) -> list[UnresolvedLearning]:
    """The learnings that are neither in a tracked file nor have a reason; other entries are ignored.

    `tracked` is None if git could not be run.
    """
    judged = (UnresolvedLearning(one, _find_lack(one, tracked)) for one in entries if one.kind is EntryKind.LEARNING)
    return [one for one in judged if one.lacks]


def format_unresolved(one: UnresolvedLearning) -> str:
    """Describe one unresolved learning in one line."""
    return f"{one.entry.id} {one.entry.text}: {one.lacks}"


class LearningReview(NamedTuple):
    """The result of reviewing the open cases of a run."""

    case_ids: tuple[str, ...] = ()  # the open ones
    unresolved: tuple[str, ...] = ()  # ids of learnings, with the case id if there are several cases
    first: str = ""  # the case of the first of them
    output: str = ""


def review_learnings(
    cases: Sequence[Case], entries: Mapping[str, Sequence[CaseEntry]], tracked: Mapping[str, Collection[str] | None]
) -> LearningReview:
    """Review the open cases; a closed one has passed its own gate. `entries` and `tracked` are keyed by case id."""
    still_open = [case for case in cases if case.status is CaseStatus.OPEN]
    found = [(case, one) for case in still_open for one in find_unresolved(entries[case.id], tracked[case.id])]
    names = tuple(f"{case.id} {one.entry.id}" if len(still_open) > 1 else one.entry.id for case, one in found)
    lines = []
    for case in still_open:
        own = [one for of, one in found if of.id == case.id]
        learnings = case.counts.get(EntryKind.LEARNING, 0)
        lines.append(f"case {case.id} is open; learnings: {learnings}, unresolved: {len(own)}")
        lines += [f"  {format_unresolved(one)}" for one in own]
    return LearningReview(
        case_ids=tuple(case.id for case in still_open),
        unresolved=names,
        first=found[0][0].id if found else "",
        output="\n".join(lines),
    )


def _find_lack(entry: CaseEntry, tracked: Collection[str] | None) -> str:
    if entry.data.get("reason"):
        return ""
    path = str(entry.data.get("path") or "")
    if not path:
        return "it names no file and no reason"
    if tracked is None:
        return f"cannot determine whether git tracks {path}; see `git status`"
    return "" if path in tracked else f"{path} is not tracked by git"
