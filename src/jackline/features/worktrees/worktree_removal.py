"""Removes worktrees whose run has ended and whose work is merged. What is dirty, unmerged or doubtful stays."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.states import TERMINAL
from jackline.engine.git import GitFailed
from jackline.engine.work_backup import find_admin_folder, find_registered_work, keep_commit
from jackline.engine.worktree import ListedWorktree
from jackline.errors import WorktreeRefused
from jackline.features.worktrees import worktree_state as states
from jackline.features.worktrees.worktree_state import RunTree
from jackline.files import remove_folder
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.engine.git import Git
    from jackline.store.store import Store

_SHORT = 12  # digits of a commit
_APART = ".gc-"  # precedes the name of a folder that is being removed; no worktree has such a name


class RemovalPlan(NamedTuple):
    """A worktree that can be removed without losing anything."""

    tree: RunTree
    tip: str  # of its branch; empty: it is gone
    merged: str
    keeps_commits: bool = False  # the commits themselves are nowhere else: a ref keeps them
    discarded: tuple[str, ...] = ()  # commits that only its reflogs have: refs keep them, too


def plan_removal(tree: RunTree, busy: Mapping[str, str], commits: Sequence[str]) -> RemovalPlan:
    """Check everything; WorktreeRefused with the reason if the worktree has to stay.

    `commits` are those that the run is known to have made.
    """
    folder = states.find_folder_state(tree)
    if tree.run.status.state not in TERMINAL:
        raise WorktreeRefused(f"its run is {tree.run.status.state}")
    if tree.row.path in busy:
        raise WorktreeRefused(f"run {busy[tree.row.path]} is active in it")
    if folder in {states.DAMAGED, states.ELSEWHERE}:
        raise WorktreeRefused(f"it is on {folder}" if folder == states.ELSEWHERE else "its folder is damaged")
    checkouts = states.list_checkouts(tree.git)
    listed = [one for one in checkouts if os.path.realpath(one.path) == tree.row.path]
    _refuse_lock(tree, listed)
    if others := [one.path for one in checkouts if one.branch == tree.ref and one not in listed]:
        raise WorktreeRefused(f"its branch is checked out in {others[0]}")
    if folder == states.READY:
        _refuse_changes(tree, listed)
    elif folder == states.MISSING:
        _refuse_registered_work(tree)
    if head := states.find_other_head(tree, tree.row.base_branch):
        target = tree.row.base_branch or "any branch"
        raise WorktreeRefused(f"it has {head} checked out, with commits that are not merged into {target}")
    tip = tree.git.resolve_commit(tree.ref)
    lost = "" if tip else states.find_lost_commit(tree.git, commits)
    if lost and not states.find_merge(tree.git, lost, tree.row.base_branch):
        raise WorktreeRefused(
            f"its branch {tree.row.branch} is gone, and only git has its commit {lost[:_SHORT]}: "
            f"`jackline worktree salvage {tree.row.name}` keeps that"
        )
    gone = "it was never made" if folder == states.NEW else "its branch is gone"
    merged = states.find_branch_merge(tree, tip) if tip else gone
    if not merged:
        count = (tree.git.run("rev-list", "--count", tip, "--not", "--remotes", tree.row.base) or "?").strip()
        commits = "1 commit" if count == "1" else f"{count} commits"
        raise WorktreeRefused(f"not merged into {tree.row.base_branch or 'any branch'}: {commits} on {tree.row.branch}")
    keeps = bool(tip) and not states.is_elsewhere(tree.git, tip, tree.row.base_branch, tree.row.branch)
    return RemovalPlan(tree=tree, tip=tip, merged=merged, keeps_commits=keeps, discarded=_find_discarded(tree))


def _find_discarded(tree: RunTree) -> tuple[str, ...]:
    try:
        return states.find_reflog_tips(tree)
    except (GitFailed, OSError) as error:
        raise WorktreeRefused(f"git cannot read its reflog: {error}") from error


def _refuse_lock(tree: RunTree, listed: Sequence[ListedWorktree]) -> None:
    for one in listed:
        if one.lock is not None and not one.is_of(tree.run.id):
            raise WorktreeRefused(f"it is locked: {one.lock or 'without a reason'}")


def _refuse_changes(tree: RunTree, listed: Sequence[ListedWorktree]) -> None:
    """WorktreeRefused if the folder holds anything that is nowhere else."""
    _refuse_unreadable(tree.row.path)
    git = tree.here
    changed = states.list_changes(git)
    if changed is None:
        raise WorktreeRefused("git cannot tell whether it is clean")
    if changed:
        raise WorktreeRefused(f"not committed: {states.name_files(changed)}")
    if hidden := states.list_hidden(git):
        raise WorktreeRefused(f"{states.name_files(hidden)} is marked assume-unchanged or skip-worktree")
    if operation := states.find_operation(git):
        raise WorktreeRefused(f"{operation} is not finished in it")
    if not listed or (not listed[0].branch and not states.is_elsewhere(git, "HEAD", tree.row.base_branch)):
        head = git.run("for-each-ref", "--contains", "HEAD", "refs/heads", "refs/tags")
        if not head:
            raise WorktreeRefused("its HEAD is not on a branch")
    if git.run("for-each-ref", "refs/worktree", "refs/bisect", "refs/rewritten") != "":
        raise WorktreeRefused("it has worktree-specific refs")
    _refuse_submodules(tree)
    if lost := states.list_ignored(tree):
        raise WorktreeRefused(
            f"ignored by git, and maybe needed: {states.name_files(lost)}; copy what you need and delete that in "
            f"{tree.row.path}, then run gc again"
        )


def _refuse_submodules(tree: RunTree) -> None:
    """WorktreeRefused if it has repositories of submodules: their branches and stashes may be nowhere else."""
    try:
        found = states.list_submodules(tree.here)
    except (GitFailed, OSError) as error:
        raise WorktreeRefused(f"git cannot list its submodules: {error}") from error
    if found:
        raise _build_submodule_refusal(tree, found)


def _build_submodule_refusal(tree: RunTree, names: Sequence[str]) -> WorktreeRefused:
    how = f"push what you need from them, then `git worktree remove -f -f {tree.row.path}`, then run gc again"
    return WorktreeRefused(f"it has submodules ({states.name_files(names)}): {how}")


def _refuse_unreadable(folder: str) -> None:
    """WorktreeRefused if a folder in it cannot be listed: git takes such a one for empty."""

    def refuse(error: OSError) -> None:
        raise WorktreeRefused(f"{error.filename} cannot be read: {error.strerror}") from error

    for _ in os.walk(folder, onerror=refuse):
        pass


def _refuse_registered_work(tree: RunTree) -> None:
    """WorktreeRefused if the folder is gone, or was moved, and git has something of it that is nowhere else."""
    try:
        work = find_registered_work(tree.git, tree.row.path, tree.run.id)
        admin = find_admin_folder(tree.git, tree.row.path)
        bound = tree.git._replace(env={**tree.git.env, "GIT_DIR": admin}) if admin else None
        modules = states.list_kept_modules(bound) if bound else []
    except (GitFailed, OSError) as error:
        raise WorktreeRefused(f"its folder is gone, and git cannot tell what was in it: {error}") from error
    if work.head or work.staged:
        what = "a commit of its HEAD" if work.head else "its staged files"
        raise WorktreeRefused(
            f"its folder is gone, and only git has {what}: `jackline worktree salvage {tree.row.name}` keeps that"
        )
    if modules:
        raise _build_submodule_refusal(tree, modules)
    if bound and (operation := states.find_operation(bound)):
        raise WorktreeRefused(
            f"its folder is gone, and {operation} is not finished in it: `git worktree remove -f -f {tree.row.path}` "
            "gives that up"
        )


def remove_worktree(plan: RemovalPlan, store: Store, at: int) -> None:
    """Remove folder and branch, if nothing has changed since the plan was made.

    The folder gets another name first: a removal that is cut off leaves no worktree in which files are missing.
    """
    tree, row = plan.tree, plan.tree.row
    if plan.keeps_commits:
        _run(tree, "update-ref", f"refs/jackline/{row.run_id}/branch", plan.tip)
    _keep_discarded(plan)
    apart = os.path.join(os.path.dirname(row.path), f"{_APART}{row.name}")
    if os.path.lexists(row.path):
        _move_apart(plan, apart)
    if any(os.path.realpath(one.path) == row.path for one in states.list_checkouts(tree.git)):
        _run(tree, "worktree", "remove", "--force", "--force", row.path)  # only what git knows of it
    try:
        remove_folder(apart)
    except OSError as error:
        raise WorktreeRefused(f"{error.filename or apart} cannot be deleted: {error.strerror}") from error
    if plan.tip:
        _run(tree, "update-ref", "-d", tree.ref, plan.tip)
    fact = Fact("worktree.removed", {"path": row.path, "branch": row.branch, "commit": plan.tip, "merged": plan.merged})
    store.worktrees.record_removed(row.run_id, fact, at)


def _keep_discarded(plan: RemovalPlan) -> None:
    try:
        for commit in plan.discarded:
            keep_commit(plan.tree.git, plan.tree.row.run_id, commit)
    except GitFailed as error:
        raise WorktreeRefused(f"commits of its reflog cannot be kept: {error}") from error


def _move_apart(plan: RemovalPlan, apart: str) -> None:
    """Rename the folder, so that no program finds it there; back again if it was changed after the plan was made."""
    tree, path = plan.tree, plan.tree.row.path
    if os.path.lexists(apart):
        raise WorktreeRefused(f"{apart} is left from an earlier removal: look into it, and delete it")
    try:
        os.rename(path, apart)
    except OSError as error:
        raise WorktreeRefused(f"{path} cannot be renamed: {error.strerror}") from error
    if states.list_changes(tree.git._replace(workspace=apart)) != [] or tree.git.resolve_commit(tree.ref) != plan.tip:
        os.rename(apart, path)
        raise WorktreeRefused("it was changed in the meantime: it stays")


def repair_removals(git: Git, folder: str) -> None:
    """Undo removals that were cut off while git still knew the worktree; the next one finishes the others.

    The caller holds the folder's lock, so none of them is going on.
    """
    with suppress(FileNotFoundError, NotADirectoryError):  # of a worktree that could never be made
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name.removeprefix(_APART))
            if not name.startswith(_APART) or os.path.lexists(path):
                continue
            if any(os.path.realpath(one.path) == path for one in states.list_checkouts(git)):
                os.rename(os.path.join(folder, name), path)


def _run(tree: RunTree, *words: str) -> None:
    if tree.git.run(*words) is None:
        raise WorktreeRefused(f"git {' '.join(words[:2])} failed: it stays; see `git worktree list`")
