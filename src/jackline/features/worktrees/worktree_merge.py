"""Merges the branch of a run's worktree into the branch that it came from.

The merge is made, and proved, in a temporary worktree. Then the target moves by one fast-forward. A checkout of the
target that is not clean is never touched. A fast-forward that was cut off is undone by the next command.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from jackline.domain.events import Fact
from jackline.domain.states import Proof, RunState
from jackline.engine.command_runner import run_command
from jackline.engine.detached import DetachedProcess
from jackline.engine.git import GitFailed
from jackline.engine.settings import select_inherited_variables
from jackline.engine.tree_files import MOST_OUTPUT, SECONDS
from jackline.engine.tree_id import describe_names, verify_objects
from jackline.engine.work_backup import find_missing_identity
from jackline.engine.worktree import GIT_WORDS, UserGit, WorktreeUnready, describe_end
from jackline.engine.worktree_files import CannotCopy, copy_files
from jackline.errors import WorktreeRefused
from jackline.features.worktrees import worktree_state as states
from jackline.features.worktrees.worktree_state import RunTree
from jackline.files import remove_file, write_file
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from jackline.engine.command_runner import CommandResult
    from jackline.engine.git import Git

FF_ONLY, NO_FF, SQUASH = "ff-only", "no-ff", "squash"
UP_TO_DATE = "up-to-date"
_LONGEST_PROOF_S = 3600.0
_WAIT_S = 600.0
_SPACE = 16 * 1024 * 1024  # bytes that must be left on the disk besides the changed files
_SHOWN = 5
_REFUSED = "Aborting"  # the last line of git if it has found a reason not to write, and has written nothing


class MergeResult(NamedTuple):
    """How a branch was merged."""

    target: str
    commit: str
    before: str
    how: str  # up-to-date, fast-forward, merge or squash
    proof: str  # proved before, proved again, no proof, or skipped


class HoldClaims(Protocol):
    """Lets no run begin to work on this host in the meantime, and says where runs work: folders with their run's id."""

    def __call__(self) -> AbstractContextManager[Mapping[str, str]]:
        """Wait for the lock, and hold it."""
        ...


class _Update(NamedTuple):
    """The fast-forward of the target, and the checkout that follows it."""

    target: str
    before: str
    after: str
    checkout: str  # empty: the target is checked out nowhere


def merge_tree(tree: RunTree, mode: str, into: str, hold_claims: HoldClaims, *, prove: bool) -> MergeResult:
    """Merge; WorktreeRefused if that is not possible, and then everything is as before.

    The caller holds the lock of the worktree's parent folder, and has read the run since.
    """
    with hold_claims() as busy:
        target, tip = _check_source(tree, into, busy)
    repair_merges(tree.git, os.path.dirname(tree.row.path))
    ref = f"refs/heads/{target}"
    before = tree.git.resolve_commit(ref)
    if not before or tree.git.run("show-ref", "--verify", "--quiet", ref) is None:  # `main~1` names a commit, too
        raise WorktreeRefused(f"there is no branch {target}: name another with --into BRANCH")
    if tree.git.run("merge-base", "--is-ancestor", tip, before) is not None:
        return MergeResult(target=target, commit=before, before=before, how=UP_TO_DATE, proof="no proof")
    checkout = find_checkout(tree.git, target, busy)
    tree = _set_identity(tree)
    is_straight = tree.git.run("merge-base", "--is-ancestor", before, tip) is not None
    if mode == FF_ONLY and not is_straight:
        raise WorktreeRefused(f"{target} has commits that {tree.row.branch} does not have: use --no-ff or --squash")
    content = _read(tree.git, "rev-parse", f"{tip}^{{tree}}") if is_straight else ""
    with _open_temporary(tree, before) as temporary:
        content = content or _merge(tree, temporary.make(), tip, target)
        _refuse_false_objects(tree, content, before)
        _refuse_replaced_objects(tree, (tip, content), before)
        commit = tip if is_straight and mode in {"", FF_ONLY} else _commit(tree, content, before, tip, target, mode)
        proof = _prove(tree, temporary, content, commit) if prove else "skipped"
    with hold_claims() as busy:  # again: the proof took its time
        if find_checkout(tree.git, target, busy) != checkout:
            raise WorktreeRefused(f"{target} was checked out elsewhere in the meantime: merge again")
        _move_target(tree, _Update(target=target, before=before, after=commit, checkout=checkout))
    how = "squash" if mode == SQUASH else "fast-forward" if commit == tip else "merge"
    return MergeResult(target=target, commit=commit, before=before, how=how, proof=proof)


