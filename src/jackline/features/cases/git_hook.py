"""Installs, removes and inspects the learning gate as a git hook. It never touches a foreign hook.

The hook blocks a commit only for unresolved learnings, that is, those without a tracked file and without a reason. If
jackline is missing, old or broken, the commit passes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import Refused, UsageError
from jackline.features.cases import learning
from jackline.features.cases.case_model import EntryKind
from jackline.features.cases.case_queries import Cases
from jackline.named import NamedTuple
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.app.home import Home
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.cases.learning import UnresolvedLearning


HOOK_NAME = "pre-commit"
UNRESOLVED = 16
_MARK = "# Written by jackline"
HOOK_CALL = f"jackline case hook {HOOK_NAME}"
_BODY = f"""\
# Blocks a commit until every learning of the active case has a tracked file or a reason. See:
# `{learning.REVIEW_COMMAND}`
# `jackline case hook remove` removes this hook, `git commit --no-verify` skips it.
if ! command -v jackline >/dev/null 2>&1; then
    echo "jackline is not on the PATH: learnings are not checked" >&2
    exit 0
fi
{HOOK_CALL}
[ $? -ne {UNRESOLVED} ]
"""
# Works in hooks that end at the first failing command (`sh -e`), such as those of husky.
_CHAIN = f"{HOOK_CALL} || [ $? -ne {UNRESOLVED} ] || exit 1"


def build_hook_text(body: str) -> str:
    """A hook with a digest of its body: a hook that a person edited no longer matches, and is left alone."""
    from hashlib import sha256

    return f"#!/bin/sh\n{_MARK} ({sha256(body.encode()).hexdigest()[:16]}).\n{body}"


class HookStatus(NamedTuple):
    """The path of the hook in a repository, and its state."""

    path: str
    state: str  # installed, outdated, foreign or missing


def read_hook_status(folder: str, environ: Mapping[str, str]) -> HookStatus:
    """The hook of the repository around a folder; UsageError outside a repository."""
    path = os.path.join(_find_hooks_folder(folder, environ), HOOK_NAME)
    return HookStatus(path, _read_state(path))


def install_hook(folder: str, environ: Mapping[str, str]) -> tuple[HookStatus, bool]:
    """Write the hook; returns whether that changed anything. Refused for a foreign hook."""
    hook = read_hook_status(folder, environ)
    if hook.state == "foreign":
        raise Refused(f"{hook.path} is not only jackline's: add this line to it by hand: {_CHAIN}")
    if hook.state == "installed":
        return hook, False
    _write_hook(hook.path)
    return hook._replace(state="installed"), True


def remove_hook(folder: str, environ: Mapping[str, str]) -> tuple[HookStatus, bool]:
    """Remove the hook; returns whether it existed. Refused for a foreign hook."""
    hook = read_hook_status(folder, environ)
    if hook.state == "foreign":
        raise Refused(
            f"{hook.path} is not only jackline's: remove the line with `{HOOK_CALL}` by hand, if there is one"
        )
    if hook.state == "missing":
        return hook, False
    try:
        os.unlink(hook.path)
    except OSError as error:
        raise UsageError(f"{hook.path} cannot be removed: {error.strerror}") from None
    return hook._replace(state="missing"), True


def find_blocking_learnings(home: Home, folder: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """The active case and its learnings that block a commit here; nothing without a case of this repository.

    Refused if git fails, which must not block a commit.
    """
    from jackline.features.cases import location

    if home.is_new:
        return "", []
    at = location.get_location(home, folder, environ)
    case = location.find_active(home, at)
    if case is None or case.repository != at.repository:
        return "", []
    learnings = list_learnings(home, case)
    tracked = find_tracked_files(case, learnings, environ)
    if tracked is None:
        raise Refused(f"git cannot list the tracked files of {case.path}")
    return case.id, [learning.format_unresolved(one) for one in learning.find_unresolved(learnings, tracked)]


def _find_hooks_folder(folder: str, environ: Mapping[str, str]) -> str:
    from jackline.engine.git import Git
    from jackline.engine.settings import select_inherited_variables

    output = Git(workspace=folder, env=select_inherited_variables(environ), has_hooks=True).run(
        "rev-parse", "--git-path", "hooks"
    )
    if not output or not output.strip("\n"):
        if os.path.exists(os.path.join(find_worktree(folder), ".git")):
            raise Refused(f"git cannot find the hooks of {folder}: see `git status`")
        raise UsageError(f"{folder} is not in a git repository: change to one, or create one with `git init`")
    return os.path.join(folder, os.path.expanduser(output.rstrip("\n")))


def _read_state(path: str) -> str:
    if not os.path.lexists(path):
        return "missing"
    if os.path.islink(path) or not os.path.isfile(path):
        return "foreign"
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    if text == build_hook_text(_BODY) and os.access(path, os.X_OK):
        return "installed"
    _, _, body = text.partition(").\n")
    return "outdated" if text == build_hook_text(body) else "foreign"


def _write_hook(path: str) -> None:
    from jackline.files import replace_file

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replace_file(path) as descriptor:
            os.write(descriptor, build_hook_text(_BODY).encode())
            os.fchmod(descriptor, 0o755)  # git ignores a hook that is not executable
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


# learnings


def list_learnings(home: Home, case: Case) -> list[CaseEntry]:
    """The learnings of a case."""
    return Cases(home.store()).list_entries(case.id, EntryKind.LEARNING)


def find_unresolved(case: Case, learnings: Sequence[CaseEntry]) -> list[UnresolvedLearning]:
    """The learnings that name neither a tracked file of the case's repository nor a reason."""
    return learning.find_unresolved(learnings, find_tracked_files(case, learnings))


def find_tracked_files(
    case: Case, learnings: Sequence[CaseEntry], environ: Mapping[str, str] | None = None
) -> frozenset[str] | None:
    """The named files that git tracks; None if git fails.

    `environ` is the environment of a hook, which names the index of the commit in progress.
    """
    paths = learning.find_paths(learnings)
    if not paths:
        return frozenset()
    from jackline.engine.git import find_tracked_files, unbind_git_env

    return find_tracked_files(case.path, paths, unbind_git_env(os.environ) if environ is None else environ)
