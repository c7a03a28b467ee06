"""The warden: a small process of its own that starts agents and ends whole process trees; it decides nothing.

The supervisor starts one for each attempt: `python -I -S warden.py CONTROL_FD LOCK_FD DEADLINE_MS`.
For each agent it forks a *guard*, which is the agent's parent and a subreaper too. So the orphans of two
agents never mix, and whichever of warden and guard is killed by force, the other is there to end the tree.
Everything dies when the supervisor's end of the socket closes, or when the deadline on the boot clock has
come, which only the supervisor's `renew` moves. A frozen supervisor does not renew.

It must stay alone and light: nothing of jackline, no threads, no `typing` (a third of the start-up time).

On macOS there is no subreaper and no /proc: only the agent's own process group can be ended there, and a
descendant that made a group of its own survives.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from types import FrameType
    from typing import NoReturn

LINUX = sys.platform == "linux"
BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

EXIT_QUIT, EXIT_DEADLINE, EXIT_ALONE, EXIT_SURVIVORS = 0, 3, 4, 5
PATIENCE_MS = 30_000  # how long to go on killing; only a process stuck in the kernel or another user's outlives it
TICK_MS = 1_000  # poll(2) does not count suspend, the boot clock does: look at it at least this often
FREEZE_ROUNDS = 10
CHASE_ROUNDS = 200
STREAMS = 3  # standard input, output and error
HEADER = struct.Struct(">I")
# Dead, or hidden as another user's. No other error may pass for it: a look that fails has not seen a death.
GONE = (FileNotFoundError, ProcessLookupError, PermissionError)
IGNORED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGUSR1", "SIGUSR2")


def boot_ms() -> int:
    return time.clock_gettime_ns(BOOT_CLOCK) // 1_000_000


# ------------------------------------------------------------------------------------------ processes


class Process:
    """What /proc says about one process at one moment."""

    __slots__ = ("dead", "group", "parent", "pid", "session", "start_ticks")

    def __init__(self, pid: int, stat: bytes) -> None:
        # The name in brackets may hold blanks and brackets itself, so count from the last one.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.parent, self.group, self.session = int(fields[1]), int(fields[2]), int(fields[3])
        self.start_ticks = int(fields[19])
        # A main thread that has ended shows as a zombie while other threads of the process still work.
        self.dead = fields[0] in b"ZX" and int(fields[17]) <= 1


def read_process(pid: int) -> Process | None:
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except GONE:
        return None
    try:
        return Process(pid, os.read(fd, 4096))
    except GONE:  # it was reaped between open and read
        return None
    finally:
        os.close(fd)


def processes() -> dict[int, Process]:
    """Give every living process of this host, as far as it may be seen."""
    if not LINUX:
        return {}
    seen = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in seen if process and not process.dead}


def descendants(table: dict[int, Process], roots: Iterable[int], spare: Collection[int] = ()) -> set[int]:
    """Follow the parents' chain down from the roots, which are not part of the answer; not below `spare`."""
    children: dict[int, list[int]] = {}
    for process in table.values():
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    open_ends = list(roots)
    while open_ends:
        fresh = [pid for pid in children.get(open_ends.pop(), ()) if pid not in found and pid not in spare]
        found.update(fresh)
        open_ends.extend(fresh)
    return found


