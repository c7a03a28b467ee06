"""The door for agents whose hooks speak http: one JSON object in, one out, on loopback. Fails closed.

Whoever cannot show the token, whatever cannot be read and whatever the store refuses is answered with an error or a
denial; the agent's hooks take either for "do not run". Only as much of http is spoken here as a hook needs.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import socket
import socketserver
import sys
import threading
from typing import TYPE_CHECKING, Any

from jackline import faults
from jackline.engine.hooking import Desk
from jackline.errors import Fenced, JacklineError, NotFound, Refused
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Hooks
    from jackline.engine.hooking import Book

log = logging.getLogger("jackline.engine")
PATH = "/hook"
_LOOPBACK = "127.0.0.1"
_LONGEST_REQUEST = 64 * 1024 * 1024
_LONGEST_LINE = 16_384
_LONGEST_NUMBER = 20
_MOST_LINES = 100
_STRANGER_S = 10  # whoever has not shown the token may not keep a thread waiting
_STRANGER_BYTES = 65_536  # nor memory
_MOST_WAITING = 128  # connections at once: an agent runs calls in parallel
_OK = 200
_REASONS = {_OK: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Content Too Large",
            500: "Internal Server Error"}  # fmt: skip


class HttpDoor:
    """A listening socket of one attempt; it closes with the attempt."""

    def __init__(self, ledger: Book, token: str, hooks: Hooks, on_error: Callable[[BaseException], None]) -> None:
        """Listen at once, on a port that the system chooses."""
        self._server = _Server((_LOOPBACK, 0), _Handler)
        self._server.desk, self._server.token, self._server.on_error = Desk(ledger, hooks), token, on_error
        self.address = f"http://{_LOOPBACK}:{self._server.server_address[1]}{PATH}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="door", daemon=True)

    def open(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop answering, also those who are connected: a call that comes later finds no gate and must not run."""
        self._server.hang_up()
        if self._thread.is_alive():
            with contextlib.suppress(OSError):  # wakes it where that is possible: it looks up only twice a second
                self._server.socket.shutdown(socket.SHUT_RDWR)
            self._server.shutdown()
        self._server.server_close()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST_WAITING
    desk: Desk
    token: str
    on_error: Callable[[BaseException], None]

    def __init__(self, *place: Any) -> None:  # noqa: ANN401 - as the base class has it
        self.closed = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(*place)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as the base class has it
        with self._lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:  # noqa: ANN401 - as the base class has it
        with self._lock:
            self._open.discard(request)
        super().close_request(request)

    def hang_up(self) -> None:
        """From now on nobody is answered: neither who is connected nor who still gets in."""
        with self._lock:
            self.closed = True
            for connection in self._open:
                with contextlib.suppress(OSError):  # the agent was faster
                    connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Surface in the main loop instead of on a person's terminal."""
        del request, client_address
        error = sys.exc_info()[1]
        if error is not None:
            self.on_error(error)


class _Request(NamedTuple):
    """One request of somebody who knows the token, its body read already."""

    path: str
    body: bytes


class _Unfit(Exception):
    """What was sent is no request that can be answered, and nobody knows where the next one would begin."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Handler(socketserver.StreamRequestHandler):
    """One connection, kept as long as the agent keeps it."""

    server: _Server
    timeout = _STRANGER_S
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave as one

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):  # the agent is gone; the ledger has what it may do
            while self._serve():
                pass

    def finish(self) -> None:
        with contextlib.suppress(OSError):  # what could not be sent any more
            super().finish()

    def _serve(self) -> bool:
        """Answer one request; False if there are no more."""
        try:
            request = self._read()
        except _Unfit as unfit:
            self._send(unfit.status, {})
            return False
        if request is None or self.server.closed:
            return False
        self._send(*self._answer(request))
        faults.reach("call.answered")
        return True

    def _read(self) -> _Request | None:
        first = self.rfile.readline(_LONGEST_LINE)
        if not first:
            return None
        words = first.split()
        headers = self._headers()
        length = _length(headers.get(b"content-length", b""))
        if len(words) != len(("method", "path", "version")) or words[0] != b"POST" or length is None:
            raise _Unfit(400)
        if length > _LONGEST_REQUEST:
            raise _Unfit(413)
        if not self._knows_token(headers.get(b"authorization", b"")):
            self.rfile.read(min(length, _STRANGER_BYTES))  # so that the answer is not lost with what was left unread
            raise _Unfit(401)
        self.connection.settimeout(None)
        body = self.rfile.read(length)
        return _Request(words[1].decode("latin-1"), body) if len(body) == length else None  # it hung up in the middle

    def _knows_token(self, shown: bytes) -> bool:
        scheme, _, token = shown.partition(b" ")
        return scheme.lower() == b"bearer" and hmac.compare_digest(token, self.server.token.encode())

    def _headers(self) -> dict[bytes, bytes]:
        headers: dict[bytes, bytes] = {}
        for _ in range(_MOST_LINES):
            line = self.rfile.readline(_LONGEST_LINE)
            if not line.strip():
                return headers
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        raise _Unfit(400)

    def _answer(self, request: _Request) -> tuple[int, dict[str, Any]]:
        if request.path != PATH:
            return 404, {}
        try:
            return _OK, self.server.desk.reply(_fields(request.body))
        except (ValueError, RecursionError) as error:  # of what was sent: a fault of ours surfaces in the main loop
            log.warning("the gate could not read a request: %.200r", error)
            return 400, {"error": f"the gate could not read the request: {error!r}"}
        except (NotFound, Refused) as error:
            return 500, {"error": str(error)}
        except JacklineError as error:
            self.server.on_error(error)
            return 500, {"error": "the run is over here" if isinstance(error, Fenced) else str(error)}

    def _send(self, status: int, fields: dict[str, Any]) -> None:
        # To nothing at all there is nothing to note: an empty object costs the agent another entry in its session.
        body = b"" if status == _OK and not fields else json.dumps(fields).encode()
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\n{length}\r\n\r\n"
        self.wfile.write(head.encode() + body)
        self.wfile.flush()


def _length(said: bytes) -> int | None:
    """How long the body is; of a number that no body can have only the beginning is read."""
    return int(said.lstrip(b"0")[:_LONGEST_NUMBER] or b"0") if said.isdigit() else None


def _fields(body: bytes) -> dict[str, Any]:
    fields = json.loads(body)
    if not isinstance(fields, dict):
        raise ValueError("it is not an object")  # noqa: TRY004 - for who reads it, it is the same as bad JSON
    return fields
