"""Starts and ends processes: the supervisor's side of the warden. It does not interpret their output.

Only this module and the warden that it starts spawn processes. Agents, checks and probes run below a warden, so that
none of them outlives a supervisor that is killed or frozen.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Self

from jackline.domain.outcome import Exit
from jackline.engine import leftovers, warden
from jackline.engine.child import Child, Watch
from jackline.engine.descriptors import close, memory_file, pipe
from jackline.engine.warden import wire
from jackline.engine.warden.tree import PATIENCE_MS
from jackline.errors import JacklineError

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


class Warden:
    """The supervisor's handle on its warden: sends orders over a socket, receives reports in a thread."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, words: int) -> None:
        self._process, self._control, self._words = process, control, words
        self._marker: dict[str, str] = {}
        self._lock = threading.Lock()  # guards the next three attributes
        self._watches: dict[int, Watch] = {}
        self._recorded: list[tuple[int, int]] = []
        self._is_closing = False
        self._is_gone = threading.Event()
        self._next_id = 0
        self._send_lock = threading.Lock()
        self._listener = threading.Thread(target=self._listen, name="warden", daemon=True)

    @classmethod
    def start(cls, *, deadline_ms: int, lock_fd: int | None = None, marker: Mapping[str, str]) -> Self:
        """Start a warden that kills everything at `deadline_ms` on the boot clock, unless renewed.

        The marker is set in the environment of every process below. It must name the attempt, not only the run: if
        the warden is lost, all processes with the marker are killed, and the next attempt may be running.
        """
        ours, theirs = socket.socketpair()
        words = memory_file(b"")
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
                env={**os.environ, **marker},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            close(words)
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
        """None while it lives; the codes are in `warden.wire`."""
        return self._process.returncode if self._is_gone.is_set() else None

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: str, *, stdin: bytes | None = None) -> Child:
        """Start a program as the leader of a new session; `stdin` None is /dev/null."""
        fds: list[int] = []
        try:
            source = os.open(os.devnull, os.O_RDONLY) if stdin is None else memory_file(stdin)
            fds.append(source)
            stdout, out = pipe(fds)
            stderr, err = pipe(fds)
            watch = self._register()
        except (OSError, WardenLost) as error:
            close(*fds)
            raise _build_failure(argv[0], error) from error
        child = Child(self, watch, stdout, stderr)
        try:
            self._order_spawn(watch, argv, {**env, **self._marker}, cwd, [source, out, err])
        except BaseException:
            child.kill()
            child.close()
            raise
        finally:
            close(source, out, err)
        return child

    def _order_spawn(self, watch: Watch, argv: Sequence[str], env: Mapping[str, str], cwd: str, fds: list[int]) -> None:
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
            raise WardenLost(self.last_words())

    def renew(self, deadline_ms: int) -> None:
        self._send({"type": "renew", "deadline_ms": deadline_ms})

    def sweep(self) -> None:
        """Try again to kill the processes below the warden that belong to no living child."""
        self.tell("sweep", id=0)

    def tell(self, kind: str, **facts: int) -> None:
        """Send an order; do nothing if the warden is dead, because then no process is left."""
        try:
            self._send({"type": kind, **facts})
        except WardenLost:
            return

    def close(self) -> None:
        """Kill all processes below the warden, and the warden; return when they are dead."""
        with self._lock:
            self._is_closing = True
        self.tell("quit")
        if not self._is_gone.wait(_CLOSE_TIMEOUT_S):
            self._process.kill()
        self._listener.join()
        self._control.close()
        close(self._words)
        self._words = -1

    def last_words(self) -> str:
        """The last line that the warden wrote before it died."""
        lines = os.pread(self._words, 65536, 0).split(b"\n") if self._words >= 0 else []
        texts = [line.decode(errors="replace") for line in lines if line.strip()]
        return texts[-1] if texts else f"exit code {self._process.poll()}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _register(self) -> Watch:
        with self._lock:
            if self._is_gone.is_set() or self._is_closing:
                raise WardenLost(self.last_words())
            self._next_id += 1
            watch = self._watches[self._next_id] = Watch(self._next_id)
            return watch

    def _send(self, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
        frame = wire.pack(message)
        try:
            with self._send_lock:
                if fds:
                    socket.send_fds(self._control, [frame[:1]], fds)
                self._control.sendall(frame[bool(fds) :])
        except OSError as error:
            self._process.kill()  # half an order may have been sent, after which the warden would misread the next
            raise WardenLost(str(error)) from error

    def _listen(self) -> None:
        received = bytearray()
        while data := self._receive():
            received += data
            while (message := wire.next_message(received)) is not None:
                self._handle_report(message)
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
                self._end(watch, Exit(None, None, leftovers=0, lost=False))
            case "exited":
                self._end(watch, _parse_exit(message))

    def _end(self, watch: Watch, ending: Exit) -> None:
        with self._lock:
            del self._watches[watch.id]
        watch.end(ending)

    def _handle_death(self) -> None:
        """Wait until the warden is dead, kill the processes it leaves behind, then report their end."""
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
        if self._is_closing and self._process.returncode == wire.EXIT_QUIT:
            return Exit(None, signal.SIGKILL, leftovers=0, lost=False)
        try:
            killed = leftovers.end(self._marker, recorded=self._recorded)
        except leftovers.LeftoversRemain as remain:
            return Exit(None, None, leftovers=0, lost=True, survivors=remain.detail.count(",") + 1)
        return Exit(None, None, leftovers=killed, lost=True)


def _parse_exit(message: Mapping[str, int | None]) -> Exit:
    return Exit(
        message["code"],
        message["signal"],
        leftovers=message["leftovers"] or 0,
        lost=bool(message.get("lost")),
        survivors=message["survivors"] or 0,
    )


def _to_wire_text(text: str) -> str:
    """Encode bytes that are not UTF-8 as surrogates: the warden runs in UTF-8, whatever our locale is."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def _build_failure(subject: str, error: OSError | WardenLost) -> JacklineError:
    if isinstance(error, WardenLost):
        return error
    return SpawnFailed(f"{subject}: {error.strerror}", error.errno or 0)
