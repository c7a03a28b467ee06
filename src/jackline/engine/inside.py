"""What everything below a run can tell of it: its id, its home, and where `jackline` itself is. It spawns nothing."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.engine.settings import Settings

RUN = "JACKLINE_RUN"
RUN_ID = "JACKLINE_RUN_ID"  # the name that programs which speak event lines know
HOME = "JACKLINE_HOME"
DATABASE = "JACKLINE_DATABASE"
ACTOR = "JACKLINE_ACTOR"
NAMES = (RUN, RUN_ID, HOME)
_PROGRAM = "jackline"


def environment(settings: Settings, run_id: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for an agent, a check and a probe, so that `jackline case` in their shell finds the run's home."""
    own = {RUN: run_id, RUN_ID: run_id, HOME: settings.home}
    database = {DATABASE: settings.database} if settings.database else {}
    return {**own, **database, "PATH": with_program(environ.get("PATH", os.defpath))}


def acting(agent: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Whose name stands on what an agent does, in its shell and by its tools alike: its own, unless we were told one.

    Only for a turn: a check and a probe are the host's doing.
    """
    return {ACTOR: environ.get(ACTOR) or agent}


def with_program(path: str) -> str:
    """The PATH; where it has no `jackline`, with the folder of ours at its end, so that it hides nothing."""
    if any(_is_program(folder) for folder in path.split(os.pathsep) if folder):
        return path
    own = next((folder for folder in _folders() if _is_program(folder)), None)
    return path if own is None else os.pathsep.join(part for part in (path, own) if part)


def reminder(agent: str) -> tuple[str, ...]:
    """The command by which an agent's own hook gets the run's case back; -P: nothing of the workspace is imported."""
    return (sys.executable, "-P", "-m", "jackline", "case", "hook", agent)


def _folders() -> tuple[str, ...]:
    """Where the script may be: beside the one that was started, or beside the interpreter (a link is not followed)."""
    started = sys.argv[0] if sys.argv else ""
    beside = os.path.dirname(os.path.abspath(started)) if os.path.basename(started) == _PROGRAM else ""
    return tuple(folder for folder in (beside, os.path.dirname(sys.executable or "")) if folder)


def _is_program(folder: str) -> bool:
    path = os.path.join(folder, _PROGRAM)
    return os.path.isfile(path) and os.access(path, os.X_OK)
