"""The gate servers of an attempt; here the one on a unix socket: one JSON object per line in, one out. Fails closed.

Requests: {"op":"prepare","token","tool","input","agent_call"} and {"op":"finish","token","call","ok","exit_code",
"output","external_id"}. A request that cannot be read, or that the store refuses, is denied.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import socketserver
import sys
import threading
from typing import TYPE_CHECKING, Any

from jackline import crash_points
from jackline.digests import compare_digest
from jackline.domain.states import CallState
from jackline.engine import threads
from jackline.engine.call_ledger import CallRequest, CallResult
from jackline.errors import Fenced, JacklineError, NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter, Hooks
    from jackline.engine.call_ledger import CallLedger
    from jackline.engine.gate_http import HttpGate

DOOR = "socket"
_LONGEST_REQUEST = 64 * 1024 * 1024
_EXIT_CODE_LIMIT = 1 << 31
_SOCKET = re.compile(r"gate\.(?:([0-9]+)\.)?sock")  # of an attempt; without a number, of an older version
_LONGEST_ADDRESS = 100  # the kernel allows 107 bytes


class SocketGate:
    """The listening socket of one attempt."""

    def __init__(
        self, folder: str, ledger: CallLedger, token: str, on_error: Callable[[BaseException], None], attempt: int = 1
    ) -> None:
        """Start listening. The address is short even if the path of the home is long."""
        self._path = _SocketPath(folder, attempt)
        self.address = self._path.address
        self._server = _SocketServer(self.address, _SocketHandler)
        os.chmod(self.address, 0o600)
        self._server.ledger, self._server.token, self._server.on_error = ledger, token, on_error
        self._thread = threading.Thread(target=self._server.serve_forever, name="gate", daemon=True)

    def open(self) -> None:
        """Start to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering: a later call finds no gate and must not run."""
        threads.stop_server(self._server, self._thread)
        self._path.remove()


class _SocketPath:
    """The path of the socket: in the run's folder, or in a private temporary folder if that path is too long.

    Each attempt has its own. A supervisor that was suspended may wake up after another one took the run over, and must
    not remove the socket of that one.
    """

    def __init__(self, folder: str, attempt: int) -> None:
        self._temporary = ""
        self.address = os.path.join(folder, f"gate.{attempt}.sock")
        if len(os.fsencode(self.address)) > _LONGEST_ADDRESS:
            import tempfile

            self._temporary = tempfile.mkdtemp(prefix="jackline-")
            self.address = os.path.join(self._temporary, "gate.sock")
        _unlink(self.address)
        with contextlib.suppress(FileNotFoundError):  # of attempts that were killed
            for name in os.listdir(folder):
                found = _SOCKET.fullmatch(name)
                if found is not None and int(found[1] or 0) < attempt:
                    _unlink(os.path.join(folder, name))

    def remove(self) -> None:
        _unlink(self.address)
        if self._temporary:
            os.rmdir(self._temporary)


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class _SocketServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    ledger: CallLedger
    token: str
    on_error: Callable[[BaseException], None]

    def handle_error(self, request: object, client_address: object) -> None:
        """Raise the error in the main loop instead of printing it."""
        del request, client_address
        error = sys.exc_info()[1]
        if error is not None:
            self.on_error(error)


class _SocketHandler(socketserver.StreamRequestHandler):
    server: _SocketServer
    request: socket.socket

    def handle(self) -> None:
        # The agent may be killed before it reads an answer, or while we read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while line := self.rfile.readline(_LONGEST_REQUEST):
                self.wfile.write(json.dumps(self._answer(line)).encode() + b"\n")
                crash_points.crash_point("call.answered")

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            return self._dispatch(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return _build_denial(f"the gate could not read the request: {error!r}")
        except (NotFound, Refused) as error:
            return _build_denial(str(error))
        except JacklineError as error:
            self.server.on_error(error)
            return _build_denial("this attempt is over" if isinstance(error, Fenced) else str(error))

    def _dispatch(self, request: dict[str, Any]) -> dict[str, Any]:
        if not compare_digest(str(request["token"]).encode(), self.server.token.encode()):
            return _build_denial("wrong token")
        match request["op"]:
            case "prepare":
                return self._handle_prepare(request)
            case "finish":
                return self._handle_finish(request)
            case other:
                return _build_denial(f"unknown request '{other}'")

    def _handle_prepare(self, request: dict[str, Any]) -> dict[str, Any]:
        answer = self.server.ledger.prepare(
            CallRequest(
                tool=str(request["tool"]),
                input=request.get("input"),
                door=DOOR,
                agent_call=str(request.get("agent_call", "")),
            )
        )
        return {
            "decision": answer.decision,
            "call": answer.call_id,
            "reason": answer.reason,
            "output": answer.output,
        }

    def _handle_finish(self, request: dict[str, Any]) -> dict[str, Any]:
        code = request.get("exit_code")  # the agent may send any JSON
        result = CallResult(
            call_id=str(request["call"]),
            ok=request["ok"] is True,
            exit_code=code if type(code) is int and abs(code) < _EXIT_CODE_LIMIT else None,
            output=str(request.get("output", "")),
            external_id=str(request.get("external_id", "")),
        )
        call = self.server.ledger.finish(result)
        doubtful = call.state is CallState.IN_DOUBT
        return {"ok": True, "state": call.state, "reason": "its outcome is in doubt" if doubtful else ""}


def _build_denial(reason: str) -> dict[str, Any]:
    return {"ok": False, "decision": "deny", "call": "", "reason": reason, "output": ""}


class GateServers:
    """Opens each server when an agent first needs it."""

    def __init__(
        self, folder: str, ledger: CallLedger, token: str, on_error: Callable[[BaseException], None], attempt: int = 1
    ) -> None:
        """Start with no server."""
        self._folder, self._ledger, self._token, self._on_error = folder, ledger, token, on_error
        self._attempt = attempt
        self._open: dict[str, SocketGate | HttpGate] = {}

    def get_address(self, adapter: Adapter) -> str:
        """The address of the gate for this agent; opens the server if needed."""
        kind = adapter.declaration.door
        if kind not in self._open:
            server = self._open[kind] = self._build_server(adapter)
            server.open()
        return self._open[kind].address

    def close(self) -> None:
        """Stop answering: a later call finds no gate and must not run."""
        for server in self._open.values():
            server.close()

    def _build_server(self, adapter: Adapter) -> SocketGate | HttpGate:
        hooks = find_hooks(adapter)
        if hooks is None:
            return SocketGate(self._folder, self._ledger, self._token, self._on_error, self._attempt)
        from jackline.engine.gate_http import HttpGate

        gate = HttpGate(self._ledger, self._token, hooks, self._on_error)
        self._ledger.closed_ports |= {gate.port}
        return gate


def find_hooks(adapter: Adapter) -> Hooks | None:
    """The hook format of the agent; None if it uses the socket, or has no gate."""
    hooks: Hooks | None = getattr(adapter, "hooks", None)  # adapters of other packages may lack it
    return hooks
