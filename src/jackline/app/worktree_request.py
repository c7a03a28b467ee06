"""Plans the worktree of a new run: its name, branch, folder and base commit. It makes and changes nothing.

The engine makes the worktree when the first attempt begins.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.app import paths
from jackline.app.agents import split_names
from jackline.app.preflight import reject_secret_proof
from jackline.app.text_files import shorten_name
from jackline.domain import ids
from jackline.domain.spec import WorktreeSpec
from jackline.engine.command_runner import start_command_warden
from jackline.engine.git import Git, GitFailed, find_tracked_files, unbind_git_env
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.worktree import BRANCHES
from jackline.engine.worktree_files import CannotCopy, list_copied
from jackline.errors import Refused, UsageError
from jackline.worktrees import find_repository, find_worktree

if TYPE_CHECKING:
    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.domain.records import Run
    from jackline.domain.spec import Spec

_SHORT_ID = 8
_MOST_MS = 60_000
_LONGEST_FOLDER = 40
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


def plan_worktree(request: Request, home: Home, config: Config, folder: str, run_id: str) -> tuple[WorktreeSpec, str]:
    """The worktree of a run whose request was typed in this folder, and the same folder in it; or UsageError."""
    source = find_worktree(folder)
    env = unbind_git_env(os.environ)
    if not os.path.exists(os.path.join(source, ".git")):
        if (Git(workspace=folder, env=env).run("rev-parse", "--is-bare-repository") or "").strip() == "true":
            raise UsageError(f"--worktree needs a checkout, and {folder} is in a bare repository: start in a checkout")
        raise UsageError(
            f"--worktree needs a git repository, and {folder} is not in one: run `git init`, or use --no-worktree"
        )
    name = build_name(request, run_id)
    setup = request.setup or config.get_text("worktree_setup")
    reject_secret_proof(home, setup, "the set-up command")
    try:
        with start_command_warden(_MOST_MS) as warden:
            git = Git(workspace=folder, env=env, warden=warden)
            git.read("rev-parse", "--git-dir")
            base = _resolve_base(git, request.worktree_base)
            below = os.path.relpath(folder, source)
            if below != os.curdir and (git.run("cat-file", "-t", f"{base}:{below}") or "").strip() != "tree":
                raise UsageError(f"{below} does not exist in commit {base[:12]}: commit it, or start at {source}")
            branch = (git.run("symbolic-ref", "-q", "--short", "HEAD") or "").strip()
            copied = _list_copied(request, config, git, source, folder)
    except (SpawnFailed, WardenLost) as error:
        raise UsageError(f"git cannot be started: {error}") from None
    except GitFailed as error:  # such as a repository of another user
        raise UsageError(f"--worktree: git cannot read the repository of {folder}: {error}") from None
    path = os.path.join(find_worktrees_folder(config), name_folder(find_repository(folder)), name)
    spec = WorktreeSpec(
        name=name,
        branch=f"{BRANCHES}{name}",
        base=base,
        base_branch=branch,
        copy=copied,
        setup=setup,
        setup_timeout_ms=round(config.get_float("setup_timeout") * 1000),
        path=path,
        source=source,
    )
    return spec, path if below == os.curdir else os.path.join(path, below)


def build_name(request: Request, run_id: str) -> str:
    """The name that was given, or the end of the run's id."""
    name = request.worktree_name or (run_id if request.run_id else run_id[-_SHORT_ID:])
    if not ids.is_chosen(name) or name.endswith((".", ".lock")):
        hint = "; a prompt goes before --worktree" if " " in name else ""
        raise UsageError(
            f"'{shorten_name(name)}' cannot be the name of a worktree: use at most 64 letters (A-Z), digits, '.', '_' "
            f"and '-', with a letter or digit first, no '..', and no '.' or '.lock' at the end{hint}"
        )
    return name


def find_worktrees_folder(config: Config) -> str:
    """The folder of all worktrees that jackline makes."""
    configured = config.get_text("worktrees")
    return os.path.realpath(os.path.expanduser(configured) if configured else paths.find_worktrees_folder(os.environ))


def name_folder(repository: str) -> str:
    """The name of a repository's folder in it: two repositories never share one."""
    plain = _NOT_PLAIN.sub("-", os.path.basename(repository))[:_LONGEST_FOLDER].strip("-.") or "repository"
    return f"{plain}-{ids.repository_id(repository)[:8]}"


def _resolve_base(git: Git, ref: str) -> str:
    if ref.startswith("-"):
        raise UsageError(f"--worktree-base: '{shorten_name(ref)}' is not a commit")
    base = git.resolve_commit(ref or "HEAD")
    if base:
        return base
    if ref:
        raise UsageError(f"--worktree-base: '{shorten_name(ref)}' is not a commit of this repository")
    raise UsageError("--worktree needs a commit to start from, and this repository has none: commit something first")


def _list_copied(request: Request, config: Config, git: Git, source: str, folder: str) -> tuple[str, ...]:
    """The names to copy, relative to the root: flags are relative to the folder, settings to the root."""
    typed = (os.path.relpath(os.path.join(folder, name), source) for name in request.copy)
    # The setting is for all repositories: one without such a file has nothing to copy.
    configured = split_names(config.get_text("worktree_copy"))
    existing = (name for name in configured if os.path.lexists(os.path.join(source, name)))
    names = tuple(dict.fromkeys((*typed, *existing)))
    if not names:
        return ()
    try:
        files = list_copied(source, names)
    except CannotCopy as error:
        raise UsageError(f"--copy: {error}") from None
    tracked = find_tracked_files(source, files, git.env, git.warden)
    if tracked is None:
        raise UsageError(f"git cannot tell which files in {source} are tracked: try `git status` there")
    if tracked:
        raise UsageError(f"--copy: {min(tracked)} is tracked by git: the worktree has it without a copy")
    return names


def fork_worktree(home: Home, parent: Run, spec: Spec, run_id: str, *, chosen: bool) -> Spec:
    """The spec of a fork in a new worktree, which starts from the last commit of its parent's branch."""
    known = parent.spec.worktree
    git = Git(workspace=home.store().worktrees.find_repository(parent.id), env=unbind_git_env(os.environ))
    base = git.resolve_commit(f"refs/heads/{known.branch}")
    if not base:
        raise Refused(f"the branch {known.branch} of run {parent.id} is gone: there is nothing to fork")
    name = run_id if chosen else run_id[-_SHORT_ID:]
    path = os.path.join(os.path.dirname(known.path), name)
    if os.path.isdir(known.path) and git._replace(workspace=known.path).run("status", "--porcelain"):
        home.warnings.append(f"uncommitted changes in {known.path} are not part of the fork")
    below = os.path.relpath(parent.spec.workspace, known.path)
    return spec._replace(
        workspace=os.path.normpath(os.path.join(path, below)),
        worktree=known._replace(name=name, branch=f"{BRANCHES}{name}", base=base, path=path),
    )