def direct_children() -> list[int]:
    """One small read instead of a walk through all of /proc; nothing where the kernel does not offer it."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:
        return []


def send_signal(pid: int, number: int, send: Callable[[int, int], None] = os.kill) -> bool:
    try:
        send(pid, number)
    except GONE:  # the last look decides
        return False
    return True


class Tree:
    """All descendants of this very process, which is a subreaper: they leave the tree only by dying."""

    def __init__(self) -> None:
        self.statuses: dict[int, int | None] = {}  # of the pids somebody asked for, None while alive
        self.groups: set[int] = set()  # ended too where there is no /proc
        self.wake = open_wakeup()

    def reap(self) -> bool:
        """Collect the dead. False when there is no child at all, and so no descendant: this cannot race."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid in self.statuses:
                self.statuses[pid] = status

    def living(self, spare: Collection[int] = ()) -> dict[int, Process]:
        table = processes()
        return {pid: table[pid] for pid in descendants(table, [os.getpid()], spare)}

    def terminate(self) -> None:
        pids = self.living() if LINUX else [pid for pid, status in self.statuses.items() if status is None]
        for pid in pids:
            send_signal(pid, signal.SIGTERM)
            send_signal(pid, signal.SIGCONT)  # a stopped process would take the first one only later

    def end(self, spare: Collection[int] = (), patience_ms: int = PATIENCE_MS) -> tuple[set[int], int]:
        """Kill everything but `spare` and what is below it. Gives the pids, and how many would not die."""
        killed: set[int] = set()
        give_up = boot_ms() + patience_ms
        while not self._is_over(spare):
            if boot_ms() >= give_up:  # at least one, also if it is too quick to be seen
                return killed, max(1, len(self.living(spare)))
            killed |= self._strike(spare)
            killed |= self._chase(spare)
            self._wait_for_deaths()
        return killed, 0

    def _is_over(self, spare: Collection[int]) -> bool:
        some = self.reap()
        if not some or not spare:
            return not some
        # Beside living guards only looking helps; a fork during the first look is there at the second.
        return not self.living(spare) and not self.living(spare)

    def _strike(self, spare: Collection[int]) -> set[int]:
        found = self._freeze(spare)
        groups = {process.group for process in found.values()} | self.groups
        for group in groups - {os.getpgrp()}:  # a group is killed in one stroke, no fork slips through
            send_signal(group, signal.SIGKILL, os.killpg)
        for pid in found:
            send_signal(pid, signal.SIGKILL)
        return set(found)

    def _freeze(self, spare: Collection[int]) -> dict[int, Process]:
        """Stop all before killing one: else a parent that sees its child die may start the next."""
        frozen: set[int] = set()
        found: dict[int, Process] = {}
        for _ in range(FREEZE_ROUNDS):
            found = self.living(spare)
            fresh = found.keys() - frozen
            if not fresh:
                break
            for pid in fresh:
                send_signal(pid, signal.SIGSTOP)
            frozen |= fresh
        return found

    def _chase(self, spare: Collection[int]) -> set[int]:
        """Catch what forks and exits faster than /proc can be read: orphaned, it is our own child."""
        killed: set[int] = set()
        for _ in range(CHASE_ROUNDS):
            if not self.reap():
                break
            pids = [pid for pid in direct_children() if pid not in spare]
            killed.update(pid for pid in pids if send_signal(pid, signal.SIGKILL))
            if not pids:
                break
        return killed

    def _wait_for_deaths(self) -> None:
        wait_readable([self.wake], 20)
        drain(self.wake)


# ------------------------------------------------------------------------------------------ small tools


def prctl(option: int, value: int) -> None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    zero = ctypes.c_ulong(0)
    if library.prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option} is refused")


def become_subreaper() -> None:
    if LINUX:
        prctl(PR_SET_CHILD_SUBREAPER, 1)


