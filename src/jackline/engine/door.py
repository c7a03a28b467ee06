"""The door for agents that speak to a unix socket: newline-delimited JSON in, one answer a line out. Fails closed.

Requests: {"op":"prepare","token","tool","input","agent_call"} and {"op":"finish","token","call","ok","exit_code",
"output","external_id"}. Whatever cannot be understood, and whatever the store refuses, is answered with a denial.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import socketserver
import sys
import threading
from typing import TYPE_CHECKING, Any

from jackline import faults
from jackline.domain.states import CallState
from jackline.engine.ledger import Report, Wish
from jackline.errors import Fenced, JacklineError, NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.engine.ledger import Ledger

DOOR = "socket"
_LONGEST_REQUEST = 64 * 1024 * 1024
_NO_EXIT_CODE = 1 << 31
_LONGEST_ADDRESS = 100  # the kernel allows 107 bytes


class Door:
    """A listening socket of one attempt; it closes with the attempt."""

    def __init__(self, folder: str, ledger: Ledger, token: str, on_error: Callable[[BaseException], None]) -> None:
        """Listen at once; the address is short even when the home's path is long."""
        self._place = _Place(folder)
        self.address = self._place.address
        self._server = _Server(self.address, _Handler)
        os.chmod(self.address, 0o600)
        self._server.ledger, self._server.token, self._server.on_error = ledger, token, on_error
        self._thread = threading.Thread(target=self._server.serve_forever, name="door", daemon=True)

    def open(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering: a call that comes later finds no gate and must not run."""
        if self._thread.is_alive():
            with contextlib.suppress(OSError):  # wakes it where that is possible: it looks up only twice a second
                self._server.socket.shutdown(socket.SHUT_RDWR)
            self._server.shutdown()
        self._server.server_close()
        self._place.remove()


class _Place:
    """Where the socket lies: in the run's folder, or in a private temporary folder if that path is too long."""

    def __init__(self, folder: str) -> None:
        self._temporary = ""
        self.address = os.path.join(folder, "gate.sock")
        if len(os.fsencode(self.address)) > _LONGEST_ADDRESS:
            import tempfile

            self._temporary = tempfile.mkdtemp(prefix="jackline-")
            self.address = os.path.join(self._temporary, "gate.sock")
        self._unlink()

    def remove(self) -> None:
        self._unlink()
        if self._temporary:
            os.rmdir(self._temporary)

    def _unlink(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.address)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    ledger: Ledger
    token: str
    on_error: Callable[[BaseException], None]

    def handle_error(self, request: object, client_address: object) -> None:
        """Surface in the main loop instead of on a person's terminal."""
        del request, client_address
        error = sys.exc_info()[1]
        if error is not None:
            self.on_error(error)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        # An agent that is killed before it has read an answer is gone while we read, too.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while line := self.rfile.readline(_LONGEST_REQUEST):
                self.wfile.write(json.dumps(self._answer(line)).encode() + b"\n")
                faults.reach("call.answered")

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            return self._dispatch(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return _denied(f"the gate could not read the request: {error!r}")
        except (NotFound, Refused) as error:
            return _denied(str(error))
        except JacklineError as error:
            self.server.on_error(error)
            return _denied("the run is over here" if isinstance(error, Fenced) else str(error))

    def _dispatch(self, request: dict[str, Any]) -> dict[str, Any]:
        if not hmac.compare_digest(str(request["token"]).encode(), self.server.token.encode()):
            return _denied("wrong token")
        match request["op"]:
            case "prepare":
                return self._prepare(request)
            case "finish":
                return self._finish(request)
            case other:
                return _denied(f"unknown request '{other}'")

    def _prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        wish = Wish(str(request["tool"]), request.get("input"), DOOR, str(request.get("agent_call", "")))
        answer = self.server.ledger.prepare(wish)
        return {
            "decision": answer.decision,
            "call": answer.call_id,
            "reason": answer.reason,
            "output": answer.output,
        }

    def _finish(self, request: dict[str, Any]) -> dict[str, Any]:
        report = Report(
            call_id=str(request["call"]),
            ok=request["ok"] is True,
            exit_code=_exit_code(request.get("exit_code")),
            output=str(request.get("output", "")),
            external_id=str(request.get("external_id", "")),
        )
        call = self.server.ledger.finish(report)
        doubtful = call.state is CallState.IN_DOUBT
        return {"ok": not doubtful, "state": call.state, "reason": "its outcome is in doubt" if doubtful else ""}


def _exit_code(value: object) -> int | None:
    """What an agent says may be any JSON; a code that no process can have is none."""
    return value if type(value) is int and abs(value) < _NO_EXIT_CODE else None


def _denied(reason: str) -> dict[str, Any]:
    return {"ok": False, "decision": "deny", "call": "", "reason": reason, "output": ""}
