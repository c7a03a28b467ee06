"""What tells a run's commits from everybody else's: a variable that git writes into its reflog. It spawns nothing.

With that variable a checkout no longer writes which branch it left, and `git checkout -` finds no way back. So a few
lines of shell stand before git on the agent's PATH and take the variable away for these two commands. Where a shell
sets a PATH of its own, only that convenience is lost, never a commit.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.domain.changes import VARIABLE, marking

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHIM = """#!/bin/sh
# Written by jackline: git keeps its own words for checkout and switch, because `-` is found by them.
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
    """The variables for the agent; the folder is the run's own, and the shim in it is written anew."""
    from shlex import quote

    git = _found(environ.get("PATH", os.defpath))
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


def _found(path: str) -> str | None:
    places = (os.path.join(folder, "git") for folder in path.split(os.pathsep) if os.path.isabs(folder))
    return next((one for one in places if os.path.isfile(one) and os.access(one, os.X_OK)), None)
