"""Checks whether git tracks the files that learnings name. It changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.domain import learning
from jackline.domain.case import EntryKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.app.home import Home
    from jackline.domain.case import Case, Entry
    from jackline.domain.learning import Unresolved


def learnings_of(home: Home, case: Case) -> list[Entry]:
    """The learnings of a case."""
    return home.store().entries(case.id, EntryKind.LEARNING)


def unresolved(case: Case, learnings: Sequence[Entry]) -> list[Unresolved]:
    """The learnings that name neither a tracked file of the case's repository nor a reason."""
    return learning.unresolved(learnings, tracked_files(case, learnings))


def tracked_files(
    case: Case, learnings: Sequence[Entry], environ: Mapping[str, str] | None = None
) -> frozenset[str] | None:
    """The named files that git tracks; None if git fails.

    `environ` is the environment of a hook, which names the index of the commit in progress.
    """
    paths = learning.paths_of(learnings)
    if not paths:
        return frozenset()
    from jackline.engine.changes import unbound
    from jackline.engine.tracked import tracked

    return tracked(case.path, paths, unbound(os.environ) if environ is None else environ)
