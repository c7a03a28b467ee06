"""What git knows about the worktrees of runs: commits, uncommitted files, where the work is merged. It only reads."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from jackline import clock
from jackline.engine.command_runner import start_command_warden
from jackline.engine.git import Git, GitFailed, unbind_git_env
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.tree_files import list_gitlinks, list_work_in_gitlinks
from jackline.engine.tree_id import TreeUnreadable, describe_names
from jackline.engine.work_backup import find_admin_folder, is_certain_cache
from jackline.engine.work_trees import WorkTrees
from jackline.engine.worktree import BRANCHES, ListedWorktree, parse_worktrees
from jackline.engine.worktree_files import CannotCopy, is_same_file, list_copied
from jackline.errors import Ambiguous, NotFound, WorktreeRefused
from jackline.formatting import pluralize
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.app.home import Home
    from jackline.domain.records import Run, RunWorktree

GIT_SECONDS = 120.0
_MOST_MS = 24 * 3_600_000
_SHOWN = 3  # files that a line names
_SHORT = 12  # digits of a commit
# How the folder of a worktree is.
NEW, READY, MISSING, DAMAGED, ELSEWHERE = "new", "ready", "missing", "damaged", "other host"
_OPERATIONS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisect",
}


class RunTree(NamedTuple):
    """A run with its worktree, and git in its repository."""

    run: Run
    row: RunWorktree
    git: Git  # in the main worktree of the repository
    folder: str  # of the run's files

    @property
    def here(self) -> Git:
        """Git in the worktree itself."""
        return self.git._replace(workspace=self.row.path)

    @property
    def ref(self) -> str:
        """The whole name of its branch."""
        return f"refs/heads/{self.row.branch}"


class WorktreeState(NamedTuple):
    """One worktree as it is now."""

    folder: str  # one of the words above
    tip: str = ""  # the last commit of its branch; empty: the branch is gone
    ahead: int = 0  # commits that the branch it came from does not have
    behind: int = 0
    files: int = 0  # that these commits change
    changed: int = 0  # files that are not committed
    merged: str = ""  # where the commits are; empty: nowhere else
    head: str = ""  # what is checked out instead of its branch, if that has other commits


@contextmanager
def open_trees(home: Home) -> Iterator[list[RunTree]]:
    """The worktrees of all runs of this home that were not removed; one warden for all commands of git."""
    rows = [] if home.is_new else home.store().worktrees.list_present()
    try:
        with start_command_warden(_MOST_MS) as warden:
            found = []
            for row in rows:
                run = home.store().runs.get(row.run_id)
                if run is None:
                    continue
                folder = home.store().worktrees.find_repository(row.run_id)
                git = Git(workspace=folder, env=unbind_git_env(os.environ), warden=warden, timeout_s=GIT_SECONDS)
                found.append(RunTree(run=run, row=row, git=git, folder=home.folder(run.id)))
            yield found
    except (SpawnFailed, WardenLost) as error:
        raise WorktreeRefused(str(error)) from error


def find_tree(home: Home, trees: list[RunTree], text: str, repository: str) -> RunTree:
    """The worktree of this name, of this repository first; or that of a run.

    A few characters of an id name only a run of this repository: by a slip, another one would be merged.
    """
    named = [one for one in trees if one.row.name == text]
    own = [one for one in named if one.run.repository == repository] or named
    if len(own) > 1:
        raise Ambiguous(text, what="worktree", count=len(own), some=", ".join(one.run.id for one in own[:3]))
    if own:
        return own[0]
    with suppress(NotFound):
        run_id = home.find_id(text)
        for one in trees:
            if one.run.id == run_id and (one.run.repository == repository or text == run_id):
                return one
    raise NotFound(text, what="worktree", hint="jackline worktree list --all-repos")


def name_files(names: Sequence[str]) -> str:
    """Some of the files, and how many others there are."""
    shown = ", ".join(names[:_SHOWN])
    return f"{shown} and {pluralize(len(names) - _SHOWN, 'other file')}" if len(names) > _SHOWN else shown


def list_files_below(folder: str, root: str) -> list[str]:
    """The files and links below a folder, relative to the root."""
    return [
        os.path.relpath(os.path.join(top, name), root)
        for top, folders, names in os.walk(folder)
        for name in (*names, *(one for one in folders if os.path.islink(os.path.join(top, one))))
    ]


def inspect_tree(tree: RunTree) -> WorktreeState:
    """Look at one worktree."""
    folder = find_folder_state(tree)
    if folder in {NEW, ELSEWHERE}:
        return WorktreeState(folder)
    try:
        head = find_other_head(tree, tree.row.base_branch)
    except WorktreeRefused:  # the repository is gone: only the folder is known
        return WorktreeState(folder)
    tip, target = tree.git.resolve_commit(tree.ref), tree.git.resolve_commit(f"refs/heads/{tree.row.base_branch}")
    ahead = behind = files = 0
    since = target or tree.row.base
    if tip:
        counts = (tree.git.run("rev-list", "--left-right", "--count", f"{since}...{tip}") or "0 0").split()
        behind, ahead = int(counts[0]), int(counts[1])
        names = tree.git.run("diff", "--name-only", "-z", "--no-ext-diff", f"{since}...{tip}") or ""
        files = names.count("\0")
    changed = len(list_changes(tree.here) or ()) if folder == READY else 0
    merged = find_branch_merge(tree, tip) if tip else ""
    return WorktreeState(
        folder=folder,
        tip=tip,
        ahead=ahead,
        behind=behind,
        files=files,
        changed=changed,
        merged="" if head else merged,
        head=head,
    )


def find_other_head(tree: RunTree, target: str) -> str:
    """What is checked out instead of its branch, if neither the branch nor the target has the commits of that."""
    for one in list_checkouts(tree.git):
        if os.path.realpath(one.path) != tree.row.path or one.branch == tree.ref or not one.head.strip("0"):
            continue
        tip = tree.git.resolve_commit(tree.ref)
        is_known = tip and tree.git.run("merge-base", "--is-ancestor", one.head, tip) is not None
        if not is_known and not find_merge(tree.git, one.head, target):
            return one.branch.removeprefix("refs/heads/") or one.head[:_SHORT]
    return ""


def find_folder_state(tree: RunTree) -> str:
    """Whether the folder is there, and a worktree."""
    row = tree.row
    if row.made_at is None:
        return NEW
    if row.host != clock.host_name():
        return ELSEWHERE
    try:
        os.lstat(row.path)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError:  # nothing may look at it: it is not known to be gone
        return DAMAGED
    top = tree.here.find_top() if os.path.isdir(row.path) else ""
    return READY if top and os.path.realpath(top) == row.path else DAMAGED


def list_changes(git: Git, *, untracked: bool = True, ignored: bool = True) -> list[str] | None:
    """The files of a checkout that are not committed; None if git cannot tell.

    `ignored` are those below a submodule that is not checked out, which a removal of the folder would delete.
    """
    flag = "--untracked-files=all" if untracked else "--untracked-files=no"
    listed = git.run("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=none", flag)
    if listed is None:
        return None
    try:
        unseen = describe_names(list_work_in_gitlinks(git, ignored=ignored)) if untracked else ()
    except GitFailed:
        return None
    return [*(line[3:] for line in listed.split("\0") if line), *unseen]


def list_proof_files(tree: RunTree) -> tuple[str, ...]:
    """The untracked files in the folder that only proofs of the run have written."""
    try:
        return describe_names(
            WorkTrees(tree.git._replace(workspace=tree.run.spec.workspace), tree.folder).find_proof_only_files()
        )
    except (TreeUnreadable, OSError):
        return ()


def list_submodules(git: Git) -> list[str]:
    """Submodules with a repository: in the folder, or only in what git keeps of the worktree. May raise GitFailed."""
    links = list_gitlinks(git)
    found = (one for one in links if os.path.lexists(os.path.join(git.workspace, one, ".git")))
    return list(describe_names(dict.fromkeys((*found, *list_kept_modules(git)))))


def list_kept_modules(git: Git) -> list[str]:
    """Repositories of submodules that git deletes with a worktree, also if they are not checked out any more."""
    modules = os.path.join(git.workspace, git.read("rev-parse", "--git-path", "modules").removesuffix("\n"))
    return sorted(os.listdir(modules)) if os.path.isdir(modules) else []


def list_hidden(git: Git) -> list[str]:
    """Files in the folder whose changes `git status` does not show: assume-unchanged and skip-worktree."""
    listed = git.run("ls-files", "-z", "-v")
    if listed is None:
        raise WorktreeRefused("git cannot list its files")
    marked = [line[2:] for line in listed.split("\0") if line[:1].islower() or line[:1] == "S"]
    return [name for name in marked if os.path.lexists(os.path.join(git.workspace, name))]


def list_ignored(tree: RunTree) -> list[str]:
    """Ignored files that are neither caches nor unchanged copies; WorktreeRefused if git cannot tell."""
    here = tree.here._replace(errors="surrogateescape")
    listed = here.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    if listed is None:
        raise WorktreeRefused("git cannot list the ignored files")
    spec = tree.run.spec.worktree
    try:
        copied = list_copied(spec.source, spec.copy)
    except CannotCopy:
        copied = []
    same = {name for name in copied if is_same_file(os.path.join(spec.source, name), os.path.join(spec.path, name))}
    found = []
    for name in filter(None, listed.split("\0")):
        files = list_files_below(os.path.join(spec.path, name), spec.path) if name.endswith("/") else [name]
        found += [one for one in files if one not in same and not is_certain_cache(spec.path, one)]
    return list(describe_names(found))


def find_operation(git: Git) -> str:
    """The operation that is not finished in a checkout, in words; empty if there is none."""
    for name, words in _OPERATIONS.items():
        path = (git.run("rev-parse", "--git-path", name) or "").removesuffix("\n")
        if path and os.path.lexists(os.path.join(git.workspace, path)):
            return words
    return ""


def find_rebased(git: Git) -> str:
    """The branch that is being rebased in a checkout, whose HEAD is detached meanwhile; empty if there is none."""
    for folder in ("rebase-merge", "rebase-apply"):
        path = (git.run("rev-parse", "--git-path", f"{folder}/head-name") or "").removesuffix("\n")
        with suppress(OSError), open(os.path.join(git.workspace, path), encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    return ""


def list_checkouts(git: Git) -> list[ListedWorktree]:
    """All worktrees of the repository, also those that jackline did not make; WorktreeRefused if git cannot tell."""
    if not os.path.lexists(git.workspace):
        raise WorktreeRefused(f"the repository {git.workspace} is gone: if it was moved, move it back")
    listed = git.run("worktree", "list", "--porcelain")
    if listed is None:
        raise WorktreeRefused(f"git cannot list the worktrees of {git.workspace}: try `git worktree list` there")
    return parse_worktrees(listed)


def find_branch_merge(tree: RunTree, tip: str) -> str:
    """Where else the commits of its branch are; after a merge also in another branch than the one it came from."""
    found = find_merge(tree.git, tip, tree.row.base_branch)
    if found or tree.row.merged_at is None:
        return found
    listed = (tree.git.run("for-each-ref", "--format=%(refname:short)", "--contains", tip, "refs/heads") or "").split()
    return next((name for name in listed if not name.startswith(BRANCHES)), "")  # those of other runs may be removed


def find_merge(git: Git, commit: str, branch: str) -> str:
    """Where else the commits up to this one are, in words; empty if that is not certain."""
    target = f"refs/heads/{branch}"
    if branch and git.run("merge-base", "--is-ancestor", commit, target) is not None:
        return branch
    remote = (git.run("for-each-ref", "--format=%(refname:short)", "--contains", commit, "refs/remotes") or "").split()
    if remote:
        return remote[0]
    upstream = git.resolve_commit(f"{branch}@{{upstream}}") if branch else ""
    for one, name in ((target, branch), (upstream, f"the upstream of {branch}")):
        if branch and one and has_same_changes(git, commit, one):
            return f"{name} (squashed)"
    return ""


def is_elsewhere(git: Git, commit: str, branch: str, pushed: str = "") -> bool:
    """Whether the commit itself can be reached from the branch or from a remote-tracking branch.

    A remote-tracking branch called `pushed` does not count: it goes when the branch is deleted on the remote.
    """
    found = git.run("merge-base", "--is-ancestor", commit, f"refs/heads/{branch}") if branch else None
    listed = git.run("for-each-ref", "--format=%(refname:lstrip=3)", "--contains", commit, "refs/remotes") or ""
    return found is not None or any(name != pushed for name in listed.split())


def find_ref(git: Git, commit: str) -> str:
    """A branch, a tag or another ref that reaches the commit; empty if there is none."""
    words = ("for-each-ref", "--count=1", "--format=%(refname:short)", "--contains", commit)
    return (git.run(*words) or "").strip() if commit else ""


def find_reflog_tips(tree: RunTree) -> tuple[str, ...]:
    """The last commits that only the reflogs of the worktree and of its branch have. GitFailed if git cannot tell."""
    admin = find_admin_folder(tree.git, tree.row.path)
    bound = tree.git._replace(env={**tree.git.env, "GIT_DIR": admin})
    known = [(git, name) for git, name in ((bound, "HEAD"), (tree.git, tree.ref)) if git is not bound or admin]
    logs = [git.read("log", "-g", "--format=%H", name, "--") for git, name in known if git.resolve_commit(name)]
    commits = dict.fromkeys(" ".join(logs).split())
    listed = "".join(f"{one}\n" for one in commits)
    unreached = set(tree.git.read("rev-list", "--stdin", "--not", "--all", stdin=listed).split()) if listed else set()
    found = [one for one in commits if one in unreached]
    return tuple(tree.git.read("merge-base", "--independent", *found).split()) if found else ()


def find_last_commit(git: Git, commits: Sequence[str]) -> str:
    """The last of these commits that still exists; empty if there is none."""
    return next((one for one in reversed(commits) if git.resolve_commit(one)), "")


def find_lost_commit(git: Git, commits: Sequence[str]) -> str:
    """The last of these commits that still exists; empty if there is none, or if a ref reaches it."""
    last = find_last_commit(git, commits)
    return "" if find_ref(git, last) else last


def has_same_changes(git: Git, commit: str, target: str) -> bool:
    """Whether the target has each change of these commits, or all of them as one commit. Nothing is written."""
    fork = (git.run("merge-base", target, commit) or "").strip()
    if not fork or _has_equal_patches(git, target, commit):
        return bool(fork)
    objects = (git.run("rev-parse", "--git-path", "objects") or "").removesuffix("\n")
    if not objects:
        return False
    with tempfile.TemporaryDirectory(prefix="jackline-") as folder:
        own = {"GIT_OBJECT_DIRECTORY": folder}
        own["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = os.path.join(git.workspace, objects)
        for role in ("AUTHOR", "COMMITTER"):
            own |= {f"GIT_{role}_NAME": "jackline", f"GIT_{role}_EMAIL": "jackline@localhost"}
        apart = git._replace(env={**git.env, **own})
        squashed = apart.run("commit-tree", f"{commit}^{{tree}}", "-p", fork, "-m", "squashed")
        return squashed is not None and _has_equal_patches(apart, target, squashed.strip())


def _has_equal_patches(git: Git, target: str, commit: str) -> bool:
    lines = (git.run("cherry", target, commit) or "").splitlines()
    return bool(lines) and all(line.startswith("- ") for line in lines)