def build_merged_fact(tree: RunTree, result: MergeResult) -> Fact:
    """The event of a merge."""
    data = {"branch": tree.row.branch, "target": result.target, "commit": result.commit, "before": result.before}
    return Fact("worktree.merged", {**data, "how": result.how, "proof": result.proof})


def _set_identity(tree: RunTree) -> RunTree:
    """Let git commit as jackline where it does not know who the user is, as it does for commits of the host."""
    return tree._replace(git=tree.git._replace(env={**tree.git.env, **find_missing_identity(tree.git)}))


def _check_source(tree: RunTree, into: str, busy: Mapping[str, str]) -> tuple[str, str]:
    """The target and the last commit of the branch, if it is complete."""
    row = tree.row
    if tree.run.status.state is RunState.RUNNING or row.path in busy:
        wanted = "wait for it, resume it if it is lost, or cancel it"
        raise WorktreeRefused(f"run {tree.run.id} is active in {row.path}: {wanted}")
    target, tip = into or row.base_branch, tree.git.resolve_commit(tree.ref)
    if not target:
        raise WorktreeRefused("its run was not created on a branch: name one with --into BRANCH")
    if not tip and row.made_at is None:
        raise WorktreeRefused(f"it is not made yet, and its run is {tree.run.status.state}: there is nothing to merge")
    if not tip:
        states.list_checkouts(tree.git)  # WorktreeRefused if it is the repository that is gone
        raise WorktreeRefused(f"its branch {row.branch} is gone: `jackline worktree salvage {row.name}`")
    if target == row.branch:
        raise WorktreeRefused("a branch cannot be merged into itself")
    if head := states.find_other_head(tree, target):
        raise WorktreeRefused(
            f"{row.path} has {head} checked out, with commits that {row.branch} does not have: merge them into "
            f"{row.branch} there, then merge"
        )
    _refuse_uncommitted(tree)
    return target, tip


def _refuse_uncommitted(tree: RunTree) -> None:
    """WorktreeRefused if the folder has work that is not on the branch, or may have."""
    row, folder = tree.row, states.find_folder_state(tree)
    if folder == states.DAMAGED:
        raise WorktreeRefused(
            f"{row.path} is no longer a git worktree, so it may have uncommitted work: keep it with "
            f"`jackline worktree salvage {row.name}`, move it away, then merge"
        )
    if folder != states.READY:
        return
    changed = states.list_changes(tree.here, ignored=False)
    if changed is None:
        raise WorktreeRefused(f"git cannot tell whether {row.path} is clean: try `git status` there")
    if changed:
        written = states.list_proof_files(tree)
        changed = [name for name in changed if name not in written]
    if changed:
        raise WorktreeRefused(
            f"not committed: {states.name_files(changed)}; commit or remove that in {row.path}, then merge"
        )
    if hidden := states.list_hidden(tree.here):
        raise _build_hidden_refusal(hidden, row.path)


def find_checkout(git: Git, target: str, busy: Mapping[str, str]) -> str:
    """The clean checkout of the target; empty if it is checked out nowhere. WorktreeRefused if it cannot be changed."""
    checkouts = states.list_checkouts(git)
    for one in checkouts:
        if not one.branch and states.find_rebased(git._replace(workspace=one.path)) == f"refs/heads/{target}":
            raise WorktreeRefused(f"a rebase of {target} is not finished in {one.path}: finish it, then merge")
    found = [one.path for one in checkouts if one.branch == f"refs/heads/{target}"]
    if len(found) > 1:
        raise WorktreeRefused(f"{target} is checked out in {found[0]} and {found[1]}: leave it in one of them")
    for path in found:
        here = git._replace(workspace=path)
        if os.path.realpath(path) in busy:
            where = f"{path}, where {target} is checked out"
            raise WorktreeRefused(f"run {busy[os.path.realpath(path)]} is active in {where}")
        changed = states.list_changes(here, untracked=False) if os.path.isdir(path) else None
        if changed is None:
            raise WorktreeRefused(f"{path}, where {target} is checked out, cannot be read: try `git status` there")
        if changed:
            shown = ", ".join(changed[:_SHOWN])
            raise WorktreeRefused(f"{path} has uncommitted changes ({shown}): commit or stash them, then merge")
        if operation := states.find_operation(here):
            raise WorktreeRefused(f"{operation} is not finished in {path}: finish it, then merge")
    return found[0] if found else ""


