"""What only the host can tell of a call, for its key and its target: commits, branches, remotes, files. It only reads.

No hook, no pager and no program that a repository's settings name is started (see `engine.changes.Git`). What cannot
be told is an empty text, never an error: the gate must answer.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, Any

from jackline.domain import pushing
from jackline.domain.pushing import HEADS, TAGS, Push, Refspec
from jackline.engine.changes import Git
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.engine.process import Warden

GONE = "gone"  # instead of a commit: the push deletes the ref
MISSING = "missing"
_SECONDS = 5.0
_FILE = "file:"
_MOST_BYTES = 1 << 30
_MOST_FILES = 10_000
_MOST_NAMES = 100
_OF_HEAD = frozenset({"git.commit", "git.branch", "git.remote", "git.upstream", "git.refs", "git.url", "git.tree"})
_OF_SETTINGS = _OF_HEAD - {"git.commit", "git.branch", "git.tree"}


class _Pushed(NamedTuple):
    """One ref that a push would move: what it is called there, and the commit."""

    name: str
    commit: str


def read(
    wants: frozenset[str],
    fields: Mapping[str, Any],
    folder: str,
    workspace: str,
    env: Mapping[str, str],
    warden: Warden | None,
) -> dict[str, str]:
    """Every name of `wants` with what the host knows of it; `fields` are the call's, those of its input included.

    The folder is where the call would run; empty: nobody knows, and nothing is told.
    """
    told = dict.fromkeys(sorted(wants), "")
    if not folder:
        return told
    place = os.path.join(workspace, folder)
    if wants & _OF_HEAD:
        known = _known(fields, Git(place, env, warden, _SECONDS), wants)
        told.update({name: value for name, value in known.items() if name in wants})
    for name in wants:
        if name.startswith(_FILE):
            told[name] = _digests(place, fields.get(name.removeprefix(_FILE)))
    return told


# --- git


def _known(fields: Mapping[str, Any], git: Git, wants: frozenset[str]) -> dict[str, str]:
    words = fields.get("arguments")
    if fields.get("program") != "git" or not isinstance(words, list):
        return _of_git(git, wants, None)
    there = pushing.folder_of_git(words)
    if there is None:
        return {}
    return _of_git(git._replace(workspace=os.path.join(git.workspace, there)), wants, pushing.push_of_fields(fields))


def _of_git(git: Git, wants: frozenset[str], push: Push | None) -> dict[str, str]:
    commit, branch = _head(git)
    if not commit:
        return {}
    told = {"git.commit": commit, "git.branch": branch}
    if "git.tree" in wants:
        told["git.tree"] = f"{commit}:{_changed(git)}"
    if not wants & _OF_SETTINGS and push is None:
        return told
    listed = git.ask("config", "-z", "--list")
    settings = pushing.settings_of(listed, branch) if listed is not None else pushing.Settings()
    remote = push.remote if push and push.remote else settings.remote
    told |= {"git.remote": remote, "git.upstream": settings.upstream}
    if "git.url" in wants:
        told["git.url"] = pushing.without_password(address_of(git, remote))
    if push is not None:
        told |= _pushed(git, push, settings, told)
    return told


def _head(git: Git) -> tuple[str, str]:
    """The commit and the branch that is checked out; the branch is empty where none is."""
    lines = (git.ask("rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD") or "").splitlines()
    if len(lines) != len(("commit", "branch")):
        return "", ""
    return lines[0], lines[1].removeprefix(HEADS) if lines[1].startswith(HEADS) else ""


def _changed(git: Git) -> str:
    """The digest of what differs from the commit: names, sizes and times of change, new files included."""
    listed = git.ask("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    if listed is None:
        return ""
    digest = hashlib.sha256(listed.encode("utf-8", "replace"))
    root = (git.ask("rev-parse", "--show-toplevel") or "").rstrip("\n")
    for entry in filter(None, listed.split("\0")[:_MOST_FILES]):
        path = os.path.join(root, entry[len("XY ") :])
        digest.update(_shape(os.lstat(path)).encode() if os.path.lexists(path) else b"gone")
    return digest.hexdigest()


def address_of(git: Git, remote: str) -> str:
    """Where a push to this remote goes; a remote may be named by its address."""
    if not remote:
        return ""
    told = git.ask("remote", "get-url", "--push", "--", remote)
    if told is not None:
        return told.partition("\n")[0]
    return remote if "/" in remote or ":" in remote else ""


def _pushed(git: Git, push: Push, settings: pushing.Settings, told: Mapping[str, str]) -> dict[str, str]:
    """The refs that the push would move and the commits that it would move them to, in the same order."""
    # What is set for a push applies to the remote that it is set for.
    set_up = () if push.remote not in {"", settings.remote} else settings.refspecs
    refspecs = push.refspecs or set_up or _unnamed(push, settings, told["git.branch"])
    pushed = _resolved(git, refspecs, told)
    commits = [one.commit for one in pushed]
    if push.several or (settings.several and not push.refspecs):
        commits.append(_all_refs(git))
    if not commits or not all(commits):  # a ref that nobody can resolve: two pushes must not look like one
        commits = [*commits, _all_refs(git)]
    return {"git.refs": " ".join(one.name for one in pushed), "git.commit": " ".join(commits)}


def _unnamed(push: Push, settings: pushing.Settings, branch: str) -> tuple[Refspec, ...]:
    if push.several:
        return ()
    elsewhere = push.remote not in {"", settings.remote}
    there = branch if elsewhere else settings.upstream
    return (Refspec("HEAD", f"{HEADS}{there}"),) if there else ()


def _resolved(git: Git, refspecs: Sequence[Refspec], told: Mapping[str, str]) -> list[_Pushed]:
    sources = [told["git.branch"] if one.source in {"HEAD", "@"} else one.source for one in refspecs]
    asked = [name for source in sources for name in (f"{source or 'HEAD'}^{{commit}}", f"{HEADS}{source}")]
    clean = [name for name in asked if "\n" not in name]
    if len(clean) < len(asked):
        return []
    answers = git.ask("cat-file", "--batch-check=%(objectname)", stdin="".join(f"{one}\n" for one in asked)) or ""
    found = ["" if line.endswith(" missing") or " " in line else line for line in answers.splitlines()]
    if len(found) != len(asked):
        return []
    return [
        _Pushed(_named_there(one, source, is_branch=bool(branch)), (commit if one.source else GONE))
        for one, source, commit, branch in zip(refspecs, sources, found[::2], found[1::2], strict=True)
    ]


def _named_there(refspec: Refspec, source: str, *, is_branch: bool) -> str:
    """The full name of the ref on the other side, as git makes it."""
    name = refspec.destination or source
    if name.startswith("refs/"):
        return name
    of_tag = source.startswith(TAGS) or (refspec.source and not is_branch and not source.startswith("refs/"))
    # A commit by its number has no kind of its own: then git wants the whole name, or finds a branch.
    return f"{TAGS if of_tag and not refspec.destination else HEADS}{name}"


def _all_refs(git: Git) -> str:
    listed = git.ask("for-each-ref", "--format=%(objectname) %(refname)", HEADS, TAGS)
    return "" if listed is None else f"refs:{hashlib.sha256(listed.encode()).hexdigest()}"


# --- files


def _digests(place: str, named: object) -> str:
    """Of every file that a field names: each stands on a line of its own."""
    names = named.split("\n")[:_MOST_NAMES] if isinstance(named, str) else []
    return " ".join(filter(None, (_digest(place, name) for name in names)))


def _digest(place: str, named: object) -> str:
    """The digest of the file that a field names, as `curl` too names one by `@`; empty if it names none."""
    if not isinstance(named, str) or not named or named == "-" or "://" in named or "\0" in named:
        return ""
    path = os.path.join(place, named.removeprefix("@"))
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return _folder_digest(path)
        if not stat.S_ISREG(status.st_mode):
            return ""
        # Too large to be read while an agent waits: its time of change tells two versions apart.
        return _file_digest(path) if status.st_size <= _MOST_BYTES else f"large:{_shape(status)}"
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError:
        return ""


def _file_digest(path: str) -> str:
    # A pipe that took the file's place meanwhile must not be waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folder_digest(path: str) -> str:
    """By names, sizes and times of change: what is in the files is not read."""
    digest, count = hashlib.sha256(), 0
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            whole = os.path.join(folder, name)
            digest.update(f"{os.path.relpath(whole, path)}\0{_shape(os.lstat(whole))}\n".encode("utf-8", "replace"))
            count += 1
            if count >= _MOST_FILES:
                return ""
    return f"folder:{digest.hexdigest()}"


def _shape(status: os.stat_result) -> str:
    return f"{status.st_size}:{status.st_mtime_ns}"
