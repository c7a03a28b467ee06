"""Git in a run's workspace: which commits the run made, which files are tracked, and the attribution of its commits.

It changes no repository, and starts no hook, no pager and no program named by a repository's config. `domain.changes`
decides which commits belong to the run.

Commits are attributed by a variable that git writes into its reflog. With that variable a checkout no longer records
the branch that it left, and `git checkout -` fails. So a shell script precedes git on the agent's PATH and unsets the
variable for `checkout` and `switch`. If a shell replaces the PATH, only `checkout -` is lost, never a commit.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.domain.changes import (
    ENTRY_FORMAT,
    UNCHANGED,
    VARIABLE,
    Changes,
    build_reflog_env,
    find_created_commits,
    parse_reflog,
    reflog_action,
    sum_changes,
)
from jackline.engine.command_runner import run_command
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.formatting import shorten_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jackline.engine.process import Warden

_SECONDS = 10.0
_MOST_BYTES = 16 * 1024 * 1024
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A partial clone would fetch a missing object, by a command from its config.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
_GIT = (
    "git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false",
)  # fmt: skip
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_EXACT_NAMES = ("-c", "core.ignoreCase=false")
_INDEX = "GIT_INDEX_FILE"
_DELETED = "R "
_FATAL, _ERROR = "fatal: ", "error: "
_MOST_REASON = 400  # characters
_HOOK_ABORT = re.compile(r"aborted by (?:the \S+ )?hook")  # newer versions of git name the hook
# Variables that git sets for its hooks and aliases (`git rev-parse --local-env-vars`) and that name a repository.
_BINDING = frozenset(
    (
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE",
    )
)  # fmt: skip
_SHIM = """#!/bin/sh
# Written by jackline: checkout and switch need git's own reflog message, because `-` is looked up in it.
value=
for word in "$@"; do
    if [ -n "$value" ]; then value=; continue; fi
    case $word in
        -C|-c|--git-dir|--work-tree|--namespace|--exec-path|--config-env) value=next ;;
        -*) ;;
        checkout|switch) unset {variable}; break ;;
        *) break ;;
    esac
