"""One turn of the scripted agent: read the script, find the first unfinished step, play to the end.

Its only input is its environment (JACKLINE_SCRIPT, JACKLINE_GATE, …; see docs/scripted.md).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .agent_io import (
    Stop,
    build_failure,
    build_gate_client,
    build_lost_session,
    build_session_path,
    emit,
    replace_file,
)
from .steps import ACTIONS
from .tool_calls import ScriptState


@dataclass(slots=True)
class ScriptSession:
    """How many steps of a session are finished, in a small file. Without a path, it always starts from the top."""

    path: str | None
    finished: int = 0

    def load(self) -> None:
        if self.path is None:
            return
        try:
            with open(self.path, "rb") as file:
                self.finished = int(json.load(file)["finished"])
        except FileNotFoundError:
            raise build_lost_session("session not found") from None
        except (ValueError, KeyError, TypeError) as error:
            raise build_lost_session(f"session cannot be read: {error}") from None

    def save(self, finished: int) -> None:
        self.finished = finished
        if self.path is not None:
            replace_file(self.path, json.dumps({"version": 1, "finished": finished}).encode())


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # die of it, as an agent does; a traceback would not help
    if not sys.stdin.isatty():
        sys.stdin.buffer.read()  # the prompt: read, so that the writer is not blocked
    try:
        _run_turn(os.environ)
    except Stop as stop:
        emit(stop.kind, **stop.fields)
        return stop.code
    except BrokenPipeError:  # there is no reader left to report to
        return 1
    return 0


def _run_turn(environ: Mapping[str, str]) -> None:
    script = _load_script(environ.get("JACKLINE_SCRIPT", ""))
    folder = os.path.abspath(environ.get("JACKLINE_AGENT_FOLDER") or ".")
    state = ScriptState(build_gate_client(environ), folder, int(environ.get("JACKLINE_ATTEMPT") or 1))
    _play_steps(state, _open_session(script, folder, environ), script["steps"])
    emit("end", reason="done")


def _load_script(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            script: dict[str, Any] = json.load(file)
        if script["version"] == 1 and all(set(step) <= {*ACTIONS, "when"} for step in script["steps"]):
            return script
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise build_failure("agent_error", f"the script cannot be read: {error}") from None
    raise build_failure("agent_error", "the script does not have version 1, or has an unknown action")


def _open_session(script: Mapping[str, Any], folder: str, environ: Mapping[str, str]) -> ScriptSession:
    """Save the session before reporting its id, so that a reported session can always be resumed."""
    os.makedirs(folder, exist_ok=True)
    name = environ.get("JACKLINE_SESSION") or os.urandom(8).hex()
    session = ScriptSession(build_session_path(folder, name) if script.get("session", True) else None)
    if environ.get("JACKLINE_RESUME") == "1":
        session.load()
    else:
        session.save(0)
    emit("session", id=name)
    return session


def _play_steps(state: ScriptState, session: ScriptSession, steps: Sequence[Mapping[str, Any]]) -> None:
    """A step counts as finished when it has returned: a resume repeats the step that a kill interrupted."""
    for number, step in enumerate(steps[session.finished :], session.finished + 1):
        state.step = number
        action = next(name for name in step if name != "when")
        try:
            if _applies(step.get("when", {}), state.attempt):
                ACTIONS[action](state, step[action])
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:  # ValueError: the text is not a valid path
            raise build_failure("agent_error", f"step {number} ({action}): {error}") from None
        session.save(number)


def _applies(when: Mapping[str, Any], attempt: int) -> bool:
    wanted = when.get("attempt", attempt)
    is_listed = attempt in (wanted if isinstance(wanted, list) else [wanted])
    return is_listed and when.get("attempt_from", attempt) <= attempt <= when.get("attempt_to", attempt)
