"""The fake model as a server on loopback: hears requests and hands out the replies. Knows no protocol itself.

It never looks at a key, never writes one down, and never calls out.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from jackline.fake.handler import Handler
from jackline.fake.wires import load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.fake.script import Reply, Script
    from jackline.fake.wire import Asked, Wire

_LOOPBACK = "127.0.0.1"
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT


class FakeModel:
    """Serves from when it is entered until it is left; after that no connection and no thread of it is there."""

    def __init__(
        self, script: Script, log: str | None = None, wires: Sequence[Wire] | None = None, port: int = 0
    ) -> None:
        """`log` is a file that gets one JSON line per request; `wires` are all there are, unless told otherwise."""
        self.script = script
        self.wires = tuple(load() if wires is None else wires)
        self.hanging = threading.Event()  # a reply that hangs has begun to
        self._log = log
        if log is not None:
            os.close(os.open(log, _APPEND, 0o600))  # now, because nobody hears of an error in a thread
        self._asked: list[Asked] = []
        self._more = threading.Condition()
        self._server = _Server((_LOOPBACK, port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="fake-model")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every request, also those that hang, and wait for their threads."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Where it listens: http://127.0.0.1:PORT."""
        return f"http://{_LOOPBACK}:{self._server.server_port}"

    @property
    def asked(self) -> list[Asked]:
        """Every request so far, in the order of arrival, also those without tools."""
        with self._more:
            return list(self._asked)

    def wait(self, count: int, timeout: float = 30) -> list[Asked]:
        """The requests that carried tools, as soon as there are `count` of them; TimeoutError if they do not come."""
        with self._more:
            if not self._more.wait_for(lambda: len(self._with_tools()) >= count, timeout):
                raise TimeoutError(f"{len(self._with_tools())} of {count} requests came within {timeout} s")
            return self._with_tools()

    def _with_tools(self) -> list[Asked]:
        return [asked for asked in self._asked if asked.tools]

    def note(self, asked: Asked) -> Reply:
        """Remember a request and take its reply; both at once, so that the order of the two is the same."""
        with self._more:
            self._asked.append(asked)
            if self._log is not None:
                _append(self._log, len(self._asked), asked)
            reply = self.script.take(asked)
            self._more.notify_all()
            return reply


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for every one of them
    request_queue_size = 128

    def __init__(self, place: tuple[str, int], model: FakeModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(place, Handler)

    def server_bind(self) -> None:
        """Bind, without the look-up of a host name that the base class makes: that can block without a network."""
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
        """Wake every thread that reads from or writes to a client: its connection is over."""
        with self._lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # the client was faster


def _append(log: str, number: int, asked: Asked) -> None:
    tools = [tool.name for tool in asked.tools]
    line = json.dumps({"number": number, **asked._asdict(), "tools": tools})
    with os.fdopen(os.open(log, _APPEND, 0o600), "w", encoding="utf-8") as file:  # prompts are for their owner only
        file.write(line + "\n")
