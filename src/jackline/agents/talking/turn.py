"""What every helper does around its turn: take the prompt, know its surroundings, say the last line."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .borrowed import Gate, Stop, failed, tell, write

GATE_SECONDS = 60.0
ALIVE_SECONDS = 10.0
# What a tool or an agent below us has no business to know: with it, it could answer for us at the gate.
SECRETS = ("JACKLINE_GATE", "JACKLINE_GATE_TOKEN", "OLLAMA_API_KEY")
_STATUS = {401: "authentication", 402: "billing", 403: "authentication", 404: "model_not_found",
           408: "connectivity", 413: "context_too_long", 429: "limit"}  # fmt: skip
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn happens, and whom it asks."""

    environ: Mapping[str, str]
    workspace: str
    folder: str
    session: str
    resumes: bool
    model: str
    gate: Gate
    servers: Sequence[object] = ()  # MCP servers, in the words of the protocol that the helper speaks


def place_of(environ: Mapping[str, str]) -> Place:
    seconds = float(environ.get("JACKLINE_GATE_SECONDS") or GATE_SECONDS)
    return Place(
        environ=environ,
        workspace=os.path.realpath(environ.get("JACKLINE_WORKSPACE") or "."),
        folder=os.path.abspath(environ.get("JACKLINE_AGENT_FOLDER") or "."),
        session=environ.get("JACKLINE_SESSION", ""),
        resumes=environ.get("JACKLINE_RESUME") == "1",
        model=environ.get("JACKLINE_MODEL", ""),
        servers=json.loads(environ.get("JACKLINE_MCP_SERVERS") or "[]"),
        gate=Gate(environ.get("JACKLINE_GATE", ""), environ.get("JACKLINE_GATE_TOKEN", ""), seconds),
    )


def carry_out(turn: Callable[[Place, str], None]) -> int:
    """Take the turn to its end, whatever that is; the exit code says whether it was a good one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an agent dies of it; a traceback would help nobody
    prompt = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        end = _ended(turn, prompt)
        if end.kind:
            tell(end.kind, **end.fields)
    except BrokenPipeError:  # nobody listens any more, so there is nobody to tell
        return 1
    return end.code


def _ended(turn: Callable[[Place, str], None], prompt: str) -> Stop:
    try:
        turn(place_of(os.environ), prompt)
    except Stop as stop:
        return stop
    except BrokenPipeError:
        raise
    except OSError as error:
        return failed("agent_error", str(error))
    return Stop(0, "")


def surroundings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for whatever is started from here."""
    return {name: value for name, value in environ.items() if name not in SECRETS}


def refused(status: int, detail: str, **facts: object) -> Stop:
    """The end that an HTTP status of a provider means."""
    word = "overloaded" if status >= _SERVER_ERROR else _STATUS.get(status, "agent_error")
    if word == "limit":
        return Stop(1, "limit", detail=detail, **facts)
    return failed(word, detail, **facts)


class Pulse:
    """Says from time to time that somebody is at work: an empty line means nothing, and is not silence either."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def beat(self) -> None:
        if time.monotonic() - self._last >= ALIVE_SECONDS:
            self._last = time.monotonic()
            write(1, b"\n")