# the merge, in a temporary worktree


class _TemporaryWorktree:
    """A worktree for the merge and its proof, made when it is needed."""

    def __init__(self, git: UserGit, folder: str, commit: str) -> None:
        self._git, self.folder, self._commit = git, folder, commit
        self._is_made = False

    def make(self) -> UserGit:
        """Git in the worktree."""
        if not self._is_made:
            self._git.read("worktree", "add", "--quiet", "--detach", self.folder, self._commit)
            self._is_made = True
        return self._git._replace(folder=self.folder)


@contextmanager
def _open_temporary(tree: RunTree, commit: str) -> Iterator[_TemporaryWorktree]:
    """A folder beside the worktrees, removed at the end; what a crash left is removed first."""
    folder = os.path.join(os.path.dirname(tree.row.path), f".merge-{tree.row.name}")
    git = UserGit(folder=tree.git.workspace, env=tree.git.env, warden=tree.git.warden)
    try:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        _remove_temporary(git, folder)
        yield _TemporaryWorktree(git, folder, commit)
    except WorktreeUnready as error:
        raise WorktreeRefused(str(error)) from error
    except OSError as error:
        raise WorktreeRefused(f"{error.filename or folder}: {error.strerror}") from error
    finally:
        _remove_temporary(git, folder)


def _remove_temporary(git: UserGit, folder: str) -> None:
    """It holds only what can be made again: a merge, and the files of its set-up and proof."""
    if os.path.lexists(folder) or any(os.path.realpath(one.path) == folder for one in git.list_worktrees()):
        git.run("worktree", "remove", "--force", "--force", folder)
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left_worktree(git: Git, folder: str) -> None:
    try:
        _remove_temporary(UserGit(folder=git.workspace, env=git.env, warden=git.warden), folder)
    except WorktreeUnready as error:
        raise WorktreeRefused(str(error)) from error


def _merge(tree: RunTree, temporary: UserGit, tip: str, target: str) -> str:
    """Merge in the temporary worktree; the tree of the result. WorktreeRefused at a conflict."""
    merged = temporary.run("merge", "--quiet", "--no-commit", "--no-ff", tip)
    if merged.exit_code != 0:
        names = temporary.read("diff", "--name-only", "-z", "--diff-filter=U").split("\0")
        conflicts = [name for name in names if name]
        if not conflicts:
            raise WorktreeRefused(f"git merge {describe_end(merged)}")
        raise WorktreeRefused(
            f"conflicts in {', '.join(conflicts[:_SHOWN])}: nothing was changed; merge {target} into "
            f"{tree.row.branch} in {tree.row.path} first"
        )
    return temporary.read("write-tree")


def _refuse_false_objects(tree: RunTree, content: str, before: str) -> None:
    """Refuse objects that an agent forged or a disk damaged: a checkout would have other files than those proved."""
    git = tree.git._replace(timeout_s=SECONDS, most_bytes=MOST_OUTPUT)
    try:
        verify_objects(git, content, f"{before}^{{tree}}")
    except GitFailed as error:
        raise WorktreeRefused(f"{error}; nothing was merged") from error


