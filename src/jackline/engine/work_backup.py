"""Keeps work that a git command is about to discard, as a commit at `refs/jackline/RUN/N`.

The commit holds the working tree with untracked files; its second parent holds the index, if that differs. It is made
through a temporary index: HEAD, the index, the stash and the files of the user stay as they are, and no hook and no
filter runs. What cannot be kept is reported, so that a person is asked.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.engine.git import GitFailed, unbind_git_env
from jackline.engine.tree_files import PlainFiles, list_work_in_gitlinks
from jackline.engine.tree_id import describe_names, quote_path
from jackline.formatting import join_some
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.engine.git import Git
    from jackline.policy.discarded_work import Discard

PREFIX = "refs/jackline/"
SALVAGE = "salvage"  # the verb of a person's wish to keep work, not of a git command
_MOST_FILES = 20_000
_MOST_BYTES = 256 * 1024 * 1024
_MOST_STASHES = 50
_MOST_NAMED = 3  # files in a message
_MEGABYTE = 1024 * 1024
_FIXED_DATE = "@0 +0000"
HOST_IDENTITY = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "jackline"), ("EMAIL", "jackline@localhost"))
}
# Ignored folders and files that a build, a test or an installation makes again.
_CACHES = frozenset(
    {"node_modules", "__pycache__", ".venv", "venv", "build", "dist", "target", "out", "obj", "coverage", "htmlcov"}
    | {".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".cache", ".next", ".nuxt", ".turbo", ".eggs"}
    | {".parcel-cache", ".gradle", ".svelte-kit", ".angular", ".hypothesis", ".coverage", ".DS_Store", ".import_linter"}
    | {"_build", ".dart_tool", ".sass-cache", ".nyc_output", ".vite", ".eslintcache", "bower_components", "CMakeFiles"}
)
_CACHED_ENDINGS = (".pyc", ".pyo", ".o", ".a", ".so", ".class", ".egg-info", ".tsbuildinfo", ".log", ".swp")


# The same without doubt: what has such a name holds nothing else.
_CERTAIN_CACHES = frozenset(
    {"node_modules", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox", ".nox", ".eggs", ".DS_Store"}
    | {".parcel-cache", ".turbo", ".sass-cache", ".eslintcache", ".next", ".nuxt", ".svelte-kit", ".angular"}
)
_CERTAIN_ENDINGS = (".pyc", ".pyo", ".egg-info", ".tsbuildinfo")
_VENVS = frozenset({".venv", "venv"})


def find_missing_identity(git: Git) -> dict[str, str]:
    """Variables of the author and the committer that git does not know; the person's own stay as they are."""
    unknown = [role for role in ("AUTHOR", "COMMITTER") if git.run("var", f"GIT_{role}_IDENT") is None]
    return {name: value for name, value in HOST_IDENTITY.items() if name.split("_")[1] in unknown}


class Backup(NamedTuple):
    """Where the work is kept, or why it cannot be kept."""

    refs: tuple[str, ...] = ()
    problem: str = ""


class _CannotKeep(Exception):
    """The work cannot be kept; the message says why."""


def keep_work(discards: Sequence[Discard], run_id: str, open_git: Callable[[str], Git]) -> Backup:
    """Keep the work that these commands would discard; `open_git` runs git in a folder."""
    refs: dict[str, None] = {}
    try:
        for discard in discards:
            if not discard.folder:
                return Backup(problem=f"the folder of '{discard.command}' is only known at run time")
            ref = _keep_repository(discard, run_id, open_git)
            if ref:
                refs[ref] = None
    except (_CannotKeep, GitFailed, OSError) as error:
        return Backup(problem=describe_names([f"{error}"[:200]])[0])
    return Backup(refs=tuple(refs))


def keep_folder(git: Git, parent: str, run_id: str, message: str) -> Backup:
    """Keep the files of a folder as a commit after its parent; GIT_DIR and GIT_WORK_TREE of `git` name the two."""
    folder = tempfile.mkdtemp(prefix="jackline-")
    try:
        env = {**git.env, **_disable_filters(git), **HOST_IDENTITY, "GIT_INDEX_FILE": os.path.join(folder, "index")}
        own = git._replace(env=env)
        own.read("read-tree", parent)
        names = _list_changed_files(own, with_gitlinks=True)
        if not names:
            return Backup()
        _add_files(own, names, len(parent))
        commit = _commit_tree(own, own.read("write-tree").strip(), [parent], message)
        return Backup(refs=(_store_ref(own, run_id, commit),))
    except (_CannotKeep, GitFailed, OSError) as error:
        return Backup(problem=f"{error}"[:200])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_commit(git: Git, run_id: str, commit: str) -> str:
    """Keep a commit that a branch is about to lose; return its ref. GitFailed if that is not possible."""
    return _create_ref(git, run_id, commit, _find_last_number(git, run_id) + 1)


