"""Keeps the work of a worktree that is nowhere else, as commits at `refs/jackline/RUN/…`. It deletes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.engine.tree_id import describe_names
from jackline.engine.work_backup import SALVAGE, is_certain_cache, keep_folder, keep_registered_work, keep_work
from jackline.errors import WorktreeRefused
from jackline.features.worktrees import worktree_state as states
from jackline.features.worktrees.worktree_state import RunTree
from jackline.named import NamedTuple
from jackline.policy.discarded_work import Discard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.engine.work_backup import Backup

_COMMAND = "jackline worktree salvage"
_SHORT = 12


class SalvagedWork(NamedTuple):
    """Where the work of a worktree is."""

    refs: tuple[str, ...] = ()  # what was kept now
    branch: str = ""  # its branch, if that exists
    merged: str = ""  # where the commits of the branch are, too; without the branch, the last known one
    ignored: tuple[str, ...] = ()  # ignored files, which are not kept
    nested: tuple[str, ...] = ()  # folders of other repositories inside it, which are not kept


def salvage_tree(tree: RunTree, commits: Sequence[str]) -> SalvagedWork:
    """Keep what is uncommitted, and commits that no ref has; `commits` are those that the run is known to have made."""
    folder = states.find_folder_state(tree)
    if folder in {states.NEW, states.ELSEWHERE}:
        raise WorktreeRefused(f"its folder is {'not made yet' if folder == states.NEW else f'on host {tree.row.host}'}")
    tip = tree.git.resolve_commit(tree.ref)
    refs = list[str]()
    ignored: tuple[str, ...] = ()
    if folder == states.READY:
        refs += _keep_ready(tree)
        ignored = tuple(states.list_ignored(tree))
        refs += _keep_commit(tree, "head", tree.here.resolve_commit("HEAD"))
    elif folder == states.DAMAGED:
        refs += _keep_damaged(tree, tip)
    elif folder == states.MISSING:
        refs += _get_refs(tree, keep_registered_work(tree.git, tree.row.path, tree.run.id))
    if tip:
        merged = states.find_branch_merge(tree, tip)
    else:
        last = states.find_last_commit(tree.git, commits)
        merged = states.find_ref(tree.git, last)
        refs += _keep_commit(tree, "lost", last)
    return SalvagedWork(
        refs=tuple(refs),
        branch=tree.row.branch if tip else "",
        merged=merged,
        ignored=ignored,
        nested=tuple(_list_nested(tree.row.path)),
    )


def _list_nested(root: str) -> list[str]:
    """The repositories inside a folder, submodules included; those of installed packages are caches."""
    found = []
    for top, folders, files in os.walk(root):
        name = os.path.relpath(top, root)
        if top != root and ".git" in (*folders, *files):
            found.append(f"{name}/")
            folders.clear()
        folders[:] = [one for one in folders if not is_certain_cache(root, os.path.normpath(os.path.join(name, one)))]
    return sorted(describe_names(found))


def _keep_ready(tree: RunTree) -> list[str]:
    discard = Discard(verb=SALVAGE, folder=tree.row.path, command=_COMMAND)
    return _get_refs(tree, keep_work((discard,), tree.run.id, lambda folder: tree.git._replace(workspace=folder)))


def _keep_damaged(tree: RunTree, tip: str) -> list[str]:
    """Keep the files of a folder that git no longer knows, as a commit after its branch or its base."""
    if not os.path.isdir(tree.row.path):
        raise WorktreeRefused(f"{tree.row.path} is not a folder, or cannot be read")
    common = (tree.git.run("rev-parse", "--git-common-dir") or "").removesuffix("\n")
    if not common:
        raise WorktreeRefused(f"{tree.git.workspace} is no longer a repository: copy {tree.row.path}")
    bound = {"GIT_DIR": os.path.join(tree.git.workspace, common), "GIT_WORK_TREE": tree.row.path}
    git = tree.here._replace(env={**tree.git.env, **bound})
    return _get_refs(tree, keep_folder(git, tip or tree.row.base, tree.run.id, f"Work in {tree.row.path}"))


def _get_refs(tree: RunTree, kept: Backup) -> list[str]:
    if kept.problem:
        raise WorktreeRefused(f"the work in {tree.row.path} cannot be kept: {kept.problem}; copy the folder")
    return list(kept.refs)


def _keep_commit(tree: RunTree, name: str, commit: str) -> list[str]:
    """Keep a commit that no ref reaches."""
    if not commit or states.find_ref(tree.git, commit):
        return []
    ref = f"refs/jackline/{tree.run.id}/{name}"
    if tree.git.resolve_commit(ref) not in {"", commit}:  # another one was kept before
        ref = f"{ref}-{commit[:_SHORT]}"
    if tree.git.run("update-ref", ref, commit) is None:
        raise WorktreeRefused(f"{ref} cannot be written: keep commit {commit} yourself")
    return [ref]
