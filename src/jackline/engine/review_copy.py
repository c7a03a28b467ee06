"""A copy of the proved work for one reviewer: a separate repository, removed after the review.

What the reviewer wrote in it is kept as a patch. The workspace of the worker is compared afterwards, and restored if it
was changed; what was changed there is kept at `refs/jackline/RUN/N` first. After a crash, only the run's own worktree
is restored: elsewhere, a person may have worked since.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.engine.git import GitFailed, unbind_git_env
from jackline.engine.tree_files import find_repository, list_absent, make_repository
from jackline.engine.tree_id import (
    TreeUnreadable,
    bind_trees,
    check_place,
    checkout_tree,
    compute_tree,
    describe_names,
    find_place,
    list_changed_files,
    verify_objects,
    write_raw_repository,
)
from jackline.engine.work_backup import HOST_IDENTITY, keep_commit, keep_work
from jackline.engine.work_trees import read_json
from jackline.files import NotWritten, make_private_folder, remove_folder, write_file
from jackline.formatting import make_printable
from jackline.named import NamedTuple
from jackline.policy.discarded_work import Discard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.engine.git import Git
    from jackline.engine.tree_files import WorkingRepository
    from jackline.engine.tree_id import TreeState
    from jackline.engine.work_trees import WorkTrees

_WORKER = "worker.json"  # the worker's workspace while a review runs
_RESTORE = "restore.json"  # the same from when its restore begins until it has succeeded
_WORKER_INDEX = "worker.index"
_REVIEWS = "reviews"  # in the folder of a run: patches, and the state of the worker's workspace
_BRANCH = "refs/heads/review"
_NO_FILES = frozenset({"HEAD", "index"})  # in the list of what was restored
_MOST_NAMED = 3  # of what was restored, in a message


class ReviewCopyFailed(Exception):
    """The copy for a reviewer cannot be made, or the work cannot be restored; the message says why."""


class WorkerState(NamedTuple):
    """The workspace of the worker before a review."""

    tree: str
    head: str
    branch: str  # empty: HEAD is detached
    place: str = ""  # of the workspace in its repository


class ReviewCopy(NamedTuple):
    """A copy for one review."""

    path: str
    workspace: str  # where the reviewer works: the same folder inside of the copy
    tree: str
    patch: str  # where the changes of the reviewer are kept


class ReviewEnd(NamedTuple):
    """What a review left behind."""

    patch: str = ""  # the file with what the reviewer wrote in its copy; empty: nothing
    written: tuple[str, ...] = ()  # the names of these files
    restored: tuple[str, ...] = ()  # files, HEAD or index of the worker that were restored
    refs: tuple[str, ...] = ()  # where their changes are kept


class ReviewCopies:
    """The copies of one run for its reviewers, and the state of the worker's workspace while they review."""

    def __init__(self, trees: WorkTrees, run_id: str, cache: str) -> None:
        """Copies are made below `cache`."""
        self.trees, self._run_id = trees, run_id
        self._git, self._folder = trees.git, trees.folder
        self._reviews = os.path.join(trees.run_folder, _REVIEWS)
        self._copies = os.path.join(cache, _REVIEWS, run_id)

    def prepare_review(self, tree: str, round_: int, seat: int, *, restores: bool = True) -> ReviewCopy:
        """Make the copy for one seat, and remember the worker's workspace. ReviewCopyFailed if it cannot be made.

        An empty `tree` is that of the workspace now. `restores`: the workspace belongs to this run alone, so it is
        restored afterwards.
        """
        self.remove_copies()
        path = os.path.join(self._copies, f"{round_}-{seat}")
        try:
            make_private_folder(path)
            path = os.path.realpath(path)
            state = self._compute_always()
            if restores:
                self._remember_worker(state)
            tree = tree or state.id
            workspace = self._fill_copy(path, tree)
        except (GitFailed, NotWritten, OSError, TreeUnreadable) as error:
            remove_folder(path)
            raise ReviewCopyFailed(f"the copy for the reviewer cannot be made: {error}") from error
        patch = os.path.join(self._reviews, f"{round_}-{seat}.patch")
        return ReviewCopy(path=path, workspace=workspace, tree=tree, patch=patch)

    def finish_review(self, copy: ReviewCopy) -> ReviewEnd:
        """Keep what the reviewer wrote, remove its copy, and restore the workspace of the worker."""
        self._begin_restore()  # first: it is due even if the changes cannot be kept
        try:
            written = self._keep_patch(copy)
        except (GitFailed, NotWritten, OSError, TreeUnreadable) as error:
            raise ReviewCopyFailed(
                f"the changes of the reviewer cannot be kept, they are in {copy.path}: {error}"
            ) from error
        if _is_in_place(copy):
            remove_folder(copy.path)
        end = self.restore_worker()
        return end._replace(patch=copy.patch if written else "", written=written)

    def recover_review(self, *, restores: bool) -> ReviewEnd:
        """After a crash: remove the copy of a review that was interrupted, and restore the worker's workspace.

        `restores`: the workspace is the run's own worktree. In any other, the changes may be a person's: they stay, and
        a changed tree is proved and reviewed again. A restore that was begun is finished in any workspace.
        """
        self.remove_copies()
        if not restores:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self._reviews, _WORKER))
        return self.restore_worker()

    def remove_copies(self) -> None:
        """Remove all copies of this run."""
        try:
            remove_folder(self._copies)
        except OSError as error:
            raise ReviewCopyFailed(f"an earlier copy for a reviewer cannot be removed: {error}") from error

    def restore_worker(self) -> ReviewEnd:
        """Restore the workspace as it was before the review, if it was changed since; what was changed is kept."""
        path = self._begin_restore()
        found = read_json(path)
        if not found:
            return ReviewEnd()
        try:
            end = self._restore(WorkerState(**found))
        except (GitFailed, OSError, TreeUnreadable) as error:
            folder, why = self._git.workspace, str(error)
            if not os.path.isdir(folder):
                why = (
                    f"the folder {folder} is gone; `jackline resume {self._run_id}` creates a worktree of the run again"
                )
            raise ReviewCopyFailed(f"the workspace cannot be restored to the proved tree: {why}") from error
        os.unlink(path)
        return end

    def _begin_restore(self) -> str:
        path = os.path.join(self._reviews, _RESTORE)
        with suppress(FileNotFoundError):
            os.replace(os.path.join(self._reviews, _WORKER), path)
        return path

    # the copy

    def _fill_copy(self, path: str, tree: str) -> str:
        found = self._find_repository()
        folder = os.path.join(path, ".git")
        self._write_repository(folder)
        git = bind_trees(self._git, folder, path)
        verify_objects(git, tree)
        commit = self._commit(git, tree, self._find_parent(git, tree))
        git.read("update-ref", _BRANCH, commit)
        git.read("symbolic-ref", "HEAD", _BRANCH)
        git.read("read-tree", "--reset", "-u", "HEAD")
        inside = os.path.relpath(os.path.realpath(self._git.workspace), os.path.realpath(found.top))
        workspace = os.path.normpath(os.path.join(path, inside))
        os.makedirs(workspace, exist_ok=True)
        return workspace

    def _write_repository(self, folder: str) -> None:
        found = self._find_repository()
        with open(os.path.join(self._folder, "objects", "info", "alternates"), errors="surrogateescape") as file:
            others = file.read().splitlines()
        write_raw_repository(folder, found.object_format, (os.path.join(self._folder, "objects"), *others))
        shallow = os.path.join(os.path.dirname(found.objects), "shallow")
        if os.path.exists(shallow):  # its history ends there
            shutil.copy(shallow, os.path.join(folder, "shallow"))

    def _find_parent(self, git: Git, tree: str) -> list[str]:
        """The commit that the work is compared with: the start of the run, with what was not committed then.

        None if its files are gone or false: then all of the work is new.
        """
        parents = self._list_parents(git)
        try:
            for parent in parents:
                verify_objects(git, f"{parent}^{{tree}}", tree)
        except GitFailed:
            return []
        return parents

    def _list_parents(self, git: Git) -> list[str]:
        start = self.trees.find_start()
        parents = [start.head] if start.head and git.run("cat-file", "-e", f"{start.head}^{{tree}}") is not None else []
        if not start.tree or git.run("cat-file", "-e", f"{start.tree}^{{tree}}") is None:
            return parents
        if parents and git.read("rev-parse", f"{parents[0]}^{{tree}}").strip() == start.tree:
            return parents
        return [self._commit(git, start.tree, parents, "The files when the run began")]

    def _commit(self, git: Git, tree: str, parents: list[str], subject: str = "The work") -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        writer = git._replace(env={**git.env, **HOST_IDENTITY})
        return writer.read("commit-tree", tree, *words, "-m", f"{subject} of run {self._run_id}").strip()

    def _keep_patch(self, copy: ReviewCopy) -> tuple[str, ...]:
        """Write the patch; return the names of the files in it."""
        if not _is_in_place(copy) or os.path.islink(copy.path) or not os.path.isdir(copy.path):
            return ()
        folder = os.path.join(copy.path, ".git")
        remove_folder(folder)  # the reviewer may have changed its configuration
        self._write_repository(folder)
        bind_trees(self._git, folder, copy.path).read("read-tree", copy.tree)
        mine, trees = self._git._replace(workspace=copy.path), f"{copy.path}.git"
        remove_folder(trees)  # the reviewer may have made it
        found = find_repository(mine)
        # Submodules that are not checked out are empty folders here, too.
        absent = frozenset(list_absent(mine, found) if found is not None else ())
        after = compute_tree(mine, trees, absent=absent)
        written = list_changed_files(mine, trees, copy.tree, after.id) if after is not None else ()
        if after is not None and written:
            make_private_folder(self._reviews)
            words = ("-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", f"--output={copy.patch}")
            try:
                bind_trees(mine, trees).read("diff-tree", *words, copy.tree, after.id, "--")
            except GitFailed:
                with suppress(FileNotFoundError):
                    os.unlink(copy.patch)
                raise
        remove_folder(trees)
        return written

    # the workspace of the worker

    def _remember_worker(self, state: TreeState) -> None:
        make_private_folder(self._reviews)
        index, saved = self._find_index(), os.path.join(self._reviews, _WORKER_INDEX)
        with suppress(FileNotFoundError):
            os.unlink(saved)
        if index and os.path.exists(index):
            shutil.copy2(index, saved)
        worker = WorkerState(
            tree=state.id,
            head=self.trees.read_head(),
            branch=self._read_branch(),
            place=find_place(self._git, state.top),
        )
        write_file(os.path.join(self._reviews, _WORKER), json.dumps(worker._asdict()).encode())

    def _restore(self, worker: WorkerState) -> ReviewEnd:
        now, saved, index = self._compute_always(), os.path.join(self._reviews, _WORKER_INDEX), self._find_index()
        check_place(self._git, now.top, worker.place)
        files = self.trees.list_changed(worker.tree, now.id)
        has_moved = (self.trees.read_head(), self._read_branch()) != (worker.head, worker.branch)
        is_index_changed = bool(index) and self._list_index(index) != self._list_index(saved)
        changed = (*(("HEAD",) if has_moved else ()), *(("index",) if is_index_changed else ()), *files)
        if not changed:
            return ReviewEnd()
        refs = self._keep_changes(now, files) if index else ()
        if has_moved:
            refs += self._keep_tips(worker, refs)
            self._move_head(worker)
        if is_index_changed:
            _replace_index(saved, index)
        checkout_tree(self._git, self._folder, now.top, worker.tree)
        left = self.trees.list_changed(worker.tree, self._compute_always().id)
        if left:
            raise GitFailed(f"{describe_names(left)[0]} cannot be written")
        return ReviewEnd(restored=changed, refs=refs)

    def _keep_changes(self, now: TreeState, files: tuple[str, ...]) -> tuple[str, ...]:
        nested = [name for name in now.nested if any(one.startswith(name) for one in files)]
        discards = [
            Discard(verb="reset", folder=os.path.join(now.top, name), command="restore of the reviewed work")
            for name in ("", *nested)
        ]
        env = unbind_git_env(self._git.env)
        backup = keep_work(discards, self._run_id, lambda folder: self._git._replace(workspace=folder, env=env))
        if backup.problem:
            raise GitFailed(f"its changes cannot be kept: {backup.problem}")
        return backup.refs

    def _keep_tips(self, worker: WorkerState, kept: tuple[str, ...]) -> tuple[str, ...]:
        """Keep the commits of HEAD and of the worker's branch that nothing would lead to after the restore."""
        git, refs = self._bind_repository(), list[str]()
        for name in dict.fromkeys(("HEAD", worker.branch or "HEAD")):
            tip = git.resolve_commit(name)
            known = [one for one in (worker.head, *kept, *refs) if one]
            if tip and not any(git.run("merge-base", "--is-ancestor", tip, one) is not None for one in known):
                refs.append(keep_commit(git, self._run_id, tip))
        return tuple(refs)

    def _move_head(self, worker: WorkerState) -> None:
        git, why = self._bind_repository(), ("-m", "jackline: restore after a review")
        if worker.branch:
            git.read("symbolic-ref", *why, "HEAD", worker.branch)
        if worker.head:
            target = worker.branch or "HEAD"
            git.read("update-ref", "--no-deref", *why, target, worker.head)
        elif git.run("rev-parse", "-q", "--verify", worker.branch) is not None:  # there was no commit yet
            git.read("update-ref", "-d", worker.branch)

    def _list_index(self, path: str) -> str:
        git = self._bind_repository()
        return git._replace(env={**git.env, "GIT_INDEX_FILE": path}).read("ls-files", "-z", "--stage", "-v")

    def _compute_always(self) -> TreeState:
        state = self.trees.compute_raw(always=True)
        if state is None:
            raise GitFailed("a review needs git")
        return state

    def _find_repository(self) -> WorkingRepository:
        found = find_repository(self._git) or make_repository(self._git)
        if found is None:
            raise GitFailed("a review needs git")
        return found

    def _bind_repository(self) -> Git:
        return self._find_repository().bind(self._git)

    def _find_index(self) -> str:
        """The index of the worker; empty without a repository."""
        found = find_repository(self._git)
        return os.path.join(found.folder, "index") if found else ""

    def _read_branch(self) -> str:
        found = find_repository(self._git)
        return ((found and found.bind(self._git).run("symbolic-ref", "-q", "HEAD")) or "").strip()


