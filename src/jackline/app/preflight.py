"""Checks of the session and the workspace before a run is created. They change nothing."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.domain.states import ACTIVE
from jackline.errors import AgentUnavailable, SessionTaken, UsageError
from jackline.extensions import call_hook
from jackline.store.models import RunQuery
from jackline.worktrees import find_settings_folder, find_worktree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.domain.spec import Spec, WorktreeSpec
    from jackline.engine.git import Git

_SHOWN_FILES = 3


def refuse_unready(home: Home, request: Request, spec: Spec, *, at_once: bool) -> None:
    """Raise an error if the run cannot be created now; with `at_once`, also if another one works in its worktree."""
    if spec.worktree.name:
        refuse_unready_worktree(home, spec.worktree)
    else:
        refuse_unready_workspace(request, spec.workspace)
    checkout = spec.worktree.source or spec.workspace
    for flag in (flag for flag, value in (("--review", spec.review), ("--commit", spec.commit_work)) if value):
        if not os.path.exists(os.path.join(find_worktree(checkout), ".git")):
            raise UsageError(
                f"{flag} needs a git repository, and {checkout} is not in one: run `git init`, or leave it out"
            )
    refuse_untrusted_settings(home, spec)
    if spec.review or spec.plan:
        refuse_unready_readers(home, spec, at_once=at_once)
    if at_once:
        from jackline.app.environment import read_home_environ

        read_home_environ(home.config)  # ConfigError if its env_file cannot be used
    if at_once and not (home.is_new or spec.share_workspace):
        from jackline.engine.workspace_guard import refuse_busy_workspace

        refuse_busy_workspace(home.store(), spec, home.path)
    refuse_taken_session(home, spec)


def refuse_unready_worktree(home: Home, planned: WorktreeSpec) -> None:
    """UsageError if branch or folder exist already. Notes about files go to the home's warnings."""
    from jackline.engine.git import Git, unbind_git_env

    git = Git(workspace=planned.source, env=unbind_git_env(os.environ))
    if os.path.lexists(planned.path) and not (os.path.isdir(planned.path) and not os.listdir(planned.path)):
        raise UsageError(
            f"worktree {planned.name} exists at {planned.path}: choose another name, or see `jackline worktree list`"
        )
    _refuse_taken_branch(git, planned.branch)
    changed = (git.run("status", "--porcelain", "-z", "--no-renames") or "").strip("\0")
    lines = [line for line in changed.split("\0") if line]
    if any(not line.startswith("??") for line in lines):
        home.warnings.append(f"uncommitted changes in {planned.source} are not part of the worktree")
    open_names = [name for name in planned.copy for line in lines if _is_listed(line, name)]
    if open_names:
        shown = ", ".join(dict.fromkeys(open_names[:_SHOWN_FILES]))
        home.warnings.append(f"{shown} is copied and not ignored by git: the agent may commit it")


def _refuse_taken_branch(git: Git, branch: str) -> None:
    """UsageError if the branch exists, or if another one has a name that git cannot keep beside it."""
    parent = branch.partition("/")[0]
    listed = git.run("for-each-ref", "--format=%(refname:lstrip=2)", f"refs/heads/{parent}")  # and what is below it
    names = (listed or "").split()
    if branch in names:
        raise UsageError(
            f"the branch {branch} exists already: choose another name for the worktree, or delete the branch"
        )
    if parent in names:
        raise UsageError(f"the branch {parent} is in the way of {branch}: rename it with `git branch -m {parent} NAME`")
    if below := next((name for name in names if name.startswith(f"{branch}/")), ""):
        raise UsageError(f"the branch {below} is in the way of {branch}: choose another name for the worktree")


def _is_listed(line: str, name: str) -> bool:
    """Whether a line of `git status` lists the name, a folder around it, or a file below it, as untracked."""
    path = line[3:]
    return line.startswith("??") and (
        path == name or path.startswith(f"{name}/") or name.startswith(path.rstrip("/") + "/")
    )


def refuse_taken_session(home: Home, spec: Spec) -> None:
    """UsageError if the session cannot be adopted, or belongs to a run that has not ended."""
    if not spec.session:
        return
    declaration = agents.load_adapter(home.config, spec.agent).declaration
    if not declaration.resumes:
        raise UsageError(f"{spec.agent} cannot continue a session: remove --session")
    if declaration.binds_sessions:
        _refuse_other_folder(home, spec)
    for row in home.list_runs(RunQuery(states=tuple(sorted(ACTIVE)), session=spec.session)):
        # Whichever agent works on that run now.
        if home.store().records.get_sessions(row.id).get(spec.agent) == spec.session:
            raise SessionTaken(spec.session, owner=row.id)