class RegisteredWork(NamedTuple):
    """Work of a worktree whose folder is gone, which only git's own folder of the worktree still has."""

    parent: str = ""  # its HEAD
    head: str = ""  # the same, if no ref reaches it
    staged: str = ""  # the tree of its index, if that is kept nowhere


def find_registered_work(git: Git, path: str, run_id: str) -> RegisteredWork:
    """Find such work; `git` is in the repository, `path` was the worktree's folder. GitFailed if git cannot tell."""
    admin = find_admin_folder(git, path)
    if not admin:
        return RegisteredWork()
    own = git._replace(env={**unbind_git_env(git.env), "GIT_DIR": admin})
    head = own.resolve_commit("HEAD")
    is_reached = not head or bool(git.read("for-each-ref", "--count=1", "--contains", head))
    staged = _write_index(own, os.path.join(admin, "index"))
    known = git.read("for-each-ref", "--format=%(tree)", f"{PREFIX}{run_id}/").split()
    if head:
        known.append(git.read("rev-parse", f"{head}^{{tree}}").strip())
    return RegisteredWork(parent=head, head="" if is_reached else head, staged="" if staged in known else staged)


def keep_registered_work(git: Git, path: str, run_id: str) -> Backup:
    """Keep the commits and the index of a worktree whose folder is gone, before git forgets them."""
    try:
        work = find_registered_work(git, path, run_id)
        commit = work.head
        if work.staged:
            own = git._replace(env={**git.env, **HOST_IDENTITY})
            parents = [work.parent] if work.parent else []
            commit = _commit_tree(own, work.staged, parents, f"Index of {path} in run {run_id}")
        return Backup(refs=(_store_ref(git, run_id, commit),)) if commit else Backup()
    except (GitFailed, OSError) as error:
        return Backup(problem=f"{error}"[:200])


