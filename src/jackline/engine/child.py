"""A child process as the supervisor sees it: output, end, and the orders for it. Starting it is the warden's work."""

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
    """Some bytes a child has written."""

    source: str  # stdout or stderr
    data: bytes


class Owner(Protocol):
    """Whoever passes orders on to the warden."""

    def tell(self, kind: str, **facts: int) -> None:
        """Send an order that is void when there is nothing left to end."""


class Watch:
    """What the listener knows about one child; events are set once, after the fields."""

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
        os.close(self._bell)  # first: whoever is woken below may count on every descriptor of ours being closed
        self.answered.set()
        self.ended.set()


class Child:
    """One process started by the warden, with the reading ends of its output."""

    def __init__(self, owner: Owner, watch: Watch, stdout: int, stderr: int) -> None:
        self._owner, self._watch = owner, watch
        self.stdout, self.stderr = stdout, stderr
        self._open = {stdout: "stdout", stderr: "stderr"}

    @property
    def pid(self) -> int:
        return self._watch.pid

    @property
    def start_ticks(self) -> int | None:
        """With the pid it names the process for the whole boot."""
        return self._watch.start_ticks

    @property
    def exit_fd(self) -> int:
        """A descriptor that poll(2) reports when the child has ended."""
        return self._watch.exit_fd

    @property
    def drained(self) -> bool:
        """True when there is nothing more to read."""
        return not self._open

    def read(self, timeout_s: float | None = None) -> list[Chunk]:
        """Wait for output; nothing means that time is up, or that the child is drained."""
        chunks: list[Chunk] = []
        while self._open and not chunks:
            ready = readable([*self._open, self.exit_fd], timeout_s)
            if not ready:
                break
            chunks = [self._take(fd) for fd in ready if fd in self._open]
            if not chunks:  # ended and silent: a pipe that is still open is held by a stranger
                self._open.clear()
            chunks = [chunk for chunk in chunks if chunk.data]
        return chunks

    def _take(self, fd: int) -> Chunk:
        data = os.read(fd, CHUNK_BYTES)
        return Chunk(self._open[fd] if data else self._open.pop(fd), data)

    def stop(self, grace_ms: int) -> None:
        """SIGTERM to the whole tree, and after the grace SIGKILL."""
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