def describe_restore(run_id: str, workspace: str, restored: Sequence[str], refs: Sequence[str]) -> str:
    """One line for a person: what changed during a review and was put back, and the command that gets it back."""
    files, where = [name for name in restored if name not in _NO_FILES], shlex.quote(workspace)
    named = ", ".join(map(make_printable, describe_names(restored[:_MOST_NAMED])))
    more = " and others" if len(restored) > _MOST_NAMED else ""
    commands = [f"git -C {where} restore --source={refs[0]} -- :/"] if files and refs else []
    if refs and (len(files) < len(restored) or len(refs) > 1):
        commands.append(f"git -C {where} branch NEW-NAME {refs[-1]}")
    how = f"; to get it back: {', '.join(commands)}" if commands else ""
    return f"run {run_id}: {named}{more} changed in {workspace} during the review, and was put back{how}"


def _is_in_place(copy: ReviewCopy) -> bool:
    """Whether no link leads elsewhere: that folder is not the reviewer's."""
    return os.path.realpath(os.path.dirname(copy.path)) == os.path.dirname(copy.path)


def _replace_index(saved: str, index: str) -> None:
    if not os.path.exists(saved):
        os.unlink(index)
        return
    lock = f"{index}.lock"
    try:
        os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise GitFailed(f"remove {lock}, which a git command left behind") from None
    try:
        shutil.copy2(saved, lock)
        os.replace(lock, index)
    except OSError:
        os.unlink(lock)
        raise