def find_admin_folder(git: Git, path: str) -> str:
    """The folder in which git keeps HEAD and index of the worktree at this path; empty if there is none."""
    common = os.path.join(git.workspace, git.read("rev-parse", "--git-common-dir").removesuffix("\n"))
    folder = os.path.join(common, "worktrees")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        admin = os.path.join(folder, name)
        with suppress(FileNotFoundError, NotADirectoryError):
            with open(os.path.join(admin, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
                link = os.path.join(admin, file.read().strip())
            if os.path.realpath(os.path.dirname(link)) == path:
                return os.path.realpath(admin)
    return ""


def _write_index(git: Git, path: str) -> str:
    """The tree of an index, which is not changed; empty if it has no files. Conflicts are left out."""
    if not os.path.isfile(path):
        return ""
    folder = tempfile.mkdtemp(prefix="jackline-")
    try:
        index = shutil.copy2(path, os.path.join(folder, "index"))
        own = git._replace(env={**git.env, "GIT_INDEX_FILE": index}, errors="surrogateescape")
        unmerged = {line.partition("\t")[2] for line in own.read("ls-files", "-z", "--unmerged").split("\0") if line}
        if unmerged:
            names = "".join(f"{name}\0" for name in unmerged)
            own.read("update-index", "-z", "--force-remove", "--stdin", stdin=names)
        tree = own.read("write-tree").strip()
        return "" if tree == own.read("hash-object", "-t", "tree", "--stdin").strip() else tree
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_repository(discard: Discard, run_id: str, open_git: Callable[[str], Git]) -> str:
    """Return the ref of the backup; empty if there is nothing to keep."""
    if not os.path.isdir(discard.folder):
        return ""  # git fails there
    here = open_git(discard.folder)._replace(errors="surrogateescape")
    top = here.find_top()
    if not top:
        return ""  # not in a repository
    if discard.deletes_ignored:
        _check_ignored(here, discard)
    root = open_git(top)._replace(errors="surrogateescape")
    head = root.resolve_commit("HEAD")
    folder = tempfile.mkdtemp(prefix="jackline-")
    try:
        commit = _build_commit(root, head, discard, run_id, os.path.join(folder, "index"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _store_ref(root, run_id, commit) if commit else ""


def _check_ignored(git: Git, discard: Discard) -> None:
    listed = git.run(
        "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", *discard.paths
    )
    if listed is None:
        raise _CannotKeep("git does not list the ignored files")
    lost = [path for path in listed.split("\0") if path and not is_cache(path)]
    if lost:
        raise _CannotKeep(f"it would delete ignored files: {join_some(lost, _MOST_NAMED)}")


def is_cache(path: str) -> bool:
    """Whether an ignored file or folder is made again by a build, a test or an installation."""
    parts = path.rstrip("/").split("/")
    return not _CACHES.isdisjoint(parts) or parts[-1].endswith(_CACHED_ENDINGS)


def is_certain_cache(root: str, path: str) -> bool:
    """Whether an ignored file or folder below the root is made again without doubt: by its name, or a mark in it."""
    parts = path.rstrip("/").split("/")
    if any(part in _CERTAIN_CACHES or part.endswith(_CERTAIN_ENDINGS) for part in parts):
        return True
    for count, part in enumerate(parts, start=1):
        folder = os.path.join(root, *parts[:count])
        marks = ("CACHEDIR.TAG", *(("pyvenv.cfg",) if part in _VENVS else ()))
        if any(os.path.isfile(os.path.join(folder, mark)) for mark in marks):
            return True
    return False


def _build_commit(root: Git, head: str, discard: Discard, run_id: str, index: str) -> str:
    """Return the commit that holds the work; empty if there is nothing to keep."""
    own_index = os.path.join(root.workspace, (root.run("rev-parse", "--git-path", "index") or "").removesuffix("\n"))
    if os.path.isfile(own_index):
        # With its time, by which git recognizes files that were changed in the instant in which it was written.
        shutil.copy2(own_index, index)
    git = root._replace(env={**root.env, **_disable_filters(root), **HOST_IDENTITY, "GIT_INDEX_FILE": index})
    _unhide_files(git)
    names = _list_changed_files(git, deletes_nested=discard.deletes_nested, with_gitlinks=discard.verb == SALVAGE)
    head_tree = git.read("rev-parse", f"{head}^{{tree}}").strip() if head else ""
    staged = (git.run("write-tree") or "").strip()  # none during a merge with conflicts
    stashes = _list_stashes(git) if discard.verb == "stash" else []
    is_staged = staged != head_tree if head else bool(git.run("ls-files", "--cached"))
    if not (names or is_staged or stashes):
        return head if discard.verb == "reset" else ""
    _add_files(git, names, len(head) or 40)
    tree = git.read("write-tree").strip()
    message = f"Work before '{discard.command}' in run {run_id}"
    parents = [head] if head else []
    if staged and staged not in {head_tree, tree}:
        # The same index gives the same commit, so that the same work is kept once.
        dated = git._replace(env={**git.env, "GIT_AUTHOR_DATE": _FIXED_DATE, "GIT_COMMITTER_DATE": _FIXED_DATE})
        parents.append(_commit_tree(dated, staged, parents, f"Index in run {run_id}"))
    return _commit_tree(git, tree, [*parents, *stashes], message)


def _disable_filters(git: Git) -> dict[str, str]:
    """Variables without which git would start a filter, to compare a file that was changed in this instant."""
    names = (git.run("config", "-z", "--name-only", "--get-regexp", r"^filter\.") or "").split("\0")
    values = [(name, "false" if name.endswith(".required") else "") for name in dict.fromkeys(names) if name]
    pairs = [(f"GIT_CONFIG_KEY_{at}", key) for at, (key, _) in enumerate(values)]
    pairs += [(f"GIT_CONFIG_VALUE_{at}", value) for at, (_, value) in enumerate(values)]
    return {**dict(pairs), "GIT_CONFIG_COUNT": str(len(values))}


def _unhide_files(git: Git) -> None:
    """Let the temporary index hide no change: assume-unchanged and skip-worktree do, and a checkout may discard it."""
    listed = git.read("ls-files", "-z", "-v").split("\0")
    marked = [line[2:] for line in listed if line[:1].islower() or line[:1] == "S"]
    # A file outside of a sparse working tree is not on the disk, and was not deleted.
    hidden = "".join(f"{name}\0" for name in marked if os.path.lexists(os.path.join(git.workspace, name)))
    if hidden:
        git.read("update-index", "-z", "--no-assume-unchanged", "--stdin", stdin=hidden)
        git.read("update-index", "-z", "--no-skip-worktree", "--stdin", stdin=hidden)


def _list_changed_files(git: Git, *, deletes_nested: bool = False, with_gitlinks: bool = False) -> list[str]:
    changed = git.read("diff-files", "-z", "--name-only", "--ignore-submodules=all").split("\0")
    untracked = git.read("ls-files", "-z", "--others", "--exclude-standard").split("\0")
    hidden = list_work_in_gitlinks(git, ignored=True) if with_gitlinks else ()
    unseen = filter(PlainFiles(git.workspace).is_file, hidden)
    names = [name for name in dict.fromkeys((*changed, *untracked, *unseen)) if name]
    nested = [name for name in names if name.endswith("/")]
    if deletes_nested:
        raise _CannotKeep("it discards other repositories inside this one")
    if len(names) > _MOST_FILES:
        raise _CannotKeep(f"{len(names)} files are too many to keep")
    return [name for name in names if name not in nested]


def _add_files(git: Git, names: Sequence[str], digits: int) -> None:
    """Add the files to the temporary index, as they are: filters would run programs."""
    entries, plain, size = [], list[tuple[str, str]](), 0
    for name in names:
        path = os.path.join(git.workspace, name)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            entries.append(f"0 {'0' * digits}\t{name}")
            continue
        if stat.S_ISLNK(status.st_mode):
            link = git.read("hash-object", "-w", "--stdin", stdin=os.readlink(path)).strip()
            entries.append(f"120000 {link}\t{name}")
        elif stat.S_ISREG(status.st_mode):
            size += status.st_size
            plain.append(("100755" if status.st_mode & stat.S_IXUSR else "100644", name))
    if size > _MOST_BYTES:
        raise _CannotKeep(f"{size // _MEGABYTE} MB of changed and new files are too much to keep")
    if plain:
        lines = "".join(f"{quote_path(name)}\n" for _, name in plain)
        hashes = git.read("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=lines).split()
        if len(hashes) != len(plain):
            raise _CannotKeep("git cannot store the files")
        entries += [f"{mode} {one}\t{name}" for (mode, name), one in zip(plain, hashes, strict=True)]
    if entries:
        git.read("update-index", "-z", "--index-info", stdin="".join(f"{entry}\0" for entry in entries))


def _list_stashes(git: Git) -> list[str]:
    listed = git.run("log", "-g", "--format=%H", f"-n{_MOST_STASHES + 1}", "refs/stash", "--") or ""
    stashes = listed.split()
    if len(stashes) > _MOST_STASHES:
        raise _CannotKeep(f"more than {_MOST_STASHES} stashes are too many to keep")
    return stashes


def _commit_tree(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    given = [word for parent in parents for word in ("-p", parent)]
    return git.read("commit-tree", tree, *given, "-m", message).strip()


def _store_ref(git: Git, run_id: str, commit: str) -> str:
    """Create the next ref of the run; the last one is returned if it holds the same."""
    last = _find_last_number(git, run_id)
    ref = f"{PREFIX}{run_id}/{last}"
    if last and _describe(git, commit) == _describe(git, ref):
        return ref
    return _create_ref(git, run_id, commit, last + 1)


def _find_last_number(git: Git, run_id: str) -> int:
    prefix = f"{PREFIX}{run_id}/"
    names = (name.removeprefix(prefix) for name in git.read("for-each-ref", "--format=%(refname)", prefix).split())
    return max((int(name) for name in names if name.isdigit()), default=0)


def _create_ref(git: Git, run_id: str, commit: str, number: int) -> str:
    ref = f"{PREFIX}{run_id}/{number}"
    git.read("update-ref", ref, commit, "0" * len(commit))
    return ref


def _describe(git: Git, commit: str) -> str:
    """The tree and the parents of a commit."""
    return git.read("log", "-1", "--no-show-signature", "--format=%T %P", commit, "--")
