"""The fake model as a server on loopback: takes requests and returns the scripted replies. Knows no protocol itself.

It never reads or stores a key, and never connects anywhere.
"""

from __future__ import annotations

import gzip
import json
import os
import socket
import struct
import threading
import zlib
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, cast

from jackline.domain.events import NOTHING
from jackline.errors import ScriptError
from jackline.fake_model.tool_resolver import build_answer
from jackline.fake_model.wires import load_wires

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.fake_model.script import Reply, Script
    from jackline.fake_model.wire import ModelRequest, Wire

_LOOPBACK = "127.0.0.1"
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_OVERLOADED = 529
_JSON = "application/json"
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing sends a reset instead of an end


class FakeModel:
    """Serves inside its `with` block; after it, no connection and no thread is left."""

    def __init__(
        self, script: Script, log: str | None = None, wires: Sequence[Wire] | None = None, port: int = 0
    ) -> None:
        """`log` is a file that gets one JSON line per request; `wires` defaults to all wires."""
        self.script = script
        self.wires = tuple(load_wires() if wires is None else wires)
        self.hanging = threading.Event()  # set when a reply hangs
        self._log = log
        if log is not None:
            os.close(os.open(log, _APPEND, 0o600))  # now, because an error in a thread would be lost
        self._asked: list[ModelRequest] = []
        self._more = threading.Condition()
        self._server = _ModelServer((_LOOPBACK, port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="fake-model")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every request, even those that hang, and wait for their threads."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Its address: http://127.0.0.1:PORT."""
        return f"http://{_LOOPBACK}:{self._server.server_port}"

    @property
    def asked(self) -> list[ModelRequest]:
        """Every request so far, in the order of arrival, including those without tools."""
        with self._more:
            return list(self._asked)

    def wait(self, count: int, timeout: float = 30) -> list[ModelRequest]:
        """Wait for `count` requests with tools, and return them; TimeoutError if they do not arrive."""
        with self._more:
            if not self._more.wait_for(lambda: len(self._with_tools()) >= count, timeout):
                raise TimeoutError(f"{len(self._with_tools())} of {count} requests arrived within {timeout} s")
            return self._with_tools()

    def _with_tools(self) -> list[ModelRequest]:
        return [asked for asked in self._asked if asked.tools]

    def take_reply(self, asked: ModelRequest) -> Reply:
        """Record a request and take its reply, atomically, so that both have the same order."""
        with self._more:
            self._asked.append(asked)
            if self._log is not None:
                tools = [tool.name for tool in asked.tools]
                line = json.dumps({"number": len(self._asked), **asked._asdict(), "tools": tools})
                with os.fdopen(os.open(self._log, _APPEND, 0o600), "w", encoding="utf-8") as file:
                    file.write(line + "\n")
            reply = self.script.next_reply(asked)
            self._more.notify_all()
            return reply


class _ModelServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for all of them
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], model: FakeModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, FakeModelHandler)

    def server_bind(self) -> None:
        """Bind without the base class's host name lookup, which can block without a network."""
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.socket.getsockname()[:2]

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, peer = super().get_request()
        with self._lock:
            self._open.add(connection)
        return connection, peer

    def close_request(self, request: Any) -> None:  # noqa: ANN401 - as the base class has it
        with self._lock:
            self._open.discard(request)
        super().close_request(request)

    def hang_up(self) -> None:
        """Shut every connection down, to wake the threads that read or write."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client closed it first


class FakeModelHandler(BaseHTTPRequestHandler):
    """Speaks HTTP/1.1 with one client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # every piece of a stream leaves at once

    @property
    def _model(self) -> FakeModel:
        return cast("FakeModel", self.server.model)  # type: ignore[attr-defined]

    def handle(self) -> None:
        """Serve requests; a client that disconnects in the middle is not an error."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing here: the model's own log has the requests, and never a header."""

    def do_HEAD(self) -> None:
        self._send(HTTPStatus.OK, b"", {})

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        path = self.path.partition("?")[0]
        try:
            body = self._read_body()
        except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            self.close_connection = True  # the start of the next request is unknown
            self._send_json(HTTPStatus.BAD_REQUEST, {"error": {"message": f"the body cannot be read: {error}"}})
            return
        wires = self._model.wires
        if wire := next((wire for wire in wires if wire.handles(self.command, path)), None):
            self._answer(wire, path, body)
            return
        pages = (wire.build_page(self.command, path) for wire in wires)
        page = next((page for page in pages if page is not None), None)
        if page is None:
            self._send_json(HTTPStatus.NOT_FOUND, {"error": {"message": f"the fake model has no {path}"}})
        else:
            self._send_json(HTTPStatus.OK, page)

    def _answer(self, wire: Wire, path: str, body: bytes) -> None:
        try:
            asked = wire.parse_request(path, json.loads(body))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self._send_json(HTTPStatus.BAD_REQUEST, wire.build_error(400, f"the request cannot be read: {error!r}", ""))
            return
        reply = self._model.take_reply(asked)
        if reply.drop == "before":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.connection.close()
            self.close_connection = True
        elif reply.hang == "before":
            self._hang()
        elif reply.status >= HTTPStatus.BAD_REQUEST or (reply.kind and not asked.stream):
            status = _OVERLOADED if reply.status == HTTPStatus.OK else reply.status
            self._send_json(status, wire.build_error(status, reply.message, reply.kind), reply.headers)
        else:
            self._send_answer(wire, reply, asked)

    def _send_answer(self, wire: Wire, reply: Reply, asked: ModelRequest) -> None:
        try:
            content = build_answer(reply, asked)
        except ScriptError as error:
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, wire.build_error(500, str(error), ""))
            return
        if asked.stream:
            pieces = list(wire.stream_response(content))
            if reply.kind:  # an error after the announcement, although the status was 200
                broken = json.dumps(wire.build_error(HTTPStatus.OK, reply.message, reply.kind))
                pieces = [pieces[0], f"event: error\ndata: {broken}\n\n".encode()]
            self._send_stream(wire.stream_type(), pieces, reply)
            return
        body = json.dumps(wire.build_response(content)).encode()
        self._send_head(reply.status, {"Content-Type": _JSON, "Content-Length": str(len(body)), **reply.headers})
        self.wfile.write(body[: len(body) // 2])
        if not self._interrupt(reply):
            self.wfile.write(body[len(body) // 2 :])

    def _send_stream(self, content_type: str, pieces: Sequence[bytes], reply: Reply) -> None:
        self._send_head(reply.status, {"Content-Type": content_type, "Transfer-Encoding": "chunked", **reply.headers})
        middle = min(len(pieces) - 1, max(2, len(pieces) // 2))  # after the announcement and some of its text
        for piece in pieces[:middle]:
            self._write_chunk(piece)
        if self._interrupt(reply):
            return
        for piece in pieces[middle:]:
            self._write_chunk(piece)
        self._write_chunk(b"")

    def _interrupt(self, reply: Reply) -> bool:
        """Hang or drop the connection in the middle of the answer, if scripted; returns whether it did."""
        if reply.hang:
            self._hang()
        elif reply.drop:
            self.close_connection = True  # the client sees the end before the announced length
        return bool(reply.hang or reply.drop)

    def _hang(self) -> None:
        """Send nothing more until the client disconnects or the model is closed."""
        self._model.hanging.set()
        while self.connection.recv(1):
            pass
        self.close_connection = True

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            body = b"".join(self._read_chunks())
        else:
            body = self.rfile.read(max(0, int(self.headers.get("Content-Length") or 0)))
        match self.headers.get("Content-Encoding", "identity").lower():
            case "identity":
                return body
            case "gzip":
                return gzip.decompress(body)
            case other:
                raise ValueError(f"{other} is not supported")

    def _read_chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers

    def _write_chunk(self, piece: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _send_json(self, status: int, fields: Mapping[str, Any], headers: Mapping[str, str] = NOTHING) -> None:
        self._send(status, json.dumps(fields).encode(), {"Content-Type": _JSON, **headers})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self._send_head(status, {"Content-Length": str(len(body)), **headers})
        self.wfile.write(body)

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
