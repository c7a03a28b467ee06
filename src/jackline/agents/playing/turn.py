"""One turn of the scripted agent: read the script, find the place in it, play to the end.

All it knows is in its environment (JACKLINE_SCRIPT, JACKLINE_GATE, …; see docs/scripted.md).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from .calls import Player
from .gate import Gate
from .lines import Stop, failed, tell
from .session import Session, path_of
from .steps import PLAYS

GATE_SECONDS = 60.0


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an agent dies of it; a traceback would help nobody
    if not sys.stdin.isatty():
        sys.stdin.buffer.read()  # the prompt: taken, so that whoever writes it is not blocked
    try:
        _turn(os.environ)
    except Stop as stop:
        tell(stop.kind, **stop.fields)
        return stop.code
    except BrokenPipeError:  # nobody listens any more, so there is nobody to tell
        return 1
    return 0


def _turn(environ: Mapping[str, str]) -> None:
    script = _read(environ.get("JACKLINE_SCRIPT", ""))
    folder = os.path.abspath(environ.get("JACKLINE_AGENT_FOLDER") or ".")
    seconds = float(environ.get("JACKLINE_GATE_SECONDS") or GATE_SECONDS)
    gate = Gate(environ.get("JACKLINE_GATE", ""), environ.get("JACKLINE_GATE_TOKEN", ""), seconds)
    player = Player(gate, folder, int(environ.get("JACKLINE_ATTEMPT") or 1))
    _play(player, _begin(script, folder, environ), script["steps"])
    tell("end", reason="done")


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            script: dict[str, Any] = json.load(file)
        if script["version"] == 1 and all(set(step) <= {*PLAYS, "when"} for step in script["steps"]):
            return script
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise failed("agent_error", f"the script cannot be read: {error}") from None
    raise failed("agent_error", "the script is not one of version 1, or has an action that is not known")


def _begin(script: Mapping[str, Any], folder: str, environ: Mapping[str, str]) -> Session:
    """The session is on disk before its id is told, so that an id that was heard can be resumed."""
    os.makedirs(folder, exist_ok=True)
    name = environ.get("JACKLINE_SESSION") or os.urandom(8).hex()
    session = Session(path_of(folder, name) if script.get("session", True) else None)
    if environ.get("JACKLINE_RESUME") == "1":
        session.recall()
    else:
        session.remember(0)
    tell("session", id=name)
    return session


def _play(player: Player, session: Session, steps: Sequence[Mapping[str, Any]]) -> None:
    """A step counts as finished when it is over: the one in flight at a kill is issued again by a resume."""
    for number, step in enumerate(steps, 1):
        if number <= session.finished:
            continue
        player.step = number
        if _applies(step.get("when", {}), player.attempt):
            _play_step(player, step)
        session.remember(number)


def _play_step(player: Player, step: Mapping[str, Any]) -> None:
    action = next(name for name in step if name != "when")
    try:
        PLAYS[action](player, step[action])
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:  # ValueError: no path can be made of such a text
        raise failed("agent_error", f"step {player.step} ({action}): {error}") from None


def _applies(when: Mapping[str, Any], attempt: int) -> bool:
    wanted = when.get("attempt", attempt)
    named = attempt in (wanted if isinstance(wanted, list) else [wanted])
    return named and when.get("attempt_from", attempt) <= attempt <= when.get("attempt_to", attempt)
