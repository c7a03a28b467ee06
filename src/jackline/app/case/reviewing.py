"""Whether what was learned has come to the repository: git is asked which files it tracks. It changes nothing."""

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


def unresolved(case: Case, learnings: Sequence[Entry], environ: Mapping[str, str] | None = None) -> list[Unresolved]:
    """Those that name no tracked file of the case's repository, and no reason.

    `environ` is that of a hook, which names the index of the commit that is being made.
    """
    paths = learning.paths_of(learnings)
    tracked: frozenset[str] = frozenset()
    if paths:
        from jackline.engine.changes import unbound
        from jackline.engine.tracked import tracked as tracked_by_git

        tracked = tracked_by_git(case.path, paths, unbound(os.environ) if environ is None else environ)
    return learning.unresolved(learnings, tracked)
