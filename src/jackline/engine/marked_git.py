"""Attributes commits to a run by a variable that git writes into its reflog. It spawns nothing.

With that variable a checkout no longer records the branch that it left, and `git checkout -` fails. So a shell script
precedes git on the agent's PATH and unsets the variable for `checkout` and `switch`. If a shell replaces the PATH,
only `checkout -` is lost, never a commit.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.domain.changes import VARIABLE, marking

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def environment(folder: str, run_id: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for the agent. Writes the script into the run's folder."""
    from shlex import quote

    git = _find_git(environ.get("PATH", os.defpath))
    if git is None:
        return {}
    place = os.path.join(folder, "bin")
    os.makedirs(place, mode=0o700, exist_ok=True)
    text = _SHIM.format(variable=VARIABLE, git=quote(git))
    path = os.path.join(place, "git")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return {**marking(run_id), "PATH": os.pathsep.join((place, environ.get("PATH", os.defpath)))}


def _find_git(search_path: str) -> str | None:
    paths = (os.path.join(folder, "git") for folder in search_path.split(os.pathsep) if os.path.isabs(folder))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)
