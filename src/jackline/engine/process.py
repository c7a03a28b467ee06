"""Start and end processes: the supervisor's side of the warden. It never asks what their output means.

Nothing else in jackline spawns or kills. An agent, a check and a probe all run below a warden, so that not
one of them outlives a supervisor that was killed or frozen.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from jackline.clock import boot_ms
from jackline.domain.outcome import Exit
from jackline.engine import leftovers, warden
from jackline.errors import JacklineError

_SEND_TIMEOUT_S = 30.0
_SPAWN_TIMEOUT_S = 60.0
_CLOSE_TIMEOUT_S = warden.PATIENCE_MS / 1000 + 5
_CHUNK = 1 << 18
_COMMAND_GRACE_MS = 10_000

_ADVICE = {
    errno.ENOENT: "is it there? a program must be installed, and on the PATH",
    errno.EACCES: "this user may not enter or execute it",
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
    """the warden is gone ({detail}) and its agents were ended with it: resume the run"""  # noqa: D400 - it is the message

    permanent = False


class Chunk(NamedTuple):
    """Some bytes a child has written."""

    source: str  # stdout or stderr
    data: bytes


class _Watch:
    """What the listener knows about one child; events are set once, after the fields."""

    def __init__(self, id: int) -> None:
        self.id = id
        self.answered = threading.Event()
        self.ended = threading.Event()
        self.pid = 0
        self.start_ticks: int | None = None
        self.failure: SpawnFailed | None = None
        self.exit: Exit | None = None
        self.exit_fd, self._bell = os.pipe()

    def end(self, ending: Exit) -> None:
        self.exit = ending
        self.answered.set()
        self.ended.set()
        os.close(self._bell)


class Child:
    """One process started by the warden, with the reading ends of its output."""

    def __init__(self, owner: Warden, watch: _Watch, stdout: int, stderr: int) -> None:
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
            ready = _poll([*self._open, self.exit_fd], timeout_s)
            if not ready:
                break
            chunks = [self._take(fd) for fd in ready if fd in self._open]
            if not chunks:  # ended and silent: a pipe that is still open is held by a stranger
                self._open.clear()
            chunks = [chunk for chunk in chunks if chunk.data]
        return chunks

    def _take(self, fd: int) -> Chunk:
        data = os.read(fd, _CHUNK)
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
        _close(self.stdout, self.stderr, self._watch.exit_fd)
        self.stdout = self.stderr = self._watch.exit_fd = -1


class Warden:
    """The supervisor's handle on its warden: orders go down a socket, a thread listens for the reports."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, words: int) -> None:
        self._process, self._control, self._words = process, control, words
        self._marker: dict[str, str] = {}
        self._lock = threading.Lock()  # guards the three below
        self._watches: dict[int, _Watch] = {}
        self._recorded: list[tuple[int, int]] = []
        self._is_closing = False
        self._is_gone = threading.Event()
        self._next_id = 0
        self._send_lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, name="warden", daemon=True)

    @classmethod
    def start(cls, *, deadline_ms: int, lock_fd: int | None = None, marker: Mapping[str, str]) -> Self:
        """Start a warden that ends everything at `deadline_ms` on the boot clock, unless renewed.

        The marker is put into the environment of all that runs below. It must name the attempt, not only
        the run: if the warden is lost all with the marker are killed, and the next attempt may be at work.
        """
        ours, theirs = socket.socketpair()
        words = _memory_file(b"")
        kept = [theirs.fileno()] + ([] if lock_fd is None else [lock_fd])
        numbers = [theirs.fileno(), -1 if lock_fd is None else lock_fd, deadline_ms]
        command = [sys.executable, "-I", "-S", "-X", "utf8", warden.__file__, *map(str, numbers)]
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=words,
                pass_fds=kept,
                env={**os.environ, **marker},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            _close(words)
            raise _as_failure("the warden", error) from error
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
        """None while it lives; the numbers stand in warden.py."""
        return self._process.returncode if self._is_gone.is_set() else None

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, *, stdin: bytes | None = None) -> Child:
        """Start a program as the leader of a session of its own; `stdin` None is /dev/null."""
        fds: list[int] = []
        try:
            source = os.open(os.devnull, os.O_RDONLY) if stdin is None else _memory_file(stdin)
            fds.append(source)
            stdout, out = _pipe(fds)
            stderr, err = _pipe(fds)
            watch = self._register()
        except (OSError, WardenLost) as error:
            _close(*fds)
            raise _as_failure(argv[0], error) from error
        child = Child(self, watch, stdout, stderr)
        try:
            self._order_spawn(watch, argv, {**env, **self._marker}, cwd, [source, out, err])
        except BaseException:
            child.kill()
            child.close()
            raise
        finally:
            _close(source, out, err)
        return child

    def _order_spawn(
        self, watch: _Watch, argv: Sequence[str], env: Mapping[str, str], cwd: str, fds: list[int]
    ) -> None:
        order = {
            "type": "spawn",
            "id": watch.id,
            "argv": [_wire(word) for word in argv],
            "env": {_wire(name): _wire(value) for name, value in env.items()},
            "cwd": _wire(cwd),
        }
        self._send(order, fds)
        if not watch.answered.wait(_SPAWN_TIMEOUT_S):
            raise SpawnFailed(f"{argv[0]}: no answer within {_SPAWN_TIMEOUT_S:.0f} s", errno.ETIMEDOUT)
        if watch.failure is not None:
            raise watch.failure
        if not watch.pid:
            raise WardenLost(self.last_words())

    def renew(self, deadline_ms: int) -> None:
        self._send({"type": "renew", "deadline_ms": deadline_ms})

    def sweep(self) -> None:
        """Have another try at what survived earlier: all below the warden that belongs to no living child."""
        self.tell("sweep", id=0)

    def tell(self, kind: str, **facts: int) -> None:
        """Send an order that is void when the warden is gone, as then nothing is left to end."""
        try:
            self._send({"type": kind, **facts})
        except WardenLost:
            return

    def close(self) -> None:
        """End all that runs below the warden, and the warden; returns when they are dead."""
        with self._lock:
            self._is_closing = True
        self.tell("quit")
        if not self._is_gone.wait(_CLOSE_TIMEOUT_S):
            self._process.kill()
        self._listener.join()
        self._control.close()
        _close(self._words)
        self._words = -1

    def last_words(self) -> str:
        """Give the last line the warden wrote before it died, for a person who looks for the cause."""
        lines = os.pread(self._words, 65536, 0).split(b"\n") if self._words >= 0 else []
        said = [line.decode(errors="replace") for line in lines if line.strip()]
        return said[-1] if said else f"exit code {self._process.poll()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _register(self) -> _Watch:
        with self._lock:
            if self._is_gone.is_set() or self._is_closing:
                raise WardenLost(self.last_words())
            self._next_id += 1
            watch = self._watches[self._next_id] = _Watch(self._next_id)
            return watch

    def _send(self, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
        body = json.dumps(message).encode()
        header = warden.HEADER.pack(len(body))
        try:
            with self._send_lock:
                if fds:
                    socket.send_fds(self._control, [header[:1]], fds)
                self._control.sendall(header[bool(fds) :] + body)
        except OSError as error:
            self._process.kill()  # half an order may be on its way: a warden that reads on would misread
            raise WardenLost(str(error)) from error

    def _listen(self) -> None:
        heard = bytearray()
        while data := self._receive():
            heard += data
            while (message := _next_message(heard)) is not None:
                self._take(message)
        self._bury()

    def _receive(self) -> bytes:
        while True:
            try:
                return self._control.recv(65536)
            except TimeoutError:  # the timeout is meant for sending
                continue
            except OSError:
                return b""

    def _take(self, message: dict[str, int | None]) -> None:
        with self._lock:
            watch = self._watches.get(message.get("id") or 0)
        if watch is None:
            return
        match str(message["type"]):
            case "spawned":
                watch.pid, watch.start_ticks = message["pid"] or 0, message["start_ticks"]
                self._record(watch)
                watch.answered.set()
            case "spawn_failed":
                watch.failure = SpawnFailed(str(message["text"]), message["errno"] or 0)
                self._end(watch, Exit(None, None, leftovers=0, lost=False))
            case "exited":
                self._end(watch, _read_exit(message))

    def _record(self, watch: _Watch) -> None:
        if watch.start_ticks is not None:
            with self._lock:
                self._recorded.append((watch.pid, watch.start_ticks))

    def _end(self, watch: _Watch, ending: Exit) -> None:
        with self._lock:
            del self._watches[watch.id]
        watch.end(ending)

    def _bury(self) -> None:
        """The warden is dead or dying: make sure that what it kept is dead too, then say so."""
        try:
            self._process.wait(_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        ending = self._end_leftovers()
        with self._lock:
            self._is_gone.set()
            orphans = list(self._watches.values())
        for watch in orphans:
            self._end(watch, ending)

    def _end_leftovers(self) -> Exit:
        if self._is_closing and self._process.returncode == warden.EXIT_QUIT:
            return Exit(None, signal.SIGKILL, leftovers=0, lost=False)
        try:
            killed = leftovers.end(self._marker, recorded=self._recorded)
        except leftovers.LeftoversRemain as remain:
            return Exit(None, None, leftovers=0, lost=True, survivors=remain.detail.count(",") + 1)
        return Exit(None, None, leftovers=killed, lost=True)


def _next_message(heard: bytearray) -> dict[str, int | None] | None:
    size = warden.HEADER.size
    if len(heard) < size or len(heard) < size + warden.HEADER.unpack_from(heard)[0]:
        return None
    end = size + warden.HEADER.unpack_from(heard)[0]
    message: dict[str, int | None] = json.loads(heard[size:end])
    del heard[:end]
    return message


def _read_exit(message: Mapping[str, int | None]) -> Exit:
    return Exit(
        message["code"],
        message["signal"],
        leftovers=message["leftovers"] or 0,
        lost=bool(message.get("lost")),
        survivors=message["survivors"] or 0,
    )


def _wire(text: str) -> str:
    """Bytes that are no UTF-8 travel as surrogates: the warden runs in UTF-8, whatever our locale is."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def _memory_file(data: bytes) -> int:
    """Give a nameless file: a program may read its input when it likes, and nobody has to feed it."""
    if sys.platform == "linux":
        fd = os.memfd_create("jackline")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _as_failure(subject: str, error: OSError | WardenLost) -> JacklineError:
    if isinstance(error, WardenLost):
        return error
    return SpawnFailed(f"{subject}: {error.strerror}", error.errno or 0)


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened.extend(ends)
    return ends


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def _poll(fds: Sequence[int], timeout_s: float | None) -> list[int]:
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000)]


# ------------------------------------------------------------------------------------------ commands


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a check or a probe ended, with the last bytes it wrote."""

    exit_code: int | None
    signal: int | None
    timed_out: bool
    stdout_tail: bytes
    stderr_tail: bytes
    duration_ms: int


class _Tail:
    """The last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * self._limit + _CHUNK:  # seldom, so that cutting costs nothing
            del self._kept[: -self._limit or None]

    def value(self) -> bytes:
        return bytes(self._kept[-self._limit :]) if self._limit else b""


def run_command(
    command: str | Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None = None,
    timeout_s: float,
    output_limit: int = 65536,
    below: Warden | None = None,
) -> CommandResult:
    """Run a command (a string goes to /bin/sh) to its end; at the timeout its whole tree is killed.

    Below the attempt's warden it also dies with the attempt's lease; without one it gets its own warden.
    """
    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else command
    if below is not None:
        return _run(below, argv, cwd, env, stdin, timeout_s, output_limit)
    deadline_ms = boot_ms() + int(timeout_s * 1000) + _COMMAND_GRACE_MS
    marker = {"JACKLINE_COMMAND": secrets.token_hex(8)}
    with Warden.start(deadline_ms=deadline_ms, marker=marker) as own:
        return _run(own, argv, cwd, env, stdin, timeout_s, output_limit)


def _run(
    owner: Warden,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes | None,
    timeout_s: float,
    output_limit: int,
) -> CommandResult:
    started = boot_ms()
    child = owner.spawn(argv, env, cwd, stdin=stdin)
    try:
        tails = {"stdout": _Tail(output_limit), "stderr": _Tail(output_limit)}
        timed_out = not _follow(child, tails, timeout_s)
        if timed_out:
            child.kill()
            _follow(child, tails, None)
        ending = child.wait()
    except BaseException:
        child.kill()
        raise
    finally:
        child.close()
    if ending is None or ending.lost:
        raise WardenLost(owner.last_words())
    outputs = tails["stdout"].value(), tails["stderr"].value()
    return CommandResult(ending.code, ending.signal, timed_out, *outputs, boot_ms() - started)


def _follow(child: Child, tails: Mapping[str, _Tail], timeout_s: float | None) -> bool:
    """Read until the child has ended. False when time is up."""
    end_ms = None if timeout_s is None else boot_ms() + int(timeout_s * 1000)
    while True:
        left = None if end_ms is None else (end_ms - boot_ms()) / 1000
        if left is not None and left <= 0:
            return False
        if child.drained:
            return child.wait(left) is not None
        for chunk in child.read(left):
            tails[chunk.source].add(chunk.data)
