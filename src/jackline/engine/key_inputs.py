"""Reads the inputs of a call's key and target that only the host knows: commits, branches, remotes, files.

It only reads: no hook, no pager and no program named by a repository's settings is started (see `Git`). An unknown
value is an empty text, never an error, because the gate must answer.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from jackline.digests import sha256
from jackline.engine import probes, remotes
from jackline.engine.git import Git
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.named import NamedTuple
from jackline.policy import git_push_args, own_remotes, sent_files
from jackline.policy.git_push_args import HEADS, TAGS, Push, Refspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jackline.engine.process import Warden
    from jackline.policy.classify import Classification

FOLDER = "folder"  # where the call runs, for its probe
GONE = "gone"  # instead of a commit: the push deletes the ref
MISSING = "missing"
_REFS = "git.refs"
_SECONDS = 5.0
_FILE = "file:"
_SOURCES = f"{_FILE}{sent_files.SOURCES}"
_MOST_BYTES = 1 << 30
_MOST_FILES = 10_000
_MOST_NAMES = 100
_OF_HEAD = frozenset(
    {
        "git.commit", "git.branch", "git.remote", "git.upstream", "git.refs", "git.url", "git.tree", "git.urls",
        "git.several", "git.remotes", "git.gh",
    }
)  # fmt: skip
_OF_SETTINGS = _OF_HEAD - {"git.commit", "git.branch", "git.tree"}


class _Pushed(NamedTuple):
    """A ref that a push would move: its name on the remote, and the new commit."""

    name: str
    commit: str


def read_call_inputs(
    workspace: str, env: Mapping[str, str], warden: Callable[[], Warden], classified: Classification, tool_input: object
) -> dict[str, str]:
    """Read the inputs that the key and the probe of a call need; nearly every call needs none."""
    wanted = classified.host_inputs | probes.find_wanted_inputs(classified.rule.probe)
    if not wanted:
        return {}
    fields = {**(tool_input if isinstance(tool_input, dict) else {}), **classified.fields}
    try:
        ready: Warden | None = warden()
    except (SpawnFailed, WardenLost):
        ready = None
    found = read_key_inputs(wanted, fields, classified.folder, workspace, env, ready)
    if _REFS in found and len(classified.commands) > 1:
        found = {**own_remotes.name_new_branches(found, [one.words for one in classified.commands])}
    return {**found, FOLDER: classified.folder}


def read_key_inputs(
    wanted: frozenset[str],
    fields: Mapping[str, Any],
    folder: str,
    workspace: str,
    env: Mapping[str, str],
    warden: Warden | None,
) -> dict[str, str]:
    """Read every name of `wanted`; `fields` are those of the call and of its input.

    `folder` is where the call would run; if it is empty, all values are unknown.
    """
    values = dict.fromkeys(sorted(wanted), "")
    if not folder:
        return values
    base = os.path.join(workspace, folder)
    if wanted & _OF_HEAD:
        found = _read_call_git(fields, Git(workspace=base, env=env, warden=warden, timeout_s=_SECONDS), wanted)
        values.update({name: value for name, value in found.items() if name in wanted})
    for name in wanted:
        if name.startswith(_FILE):
            values[name] = _digest_files(base, fields.get(name.removeprefix(_FILE)), partly=name == _SOURCES)
    return values


# --- git


def _read_call_git(fields: Mapping[str, Any], git: Git, wanted: frozenset[str]) -> dict[str, str]:
    words = fields.get("arguments")
    if fields.get("program") != "git" or not isinstance(words, list):
        return _read_git(git, wanted, None)
    there = git_push_args.find_git_folder(words)
    if there is None:
        return {}
    return _read_git(
        git._replace(workspace=os.path.join(git.workspace, there)), wanted, git_push_args.parse_push_fields(fields)
    )


def _read_git(git: Git, wanted: frozenset[str], push: Push | None) -> dict[str, str]:
    commit, branch = _read_head(git)
    if not commit:
        return {}
    values = {"git.commit": commit, "git.branch": branch}
    if "git.tree" in wanted:
        values["git.tree"] = f"{commit}:{_digest_changes(git)}"
    if not wanted & _OF_SETTINGS and push is None:
        return values
    listed = git.run("config", "-z", "--list")
    settings = git_push_args.parse_push_settings(listed, branch) if listed is not None else git_push_args.PushSettings()
    remote = push.remote if push and push.remote else settings.remote
    values |= {"git.remote": remote, "git.upstream": settings.upstream}
    if "git.url" in wanted:
        values["git.url"] = git_push_args.remove_credentials(read_push_address(git, remote))
    if push is not None:
        values |= _read_push(git, push, settings, values)
        values["git.several"] = "yes" if settings.several and not push.refspecs else ""
    if "git.urls" in wanted and not git_push_args.has_forcing_settings(listed or ""):
        values["git.urls"] = " ".join(remotes.read_push_addresses(git, remote, listed or ""))
    if "git.remotes" in wanted:
        values["git.remotes"] = " ".join(address for _, address in remotes.read_remotes(git))
        values["git.gh"] = " ".join(git_push_args.find_default_repositories(listed or ""))
    return values


def _read_head(git: Git) -> tuple[str, str]:
    """The commit and the branch that is checked out; the branch is empty if HEAD is detached."""
    lines = (git.run("rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD") or "").splitlines()
    if len(lines) != len(("commit", "branch")):
        return "", ""
    return lines[0], lines[1].removeprefix(HEADS) if lines[1].startswith(HEADS) else ""


def _digest_changes(git: Git) -> str:
    """The digest of the changes since the commit: names, sizes and mtimes, new files included."""
    listed = git.run("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    if listed is None:
        return ""
    digest = sha256(listed.encode("utf-8", "replace"))
    root = git.find_top()
    for entry in filter(None, listed.split("\0")[:_MOST_FILES]):
        path = os.path.join(root, entry[len("XY ") :])
        digest.update(_describe_stat(os.lstat(path)).encode() if os.path.lexists(path) else b"gone")
    return digest.hexdigest()


def read_push_address(git: Git, remote: str) -> str:
    """The push address of a remote, which may be given by its address."""
    if not remote:
        return ""
    url = git.run("remote", "get-url", "--push", "--", remote)
    if url is not None:
        return url.partition("\n")[0]
    return remote if "/" in remote or ":" in remote else ""


def _read_push(git: Git, push: Push, settings: git_push_args.PushSettings, values: Mapping[str, str]) -> dict[str, str]:
    """The refs that the push would move and their new commits, in the same order."""
    # The push settings apply only to the configured remote.
    configured = () if push.remote not in {"", settings.remote} else settings.refspecs
    refspecs = push.refspecs or configured or _find_default_refspecs(push, settings, values["git.branch"])
    pushed = _resolve_refspecs(git, refspecs, values)
    commits = [one.commit for one in pushed]
    if push.several or (settings.several and not push.refspecs):
        commits.append(_digest_refs(git))
    if not commits or not all(commits):  # unresolved refs: two different pushes must not get the same key
        commits = [*commits, _digest_refs(git)]
    return {"git.refs": " ".join(one.name for one in pushed), "git.commit": " ".join(commits)}


def _find_default_refspecs(push: Push, settings: git_push_args.PushSettings, branch: str) -> tuple[Refspec, ...]:
    if push.several:
        return ()
    elsewhere = push.remote not in {"", settings.remote}
    there = branch if elsewhere else settings.upstream
    return (Refspec(source="HEAD", destination=f"{HEADS}{there}"),) if there else ()


def _resolve_refspecs(git: Git, refspecs: Sequence[Refspec], values: Mapping[str, str]) -> list[_Pushed]:
    sources = [values["git.branch"] if one.source in {"HEAD", "@"} else one.source for one in refspecs]
    names = [name for source in sources for name in (f"{source or 'HEAD'}^{{commit}}", f"{HEADS}{source}")]
    if any("\n" in name for name in names):
        return []
    answers = git.run("cat-file", "--batch-check=%(objectname)", stdin="".join(f"{one}\n" for one in names)) or ""
    found = ["" if line.endswith(" missing") or " " in line else line for line in answers.splitlines()]
    if len(found) != len(names):
        return []
    return [
        _Pushed(_name_remote_ref(one, source, is_branch=bool(branch)), (commit if one.source else GONE))
        for one, source, commit, branch in zip(refspecs, sources, found[::2], found[1::2], strict=True)
    ]


def _name_remote_ref(refspec: Refspec, source: str, *, is_branch: bool) -> str:
    """The full name of the ref on the remote, as git builds it."""
    name = refspec.destination or source
    if name.startswith("refs/"):
        return name
    of_tag = source.startswith(TAGS) or (refspec.source and not is_branch and not source.startswith("refs/"))
    # A commit id is neither branch nor tag: then git requires the full name, or finds a branch.
    return f"{TAGS if of_tag and not refspec.destination else HEADS}{name}"


def _digest_refs(git: Git) -> str:
    listed = git.run("for-each-ref", "--format=%(objectname) %(refname)", HEADS, TAGS)
    return "" if listed is None else f"refs:{sha256(listed.encode()).hexdigest()}"


# --- files


def _digest_files(base: str, named: object, *, partly: bool) -> str:
    """The digests of all files that a field names, one per line."""
    names = named.split("\n")[:_MOST_NAMES] if isinstance(named, str) else []
    return " ".join(filter(None, (_digest_path(base, name, partly=partly) for name in names)))


def _digest_path(base: str, named: object, *, partly: bool) -> str:
    """The digest of a file, with or without the `@` of curl; empty if the value does not name a file."""
    if not isinstance(named, str) or not named or named == "-" or "://" in named or "\0" in named:
        return ""
    path = os.path.join(base, named.removeprefix("@"))
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return _digest_folder(path, partly=partly)
        if not stat.S_ISREG(status.st_mode):
            return ""
        if status.st_size > _MOST_BYTES:  # too large to read while an agent waits: the mtime distinguishes two versions
            return f"large:{_describe_stat(status)}"
        # Non-blocking: a pipe may have replaced the file meanwhile.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            from hashlib import file_digest

            return file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return MISSING
    except OSError:
        return ""


def _digest_folder(path: str, *, partly: bool) -> str:
    """The digest of names, sizes and mtimes; the files are not read.

    A folder with too many files has none; with `partly` that of its first files, and without the data of git.
    """
    digest, count = sha256(), 0
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not partly or name != ".git")
        for name in sorted(files):
            whole = os.path.join(folder, name)
            digest.update(
                f"{os.path.relpath(whole, path)}\0{_describe_stat(os.lstat(whole))}\n".encode("utf-8", "replace")
            )
            count += 1
            if count >= _MOST_FILES:
                return f"part:{digest.hexdigest()}" if partly else ""
    return f"folder:{digest.hexdigest()}"


def _describe_stat(status: os.stat_result) -> str:
    return f"{status.st_size}:{status.st_mtime_ns}"
