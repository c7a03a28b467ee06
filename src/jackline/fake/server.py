"""The fake model as a server on loopback: takes requests and returns the scripted replies. Knows no protocol itself.

It never reads or stores a key, and never connects anywhere.
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
    """Serves inside its `with` block; after it, no connection and no thread is left."""

    def __init__(
        self, script: Script, log: str | None = None, wires: Sequence[Wire] | None = None, port: int = 0
    ) -> None:
        """`log` is a file that gets one JSON line per request; `wires` defaults to all wires."""
        self.script = script
        self.wires = tuple(load() if wires is None else wires)
        self.hanging = threading.Event()  # set when a reply hangs
        self._log = log
        if log is not None:
            os.close(os.open(log, _APPEND, 0o600))  # now, because an error in a thread would be lost
        self._asked: list[Asked] = []
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
    def asked(self) -> list[Asked]:
        """Every request so far, in the order of arrival, including those without tools."""
        with self._more:
            return list(self._asked)

    def wait(self, count: int, timeout: float = 30) -> list[Asked]:
        """Wait for `count` requests with tools, and return them; TimeoutError if they do not arrive."""
        with self._more:
            if not self._more.wait_for(lambda: len(self._with_tools()) >= count, timeout):
                raise TimeoutError(f"{len(self._with_tools())} of {count} requests arrived within {timeout} s")
            return self._with_tools()

    def _with_tools(self) -> list[Asked]:
        return [asked for asked in self._asked if asked.tools]

    def note(self, asked: Asked) -> Reply:
        """Record a request and take its reply, atomically, so that both have the same order."""
        with self._more:
            self._asked.append(asked)
            if self._log is not None:
                _append_log(self._log, len(self._asked), asked)
            reply = self.script.take(asked)
            self._more.notify_all()
            return reply


class _ModelServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for all of them
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], model: FakeModel) -> None:
        self.model = model
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(address, Handler)

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


def _append_log(log: str, number: int, asked: Asked) -> None:
    tools = [tool.name for tool in asked.tools]
    line = json.dumps({"number": number, **asked._asdict(), "tools": tools})
    with os.fdopen(os.open(log, _APPEND, 0o600), "w", encoding="utf-8") as file:  # prompts are private
        file.write(line + "\n")
