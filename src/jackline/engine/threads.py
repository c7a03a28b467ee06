"""Threads whose exceptions are raised again in the main loop, and the end of the thread of a server."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from socketserver import TCPServer


def start_thread(name: str, work: Callable[[], None], post: Callable[[BaseException], None]) -> threading.Thread:
    """Run `work` in a new thread; `post` receives whatever it raises."""

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - not swallowed: the main loop raises it again
            post(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def stop_server(server: TCPServer, thread: threading.Thread) -> None:
    """End `serve_forever`, which this thread runs if it was started, and close the socket."""
    if thread.is_alive():
        with contextlib.suppress(OSError):  # wakes the thread, which otherwise polls twice a second
            server.socket.shutdown(socket.SHUT_RDWR)
        server.shutdown()
    server.server_close()
