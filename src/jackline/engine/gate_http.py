"""The gate over HTTP on loopback, for agents with HTTP hooks: one JSON object in, one out. Fails closed.

A request without the token, one that cannot be read and one that the store refuses get an error or a denial; the
agent's hooks take both for "do not run". It implements only the part of HTTP that hooks need.
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import sys
import threading
from typing import TYPE_CHECKING, Any

from jackline import crash_points
from jackline.clock import boot_ms
from jackline.diagnostic_log import LOG
from jackline.digests import compare_digest
from jackline.engine import threads
from jackline.engine.hook_handler import HookHandler
from jackline.errors import Fenced, JacklineError, NotFound, Refused
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jackline.domain.adapter import Hooks
    from jackline.engine.hook_handler import HookLedger

PATH = "/hook"
_LOOPBACK = "127.0.0.1"
_LONGEST_REQUEST = 64 * 1024 * 1024
_LONGEST_LINE = 16_384
_LONGEST_NUMBER = 20
_MOST_LINES = 100
_STRANGER_S = 10  # until when a client must have shown the token, however slowly it sends
_MOST_STRANGERS = 128  # connections without the token at once; one more closes the oldest
_STRANGER_BYTES = 65_536  # nor use memory
_MOST_WAITING = 128  # connections at once: an agent runs calls in parallel
_OK = 200
_REASONS = {_OK: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Content Too Large",
            500: "Internal Server Error"}  # fmt: skip


class HttpGate:
    """The listening socket of one attempt."""

    def __init__(self, ledger: HookLedger, token: str, hooks: Hooks, on_error: Callable[[BaseException], None]) -> None:
        """Start listening, on a port that the system chooses."""
        self._server = _HttpServer((_LOOPBACK, 0), _HttpHandler)
        self._server.hook_handler = HookHandler(ledger, hooks)
        self._server.token, self._server.on_error = token, on_error
        self.port = int(self._server.server_address[1])
        self.address = f"http://{_LOOPBACK}:{self.port}{PATH}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="gate", daemon=True)

    def open(self) -> None:
        """Start to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering, open connections too: a later call finds no gate and must not run."""
        self._server.hang_up()
        threads.stop_server(self._server, self._thread)


class _HttpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST_WAITING
    hook_handler: HookHandler
    token: str
    on_error: Callable[[BaseException], None]

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - as the base class has it
        self.closed = False
        self._open: set[socket.socket] = set()
        self._strangers: dict[socket.socket, int] = {}  # connections without the token → their deadline, oldest first
        self._lock = threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class has it
        with self._lock:
            self._open.add(request)
            self._strangers[request] = boot_ms() + _STRANGER_S * 1000
            # The oldest, not the newest: an agent shows its token at once, and must not find the gate occupied.
            surplus = list(self._strangers)[:-_MOST_STRANGERS]
        self._disconnect(surplus)
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Disconnect clients that have not shown the token in time; called twice a second."""
        now = boot_ms()
        with self._lock:
            late = [request for request, deadline in self._strangers.items() if deadline <= now]
        self._disconnect(late)

    def accept_client(self, request: socket.socket) -> None:
        """Let a client that has shown the token keep its connection."""
        with self._lock:
            self._strangers.pop(request, None)

    def close_request(self, request: Any) -> None:  # noqa: ANN401 - as the base class has it
        with self._lock:
            self._open.discard(request)
            self._strangers.pop(request, None)
        super().close_request(request)

    def hang_up(self) -> None:
        """Close open connections and refuse new ones."""
        with self._lock:
            self.closed = True
            connections = list(self._open)
        self._disconnect(connections)

    def _disconnect(self, connections: Iterable[socket.socket]) -> None:
        """End connections; the thread of each reads an end of file, and closes it."""
        for connection in connections:
            self.accept_client(connection)  # it is not ended a second time
            with contextlib.suppress(OSError):  # the client closed it first
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Raise the error in the main loop instead of printing it."""
        del request, client_address
        error = sys.exc_info()[1]
        if error is not None:
            self.on_error(error)


class _Request(NamedTuple):
    """One request of a client with the token."""

    path: str
    body: bytes


class _BadRequest(Exception):
    """The bytes are not a request that can be answered, and the next one cannot be found."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _HttpHandler(socketserver.StreamRequestHandler):
    """One connection, open as long as the agent keeps it."""

    server: _HttpServer
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body are sent together

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):  # the agent has ended; the ledger has the decision
            while self._serve():
                pass

    def finish(self) -> None:
        with contextlib.suppress(OSError):  # unsent bytes
            super().finish()

    def _serve(self) -> bool:
        """Answer one request; False after the last one."""
        try:
            request = self._read_request()
        except _BadRequest as bad:
            self._send(bad.status, {})
            return False
        if request is None or self.server.closed:
            return False
        self._send(*self._answer(request))
        crash_points.crash_point("call.answered")
        return True

    def _read_request(self) -> _Request | None:
        first = self.rfile.readline(_LONGEST_LINE)
        if not first:
            return None
        words = first.split()
        headers = self._read_headers()
        length = _parse_length(headers.get(b"content-length", b""))
        if len(words) != len(("method", "path", "version")) or words[0] != b"POST" or length is None:
            raise _BadRequest(400)
        if length > _LONGEST_REQUEST:
            raise _BadRequest(413)
        if not self._has_token(headers.get(b"authorization", b"")):
            # Unread bytes would reset the connection before the answer arrives.
            self.rfile.read(min(length, _STRANGER_BYTES))
            raise _BadRequest(401)
        self.server.accept_client(self.connection)
        body = self.rfile.read(length)
        if len(body) < length:  # the client closed the connection
            return None
        return _Request(words[1].decode("latin-1"), body)

    def _has_token(self, header: bytes) -> bool:
        scheme, _, token = header.partition(b" ")
        return scheme.lower() == b"bearer" and compare_digest(token, self.server.token.encode())

    def _read_headers(self) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = {}
        for _ in range(_MOST_LINES):
            line = self.rfile.readline(_LONGEST_LINE)
            if not line.strip():
                return headers
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        raise _BadRequest(400)

    def _answer(self, request: _Request) -> tuple[int, dict[str, Any]]:
        if request.path != PATH:
            return 404, {}
        try:
            fields = json.loads(request.body)
            if not isinstance(fields, dict):
                raise ValueError("not an object")  # noqa: TRY004, TRY301 - handled like invalid JSON
            return _OK, self.server.hook_handler.handle(fields)
        except (ValueError, RecursionError) as error:  # of the input: our own errors are raised in the main loop
            LOG.warning(f"the gate could not read a request: {error!r:.200}")
            return 400, {"error": f"the gate could not read the request: {error!r}"}
        except (NotFound, Refused) as error:
            return 500, {"error": str(error)}
        except JacklineError as error:
            self.server.on_error(error)
            return 500, {"error": "this attempt is over" if isinstance(error, Fenced) else str(error)}

    def _send(self, status: int, fields: dict[str, Any]) -> None:
        # An empty object would cost the agent an entry in its session, an empty body does not.
        body = b"" if status == _OK and not fields else json.dumps(fields).encode()
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\n{length}\r\n\r\n"
        self.wfile.write(head.encode() + body)
        self.wfile.flush()


def _parse_length(text: bytes) -> int | None:
    """The length of the body; of an impossibly long number only the first digits are read."""
    return int(text.lstrip(b"0")[:_LONGEST_NUMBER] or b"0") if text.isdigit() else None
