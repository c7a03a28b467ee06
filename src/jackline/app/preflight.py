"""Checks of the session and the workspace before a run is created. They change nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.domain.states import ACTIVE
from jackline.errors import SessionTaken, UsageError
from jackline.store.models import RunQuery
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.domain.records import Spec


def refuse_taken_session(home: Home, spec: Spec) -> None:
    """UsageError if the session cannot be adopted, or belongs to a run that has not ended."""
    if not spec.session:
        return
    if not agents.load_adapter(home.config, spec.agent).declaration.resumes:
        raise UsageError(f"{spec.agent} cannot continue a session: remove --session")
    for row in home.list_runs(RunQuery(states=tuple(sorted(ACTIVE)), session=spec.session)):
        # Whichever agent works on that run now.
        if home.store().records.get_sessions(row.id).get(spec.agent) == spec.session:
            raise SessionTaken(spec.session, owner=row.id)


def refuse_unready_workspace(request: Request, workspace: str) -> None:
    """UsageError if the workspace is not what the request requires."""
    if not request.requires_commit and not request.requires_clean:
        return
    if not os.path.exists(os.path.join(find_worktree(workspace), ".git")):
        required = "a commit" if request.requires_commit else "a clean tree"
        raise UsageError(
            f"task '{request.task}' requires {required}, and {workspace} is not in a git repository: "
            "run `git init` there, or name another --workspace"
        )
    if request.requires_clean:
        _refuse_dirty(request, workspace)


def _refuse_dirty(request: Request, workspace: str) -> None:
    from jackline.engine.git import Git
    from jackline.engine.settings import select_inherited_variables

    changed = Git(workspace=workspace, env=select_inherited_variables(os.environ)).run(
        "status", "--porcelain", "-z", "--no-renames"
    )
    if changed is None:
        raise UsageError(f"git cannot tell whether {workspace} is clean: try `git status` there")
    first, *others = changed.strip("\0").split("\0")
    if first:
        more = f" and {len(others)} more" if others else ""
        raise UsageError(
            f"task '{request.task}' requires a clean tree, and {first[3:]!r}{more} is changed: "
            "`git status` shows it; commit or stash it first"
        )


def refuse_untrusted_settings(home: Home, spec: Spec) -> None:
    """AgentUnavailable if the run's first agent cannot be started without settings of this untrusted project.

    A run with a fallback starts all the same: the other agent takes over.
    """
    from jackline.app.trust import read_untrusted_settings

    if not spec.fallback:
        declaration, _ = agents.load_declaration(home.config, spec.agent)
        read_untrusted_settings(home.path, home.config.get_text("database"), declaration, spec.workspace, os.environ)


def describe_redactions(asked: Spec, kept: Spec) -> list[str]:
    """Return a note for each text of a request that is stored redacted."""
    found = []
    if asked.prompt != kept.prompt:
        found.append(
            "the prompt seems to contain a secret: it is stored and passed to the agent as [redacted]; "
            "use an environment variable for secrets (docs/secrets.md)"
        )
    if asked.job != kept.job:
        found.append("the job file seems to contain a secret: it is stored as [redacted]")
    return found


def reject_secret_proof(proof: str, what: str = "the proof") -> None:
    """Reject a proof that contains a secret: it is stored as it is, because it has to be run."""
    if not proof:
        return
    from jackline.secrets.redactor import Redactor, find_secret_values

    if Redactor(find_secret_values(os.environ)).has_secret(proof):
        raise UsageError(
            f"{what} seems to contain a secret and would be stored as it is; "
            "move the command to a script that reads the secret from elsewhere"
        )
