"""The id of the files of a working tree: a git tree of the files as they are on the disk. It changes no repository.

Whether a file is committed, staged or new makes no difference; ignored files are not in the tree. Large untracked files
are named and left out.

The objects and an index are in a folder of the run, with the repository's objects as alternates. That folder has its
own configuration and attributes, so that no filter, hook or monitor of the repository is started, and no bit of the
repository's index hides a change. Its index remembers the files that were read, so the next id is cheap.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.engine.git import GitFailed
from jackline.engine.tree_files import (
    LINK,
    MOST_OUTPUT,
    SECONDS,
    PlainFiles,
    find_repository,
    keep_small_files,
    list_files,
    make_repository,
)
from jackline.files import lock_folder, write_volatile
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from jackline.engine.git import Git
    from jackline.engine.tree_files import TreeFiles, WorkingRepository

FOLDER = "tree.git"  # in the folder of a run
_INDEX = "index"
_NEW_INDEX = "index.new"
_OTHER_INDEX = "index.other"
_UPDATE = ("update-index", "-z")
# They come before the attributes of the repository. A file can be marked as binary, to hide its changes from reviewers.
_ATTRIBUTES = "* -text -eol -crlf -filter -ident -working-tree-encoding !diff\n"
_CONFIG = """[core]
    repositoryFormatVersion = 1
    bare = false
    filemode = true
    symlinks = true
    autocrlf = false
    ignorecase = false
    protectNTFS = false
    protectHFS = false
    fsmonitor = false
    untrackedCache = false
    sparseCheckout = false
    hooksPath = /dev/null
    attributesFile = /dev/null
[extensions]
    objectFormat = {object_format}
[gc]
    auto = 0
