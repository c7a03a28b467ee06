"""Ask git what a run changed. It only reads: no hook, no pager, no program that a repository's config names is started.

Why a commit is the run's own stands in `domain.changes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.changes import ENTRY_FORMAT, UNCHANGED, VARIABLE, Changes, action, entries, made_by, totals
from jackline.engine.command import run_command
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jackline.engine.process import Warden

_SECONDS = 10.0
_MOST_BYTES = 16 * 1024 * 1024
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # A repository that lacks an object on purpose would have it fetched by a command of its own choice.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
_GIT = (
    "git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false",
)  # fmt: skip


# What git itself sets for its hooks and aliases (`git rev-parse --local-env-vars`), as far as it names a place.
_BINDING = frozenset(
    (
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE",
    )
)  # fmt: skip


def unbound(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what ties git to another repository than the one in which it is asked."""
    return {name: value for name, value in environ.items() if name not in _BINDING}


class Git(NamedTuple):
    """Where git is asked, and below whom."""

    workspace: str
    env: Mapping[str, str]
    warden: Warden | None = None
    timeout_s: float = _SECONDS

    def ask(self, *words: str, stdin: str = "") -> str | None:
        """What git prints; None if it could not be asked or refused."""
        env = {name: value for name, value in self.env.items() if name != VARIABLE and not name.startswith("LC_")}
        try:
            result = run_command(
                (*_GIT, *words),
                cwd=self.workspace,
                env={**env, **_QUIET},
                stdin=stdin.encode() if stdin else None,
                timeout_s=self.timeout_s,
                output_limit=_MOST_BYTES,
                below=self.warden,
            )
        except (SpawnFailed, WardenLost):
            return None
        failed = result.timed_out or result.exit_code != 0
        return None if failed else result.stdout_tail.decode("utf-8", "replace")


def changes_of(
    run_id: str, workspace: str, env: Mapping[str, str], warden: Warden | None, known: Changes = UNCHANGED
) -> Changes | None:
    """What the run changed in the repository around its workspace; None if git cannot say.

    `known` is what was found before: a commit of it stays while it is there, even when its reflog has gone.
    """
    git = Git(workspace, env, warden)
    listed = git.ask(
        "log", "--walk-reflogs", "--all", f"--grep-reflog=^{action(run_id)}", "-z", "--date=unix", "--no-notes",
        f"--format=tformat:{ENTRY_FORMAT}", "--no-patch", "--",
    )  # fmt: skip
    if listed is None:
        return None
    earlier = (commit.partition(" ") for commit in known.commits)
    commits = {**{one: subject for one, _, subject in earlier}, **made_by(run_id, entries(listed))}
    return _told(git, commits) if commits else UNCHANGED


def _told(git: Git, commits: dict[str, str]) -> Changes | None:
    lost = _lost(git, commits)
    if lost is None:
        return None
    kept = {commit: subject for commit, subject in commits.items() if commit not in lost}
    numstat = git.ask(
        "diff-tree", "--stdin", "--root", "-r", "-M", "--numstat", "-z", "--no-commit-id", "--no-ext-diff",
        "--no-textconv", stdin=_lines(kept),
    )  # fmt: skip
    return totals(kept, numstat or "")  # a file that cannot be read must not hide that there is a commit


def _lost(git: Git, commits: Iterable[str]) -> set[str] | None:
    """Those that no ref and no worktree leads to any more: amended away, reset away, or removed altogether."""
    there = git.ask("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=_lines(commits))
    if there is None:
        return None
    present = {line.partition(" ")[0] for line in there.splitlines() if line.endswith(" commit")}
    unreachable = git.ask("rev-list", "--stdin", "--not", "--all", stdin=_lines(present)) if present else ""
    if unreachable is None:
        return None
    return (set(commits) - present) | set(unreachable.split())


def _lines(words: Iterable[str]) -> str:
    return "".join(f"{word}\n" for word in words)
