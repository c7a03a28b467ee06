"""The main loop of the warden: orders of the supervisor, reports of the guards, dead children, the deadline.

It never handles an agent itself: its guard does.
"""

from __future__ import annotations

import errno
import os

from .guard import Order, run_guard
from .host import (
    LINUX,
    TICK_MS,
    become_subreaper,
    boot_ms,
    drain_pipe,
    receive_with_fds,
    signal,
    socket,
    wait_readable,
)
from .messages import EXIT_ALONE, EXIT_DEADLINE, EXIT_QUIT, EXIT_SURVIVORS, STREAMS, next_message, pack_message
from .process_tree import ProcessTree

IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGUSR2")
_CHUNK_BYTES = 1 << 18


class GuardChannel:
    """One guard, as the warden sees it."""

    __slots__ = ("buffer", "id", "is_over", "pid")

    def __init__(self, id: object, pid: int) -> None:
        self.id, self.pid = id, pid
        self.buffer = bytearray()
        self.is_over = False


class WardenLoop:
    """Runs the main loop until a verdict, which becomes the exit code."""

    def __init__(self, control: socket.socket, lock: int, deadline_ms: int) -> None:
        become_subreaper()
        self.control, self.lock, self.deadline_ms = control, lock, deadline_ms
        self.tree = ProcessTree()
        self.guards: dict[int, GuardChannel] = {}  # by the descriptor of the channel
        self.inbox = bytearray()
        self.fds: list[int] = []
        self.verdict: int | None = None

    def run(self) -> int:
        while self.verdict is None:
            fds = [self.control.fileno(), self.tree.wake, *self.guards]
            ready = wait_readable(fds, min(TICK_MS, self.deadline_ms - boot_ms()))
            drain_pipe(self.tree.wake)
            self.tree.reap()
            for channel in ready & self.guards.keys():
                self._read_reports(channel)
            # Orders before the deadline: a renewal that has arrived counts, however late it is read.
            if self.control.fileno() in ready:
                self._receive()
            self._check_deadline()
        return self._end_everything(self.verdict)

    def _check_deadline(self) -> None:
        if self.verdict is None and boot_ms() >= self.deadline_ms:
            self.verdict = EXIT_DEADLINE

    def _end_everything(self, verdict: int) -> int:
        if not LINUX:  # only the guards know the groups; end of file makes them kill
            for channel in self.guards:
                os.close(channel)
        _, survivors = self.tree.kill_all()
        return EXIT_SURVIVORS if survivors else verdict

    def _receive(self) -> None:
        try:
            data, fds = receive_with_fds(self.control, _CHUNK_BYTES, STREAMS)
        except ConnectionError:
            data, fds = b"", []
        self.fds.extend(fds)
        self.inbox += data
        if not data:
            self.verdict = EXIT_ALONE
        while (message := next_message(self.inbox)) is not None:
            self._obey(message)

    def _obey(self, message: dict[str, object]) -> None:
        match message["type"]:
            case "renew":
                self.deadline_ms = int(str(message["deadline_ms"]))
            case "spawn":
                self._spawn(message)
            case "stop":
                self._tell_guard(message["id"], int(str(message["grace_ms"])))
            case "kill":
                self._tell_guard(message["id"], 0)
            case "sweep":
                killed, survivors = self._kill_strays()
                self._send(type="swept", id=message["id"], killed=killed, survivors=survivors)
            case "quit":
                self.verdict = EXIT_QUIT

    def _spawn(self, message: dict[str, object]) -> None:
        fds, self.fds = self.fds[:STREAMS], self.fds[STREAMS:]
        try:
            if len(fds) < STREAMS:  # the kernel drops descriptors without a free number
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))  # noqa: TRY301 - one way to fail
            mine, theirs = (end.detach() for end in socket.socketpair())
            pid = os.fork()
        except OSError as error:
            self._send(type="spawn_failed", id=message["id"], errno=error.errno, text=str(error))
        else:
            if pid == 0:
                run_guard(Order(message, fds), theirs, self.lock)
            os.close(theirs)
            self.guards[mine] = GuardChannel(message["id"], pid)
        finally:
            for fd in fds:
                os.close(fd)

    def _tell_guard(self, id: object, grace_ms: int) -> None:
        for channel, guard in self.guards.items():
            if guard.id == id:
                try:
                    os.write(channel, b"%d\n" % grace_ms)
                except BrokenPipeError:  # its end of file is read next
                    continue

    def _read_reports(self, channel: int) -> None:
        """Forward the reports of a guard."""
        guard = self.guards[channel]
        data = read_or_end(channel)
        guard.buffer += data
        while (message := next_message(guard.buffer)) is not None:
            guard.is_over = message["type"] != "spawned"
            self._send(**message)
        if not data:
            self._remove_guard(channel)

    def _remove_guard(self, channel: int) -> None:
        guard = self.guards.pop(channel)
        os.close(channel)
        if not guard.is_over:  # killed by force: its processes are our children now
            killed, survivors = self._kill_strays()
            self._send(
                type="exited",
                id=guard.id,
                code=None,
                signal=None,
                leftovers=killed,
                survivors=survivors,
                lost=True,
            )

    def _kill_strays(self) -> tuple[int, int]:
        # With a short timeout: the deadline of the other agents is not checked meanwhile.
        killed, survivors = self.tree.kill_all({guard.pid for guard in self.guards.values()}, TICK_MS)
        return len(killed), survivors

    def _send(self, **message: object) -> None:
        frame = pack_message(message)
        try:
            self.control.sendall(frame)
        except OSError:  # the supervisor is dead, or so frozen that it reads nothing
            self.verdict = EXIT_ALONE


def read_or_end(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except ConnectionError:
        return b""


def main(control_fd: int, lock_fd: int, deadline_ms: int) -> int:
    if os.getsid(0) != os.getpid():
        os.setsid()  # the terminal's Ctrl-C is for the supervisor, not for the agent
    for name in IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    for fd in (control_fd, lock_fd):
        if fd >= 0:
            os.set_inheritable(fd, False)  # noqa: FBT003 - it has no name
    control = socket.socket(fileno=control_fd)
    control.settimeout(1.0)
    return WardenLoop(control, lock_fd, deadline_ms).run()
