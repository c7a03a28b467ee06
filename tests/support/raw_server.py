"""A server on loopback that answers one connection with the given bytes, whatever they are."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SECONDS = 20.0


@contextmanager
def serve_bytes(parts: Sequence[bytes], pause_s: float) -> Iterator[tuple[str, threading.Event]]:
    """Send the parts, with a pause after each, then nothing; the event is set when the client has left."""
    is_left = threading.Event()

    def answer() -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(_SECONDS)
                connection.recv(65_536)
                with suppress(OSError):
                    for part in parts:
                        connection.sendall(part)
                        time.sleep(pause_s)
                    while connection.recv(65_536):
                        pass
            is_left.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(_SECONDS)
        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", is_left
        thread.join(_SECONDS)