def on_child(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the byte in the wake-up pipe is what counts."""


def open_wakeup() -> int:
    """Give a pipe that becomes readable when a child has died."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, on_child)
    return reader


def drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def wait_readable(fds: Iterable[int], timeout_ms: int) -> set[int]:
    poll = select.poll()  # not select(2): the supervisor's descriptor may have any number
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return {fd for fd, _ in poll.poll(max(0, timeout_ms))}


def close_others(keep: Collection[int]) -> None:
    for name in os.listdir("/proc/self/fd" if LINUX else "/dev/fd"):
        if int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:  # the listing's own descriptor
                continue


# ------------------------------------------------------------------------------------------ guard


class Order:
    """One agent to start."""

    __slots__ = ("argv", "cwd", "env", "fds", "id")

    def __init__(self, message: dict[str, object], fds: list[int]) -> None:
        self.id = message["id"]
        self.argv: list[str] = message["argv"]  # type: ignore[assignment]
        self.env: dict[str, str] = message["env"]  # type: ignore[assignment]
        self.cwd = str(message["cwd"])
        self.fds = fds


def become_agent(order: Order, report: int, guard: int) -> NoReturn:
    """Turn this forked process into the agent, or write down why not."""
    subject = f"folder {order.cwd}"
    try:
        os.setsid()
        if LINUX:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:  # it died before the line above: the signal will never come
                os._exit(127)
        for target, fd in enumerate(order.fds):
            os.dup2(fd, target)
        close_others({0, 1, 2, report})
        restore_signals()
        os.chdir(order.cwd)
        subject = order.argv[0]
        os.execvpe(subject, order.argv, order.env)  # noqa: S606 - no shell is wanted
    except OSError as error:
        report_failure(report, error.errno or 0, subject, os.strerror(error.errno or 0))
    except ValueError as error:  # a zero byte in an argument
        report_failure(report, errno.EINVAL, subject, str(error))
    finally:
        os._exit(127)


def restore_signals() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def report_failure(report: int, number: int, subject: str, text: str) -> None:
    failure = {"errno": number, "text": f"{subject[:200]}: {text}"}  # short: it must fit the pipe at once
    os.write(report, json.dumps(failure).encode())


class Guard:
    """Parent of one agent. Lives until the agent's whole tree is dead, and tells the warden so."""

    def __init__(self, order: Order, channel: int) -> None:
        become_subreaper()
        self.order, self.channel = order, channel
        self.tree = Tree()
        self.kill_at: int | None = None
        self.report, report = os.pipe()
        guard = os.getpid()
        self.agent = os.fork()
        if self.agent == 0:
            become_agent(order, report, guard)
        self.tree.statuses[self.agent] = None
        self.tree.groups = set() if LINUX else {self.agent}
        for fd in {report, *order.fds}:
            os.close(fd)

    def run(self) -> None:
        if not self._await_start():
            return
        while self.tree.statuses[self.agent] is None:
            ready = wait_readable([self.channel, self.tree.wake], self._time_left())
            drain(self.tree.wake)
            self.tree.reap()
            if self.channel in ready:
                self._obey()
            if self.kill_at is not None and boot_ms() >= self.kill_at:
                break
        self._finish()

    def _await_start(self) -> bool:
        """Wait for the exec, which a hung file system may delay: orders come through all the same."""
        while self.report not in wait_readable([self.report, self.channel], TICK_MS):
            self._obey_if_any()
            if self.kill_at is not None:
                break
        failure = b"" if self.kill_at is not None else os.read(self.report, 4096)
        os.close(self.report)
        if failure:
            self.tree.end()
            self._tell("spawn_failed", **json.loads(failure))
        else:
            process = read_process(self.agent)
            self._tell("spawned", pid=self.agent, start_ticks=process.start_ticks if process else None)
        return not failure

    def _obey_if_any(self) -> None:
        if wait_readable([self.channel], 0):
            self._obey()

    def _obey(self) -> None:
        """Take one grace time per line; end of file means that the warden is dead, and grace is over."""
        words = os.read(self.channel, 4096).split()
        grace = min(int(word) for word in words) if words else 0
        if grace:
            self.tree.terminate()
        kill_at = boot_ms() + grace
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)

    def _time_left(self) -> int:
        return TICK_MS if self.kill_at is None else min(TICK_MS, self.kill_at - boot_ms())

    def _finish(self) -> None:
        killed, survivors = self.tree.end()
        status = self.tree.statuses[self.agent]
        code = None if status is None or os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
        leftovers = len(killed - {self.agent})
        self._tell("exited", code=code, signal=number, leftovers=leftovers, survivors=survivors)

    def _tell(self, kind: str, **facts: object) -> None:
        try:
            os.write(self.channel, json.dumps({"type": kind, "id": self.order.id, **facts}).encode() + b"\n")
        except BrokenPipeError:  # the warden is dead; the tree's death is what matters
            return


def run_guard(order: Order, channel: int, lock: int) -> NoReturn:
    """Be the guard; the lock stays open here too, for the attempt is not over while its tree lives."""
    try:
        close_others({0, 1, 2, channel, lock, *order.fds})
        Guard(order, channel).run()
    except OSError as error:  # no descriptor or no process to be had: the agent was never started
        line = {"type": "spawn_failed", "id": order.id, "errno": error.errno, "text": str(error)}
        os.write(channel, json.dumps(line).encode() + b"\n")
    finally:
        os._exit(0)


# ------------------------------------------------------------------------------------------ warden


class Ward:
    """The warden's view of one guard."""

    __slots__ = ("heard", "id", "is_over", "pid")

    def __init__(self, id: object, pid: int) -> None:
        self.id, self.pid = id, pid
        self.heard = b""
        self.is_over = False


