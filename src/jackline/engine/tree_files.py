"""The names of the files that belong to a working tree: tracked, new, and those of repositories inside it.

It reads repositories and never changes one. `tree_id` reads the files themselves.
"""

from __future__ import annotations

import os
import shutil
import stat
from typing import TYPE_CHECKING

from jackline.engine.git import GitFailed, unbind_git_env
from jackline.named import NamedTuple
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from jackline.engine.git import Git

MOST_FILE_BYTES = 32 * 1024 * 1024  # of one untracked file
MOST_BYTES = 256 * 1024 * 1024  # of all untracked files
MOST_OUTPUT = 256 * 1024 * 1024
SECONDS = 600.0  # for one command: the first one reads every file
_MOST_NESTED = 20  # repositories inside each other
LINK = "160000"  # the mode of a submodule
_SKIPPED = "S"  # a file outside of a sparse working tree
_OTHERS = ("-c", "core.untrackedCache=false", "ls-files", "-z", "--others", "--exclude-standard")


class WorkingRepository(NamedTuple):
    """Where a repository is, and the folder with its files."""

    top: str
    folder: str  # of this working tree, usually `.git`
    objects: str
    object_format: str

    def bind(self, git: Git) -> Git:
        """Git in this repository, whatever its configuration says about its working tree."""
        env = {**unbind_git_env(git.env), "GIT_DIR": self.folder, "GIT_WORK_TREE": self.top}
        return git._replace(
            workspace=self.top, env=env, timeout_s=SECONDS, most_bytes=MOST_OUTPUT, errors="surrogateescape"
        )


class TreeFiles(NamedTuple):
    """The files of a working tree, by their names relative to its top."""

    tracked: set[str]
    untracked: set[str]
    entries: dict[str, str]  # name → mode and id, of what is in the index and not on the disk
    objects: list[str]  # the object folders of submodules
    nested: list[str]  # the folders of submodules and other repositories, with a slash at the end


def find_repository(git: Git) -> WorkingRepository | None:
    """The repository of a workspace; None without git, or where the repository ignores the workspace."""
    if shutil.which("git", path=git.env.get("PATH", os.defpath)) is None:
        return None
    reader = git._replace(env=unbind_git_env(git.env), errors="surrogateescape")
    try:
        found = _read_repository(reader)
    except GitFailed:
        if os.path.lexists(os.path.join(find_worktree(git.workspace), ".git")):
            raise  # a broken one, or that of another user, is not the same as none
        return None
    if not _is_within(git.workspace, found.top):  # core.worktree names a folder elsewhere
        found = found._replace(top=os.path.realpath(find_worktree(git.workspace)))
    is_below = os.path.realpath(git.workspace) != os.path.realpath(found.top)
    return None if is_below and reader.run("check-ignore", "-q", ".") is not None else found


def make_repository(git: Git) -> WorkingRepository | None:
    """A stand-in for a workspace that no repository tracks: all its files are new. None without git."""
    if shutil.which("git", path=git.env.get("PATH", os.defpath)) is None:
        return None
    return WorkingRepository(top=git.workspace, folder="", objects="", object_format="sha1")


def list_files(git: Git, repository: WorkingRepository, absent: Container[str]) -> TreeFiles:
    """The names of all files that belong to the working tree.

    Of the files outside of a sparse working tree and the submodules that are not checked out, only those in `absent`
    count as they are in the index. The others are deleted: an agent can remove any file this way.
    """
    listing = _Listing(git, absent)
    if repository.folder:
        listing.add_repository(repository, "", is_tracked=True)
    else:
        listing.files.untracked.update(_walk(repository.top, ""))
    return listing.files


def list_gitlinks(git: Git) -> list[str]:
    """The folders of submodules in the index, checked out or not; `git` is at the top of a working tree."""
    wide = git._replace(errors="surrogateescape", most_bytes=MOST_OUTPUT)
    lines = (line.partition("\t") for line in _split(wide.read("ls-files", "-z", "--stage")))
    return list(dict.fromkeys(name for entry, _, name in lines if entry.startswith(f"{LINK} ")))