"""


class TreeUnreadable(Exception):
    """There is a repository, but the id of its files cannot be computed; the message says why."""


class TreeState(NamedTuple):
    """The files of a working tree at one moment."""

    id: str
    top: str  # the folder of the working tree
    tracked: frozenset[str] = frozenset()  # files that the repository tracks, those of submodules included
    left_out: tuple[str, ...] = ()  # large or unreadable files: not in the tree
    nested: tuple[str, ...] = ()  # folders of submodules and other repositories, with a slash at the end
    absent: int = 0  # files outside of a sparse working tree: in the tree as they are in the index


def compute_tree(
    git: Git, folder: str, *, always: bool = False, absent: Container[str] = frozenset(), place: str = ""
) -> TreeState | None:
    """The files of the repository that git's workspace is in; None without git or without a repository.

    The objects go to `folder`. `always`: without a repository, all files of the workspace. `absent`: see `list_files`.
    TreeUnreadable if git cannot read the repository, or if the workspace is not at this `place` in it.
    """
    try:
        repository = find_repository(git) or (make_repository(git) if always else None)
        if repository is None:
            return None
        check_place(git, repository.top, place)
        files = list_files(git, repository, absent)
        trees = open_trees(git, folder, repository, files.objects)
        with lock_folder(folder):
            return _write_tree(trees, folder, repository.top, files)
    except (GitFailed, OSError) as error:
        raise TreeUnreadable(str(error)) from error


def find_place(git: Git, top: str) -> str:
    """Where the workspace is in the working tree of its repository: a relative path."""
    return os.path.relpath(os.path.realpath(git.workspace), os.path.realpath(top))


def check_place(git: Git, top: str, place: str) -> None:
    """Raise TreeUnreadable unless the workspace is at this place: else its files are those of another repository.

    An empty place is not known.
    """
    if place and (found := find_place(git, top)) != place:
        is_below = found == "." or place.endswith(f"/{found}")
        is_new = is_below and os.path.lexists(os.path.join(top, ".git"))
        why = "one was made inside its own" if is_new else "its own is gone"
        raise TreeUnreadable(f"the repository of the workspace is now that of {top}: {why}, or core.worktree was set")


def list_changed_files(git: Git, folder: str, before: str, after: str) -> tuple[str, ...]:
    """The names of the files that differ between two trees."""
    return tuple(find_changes(git, folder, before, after))


def find_changes(git: Git, folder: str, before: str, after: str) -> dict[str, str]:
    """The files that differ between two trees, each with its mode and id in the first one; mode 0: it is new."""
    if before == after:
        return {}
    words = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", before, after, "--")
    try:
        listed = bind_trees(git, folder).read(*words).split("\0")
    except GitFailed as error:
        raise TreeUnreadable(str(error)) from error
    changes = {}
    for line, name in zip(listed[::2], listed[1::2], strict=False):
        mode, _, object_id, *_ = line.removeprefix(":").split(" ")
        changes[name] = f"{int(mode)} {object_id}"
    return changes


def replace_files(git: Git, folder: str, tree: str, entries: Mapping[str, str]) -> str:
    """The id of the tree with other entries for some of its files, as `find_changes` returns them."""
    index = os.path.join(folder, _OTHER_INDEX)
    trees = bind_trees(git, folder)
    trees = trees._replace(env={**trees.env, "GIT_INDEX_FILE": index})
    try:
        with lock_folder(folder):
            _copy_index("", index)
            trees.read("read-tree", tree)
            trees.read(*_UPDATE, "--index-info", stdin=_join(f"{entry}\t{name}" for name, entry in entries.items()))
            return trees.read("write-tree", "--missing-ok").strip()
    except (GitFailed, OSError) as error:
        raise TreeUnreadable(str(error)) from error


def verify_objects(git: Git, tree: str, known: str = "") -> None:
    """Compute the ids of the files and folders of a tree again, but those of a known one. GitFailed if one is wrong.

    Git trusts the name of an object file, and an agent can write one. Those of the known tree need not be there: a
    partial clone with a sparse working tree lacks some.
    """
    without = (f"^{known}",) if known else ()
    try:
        listed = git.read("rev-list", "--objects", "--no-object-names", tree, *without)
        if listed:
            stdin = "\n".join((listed.rstrip("\n"), *without, ""))
            git.read("rev-list", "--verify-objects", "--quiet", "--stdin", stdin=stdin)
    except GitFailed as error:
        raise GitFailed(f"an object is missing, or its content does not match its name: {error}") from error


def checkout_tree(git: Git, folder: str, top: str, tree: str) -> None:
    """Change the files of the tree that was computed last into those of another one. May raise GitFailed."""
    with lock_folder(folder):
        index, began = os.path.join(folder, _NEW_INDEX), time.time()
        _copy_index(os.path.join(folder, _INDEX), index)
        trees = bind_trees(git, folder, top)
        trees._replace(env={**trees.env, "GIT_INDEX_FILE": index}).read("read-tree", "--reset", "-u", tree)
        _keep_index(folder, index, began)


def open_trees(git: Git, folder: str, repository: WorkingRepository, objects: Iterable[str] = ()) -> Git:
    """Git with `folder` as its repository, which is created, and the files of another repository's working tree."""
    write_raw_repository(folder, repository.object_format, filter(None, (repository.objects, *objects)))
    return bind_trees(git, folder, repository.top)


def bind_trees(git: Git, folder: str, top: str = "") -> Git:
    """Git with `folder` as its repository; nothing else configures it."""
    env = {name: value for name, value in git.env.items() if not name.startswith("GIT_")}
    own = {
        "GIT_DIR": folder,
        "GIT_WORK_TREE": top or folder,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return git._replace(
        workspace=top or folder,
        env={**env, **own, "GIT_CEILING_DIRECTORIES": os.path.dirname(folder)},
        timeout_s=SECONDS,
        most_bytes=MOST_OUTPUT,
        errors="surrogateescape",
    )


def write_raw_repository(folder: str, object_format: str, alternates: Iterable[str]) -> None:
    """Create a git folder whose files are read and written as they are, and which starts no other program."""
    for name in ("", "info", "refs", "objects", "objects/info"):
        os.makedirs(os.path.join(folder, name), mode=0o700, exist_ok=True)
    config = _CONFIG.format(object_format=object_format)
    listed = os.path.join("objects", "info", "alternates")
    known = _read_lines(os.path.join(folder, listed))  # stay: an earlier tree may need them
    lines = dict.fromkeys((*known, *(quote_path(one) for one in alternates)))
    texts = {"config": config, "info/attributes": _ATTRIBUTES, listed: "".join(f"{line}\n" for line in lines)}
    for name, text in {**texts, "HEAD": "ref: refs/heads/main\n"}.items():
        path = os.path.join(folder, name)
        if name != "HEAD" or not os.path.exists(path):
            write_volatile(path, text.encode("utf-8", "surrogateescape"))


def _write_tree(trees: Git, folder: str, top: str, files: TreeFiles) -> TreeState:
    try:
        return _update_tree(trees, folder, top, files)
    except GitFailed:
        # An unreadable file, or an object that the repository no longer has: start again without what is remembered.
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, _INDEX))
        return _update_tree(trees, folder, top, files, checks_access=True)


