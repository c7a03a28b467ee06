"""The environment of a run's processes: the run's id, its home, `jackline` on the PATH, and a tag that identifies them.

The tag finds them wherever they are in the process tree. Nothing is spawned here.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from jackline.digests import sign_text
from jackline.domain.states import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.engine.settings import EngineSettings

RUN = "JACKLINE_RUN"
RUN_ID = "JACKLINE_RUN_ID"  # the name that programs with event lines expect
HOME = "JACKLINE_HOME"
DATABASE = "JACKLINE_DATABASE"
ACTOR = "JACKLINE_ACTOR"
TAG_VARIABLE = "JACKLINE_MARK"
ATTEMPT_VARIABLE = "JACKLINE_ATTEMPT"
DETACHED = "JACKLINE_DETACHED"  # of a jackline process that another one started in the background
NAMES = (RUN, RUN_ID, HOME)
_PROGRAM = "jackline"
_GIT_SETTINGS = "GIT_CONFIG_PARAMETERS"  # what `git -c` sets
_NO_MONITOR = ("'core.fsmonitor=false'",)
_NO_HOOKS = ("'core.hooksPath=/dev/null'",)


def build_run_env(settings: EngineSettings, run_id: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for agents, checks and probes, so that `jackline case` in their shell finds the run's home."""
    own = {RUN: run_id, RUN_ID: run_id, HOME: settings.home}
    database = {DATABASE: settings.database} if settings.database else {}
    return {**own, **database, "PATH": add_program_to_path(environ.get("PATH", os.defpath))}


def build_actor_env(agent: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The actor that is recorded for the agent's actions: the agent, unless our environment names one.

    Only for turns: checks and probes belong to the host.
    """
    return {ACTOR: environ.get(ACTOR) or agent}


def build_reader_env(role: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Settings of git for a turn that only reads: reading a repository must not run what its configuration names.

    They override every file. A reviewer may run the proof, which may need hooks of repositories that it makes.
    """
    # Not GIT_CONFIG_KEY_0 and so on: some agents hide variables with KEY in their names, and git then refuses to run.
    given = {Role.PLAN: _NO_MONITOR + _NO_HOOKS, Role.REVIEW: _NO_MONITOR}.get(Role(role), ())
    return {_GIT_SETTINGS: " ".join(filter(None, (environ.get(_GIT_SETTINGS), *given)))} if given else {}


def add_program_to_path(path: str) -> str:
    """Append our folder to a PATH that has no `jackline`; at its end, so that it hides nothing."""
    if any(_has_program(folder) for folder in path.split(os.pathsep) if folder):
        return path
    own = next((folder for folder in _find_script_folders() if _has_program(folder)), None)
    return path if own is None else os.pathsep.join(part for part in (path, own) if part)


def build_reminder_command(agent: str) -> tuple[str, ...]:
    """The hook command that reminds an agent of its case; -P: import nothing from the workspace."""
    return (sys.executable, "-P", "-m", "jackline", "case", "hook", agent)


def _find_script_folders() -> tuple[str, ...]:
    """Where the script may be: the folder of the started one, then that of the interpreter (links are not followed)."""
    started = sys.argv[0] if sys.argv else ""
    beside = os.path.dirname(os.path.abspath(started)) if os.path.basename(started) == _PROGRAM else ""
    return tuple(folder for folder in (beside, os.path.dirname(sys.executable or "")) if folder)


def _has_program(folder: str) -> bool:
    path = os.path.join(folder, _PROGRAM)
    return os.path.isfile(path) and os.access(path, os.X_OK)


def build_process_tag(secret: bytes, run_id: str) -> dict[str, str]:
    """One tag per run and store: two homes with the same run id never kill each other's processes."""
    # A new attempt kills all processes with the tag; after the loss of a warden only those of its attempt are killed.
    return {TAG_VARIABLE: sign_text(secret, f"mark:{run_id}")[:32]}


def find_docker_ports(environ: Mapping[str, str]) -> frozenset[int]:
    """The port of DOCKER_HOST: a client of docker controls this machine."""
    port = environ.get("DOCKER_HOST", "").rpartition(":")[2].partition("/")[0]
    return frozenset({int(port)} if port.isascii() and port.isdigit() else ())
