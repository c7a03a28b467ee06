"""Starts and ends processes: the supervisor's side of the warden. It does not interpret their output.

Only this module and the warden that it starts spawn processes. Agents, checks and probes run below a warden, so that
none of them outlives a supervisor that is killed or frozen.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Protocol, Self

from jackline.domain.outcome import Exit
from jackline.engine import orphans, warden
from jackline.engine.warden import messages
from jackline.engine.warden.process_tree import PATIENCE_MS
from jackline.errors import JacklineError
from jackline.named import NamedTuple

CHUNK_BYTES = 1 << 18
_PIPE_BYTES = 1024 * 1024  # the Linux default maximum for users
_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(warden.__file__)), "__main__.py")
_SEND_TIMEOUT_S = 30.0
_SPAWN_TIMEOUT_S = 60.0
_CLOSE_TIMEOUT_S = PATIENCE_MS / 1000 + 5

_ADVICE = {
    errno.ENOENT: "a program must be installed and on the PATH",
    errno.EACCES: "this user may not access or execute it",
    errno.E2BIG: "pass long text by standard input or in a file",
    errno.ENOEXEC: "a script needs a first line such as #!/bin/sh",
}


class SpawnFailed(JacklineError):
    """cannot start {detail}"""  # noqa: D400 - it is the message

    def __init__(self, text: str, number: int) -> None:
        self.errno = number
        advice = _ADVICE.get(number)
        super().__init__(f"{text} ({advice})" if advice else text)


class WardenLost(JacklineError):
    """the warden died ({detail}) and its agents were killed with it: resume the run"""  # noqa: D400 - it is the message

    permanent = False


class Chunk(NamedTuple):
    """Bytes that a child wrote."""

    source: str  # stdout or stderr
    data: bytes


class OrderSender(Protocol):
    """Sends orders to the warden."""

    def send_order(self, kind: str, **facts: int) -> None:
        """Send an order; do nothing if the warden is dead."""


class ChildState:
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

    def __init__(self, owner: OrderSender, watch: ChildState, stdout: int, stderr: int) -> None:
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
            ready = wait_until_readable([*self._open, self.exit_fd], timeout_s)
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
        self._owner.send_order("stop", id=self._watch.id, grace_ms=grace_ms)

    def kill(self) -> None:
        self._owner.send_order("kill", id=self._watch.id)

    def wait(self, timeout_s: float | None = None) -> Exit | None:
        self._watch.ended.wait(timeout_s)
        return self._watch.exit

    def close(self) -> None:
        """Close the descriptors; the process is not touched."""
        self._open.clear()
        close_all(self.stdout, self.stderr, self._watch.exit_fd)
        self.stdout = self.stderr = self._watch.exit_fd = -1


class Warden:
    """The supervisor's handle on its warden: sends orders over a socket, receives reports in a thread."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, words: int) -> None:
        self._process, self._control, self._words = process, control, words
        self._marker: dict[str, str] = {}
        self._lock = threading.Lock()  # guards the next three attributes
        self._watches: dict[int, ChildState] = {}
        self._recorded: list[tuple[int, int]] = []
        self._is_closing = False
        self._is_gone = threading.Event()
        self._next_id = 0
        self._send_lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, name="warden", daemon=True)

    @classmethod
    def start(
        cls,
        *,
        deadline_ms: int,
        lock_fd: int | None = None,
        marker: Mapping[str, str],
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Start a warden that kills everything at `deadline_ms` on the boot clock, unless renewed.

        The marker is set in the environment of every process below. It must name the attempt, not only the run: if
        the warden is lost, all processes with the marker are killed, and the next attempt may be running. `environ` is
        added to the environment of the warden and its guards: no process below can change it there.
        """
        ours, theirs = socket.socketpair()
        words = create_memory_file(b"")
        kept = [theirs.fileno()] + ([] if lock_fd is None else [lock_fd])
        numbers = [theirs.fileno(), -1 if lock_fd is None else lock_fd, deadline_ms]
        command = [sys.executable, "-I", "-S", "-X", "utf8", _PROGRAM, *map(str, numbers)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                pass_fds=kept,
                env={**os.environ, **marker, **environ},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            close_all(words)
            raise _build_failure("the warden", error) from error
        finally:
            theirs.close()
        ours.settimeout(_SEND_TIMEOUT_S)
        handle = cls(process, ours, words)
        handle._marker.update(marker)
        handle._listener.start()
        return handle

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; the codes are in `warden.messages`."""
        return self._process.returncode if self._is_gone.is_set() else None

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, *, stdin: bytes | None = None) -> Child:
        """Start a program as the leader of a new session; `stdin` None is /dev/null."""
        fds: list[int] = []
        try:
            source = os.open(os.devnull, os.O_RDONLY) if stdin is None else create_memory_file(stdin)
            fds.append(source)
            stdout, out = create_pipe(fds)
            stderr, err = create_pipe(fds)
            watch = self._register()
        except (OSError, WardenLost) as error:
            close_all(*fds)
            raise _build_failure(argv[0], error) from error
        child = Child(self, watch, stdout, stderr)
        try:
            self._order_spawn(watch, argv, {**env, **self._marker}, cwd, [source, out, err])
        except BaseException:
            child.kill()
            child.close()
            raise
        finally:
            close_all(source, out, err)
        return child

    def _order_spawn(
        self, watch: ChildState, argv: Sequence[str], env: Mapping[str, str], cwd: str, fds: list[int]
    ) -> None:
        order = {
            "type": "spawn",
            "id": watch.id,
            "argv": [_to_wire_text(word) for word in argv],
            "env": {_to_wire_text(name): _to_wire_text(value) for name, value in env.items()},
            "cwd": _to_wire_text(cwd),
        }
        self._send(order, fds)
        if not watch.answered.wait(_SPAWN_TIMEOUT_S):
            raise SpawnFailed(f"{argv[0]}: no answer within {_SPAWN_TIMEOUT_S:.0f} s", errno.ETIMEDOUT)
        if watch.failure is not None:
            raise watch.failure
        if not watch.pid:
            raise WardenLost(self.read_last_words())

    def renew(self, deadline_ms: int) -> None:
        self._send({"type": "renew", "deadline_ms": deadline_ms})

    def sweep(self) -> None:
        """Try again to kill the processes below the warden that belong to no living child."""
        self.send_order("sweep", id=0)

    def send_order(self, kind: str, **facts: int) -> None:
        """Send an order; do nothing if the warden is dead, because then no process is left."""
        try:
            self._send({"type": kind, **facts})
        except WardenLost:
            return

    def close(self) -> None:
        """Kill all processes below the warden, and the warden; return when they are dead."""
        with self._lock:
            self._is_closing = True
        self.send_order("quit")
        if not self._is_gone.wait(_CLOSE_TIMEOUT_S):
            self._process.kill()
        self._listener.join()
        self._control.close()
        close_all(self._words)
        self._words = -1

    def read_last_words(self) -> str:
        """The last line that the warden wrote before it died."""
        lines = os.pread(self._words, 65536, 0).split(b"\n") if self._words >= 0 else []
        texts = [line.decode(errors="replace") for line in lines if line.strip()]
        return texts[-1] if texts else f"exit code {self._process.poll()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _register(self) -> ChildState:
        with self._lock:
            if self._is_gone.is_set() or self._is_closing:
                raise WardenLost(self.read_last_words())
            self._next_id += 1
            watch = self._watches[self._next_id] = ChildState(self._next_id)
            return watch

    def _send(self, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
        frame = messages.pack_message(message)
        try:
            with self._send_lock:
                if fds:
                    socket.send_fds(self._control, [frame[:1]], fds)
                self._control.sendall(frame[bool(fds) :])
        except OSError as error:
            self._process.kill()  # half an order may have been sent, after which the warden would misread the next
            raise WardenLost(str(error)) from error

    def _listen(self) -> None:
        try:
            received = bytearray()
            while data := self._receive():
                received += data
                while (message := messages.next_message(received)) is not None:
                    self._handle_report(message)
        except BaseException:
            self._process.kill()  # no report would be read any more
            raise
        finally:
            self._handle_death()

    def _receive(self) -> bytes:
        while True:
            try:
                return self._control.recv(65536)
            except TimeoutError:  # the timeout is for sending
                continue
            except OSError:
                return b""

    def _handle_report(self, message: dict[str, int | None]) -> None:
        with self._lock:
            watch = self._watches.get(message.get("id") or 0)
        if watch is None:
            return
        match str(message["type"]):
            case "spawned":
                watch.pid, watch.start_ticks = message["pid"] or 0, message["start_ticks"]
                if watch.start_ticks is not None:
                    with self._lock:
                        self._recorded.append((watch.pid, watch.start_ticks))
                watch.answered.set()
            case "spawn_failed":
                watch.failure = SpawnFailed(str(message["text"]), message["errno"] or 0)
                self._end(watch, Exit(code=None, signal=None, leftovers=0, lost=False))
            case "exited":
                ending = Exit(
                    code=message["code"],
                    signal=message["signal"],
                    leftovers=message["leftovers"] or 0,
                    lost=bool(message.get("lost")),
                    survivors=message["survivors"] or 0,
                )
                self._end(watch, ending)

    def _end(self, watch: ChildState, ending: Exit) -> None:
        with self._lock:
            del self._watches[watch.id]
        watch.end(ending)

    def _handle_death(self) -> None:
        """Wait until the warden is dead, kill the processes it leaves behind, then report their end, come what may."""
        ending = Exit(code=None, lost=True)
        try:
            try:
                self._process.wait(_CLOSE_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            ending = self._end_leftovers()
        finally:
            with self._lock:
                self._is_gone.set()
                left = list(self._watches.values())
            for watch in left:
                self._end(watch, ending)

    def _end_leftovers(self) -> Exit:
        if self._is_closing and self._process.returncode == messages.EXIT_QUIT:
            return Exit(code=None, signal=signal.SIGKILL, leftovers=0, lost=False)
        try:
            killed = orphans.kill_orphans(self._marker, recorded=self._recorded)
        except orphans.OrphansRemain as remain:
            return Exit(code=None, signal=None, leftovers=0, lost=True, survivors=remain.detail.count(",") + 1)
        return Exit(code=None, signal=None, leftovers=killed, lost=True)


def _to_wire_text(text: str) -> str:
    """Encode bytes that are not UTF-8 as surrogates: the warden runs in UTF-8, whatever our locale is."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def _build_failure(subject: str, error: OSError | WardenLost) -> JacklineError:
    if isinstance(error, WardenLost):
        return error
    return SpawnFailed(f"{subject}: {error.strerror}", error.errno or 0)


def create_memory_file(data: bytes) -> int:
    """Return an anonymous file with the data, which a program can read at any time."""
    if sys.platform == "linux":
        fd = os.memfd_create("jackline")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def create_pipe(opened: list[int]) -> tuple[int, int]:
    """Return a large pipe: some CLIs exit before all of their output is read."""
    ends = os.pipe()
    opened.extend(ends)
    if sys.platform == "linux":
        with suppress(OSError):  # the user's limit for large pipes is reached
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return ends


def close_all(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def wait_until_readable(fds: Sequence[int], timeout_s: float | None) -> list[int]:
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000)]
