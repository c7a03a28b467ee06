"""What every program of jackline's own agents needs: event lines on stdout, a connection to the gate, session paths.

The gate client fails closed: without a clear answer it ends the turn, so that no call runs unrecorded.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn, cast

ANSWER_BYTES = 2**24
GATE_SECONDS = 60.0
SHOWN_CHARACTERS = 4_096  # an event line shows the end of a tool's output


class Stop(Exception):
    """Ends the turn with this exit code, after this last event line."""

    def __init__(self, code: int, kind: str, **fields: object) -> None:
        super().__init__(kind)
        self.code, self.kind, self.fields = code, kind, fields


def build_failure(name: str, detail: str, **facts: object) -> Stop:
    """A Stop that reports an error of the failure class `name`."""
    return Stop(1, "error", **{"class": name, "detail": detail, **facts})


def build_lost_session(detail: str) -> Stop:
    """A Stop after which the supervisor may start a new session."""
    return build_failure("agent_error", detail, session_lost=True)


def emit(kind: str, **fields: object) -> None:
    """Print an event line."""
    write_all(1, json.dumps({"type": kind, **fields}).encode() + b"\n")


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write without any buffer: a kill at any instant must not lose an earlier event."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def build_session_path(folder: str, session: str) -> str:
    """The file of a session; an id must not lead out of the folder."""
    return os.path.join(folder, f"session-{re.sub(r'[^A-Za-z0-9._-]', '_', session)}.json")


def replace_file(path: str, data: bytes) -> None:
    """Replace a private file atomically, and sync it and its folder to disk."""
    with open(os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


class GateClient:
    """One connection to the gate, opened on the first request: a script without calls needs no gate."""

    def __init__(self, address: str, token: str, seconds: float) -> None:
        self._address, self._token, self._seconds = address, token, seconds
        self._stream: BinaryIO | None = None

    def prepare(self, tool: str, given: Mapping[str, object], agent_call: str) -> dict[str, Any]:
        """Ask for a decision about a call; `allow` always has the call's id, which the outcome needs."""
        answer = self._request("prepare", tool=tool, input=given, agent_call=agent_call)
        decision = answer.get("decision")
        if decision not in ("allow", "deny", "stored", "ask") or (decision == "allow" and not answer.get("call")):
            raise build_failure("ungated", f"the gate gave no decision: {answer.get('reason') or json.dumps(answer)}")
        return answer

    def finish(self, **outcome: object) -> None:
        """Report the outcome of a call."""
        answer = self._request("finish", **outcome)
        if answer.get("ok") is not True:
            raise build_failure("agent_error", f"the gate rejected the outcome: {answer.get('reason')}")

    def _request(self, op: str, **fields: object) -> dict[str, Any]:
        request = json.dumps({"op": op, "token": self._token, **fields}).encode() + b"\n"
        try:
            stream = self._stream = self._stream or self._connect()
            stream.write(request)
            stream.flush()
            answer = json.loads(stream.readline(ANSWER_BYTES) or b"null")
        except (OSError, ValueError) as error:
            _fail_closed(f"the gate does not answer: {error}")
        return answer if isinstance(answer, dict) else _fail_closed("the gate closed the connection without an answer")

    def _connect(self) -> BinaryIO:
        if not self._address:
            _fail_closed("there is no gate: JACKLINE_GATE is not set")
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(self._seconds)
        connection.connect(self._address)
        return cast("BinaryIO", connection.makefile("rwb"))


def build_gate_client(environ: Mapping[str, str]) -> GateClient:
    """The client for the gate that the environment names."""
    seconds = float(environ.get("JACKLINE_GATE_SECONDS") or GATE_SECONDS)
    return GateClient(environ.get("JACKLINE_GATE", ""), environ.get("JACKLINE_GATE_TOKEN", ""), seconds)


def _fail_closed(detail: str) -> NoReturn:
    raise build_failure("ungated", detail) from None
