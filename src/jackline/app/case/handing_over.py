"""Collects what the next agent needs to continue a case: its entries and the state of the worktree. Read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.case import beginning, place, reviewing
from jackline.domain.case import EntryKind

if TYPE_CHECKING:
    from jackline.app.case.place import Here
    from jackline.app.home import Home
    from jackline.views.case_handoff import Handoff


def handoff(home: Home, *, case_id: str | None = None, at: Here | None = None) -> Handoff:
    """Build the handoff of a case."""
    from jackline.views.case_handoff import Handoff

    case = place.chosen(home, case_id, at)
    entries = home.store().entries(case.id)
    of_kind = {kind: tuple(one for one in entries if one.kind is kind) for kind in EntryKind}
    lacking = tuple(reviewing.unresolved(case, of_kind[EntryKind.LEARNING]))
    return Handoff(
        case,
        of_kind[EntryKind.HYPOTHESIS],
        of_kind[EntryKind.EVIDENCE],
        of_kind[EntryKind.COMMAND],
        of_kind[EntryKind.LEARNING],
        lacking,
        beginning.dirty(case.path),
    )
