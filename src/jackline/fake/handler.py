"""One connection to the fake model: reads HTTP, plays the reply, drops and hangs as scripted. Decides nothing."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import zlib
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, cast

from jackline.domain.events import NOTHING
from jackline.errors import ScriptError
from jackline.fake.tools import answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.fake.script import Reply
    from jackline.fake.server import FakeModel
    from jackline.fake.wire import Asked, Wire

_JSON = "application/json"
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing sends a reset instead of an end


class Handler(BaseHTTPRequestHandler):
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
        if wire := next((wire for wire in wires if wire.owns(self.command, path)), None):
            self._handle_request(wire, path, body)
            return
        pages = (wire.page(self.command, path) for wire in wires)
        page = next((page for page in pages if page is not None), None)
        if page is None:
            self._send_json(HTTPStatus.NOT_FOUND, {"error": {"message": f"the fake model has no {path}"}})
        else:
            self._send_json(HTTPStatus.OK, page)

    def _handle_request(self, wire: Wire, path: str, body: bytes) -> None:
        try:
            asked = wire.read(path, json.loads(body))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            self._send_json(HTTPStatus.BAD_REQUEST, wire.error(400, f"the request cannot be read: {error!r}", ""))
            return
        self._play(wire, self._model.note(asked), asked)

    def _play(self, wire: Wire, reply: Reply, asked: Asked) -> None:
        if reply.drop == "before":
            self._reset()
        elif reply.hang == "before":
            self._hang()
        elif reply.status >= HTTPStatus.BAD_REQUEST:
            self._send_json(reply.status, wire.error(reply.status, reply.message, reply.kind), reply.headers)
        else:
            self._send_answer(wire, reply, asked)

    def _send_answer(self, wire: Wire, reply: Reply, asked: Asked) -> None:
        try:
            content = answer(reply, asked)
        except ScriptError as error:
            self._send_json(HTTPStatus.INTERNAL_SERVER_ERROR, wire.error(500, str(error), ""))
            return
        if asked.stream:
            self._send_stream(wire.stream_type(), list(wire.stream(content)), reply)
        else:
            self._send_whole(json.dumps(wire.whole(content)).encode(), reply)

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

    def _send_whole(self, body: bytes, reply: Reply) -> None:
        self._send_head(reply.status, {"Content-Type": _JSON, "Content-Length": str(len(body)), **reply.headers})
        self.wfile.write(body[: len(body) // 2])
        if not self._interrupt(reply):
            self.wfile.write(body[len(body) // 2 :])

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

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.connection.close()
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