def list_work_in_gitlinks(git: Git, *, ignored: bool) -> list[str]:
    """The files in folders of submodules that are not checked out, `ignored` ones too; `git` is at the top of a tree.

    `git status` does not look into such a folder. GitFailed if git cannot list the submodules. A folder that cannot be
    read, and a `.git` that is not a repository, are listed themselves.
    """
    inside = git._replace(env=unbind_git_env(git.env), errors="surrogateescape")
    found, pending = list[str](), [""]
    while pending:
        prefix = pending.pop()
        here = inside._replace(workspace=os.path.join(git.workspace, prefix)) if prefix else git
        plain = PlainFiles(here.workspace)
        for name in filter(plain.is_folder, list_gitlinks(here)):
            if _is_checked_out(inside._replace(workspace=os.path.join(here.workspace, name))):
                pending.append(f"{prefix}{name}/")
            else:
                names = list(_walk_with_git(here.workspace, name))
                unwanted = set[str]() if ignored else _find_ignored(here, names)
                found += [prefix + one for one in names if one not in unwanted]
    return found


def list_absent(git: Git, repository: WorkingRepository) -> list[str]:
    """The names of what is in the index, and not on the disk because the working tree is sparse or lacks submodules."""
    return sorted(list_files(git, repository, _Everything()).entries)


def keep_small_files(top: str, names: set[str]) -> tuple[list[str], list[str]]:
    """Divide untracked files: those to keep, small ones first, and those that are too large."""
    sizes = {}
    for name in names:
        try:
            sizes[name] = os.lstat(os.path.join(top, name)).st_size
        except OSError:
            sizes[name] = 0  # gone, or not to be reached
    kept, large, total = list[str](), list[str](), 0
    for name in sorted(names, key=lambda one: (sizes[one], one)):
        total += sizes[name]
        (large if sizes[name] > MOST_FILE_BYTES or total > MOST_BYTES else kept).append(name)
    return kept, sorted(large)


class PlainFiles:
    """Tells which names are files of the working tree itself, and not behind a symbolic link."""

    def __init__(self, top: str) -> None:
        """`top` is the folder of the working tree."""
        self._top = top
        self._folders = {"": True}

    def is_file(self, name: str) -> bool:
        """Whether it is a regular file or a symbolic link."""
        parts = name.split("/")
        if any(part.lower() == ".git" for part in parts) or not self.is_folder("/".join(parts[:-1])):
            return False
        try:
            mode = os.lstat(os.path.join(self._top, name)).st_mode
        except OSError:
            return False
        return stat.S_ISREG(mode) or stat.S_ISLNK(mode)

    def is_folder(self, name: str) -> bool:
        """Whether it is a folder that no symbolic link leads to."""
        if name not in self._folders:
            try:
                mode = os.lstat(os.path.join(self._top, name)).st_mode
            except OSError:
                mode = 0
            self._folders[name] = stat.S_ISDIR(mode) and self.is_folder(name.rpartition("/")[0])
        return self._folders[name]


class _Everything:
    def __contains__(self, _name: object) -> bool:
        return True


