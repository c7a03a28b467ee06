"""What every helper does around its turn: read the prompt and the environment, run, and print the last event."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ..scripted.playback.agent_io import GateClient, Stop, build_failure, build_gate_client, emit, write_all

REPORTED_CHARACTERS = 65_536  # the gate gets the end of a tool's output
HEARTBEAT_SECONDS = 10.0
# Hidden from a tool or an agent below us, which could otherwise answer the gate in our name.
SECRETS = ("JACKLINE_GATE", "JACKLINE_GATE_TOKEN", "OLLAMA_API_KEY")
_STATUS = {401: "authentication", 402: "billing", 403: "authentication", 404: "model_not_found",
           408: "connectivity", 413: "context_too_long", 429: "limit"}  # fmt: skip
_SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class HelperContext:
    """The environment of a turn."""

    environ: Mapping[str, str]
    workspace: str
    folder: str
    session: str
    resumes: bool
    model: str
    gate: GateClient
    servers: Sequence[object] = ()  # MCP servers, in the JSON of the helper's protocol


def run_helper(turn: Callable[[HelperContext, str], None]) -> int:
    """Run the turn with its prompt and print its last event; returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # die of it, as an agent does; a traceback would not help
    prompt = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        turn(_read_context(os.environ), prompt)
    except BrokenPipeError:  # there is no reader left to report to
        return 1
    except Stop as stop:
        end = stop
    except OSError as error:
        end = build_failure("agent_error", str(error))
    else:
        return 0
    with suppress(BrokenPipeError):
        emit(end.kind, **end.fields)
        return end.code
    return 1


def _read_context(environ: Mapping[str, str]) -> HelperContext:
    return HelperContext(
        environ=environ,
        workspace=os.path.realpath(environ.get("JACKLINE_WORKSPACE") or "."),
        folder=os.path.abspath(environ.get("JACKLINE_AGENT_FOLDER") or "."),
        session=environ.get("JACKLINE_SESSION", ""),
        resumes=environ.get("JACKLINE_RESUME") == "1",
        model=environ.get("JACKLINE_MODEL", ""),
        servers=json.loads(environ.get("JACKLINE_MCP_SERVERS") or "[]"),
        gate=build_gate_client(environ),
    )


def child_env(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for child processes."""
    return {name: value for name, value in environ.items() if name not in SECRETS}


def build_http_failure(status: int, detail: str, **facts: object) -> Stop:
    """The Stop for a provider's HTTP status."""
    name = "overloaded" if status >= _SERVER_ERROR else _STATUS.get(status, "agent_error")
    if name == "limit":
        return Stop(1, "limit", detail=detail, **facts)
    return build_failure(name, detail, **facts)


def as_count(value: object) -> int:
    """Return a positive whole number; 0 for any other value."""
    return value if isinstance(value, int) and value > 0 else 0


class Heartbeat:
    """Prints an empty line from time to time: it has no meaning, but the turn is not silent."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def beat(self) -> None:
        if time.monotonic() - self._last >= HEARTBEAT_SECONDS:
            self._last = time.monotonic()
            write_all(1, b"\n")