def _update_tree(trees: Git, folder: str, top: str, files: TreeFiles, *, checks_access: bool = False) -> TreeState:
    index, began = os.path.join(folder, _NEW_INDEX), time.time()
    _copy_index(os.path.join(folder, _INDEX), index)
    git = trees._replace(env={**trees.env, "GIT_INDEX_FILE": index})
    kept, left_out = keep_small_files(top, files.untracked - files.tracked)
    plain = PlainFiles(top)
    present = [name for name in (*files.tracked, *kept) if plain.is_file(name)]
    if checks_access:
        paths = {name: os.path.join(top, name) for name in present}
        hidden = {name for name, path in paths.items() if not (os.path.islink(path) or os.access(path, os.R_OK))}
        present, left_out = [name for name in present if name not in hidden], sorted({*left_out, *hidden})
    known = git.read("ls-files", "-z").split("\0")[:-1] if os.path.exists(index) else []
    gone = set(known).difference(present, files.entries)
    if known:
        gone |= _find_recent(top, known, os.stat(index).st_mtime)
    if gone:
        git.read(*_UPDATE, "--force-remove", "--stdin", stdin=_join(gone))
    if files.entries:
        git.read(*_UPDATE, "--index-info", stdin=_join(f"{entry} 0\t{name}" for name, entry in files.entries.items()))
    git.read(*_UPDATE, "--add", "--remove", "--replace", "--stdin", stdin=_join(sorted(present)))
    tree = git.read("write-tree", *(("--missing-ok",) if files.entries else ())).strip()
    _keep_index(folder, index, began)
    return TreeState(
        id=tree,
        top=top,
        tracked=frozenset(files.tracked | files.entries.keys()),
        left_out=tuple(left_out),
        nested=tuple(files.nested),
        absent=sum(not entry.startswith(LINK) for entry in files.entries.values()),
    )


def _copy_index(source: str, target: str) -> None:
    """Copy the index with its time, by which git recognizes files that were changed when it was written."""
    for path in (target, f"{target}.lock"):  # left by a crash
        with suppress(FileNotFoundError):
            os.unlink(path)
    if os.path.exists(source):
        shutil.copy2(source, target)


def _keep_index(folder: str, index: str, began: float) -> None:
    """Remember the files that were read, with the time when the first one was read as the time of the index."""
    os.utime(index, (began, began))
    os.replace(index, os.path.join(folder, _INDEX))


def _find_recent(top: str, names: Iterable[str], read_at: float) -> set[str]:
    """The files that may have changed after they were read, within the same second.

    Git compares whole seconds, and the time of a change can be set back. The time of the inode cannot.
    """
    since, recent = int(read_at) - 1, set[str]()
    for name in names:
        with suppress(OSError):  # gone
            if os.lstat(os.path.join(top, name)).st_ctime >= since:
                recent.add(name)
    return recent


def _join(words: Iterable[str]) -> str:
    return "".join(f"{word}\0" for word in words)


def describe_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of files as text that can be stored and printed."""
    return tuple(name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in names)


def quote_path(path: str) -> str:
    """Quote a path as git does, if it has to be."""
    if not any(one in path for one in '"\r\n') and not path.startswith("#"):
        return path
    return '"' + "".join(f"\\{byte:03o}" for byte in os.fsencode(path)) + '"'


def _read_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []
