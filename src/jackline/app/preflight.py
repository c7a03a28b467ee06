"""Checks of the session and the workspace before a run is created. They change nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import agents, places
from jackline.domain.states import ACTIVE
from jackline.errors import SessionTaken, UsageError
from jackline.store.contract import RunQuery

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.domain.records import Spec


def refuse_taken(home: Home, spec: Spec) -> None:
    """UsageError if the session cannot be adopted, or belongs to a run that has not ended."""
    if not spec.session:
        return
    if not agents.load(home.config, spec.agent).declaration.resumes:
        raise UsageError(f"{spec.agent} cannot continue a session: remove --session")
    for row in home.list_runs(RunQuery(states=tuple(sorted(ACTIVE)), session=spec.session)):
        if home.store().sessions(row.id).get(spec.agent) == spec.session:  # whichever agent works on that run now
            raise SessionTaken(spec.session, owner=row.id)


def refuse_unready(request: Request, workspace: str) -> None:
    """UsageError if the workspace is not what the request requires."""
    if not request.requires_commit and not request.requires_clean:
        return
    if not os.path.exists(os.path.join(places.repository_of(workspace), ".git")):
        required = "a commit" if request.requires_commit else "a clean tree"
        raise UsageError(
            f"task '{request.task}' requires {required}, and {workspace} is not in a git repository: "
            "run `git init` there, or name another --workspace"
        )
    if request.requires_clean:
        _refuse_dirty(request, workspace)


def _refuse_dirty(request: Request, workspace: str) -> None:
    from jackline.engine.changes import Git
    from jackline.engine.settings import inherited

    changed = Git(workspace, inherited(os.environ)).ask("status", "--porcelain", "-z", "--no-renames")
    if changed is None:
        raise UsageError(f"git cannot tell whether {workspace} is clean: try `git status` there")
    first, *others = changed.strip("\0").split("\0")
    if first:
        more = f" and {len(others)} more" if others else ""
        raise UsageError(
            f"task '{request.task}' requires a clean tree, and {first[3:]!r}{more} is changed: "
            "`git status` shows it; commit or stash it first"
        )