done
exec {git} "$@"
"""


def unbind_git_env(environ: Mapping[str, str]) -> dict[str, str]:
    """Remove the variables that bind git to another repository than that of its working directory."""
    return {name: value for name, value in environ.items() if name not in _BINDING}


class GitFailed(Exception):
    """A git command failed; the message says which one, and what git printed."""


class GitRefused(GitFailed):
    """Git ran, and ended with an error."""


class Git(NamedTuple):
    """Runs git in a folder, below a warden."""

    workspace: str
    env: Mapping[str, str]
    warden: Warden | None = None
    timeout_s: float = _SECONDS
    most_bytes: int = _MOST_BYTES  # of the output
    errors: str = "replace"  # for output that is not UTF-8; "surrogateescape" keeps the names of files
    has_hooks: bool = False  # the repository's hooks are known, and started

    def run(self, *words: str, stdin: str = "") -> str | None:
        """Return the output of git; None if it failed or could not be started."""
        try:
            return self._start(words, stdin)
        except GitFailed:
            return None

    def read(self, *words: str, stdin: str = "") -> str:
        """Return the output of git; GitFailed if it failed, or if there is more than `most_bytes`."""
        output = self._start(words, stdin)
        if len(output) >= self.most_bytes:
            raise GitFailed(f"git {_find_verb(words)} prints too much")
        return output

    def resolve_commit(self, name: str) -> str:
        """The commit that a ref or another name means; empty if there is none, or if git cannot tell."""
        return (self.run("rev-parse", "-q", "--verify", f"{name}^{{commit}}") or "").strip()

    def find_top(self) -> str:
        """The root of the working tree; empty if there is none, or if git cannot tell."""
        return (self.run("rev-parse", "--show-toplevel") or "").removesuffix("\n")

    def _start(self, words: Sequence[str], stdin: str) -> str:
        env = {name: value for name, value in self.env.items() if name != VARIABLE and not name.startswith("LC_")}
        try:
            result = run_command(
                (
                    *_GIT,
                    *(() if self.has_hooks else _NO_HOOKS),
                    *(() if _ignores_case(self.workspace) else _EXACT_NAMES),
                    *words,
                ),
                cwd=self.workspace,
                env={**env, **_QUIET},
                stdin=stdin.encode("utf-8", "surrogateescape") if stdin else None,
                timeout_s=self.timeout_s,
                output_limit=self.most_bytes,
                below=self.warden,
            )
        except (SpawnFailed, WardenLost) as error:
            raise GitFailed(f"git {_find_verb(words)} could not be started: {error}") from error
        if result.timed_out:
            raise GitFailed(f"git {_find_verb(words)} took more than {self.timeout_s:g} seconds")
        if result.exit_code != 0:
            why = find_git_reason(result.stderr_tail.decode("utf-8", "replace"))
            kind = GitFailed if result.exit_code is None else GitRefused  # None: it was killed
            raise kind(f"git {_find_verb(words)} failed: {why}")
        return result.stdout_tail.decode("utf-8", self.errors)


def _ignores_case(folder: str) -> bool:
    """Whether the file system does, whatever the repository's configuration says.

    With core.ignoreCase on another one, git would not list a new file `makefile` beside a tracked `Makefile`.
    """
    for path in (os.path.join(folder, ".git"), os.path.normpath(folder)):
        parent, name = os.path.split(path)
        if os.path.lexists(path) and name.swapcase() != name:
            # A file of that name could be a link to the other one.
            other = name.swapcase()
            return os.path.lexists(os.path.join(parent, other)) and other not in os.listdir(parent)
    return False


def find_git_reason(printed: str) -> str:
    """What git says about its failure in one line.

    That is the last line, or its last fatal message, which may have more; the errors just before it are its cause.
    """
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    last = max((number for number, line in enumerate(lines) if line.startswith(_FATAL)), default=len(lines) - 1)
    first = last
    while first > 0 and lines[first - 1].startswith((_ERROR, _FATAL)):
        first -= 1
    texts = [*lines[first:last], " ".join(lines[last:])]
    return shorten_text("; ".join(_remove_severity(text) for text in texts), _MOST_REASON) or "no message"


def find_hook_reason(printed: str) -> str:
    """What a hook said that made git give up an update of refs, with what git says; empty if none did."""
    reason = find_git_reason(printed)
    if not _HOOK_ABORT.search(reason):
        return ""
    own = [line for line in printed.splitlines() if line.strip() and not line.startswith((_FATAL, _ERROR))]
    return f"{find_git_reason(own[-1])}; {reason}" if own else reason


def _remove_severity(line: str) -> str:
    return line.removeprefix(_FATAL).removeprefix(_ERROR)


def _find_verb(words: Sequence[str]) -> str:
    return words[2] if words[0] == "-c" else next(word for word in words if not word.startswith("-"))


def read_changes(
    run_id: str, workspace: str, env: Mapping[str, str], warden: Warden | None, known: Changes = UNCHANGED
) -> Changes | None:
    """The changes of the run in the repository of its workspace; None if git cannot tell.

    `known` are the changes found before: their commits stay while they exist, even if their reflog is gone.
    """
    git = Git(workspace=workspace, env=env, warden=warden)
    listed = git.run(
        "log", "--walk-reflogs", "--all", f"--grep-reflog=^{reflog_action(run_id)}", "-z", "--date=unix", "--no-notes",
        f"--format=tformat:{ENTRY_FORMAT}", "--no-patch", "--",
    )  # fmt: skip
    if listed is None:
        return None
    earlier = (commit.partition(" ") for commit in known.commits)
    commits = {**{one: subject for one, _, subject in earlier}, **find_created_commits(run_id, parse_reflog(listed))}
    return _measure_changes(git, commits) if commits else UNCHANGED


def _measure_changes(git: Git, commits: dict[str, str]) -> Changes | None:
    lost = _find_lost_commits(git, commits)
    if lost is None:
        return None
    kept = {commit: subject for commit, subject in commits.items() if commit not in lost}
    numstat = git.run(
        "diff-tree", "--stdin", "--root", "-r", "-M", "--numstat", "-z", "--no-commit-id", "--no-ext-diff",
        "--no-textconv", stdin=_join_lines(kept),
    )  # fmt: skip
    return sum_changes(kept, numstat or "")  # an unreadable file must not hide the commit


def _find_lost_commits(git: Git, commits: Iterable[str]) -> set[str] | None:
    """The commits that no ref and no worktree reaches any more: amended, reset or deleted."""
    there = git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=_join_lines(commits))
    if there is None:
        return None
    present = {line.partition(" ")[0] for line in there.splitlines() if line.endswith(" commit")}
    unreachable = git.run("rev-list", "--stdin", "--not", "--all", stdin=_join_lines(present)) if present else ""
    if unreachable is None:
        return None
    return (set(commits) - present) | set(unreachable.split())


def _join_lines(words: Iterable[str]) -> str:
    return "".join(f"{word}\n" for word in words)


def find_tracked_files(
    root: str, paths: Sequence[str], env: Mapping[str, str], warden: Warden | None = None
) -> frozenset[str] | None:
    """The given paths, relative to the root of the repository, that are tracked files; None if git cannot tell.

    Deleted files do not count. During a commit GIT_INDEX_FILE in `env` names the index of that commit, which counts
    whatever is on the disk.
    """
    wanted = {path: os.path.normpath(path) for path in paths if path}
    inside = [path for path in wanted.values() if not os.path.isabs(path) and path.split(os.sep)[0] != os.pardir]
    if not inside or not os.path.isdir(root):
        return frozenset()
    words = ("--literal-pathspecs", "ls-files", "-z", "-t", "--cached", *(() if env.get(_INDEX) else ("--deleted",)))
    listed = Git(workspace=root, env=env, warden=warden).run(*words, "--", *inside)
    if listed is None:
        return None if os.path.exists(os.path.join(root, ".git")) else frozenset()
    lines = listed.split("\0")
    known = {line[2:] for line in lines} - {line[2:] for line in lines if line.startswith(_DELETED)}
    return frozenset(path for path, normal in wanted.items() if normal in known)


def build_commit_env(folder: str, run_id: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for the agent. Writes the script into the run's folder."""
    from shlex import quote

    search_path = environ.get("PATH", os.defpath)
    paths = (os.path.join(part, "git") for part in search_path.split(os.pathsep) if os.path.isabs(part))
    git = next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
    if git is None:
        return {}
    scripts = os.path.join(folder, "bin")
    os.makedirs(scripts, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(scripts, "git"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    with os.fdopen(descriptor, "w") as file:
        file.write(_SHIM.format(variable=VARIABLE, git=quote(git)))
    return {**build_reflog_env(run_id), "PATH": os.pathsep.join((scripts, search_path))}