def _refuse_replaced_objects(tree: RunTree, new: Sequence[str], before: str) -> None:
    """Refuse objects in whose place `git replace` shows others: a checkout would have those files."""
    replaced = set(_read(tree.git, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/replace").split())
    if not replaced:
        return
    git = tree.git._replace(timeout_s=SECONDS, most_bytes=MOST_OUTPUT)
    found = replaced.intersection(_read(git, "rev-list", "--objects", "--no-object-names", *new, f"^{before}").split())
    if found:
        name = min(found)
        why = f"a checkout would have other files than those proved, because {name} is replaced"
        raise WorktreeRefused(f"{why}: `git replace -d {name}`, then merge")


def _commit(tree: RunTree, content: str, before: str, tip: str, target: str, mode: str) -> str:
    """Make the commit of the merge; no ref points to it yet."""
    if mode == SQUASH:
        subjects = _read(tree.git, "log", "--reverse", "--format=- %s", f"{before}..{tip}")
        message = f"{tree.row.name}: squashed from {tree.row.branch}\n\n{subjects}"
        return _read(tree.git, "commit-tree", content, "-p", before, "-m", message)
    message = f"Merge branch '{tree.row.branch}' into {target}"
    return _read(tree.git, "commit-tree", content, "-p", before, "-p", tip, "-m", message)


def _prove(tree: RunTree, place: _TemporaryWorktree, content: str, commit: str) -> str:
    """Run the proof on the merged files, unless it was run on the same ones; WorktreeRefused if it fails."""
    spec, status = tree.run.spec, tree.run.status
    if not spec.proof:
        return "no proof"
    if status.proof is Proof.PROVED and status.tree == content:
        return "proved before"
    temporary = place.make()
    temporary.run("merge", "--abort")  # fails if none was needed
    temporary.read("checkout", "--quiet", "--force", "--detach", commit)
    try:
        copy_files(spec.worktree.source, temporary.folder, spec.worktree.copy)
    except CannotCopy as error:
        raise WorktreeRefused(str(error)) from error
    env = select_inherited_variables(os.environ)
    if spec.worktree.setup:
        seconds = spec.worktree.setup_timeout_ms / 1000
        _refuse_failure(
            "the set-up command",
            run_command(spec.worktree.setup, cwd=temporary.folder, env=env, timeout_s=seconds, below=temporary.warden),
        )
    # As the run's own proof: in the folder of the repository where the run was started.
    folder = os.path.normpath(os.path.join(temporary.folder, os.path.relpath(spec.workspace, spec.worktree.path)))
    if not os.path.isdir(folder):
        inside = os.path.relpath(folder, temporary.folder)
        raise WorktreeRefused(f"the merged files have no folder {inside}, where the proof runs: use --no-proof")
    seconds = spec.turn_timeout_ms / 1000 or _LONGEST_PROOF_S
    _refuse_failure(
        "the proof", run_command(spec.proof, cwd=folder, env=env, timeout_s=seconds, below=temporary.warden)
    )
    if states.list_changes(tree.git._replace(workspace=temporary.folder), untracked=False) != []:
        raise WorktreeRefused("the proof changed tracked files of the merge, so it is void; nothing was merged")
    return "proved again"


def _refuse_failure(what: str, result: CommandResult) -> None:
    if result.timed_out or result.exit_code != 0:
        ended = f"{what} of the merged files {describe_end(result)}; nothing was changed"
        raise WorktreeRefused(f"{ended}: correct it on the branch, or use --no-proof")


# the move of the target


def _move_target(tree: RunTree, update: _Update) -> None:
    """Move the target by one fast-forward, with the files of its checkout."""
    message = f"jackline: merge {tree.row.branch}"
    if not update.checkout:
        ref = f"refs/heads/{update.target}"
        moved = tree.git.run("update-ref", "-m", message, ref, update.after, update.before)
        if moved is None:
            raise WorktreeRefused(f"{update.target} has moved in the meantime: merge again")
        return
    _refuse_hidden_changes(tree.git, update)
    _refuse_files_in_the_way(tree.git, update)
    _refuse_full_disk(tree.git, update)
    journal = os.path.join(os.path.dirname(tree.row.path), f".merge-{tree.row.name}.json")
    write_file(journal, json.dumps(update._asdict()).encode())
    # A separate process: killing this one does not stop it halfway.
    own = {"GIT_REFLOG_ACTION": message, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    env = {**select_inherited_variables(os.environ), **own}
    flags = ("--quiet", "--ff-only", "--no-overwrite-ignore")
    words = (*GIT_WORDS, "merge", *flags, update.after)
    log = f"{journal.removesuffix('.json')}.log"
    process = DetachedProcess(words, env, update.checkout, log)
    code = process.wait(_WAIT_S)
    said = process.read_end()
    remove_file(log)
    if code is None:
        process.leave()
        raise WorktreeRefused(f"git still updates {update.checkout}: see `git status` there, then merge again")
    if tree.git.resolve_commit(f"refs/heads/{update.target}") != update.after:
        if said == _REFUSED:
            remove_file(journal)
            raise WorktreeRefused(f"git found changes in {update.checkout} that were made in the meantime: merge again")
        _undo(tree.git, update)
        remove_file(journal)
        raise WorktreeRefused(f"git could not update {update.checkout}: {said or code}; nothing was changed")
    remove_file(journal)


def _refuse_hidden_changes(git: Git, update: _Update) -> None:
    """WorktreeRefused if git would overwrite a file marked assume-unchanged or skip-worktree: it may have changes."""
    listed = _read(git, "diff-tree", "-r", "-z", "--name-only", "--no-renames", update.before, update.after)
    hidden = set(states.list_hidden(git._replace(workspace=update.checkout))).intersection(listed.split("\0"))
    if hidden:
        raise _build_hidden_refusal(sorted(hidden), update.checkout)


def _build_hidden_refusal(names: list[str], folder: str) -> WorktreeRefused:
    how = "undo that with `git update-index --no-assume-unchanged --no-skip-worktree`, then merge"
    return WorktreeRefused(f"{states.name_files(names)} in {folder} is marked assume-unchanged or skip-worktree: {how}")


def _refuse_files_in_the_way(git: Git, update: _Update) -> None:
    """WorktreeRefused if an added file is on the disk: git overwrites ignored ones, and an undo would delete it."""
    here = git._replace(errors="surrogateescape")
    listed = _read(here, "diff-tree", "-r", "-z", "--name-status", "--no-renames", update.before, update.after)
    pieces = listed.split("\0")
    changes = dict(zip(pieces[1::2], pieces[::2], strict=False))
    deleted = {name for name, change in changes.items() if change == "D"}
    found = dict[str, None]()
    for name in (name for name, change in changes.items() if change == "A"):
        found |= dict.fromkeys(_find_in_the_way(update.checkout, name, deleted))
    if found:
        names = states.name_files(describe_names(found))
        raise WorktreeRefused(f"in the way in {update.checkout}: {names}; move that away, then merge")


def _find_in_the_way(root: str, name: str, deleted: set[str]) -> list[str]:
    """The files in the place of an added file, without those that the same merge deletes."""
    parts = name.split("/")
    for count in range(1, len(parts)):
        folder = "/".join(parts[:count])
        path = os.path.join(root, folder)
        if not os.path.lexists(path):
            return []
        if os.path.islink(path) or not os.path.isdir(path):
            return [] if folder in deleted else [folder]
    path = os.path.join(root, name)
    if os.path.isdir(path) and not os.path.islink(path):
        return [one for one in states.list_files_below(path, root) if one not in deleted]
    return [name] if os.path.lexists(path) else []


def _refuse_full_disk(git: Git, update: _Update) -> None:
    """WorktreeRefused if the changed files may not fit: git would stop in the middle of them."""
    listed = git.run("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=AMT", update.before, update.after) or ""
    blobs = [line.split()[3] for line in listed.split("\0") if line.startswith(":")]
    sizes = git.run("cat-file", "--batch-check=%(objectsize)", stdin="".join(f"{one}\n" for one in blobs)) or ""
    needed = sum(int(size) for size in sizes.split() if size.isdigit())
    free = os.statvfs(update.checkout)
    if free.f_bavail * free.f_frsize < needed + _SPACE:
        raise WorktreeRefused(f"the disk of {update.checkout} is almost full: free some space, then merge")


def repair_merges(git: Git, folder: str) -> None:
    """Undo fast-forwards of this repository that were cut off, and remove temporary worktrees that a crash left.

    The caller holds the folder's lock, so none of them is in use.
    """
    with suppress(FileNotFoundError, NotADirectoryError):  # of a worktree that could never be made
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name.startswith(".merge-") and os.path.isdir(path):
                _remove_left_worktree(git, path)
                continue
            if name.startswith(".merge-") and name.endswith(".log"):
                _remove_left_log(path)
            if not (name.startswith(".merge-") and name.endswith(".json")):
                continue
            try:
                with open(path, encoding="utf-8") as file:
                    update = _Update(**json.load(file))
            except (ValueError, TypeError):
                continue
            if git.resolve_commit(f"refs/heads/{update.target}") == update.before:
                branch = _find_branch(git, update.checkout)
                if branch == f"refs/heads/{update.target}":
                    _undo(git, update)
                elif branch is not None:
                    continue  # a person works on something else there: wait until the target is checked out again
            remove_file(path)


def _remove_left_log(path: str) -> None:
    """Remove what git said in a merge that was killed, once its journal, which comes first, is gone."""
    if not os.path.lexists(f"{path.removesuffix('.log')}.json"):
        remove_file(path)


def _find_branch(git: Git, checkout: str) -> str | None:
    """The branch of a checkout, empty if its HEAD is detached; None if the checkout is gone."""
    place = os.path.realpath(checkout)
    found = [one.branch for one in states.list_checkouts(git) if os.path.realpath(one.path) == place]
    return found[0] if found and os.path.isdir(place) else None


def _undo(git: Git, update: _Update) -> None:
    """Give the checkout its files from before the fast-forward. What somebody else changed or staged meanwhile stays.

    No branch is moved: the one of the checkout may have become another one.
    """
    here = git._replace(workspace=update.checkout, errors="surrogateescape")
    try:
        _require_unlocked(here)
        changes = _parse_changes(here.read("diff-tree", "-r", "-z", "--no-renames", update.before, update.after))
        listed = _parse_changes(here.read("diff-index", "--cached", "-r", "-z", "--no-renames", update.before))
        staged = {name: new for (_, _, _, new, _), name in listed}
        # New files first: one of them may be in a folder that has the name of an old file.
        changes.sort(key=lambda one: one[0][4] != "A")
        lines = [f"{mode[1:]} {old}\t{name}\0" for (mode, _, old, new, _), name in changes if staged.get(name) == new]
        if lines:
            here.read("update-index", "-z", "--index-info", stdin="".join(lines))
        for (_, _, old, new, change), name in changes:
            path = os.path.join(update.checkout, name)
            if staged.get(name, new) != new or _holds_other_content(here, path, name, old, new, update.after):
                continue
            if change == "A":
                _delete_file(path)
            else:
                here.read("checkout", "--quiet", update.before, "--", f":(literal){name}")
    except (GitFailed, OSError) as error:
        raise WorktreeRefused(
            f"a merge into {update.target} was cut off, and {update.checkout} cannot be repaired: {error}"
        ) from error


def _parse_changes(listed: str) -> list[tuple[list[str], str]]:
    """The fields of each change in the raw output of git (both modes, both contents, the change), and its file."""
    pieces = listed.split("\0")
    return [(entry.split(), name) for entry, name in zip(pieces[::2], pieces[1::2], strict=False)]


def _delete_file(path: str) -> None:
    """Delete a file, with the folders that are empty then, as git does."""
    with suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(path)
        with suppress(OSError):  # one that is not empty
            os.removedirs(os.path.dirname(path))


def _require_unlocked(git: Git) -> None:
    """GitFailed if the index is locked: by a git that still works there, or by one that was killed."""
    lock = (git.run("rev-parse", "--git-path", "index.lock") or "").removesuffix("\n")
    path = os.path.join(git.workspace, lock)
    if lock and os.path.lexists(path):
        raise GitFailed(f"if no git works there, delete {path}, which a killed one left, then try again")


def _holds_other_content(git: Git, path: str, name: str, old: str, new: str, after: str) -> bool:
    """Whether git did not write this content: it is not the old one, nor the new one or its beginning."""
    if not os.path.lexists(path):
        return False
    if os.path.islink(path):
        return git.read("hash-object", "--stdin", stdin=os.readlink(path)).strip() not in {old, new}
    if not os.path.isfile(path):
        return True
    if git.read("hash-object", f"--path={name}", "--", path).strip() in {old, new}:
        return False
    whole = git.run("cat-file", "--filters", f"{after}:{name}") if set(new) != {"0"} else None
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return whole is None or not whole.startswith(file.read())


def _read(git: Git, *words: str) -> str:
    try:
        return git.read(*words).strip()
    except GitFailed as error:
        raise WorktreeRefused(f"{error}; nothing was changed in {git.workspace}") from error
