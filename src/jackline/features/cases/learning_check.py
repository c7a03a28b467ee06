"""The learning gate, a host check: each learning of a run's open cases must be in the repository. It only reads.

The rule is in `features.cases.learning`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import Failure
from jackline.engine.check import CheckResult, HostCheck
from jackline.engine.git import find_tracked_files
from jackline.features.cases import learning
from jackline.features.cases.case_model import CaseQuery, CaseStatus, EntryKind
from jackline.features.cases.case_queries import Cases
from jackline.formatting import join_some

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.records import Run
    from jackline.engine.process import Warden
    from jackline.features.cases.case_model import Case
    from jackline.store.store import Store

_MOST_NAMED = 5
_MOST_CASES = 10_000  # a page of them would hide the others


def find_open_cases(store: Store, run_id: str) -> list[Case]:
    """All open cases of a run: one indexed read."""
    return Cases(store).list_page(CaseQuery(run_id=run_id, status=CaseStatus.OPEN, limit=_MOST_CASES))


def build_result(review: learning.LearningReview) -> CheckResult:
    """The result to store for a review."""
    count = len(review.unresolved)
    if not count:
        return CheckResult(exit_code=0, output=review.output, detail="")
    names = join_some(review.unresolved, _MOST_NAMED)
    are = "learnings are" if count > 1 else "learning is"
    command = f"`jackline case learning review --case {review.first}`"
    detail = f"{count} {are} unresolved ({names}): {command} shows what is missing"
    return CheckResult(exit_code=1, output=review.output, detail=detail)


def _find_command(store: Store, run: Run) -> str:
    return learning.REVIEW_COMMAND if find_open_cases(store, run.id) else ""


def _read(store: Store, run_id: str, env: Mapping[str, str], warden: Warden | None) -> CheckResult:
    """Review the open cases; git is asked in the folder where each case was opened."""
    cases = find_open_cases(store, run_id)
    entries = {case.id: Cases(store).list_entries(case.id, EntryKind.LEARNING) for case in cases}
    found = {
        case.id: find_tracked_files(case.path, learning.find_paths(entries[case.id]), env, warden) for case in cases
    }
    return build_result(learning.review_learnings(cases, entries, found))


def _resume_section(store: Store, run_id: str) -> tuple[str, Sequence[str]]:
    return learning.build_resume_section([case.id for case in find_open_cases(store, run_id)])


LEARNING_CHECK = HostCheck(
    failure=Failure.LEARNINGS, find_command=_find_command, read=_read, resume_section=_resume_section
)