def _refuse_other_folder(home: Home, spec: Spec) -> None:
    """UsageError if the agent would not find the session where the run works."""
    if spec.worktree.name:
        raise UsageError(
            f"{spec.agent} finds a session only in the folder in which it was started: remove --session or --worktree"
        )
    folders = [
        one
        for found in call_hook("session_folders", home.config, os.environ, spec.agent, spec.session)
        for one in found
    ]
    if folders and os.path.realpath(spec.workspace) not in map(os.path.realpath, folders):
        raise UsageError(
            f"{spec.agent} finds session {spec.session} only in {folders[0]}, where it was started: "
            f"add --workspace {shlex.quote(folders[0])}"
        )


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
    from jackline.app.environment import read_agent_environ
    from jackline.app.trust import read_untrusted_settings

    if not spec.fallback:
        declaration, _ = agents.load_declaration(home.config, spec.agent)
        environ: Mapping[str, str] = os.environ
        with suppress(AgentUnavailable):  # its attempt reports it, and may have another environment
            environ = read_agent_environ(home.config, declaration)
        read_untrusted_settings(
            home.path, home.config.get_text("database"), declaration, find_settings_folder(spec), environ
        )


def refuse_unready_readers(home: Home, spec: Spec, *, at_once: bool) -> None:
    """UsageError or AgentUnavailable if an agent cannot review the work, or plan it without changing anything.

    With `at_once`, its program has to be here and logged in: the work would be done before anybody noticed.
    """
    from jackline.app.agent_logins import find_login_problem
    from jackline.app.environment import read_agent_environ
    from jackline.app.trust import read_untrusted_settings

    checkout = spec.worktree.source or spec.workspace
    planners = spec.agents if spec.plan else ()
    for name in dict.fromkeys((*spec.review, *planners)):
        adapter = agents.load_adapter(home.config, name)
        declaration, verb = adapter.declaration, "review" if name in spec.review else "plan"
        if declaration.gate != "enforced" and not declaration.read_only and not spec.ungated:
            raise UsageError(
                f"{name} cannot {verb} safely, because nothing keeps it from changing files: choose another agent, "
                "or accept that with --ungated"
            )
        if name not in spec.review:
            continue
        database = home.config.get_text("database")
        environ: Mapping[str, str] = os.environ
        if at_once:
            environ = read_agent_environ(home.config, declaration)
        read_untrusted_settings(home.path, database, declaration, checkout, environ, for_review=True)
        if not at_once or name == spec.agent:
            continue
        found = agents.find_program(home.path, home.config, adapter, environ)
        if found.why:
            raise AgentUnavailable(name, why=found.why)
        if problem := find_login_problem(declaration, found.binary, environ, checkout):
            raise AgentUnavailable(name, why=problem)


def describe_unready_agent(home: Home, spec: Spec) -> list[str]:
    """A note if the run's first agent has no program or credentials here; where the run is started it may have them."""
    from jackline.app.agent_logins import find_login_problem
    from jackline.app.environment import read_agent_environ

    adapter = agents.load_adapter(home.config, spec.agent)
    try:
        environ = read_agent_environ(home.config, adapter.declaration)
    except AgentUnavailable as error:
        return [f"here, {error}; ignore this if it can where the run is started"]
    found = agents.find_program(home.path, home.config, adapter, environ)
    if found.why:
        return [f"here, {AgentUnavailable(spec.agent, why=found.why)}; ignore this if it can where the run is started"]
    problem = find_login_problem(adapter.declaration, found.binary, environ, find_settings_folder(spec))
    how = problem.removeprefix("not logged in: ")
    return [f"{spec.agent} is not logged in here: {how}; ignore this if it is where the run is started"] if how else []


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


def reject_secret_proof(home: Home, proof: str, what: str = "the proof") -> None:
    """Reject a proof that contains a secret: it is stored as it is, because it has to be run."""
    if proof and home.make_redactor().has_secret(proof):
        raise UsageError(
            f"{what} seems to contain a secret and would be stored as it is; "
            "move the command to a script that reads the secret from elsewhere"
        )
