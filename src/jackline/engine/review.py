"""The learning gate at a run's end: what its open cases taught, and whether the repository has it. It only reads.

The rule itself is in `domain.learning`; what is found is written down as a check, like the proof.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain import learning
from jackline.domain.case import CaseStatus, EntryKind
from jackline.domain.signals import CheckEnded
from jackline.engine.attempt import Signal
from jackline.engine.tracked import tracked
from jackline.store.state_contract import CaseQuery

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.case import Case
    from jackline.domain.records import Check
    from jackline.engine.process import Warden
    from jackline.store.contract import Store

_MOST_NAMED = 5
_MOST_CASES = 10_000  # a page of them would hide the others


def open_cases(store: Store, run_id: str) -> list[Case]:
    """The cases of a run that nobody has closed, all of them: one read by an index."""
    return store.cases(CaseQuery(run_id=run_id, status=CaseStatus.OPEN, limit=_MOST_CASES))


def look(store: Store, run_id: str, env: Mapping[str, str], warden: Warden | None) -> learning.Review:
    """What their learnings came to; the files are looked for where each case was opened."""
    cases = open_cases(store, run_id)
    entries = {case.id: store.entries(case.id, EntryKind.LEARNING) for case in cases}
    found = {case.id: tracked(case.path, learning.paths_of(entries[case.id]), env, warden) for case in cases}
    return learning.review(cases, entries, found)


def ended(check: Check, found: learning.Review, at: int) -> Signal:
    """The end of the check, with what is to be written down of it."""
    code = 1 if found.unresolved else 0
    done = check._replace(ended_at=at, exit_code=code, output=found.output)
    return Signal(CheckEnded(at, code, _detail(found)), check=done)


def _detail(found: learning.Review) -> str:
    if not found.unresolved:
        return ""
    count = len(found.unresolved)
    more = f" and {count - _MOST_NAMED} more" if count > _MOST_NAMED else ""
    named = f"{', '.join(found.unresolved[:_MOST_NAMED])}{more}"
    are = "learnings are" if count > 1 else "learning is"
    look = f"`jackline case learning review --case {found.first}`"
    return f"{count} {are} unresolved ({named}): {look} says what is missing, a resume tells the agent"