class _Listing:
    def __init__(self, git: Git, absent: Container[str]) -> None:
        self._git, self._absent = git, absent
        self._depth = 0
        self.files = TreeFiles(tracked=set(), untracked=set(), entries={}, objects=[], nested=[])

    def add_repository(self, found: WorkingRepository, prefix: str, *, is_tracked: bool) -> None:
        """Add the files of a repository; those of one that is not a submodule count as untracked."""
        git = found.bind(self._git)
        links = self._add_index(git, prefix, is_tracked=is_tracked)
        for name in _split(git.read(*_OTHERS)):
            if name.endswith("/"):
                self._add_folder(found, prefix, name[:-1], is_tracked=False)
            else:
                self.files.untracked.add(prefix + name)
        plain = PlainFiles(found.top)
        for name, object_id in links.items():
            if plain.is_folder(name) and os.listdir(os.path.join(found.top, name)):
                self._add_folder(found, prefix, name, is_tracked=is_tracked)
            elif plain.is_folder(name) and prefix + name in self._absent:  # not checked out
                self.files.entries[prefix + name] = f"{LINK} {object_id}"
            else:
                (self.files.tracked if is_tracked else self.files.untracked).add(prefix + name)

    def _add_index(self, git: Git, prefix: str, *, is_tracked: bool) -> dict[str, str]:
        """Add the files of the index; return the submodules, each with its commit."""
        links, skipped = dict[str, str](), dict[str, str]()
        names = self.files.tracked if is_tracked else self.files.untracked
        for line in _split(git.read("ls-files", "-z", "-t", "--stage")):
            entry, _, name = line.partition("\t")
            tag, mode, object_id, _ = entry.split(" ")
            if mode == LINK:
                links[name] = object_id
                continue
            names.add(prefix + name)
            if tag == _SKIPPED and prefix + name in self._absent:
                skipped[name] = f"{mode} {object_id}"
        # Elsewhere the bit would hide that a file was deleted.
        if skipped and git.run("config", "--type=bool", "--get", "core.sparseCheckout") == "true\n":
            absent = {name: entry for name, entry in skipped.items() if not _is_there(git.workspace, name)}
            self.files.entries.update({prefix + name: entry for name, entry in absent.items()})
        return links

    def _add_folder(self, outer: WorkingRepository, prefix: str, name: str, *, is_tracked: bool) -> None:
        """Add a submodule or another repository inside this one."""
        path = os.path.join(outer.top, name)
        if not _is_there(path, ".git"):  # it was a submodule
            self.files.untracked.update(prefix + one for one in _walk(outer.top, name))
            return
        env = {**unbind_git_env(self._git.env), "GIT_CEILING_DIRECTORIES": os.path.dirname(path)}
        try:
            found = _read_repository(self._git._replace(workspace=path, env=env, errors="surrogateescape"))
        except GitFailed as error:
            raise GitFailed(f"{prefix}{name}: {error}") from error
        if _is_within(found.objects, outer.folder) or _is_within(found.objects, path):
            self.files.objects.append(found.objects)
        if self._depth == _MOST_NESTED:
            raise GitFailed("too many repositories inside each other")
        self._depth += 1
        self.files.nested.append(f"{prefix}{name}/")
        self.add_repository(found._replace(top=path), f"{prefix}{name}/", is_tracked=is_tracked)
        self._depth -= 1


def _read_repository(git: Git) -> WorkingRepository:
    top, folder, objects, object_format = (
        git.read("rev-parse", *words).removesuffix("\n")
        for words in (
            ("--show-toplevel",),
            ("--absolute-git-dir",),
            ("--git-path", "objects"),
            ("--show-object-format",),
        )
    )
    objects = os.path.realpath(os.path.join(git.workspace, objects))
    return WorkingRepository(top=top, folder=folder, objects=objects, object_format=object_format)


def _split(listed: str) -> list[str]:
    return [name for name in listed.split("\0") if name]


def _is_there(folder: str, name: str) -> bool:
    return os.path.lexists(os.path.join(folder, name))


def _is_within(path: str, folder: str) -> bool:
    return os.path.join(os.path.realpath(path), "").startswith(os.path.join(os.path.realpath(folder), ""))


def _is_checked_out(git: Git) -> bool:
    """Whether the folder is the top of a repository, whose changes `git status` then shows."""
    top = git.find_top() if _is_there(git.workspace, ".git") else ""
    return bool(top) and os.path.realpath(top) == os.path.realpath(git.workspace)


def _walk_with_git(top: str, name: str) -> Iterator[str]:
    """All files below a folder; a `.git` and a folder that cannot be read count as one."""
    unread = list[str]()
    for folder, names, files in os.walk(os.path.join(top, name), onerror=lambda error: unread.append(error.filename)):
        whole = [one for one in names if one == ".git" or os.path.islink(os.path.join(folder, one))]
        names[:] = [one for one in names if one not in whole]
        yield from (os.path.relpath(os.path.join(folder, one), top) for one in (*files, *whole))
    yield from (os.path.relpath(one, top) for one in unread)


def _find_ignored(git: Git, names: Sequence[str]) -> set[str]:
    """Which of these files below a submodule the repository around it ignores; none if git cannot tell."""
    wide = git._replace(errors="surrogateescape", most_bytes=MOST_OUTPUT)
    # With its index, git would refuse names below a submodule.
    words = ("check-ignore", "--no-index", "-z", "--stdin")
    listed = wide.run(*words, stdin="".join(f"{name}\0" for name in names)) if names else ""
    return set(_split(listed or ""))


def _walk(top: str, name: str) -> Iterator[str]:
    for folder, names, files in os.walk(os.path.join(top, name)):
        names[:] = [one for one in names if one != ".git"]
        links = [one for one in names if os.path.islink(os.path.join(folder, one))]
        yield from (os.path.relpath(os.path.join(folder, one), top) for one in (*files, *links))