class Warden:
    """The loop over the supervisor's orders, the guards' reports, the dead and the deadline."""

    def __init__(self, control: socket.socket, lock: int, deadline_ms: int) -> None:
        become_subreaper()
        self.control, self.lock, self.deadline_ms = control, lock, deadline_ms
        self.tree = Tree()
        self.wards: dict[int, Ward] = {}  # by the descriptor of the channel
        self.inbox = bytearray()
        self.fds: list[int] = []
        self.verdict: int | None = None

    def run(self) -> int:
        while self.verdict is None:
            fds = [self.control.fileno(), self.tree.wake, *self.wards]
            ready = wait_readable(fds, min(TICK_MS, self.deadline_ms - boot_ms()))
            drain(self.tree.wake)
            self.tree.reap()
            for channel in ready & self.wards.keys():
                self._hear(channel)
            # Orders first: a renewal that has already arrived counts, however late we look.
            if self.control.fileno() in ready:
                self._receive()
            self._look_at_deadline()
        return self._end_everything(self.verdict)

    def _look_at_deadline(self) -> None:
        if self.verdict is None and boot_ms() >= self.deadline_ms:
            self.verdict = EXIT_DEADLINE

    def _end_everything(self, verdict: int) -> int:
        if not LINUX:  # only the guards know the groups; end of file tells them
            for channel in self.wards:
                os.close(channel)
        _, survivors = self.tree.end()
        return EXIT_SURVIVORS if survivors else verdict

    def _receive(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self.control, 1 << 18, STREAMS, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        except ConnectionError:
            data, fds = b"", []
        self.fds.extend(fds)
        self.inbox += data
        if not data:
            self.verdict = EXIT_ALONE
        while (message := self._next_message()) is not None:
            self._obey(message)

    def _next_message(self) -> dict[str, object] | None:
        if len(self.inbox) < HEADER.size:
            return None
        end = HEADER.size + HEADER.unpack_from(self.inbox)[0]
        if len(self.inbox) < end:
            return None
        message: dict[str, object] = json.loads(self.inbox[HEADER.size : end])
        del self.inbox[:end]
        return message

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
                killed, survivors = self._end_strays()
                self._send(type="swept", id=message["id"], killed=killed, survivors=survivors)
            case "quit":
                self.verdict = EXIT_QUIT

    def _spawn(self, message: dict[str, object]) -> None:
        fds, self.fds = self.fds[:STREAMS], self.fds[STREAMS:]
        try:
            if len(fds) < STREAMS:  # the kernel drops what finds no free number
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))  # noqa: TRY301 - one way to fail
            mine, theirs = (end.detach() for end in socket.socketpair())
            pid = os.fork()
        except OSError as error:
            self._send(type="spawn_failed", id=message["id"], errno=error.errno, text=str(error))
        else:
            if pid == 0:
                run_guard(Order(message, fds), theirs, self.lock)
            os.close(theirs)
            self.wards[mine] = Ward(message["id"], pid)
        finally:
            for fd in fds:
                os.close(fd)

    def _tell_guard(self, id: object, grace_ms: int) -> None:
        for channel, ward in self.wards.items():
            if ward.id == id:
                send_order(channel, grace_ms)

    def _hear(self, channel: int) -> None:
        """Pass on what a guard reports."""
        ward = self.wards[channel]
        data = read_or_end(channel)
        *lines, ward.heard = (ward.heard + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            ward.is_over = message["type"] != "spawned"
            self._send(**message)
        if not data:
            self._bury(channel)

    def _bury(self, channel: int) -> None:
        ward = self.wards.pop(channel)
        os.close(channel)
        if not ward.is_over:  # killed by force: what it watched are our children now
            killed, survivors = self._end_strays()
            self._send(
                type="exited",
                id=ward.id,
                code=None,
                signal=None,
                leftovers=killed,
                survivors=survivors,
                lost=True,
            )

    def _end_strays(self) -> tuple[int, int]:
        # Not patient: the other agents' deadline is not looked at meanwhile.
        killed, survivors = self.tree.end({ward.pid for ward in self.wards.values()}, TICK_MS)
        return len(killed), survivors

    def _send(self, **message: object) -> None:
        body = json.dumps(message).encode()
        try:
            self.control.sendall(HEADER.pack(len(body)) + body)
        except OSError:  # gone, or so frozen that it reads nothing: nobody is left to work for
            self.verdict = EXIT_ALONE


def send_order(channel: int, grace_ms: int) -> None:
    try:
        os.write(channel, b"%d\n" % grace_ms)
    except BrokenPipeError:  # its end of file is the next thing we read
        return


def read_or_end(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except ConnectionError:
        return b""


def main(control_fd: int, lock_fd: int, deadline_ms: int) -> int:
    if os.getsid(0) != os.getpid():
        os.setsid()  # the terminal's Ctrl-C is for the supervisor, never for the agent
    for name in IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    for fd in (control_fd, lock_fd):
        if fd >= 0:
            os.set_inheritable(fd, False)  # noqa: FBT003 - it has no name
    control = socket.socket(fileno=control_fd)
    control.settimeout(1.0)
    return Warden(control, lock_fd, deadline_ms).run()


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in sys.argv[1:4])))
