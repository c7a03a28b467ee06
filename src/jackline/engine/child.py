"""A child process from the supervisor's side: its output, its end, and orders for it. The warden starts it."""

from __future__ import annotations

import os
import threading
from typing import Protocol

from jackline.domain.outcome import Exit
from jackline.engine.descriptors import close, readable
from jackline.errors import JacklineError
from jackline.named import NamedTuple

CHUNK_BYTES = 1 << 18


class Chunk(NamedTuple):
    """Bytes that a child wrote."""

    source: str  # stdout or stderr
    data: bytes


class Owner(Protocol):
    """Sends orders to the warden."""

    def tell(self, kind: str, **facts: int) -> None:
        """Send an order; do nothing if the warden is dead."""


class Watch:
    """The state of one child, set by the listener thread; events are set once, after the fields."""

    def __init__(self, id: int) -> None:
        self.id = id
        self.answered = threading.Event()
        self.ended = threading.Event()
        self.pid = 0
        self.start_ticks: int | None = None
        self.failure: JacklineError | None = None
        self.exit: Exit | None = None
        self.exit_fd, self._bell = os.pipe()

    def end(self, ending: Exit) -> None:
        self.exit = ending
        os.close(self._bell)  # first: a thread woken below may rely on this descriptor being closed
        self.answered.set()
        self.ended.set()


class Child:
    """A process started by the warden, with the read ends of its output pipes."""

    def __init__(self, owner: Owner, watch: Watch, stdout: int, stderr: int) -> None:
        self._owner, self._watch = owner, watch
        self.stdout, self.stderr = stdout, stderr
        self._open = {stdout: "stdout", stderr: "stderr"}

    @property
    def pid(self) -> int:
        return self._watch.pid

    @property
    def start_ticks(self) -> int | None:
        """With the pid it identifies the process until the next boot."""
        return self._watch.start_ticks

    @property
    def exit_fd(self) -> int:
        """A descriptor that becomes readable when the child has ended."""
        return self._watch.exit_fd

    @property
    def drained(self) -> bool:
        """True when there is nothing more to read."""
        return not self._open

    def read(self, timeout_s: float | None = None) -> list[Chunk]:
        """Wait for output; an empty list means timeout, or that the child is drained."""
        chunks: list[Chunk] = []
        while self._open and not chunks:
            ready = readable([*self._open, self.exit_fd], timeout_s)
            if not ready:
                break
            chunks = [self._read_chunk(fd) for fd in ready if fd in self._open]
            if not chunks:  # ended and drained: a pipe that is still open belongs to another process
                self._open.clear()
            chunks = [chunk for chunk in chunks if chunk.data]
        return chunks

    def _read_chunk(self, fd: int) -> Chunk:
        data = os.read(fd, CHUNK_BYTES)
        return Chunk(self._open[fd] if data else self._open.pop(fd), data)

    def stop(self, grace_ms: int) -> None:
        """Send SIGTERM to the whole tree, and SIGKILL after the grace period."""
        self._owner.tell("stop", id=self._watch.id, grace_ms=grace_ms)

    def kill(self) -> None:
        self._owner.tell("kill", id=self._watch.id)

    def wait(self, timeout_s: float | None = None) -> Exit | None:
        self._watch.ended.wait(timeout_s)
        return self._watch.exit

    def close(self) -> None:
        """Close the descriptors; the process is not touched."""
        self._open.clear()
        close(self.stdout, self.stderr, self._watch.exit_fd)
        self.stdout = self.stderr = self._watch.exit_fd = -1
