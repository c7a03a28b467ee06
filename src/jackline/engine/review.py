"""The learning gate, a host check: each learning of a run's open cases must be in the repository. It only reads.

The rule is in `domain.learning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain import learning
from jackline.domain.case import CaseQuery, CaseStatus, EntryKind
from jackline.domain.states import Failure
from jackline.engine.check import CheckResult, HostCheck
from jackline.engine.tracked import tracked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.case import Case
    from jackline.domain.records import Run
    from jackline.engine.process import Warden
    from jackline.store.contract import Store

_MOST_NAMED = 5
_MOST_CASES = 10_000  # a page of them would hide the others


def open_cases(store: Store, run_id: str) -> list[Case]:
    """All open cases of a run: one indexed read."""
    return store.cases(CaseQuery(run_id=run_id, status=CaseStatus.OPEN, limit=_MOST_CASES))


def build_result(review: learning.Review) -> CheckResult:
    """The result to store for a review."""
    count = len(review.unresolved)
    if not count:
        return CheckResult(0, review.output, "")
    more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
    names = f"{', '.join(review.unresolved[:_MOST_NAMED])}{more}"
    are = "learnings are" if count > 1 else "learning is"
    command = f"`jackline case learning review --case {review.first}`"
    detail = f"{count} {are} unresolved ({names}): {command} shows what is missing; a resume tells the agent"
    return CheckResult(1, review.output, detail)


def _find_command(store: Store, run: Run) -> str:
    return learning.REVIEW if open_cases(store, run.id) else ""


def _read(store: Store, run_id: str, env: Mapping[str, str], warden: Warden | None) -> CheckResult:
    """Review the open cases; git is asked in the folder where each case was opened."""
    cases = open_cases(store, run_id)
    entries = {case.id: store.entries(case.id, EntryKind.LEARNING) for case in cases}
    found = {case.id: tracked(case.path, learning.paths_of(entries[case.id]), env, warden) for case in cases}
    return build_result(learning.review(cases, entries, found))


def _resume_section(store: Store, run_id: str) -> tuple[str, Sequence[str]]:
    return learning.resume_section([case.id for case in open_cases(store, run_id)])


LEARNINGS = HostCheck(Failure.LEARNINGS, _find_command, _read, _resume_section)
