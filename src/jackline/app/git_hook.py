"""Installs, removes and inspects the learning gate as a git hook. It never touches a foreign hook.

The hook blocks a commit only for unresolved learnings: if jackline is missing, old or broken, the commit passes.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places
from jackline.domain import learning
from jackline.errors import Refused, UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home

NAME = "pre-commit"
UNRESOLVED = 16
_MARK = "# Written by jackline"
CALL = f"jackline case hook {NAME}"
_BODY = f"""\
# `jackline case hook remove` takes it away, `git commit --no-verify` passes it by.
# A commit waits until every learning of the active case is in a tracked file or has a reason (`{learning.REVIEW}`).
if ! command -v jackline >/dev/null 2>&1; then
    echo "jackline is not on the PATH: nobody looks whether learnings are resolved" >&2
    exit 0
fi
{CALL}
[ $? -ne {UNRESOLVED} ]
"""
# Also where a hook ends at the first command that fails, as those of husky do (`sh -e`).
_CHAIN = f"{CALL} || [ $? -ne {UNRESOLVED} ] || exit 1"


def text_of(body: str) -> str:
    """A hook with a digest of its body: a hook that a person edited no longer matches, and is left alone."""
    from hashlib import sha256

    return f"#!/bin/sh\n{_MARK} ({sha256(body.encode()).hexdigest()[:16]}).\n{body}"


class Hook(NamedTuple):
    """The path of the hook in a repository, and its state."""

    path: str
    state: str  # installed, outdated, foreign or missing


def status(folder: str, environ: Mapping[str, str]) -> Hook:
    """The hook of the repository around a folder; UsageError outside a repository."""
    path = os.path.join(_find_hooks_folder(folder, environ), NAME)
    return Hook(path, _read_state(path))


def install(folder: str, environ: Mapping[str, str]) -> tuple[Hook, bool]:
    """Write the hook; returns whether that changed anything. Refused for a foreign hook."""
    hook = status(folder, environ)
    if hook.state == "foreign":
        raise Refused(f"{hook.path} is not only jackline's: add this line to it by hand: {_CHAIN}")
    if hook.state == "installed":
        return hook, False
    _write(hook.path)
    return hook._replace(state="installed"), True


def remove(folder: str, environ: Mapping[str, str]) -> tuple[Hook, bool]:
    """Remove the hook; returns whether it existed. Refused for a foreign hook."""
    hook = status(folder, environ)
    if hook.state == "foreign":
        raise Refused(f"{hook.path} is not only jackline's: remove the line with `{CALL}` by hand, if there is one")
    if hook.state == "missing":
        return hook, False
    try:
        os.unlink(hook.path)
    except OSError as error:
        raise UsageError(f"{hook.path} cannot be removed: {error.strerror}") from None
    return hook._replace(state="missing"), True


def unresolved(home: Home, folder: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """The active case and its learnings that block a commit here; nothing without a case of this repository.

    Refused if git fails, which must not block a commit.
    """
    from jackline.app.case import place, reviewing

    if home.is_new:
        return "", []
    at = place.here(home, folder, environ)
    case = place.active(home, at)
    if case is None or case.repository != at.repository:
        return "", []
    learnings = reviewing.learnings_of(home, case)
    tracked = reviewing.tracked_files(case, learnings, environ)
    if tracked is None:
        raise Refused(f"git cannot list the tracked files of {case.path}")
    return case.id, [learning.line(one) for one in learning.unresolved(learnings, tracked)]


def _find_hooks_folder(folder: str, environ: Mapping[str, str]) -> str:
    from jackline.engine.changes import Git
    from jackline.engine.settings import inherited

    output = Git(folder, inherited(environ)).ask("rev-parse", "--git-path", "hooks")
    if not output or not output.strip("\n"):
        if os.path.exists(os.path.join(places.repository_of(folder), ".git")):
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
    if text == text_of(_BODY) and os.access(path, os.X_OK):
        return "installed"
    _, _, body = text.partition(").\n")
    return "outdated" if text == text_of(body) else "foreign"


def _write(path: str) -> None:
    from jackline.files import replace_file

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replace_file(path) as descriptor:
            os.write(descriptor, text_of(_BODY).encode())
            os.fchmod(descriptor, 0o755)  # git ignores a hook that is not executable
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
