"""The guard: the parent of one agent, forked by the warden. It starts the agent and lives until its tree is dead."""

from __future__ import annotations

import errno
import marshal
import os

from .host import (
    LINUX,
    PR_SET_PDEATHSIG,
    TICK_MS,
    become_subreaper,
    boot_ms,
    close_others,
    drain_pipe,
    prctl,
    signal,
    wait_readable,
)
from .messages import pack_message
from .process_tree import ProcessTree, read_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


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
    """Turn this forked process into the agent, or report why it failed."""
    subject = f"folder {order.cwd}"
    try:
        os.setsid()
        if LINUX:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != guard:  # the guard died before the line above: the signal will never come
                os._exit(127)
        for target, fd in enumerate(order.fds):
            os.dup2(fd, target)
        close_others({0, 1, 2, report})
        restore_signals()
        os.chdir(order.cwd)
        subject = order.argv[0]
        os.execvpe(subject, order.argv, order.env)  # noqa: S606 - without a shell
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
    failure = {"errno": number, "text": f"{subject[:200]}: {text}"}  # short, to fit into the pipe in one write
    os.write(report, marshal.dumps(failure))


class Guard:
    """The parent of one agent. Lives until the agent's whole tree is dead, then reports it to the warden."""

    def __init__(self, order: Order, channel: int) -> None:
        become_subreaper()
        self.order, self.channel = order, channel
        self.tree = ProcessTree()
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
            timeout = TICK_MS if self.kill_at is None else min(TICK_MS, self.kill_at - boot_ms())
            ready = wait_readable([self.channel, self.tree.wake], timeout)
            drain_pipe(self.tree.wake)
            self.tree.reap()
            if self.channel in ready:
                self._obey()
            if self.kill_at is not None and boot_ms() >= self.kill_at:
                break
        self._finish()

    def _await_start(self) -> bool:
        """Wait for the exec, which a hung file system may delay, and obey orders meanwhile."""
        while self.report not in wait_readable([self.report, self.channel], TICK_MS):
            if wait_readable([self.channel], 0):
                self._obey()
            if self.kill_at is not None:
                break
        failure = b"" if self.kill_at is not None else os.read(self.report, 4096)
        os.close(self.report)
        if failure:
            self.tree.kill_all()
            self._report("spawn_failed", **marshal.loads(failure))  # noqa: S302 - of our own process
        else:
            process = read_process(self.agent)
            self._report("spawned", pid=self.agent, start_ticks=process.start_ticks if process else None)
        return not failure

    def _obey(self) -> None:
        """Read one grace period per line; end of file means that the warden is dead, and there is no grace."""
        words = os.read(self.channel, 4096).split()
        grace = min(int(word) for word in words) if words else 0
        if grace:
            self.tree.terminate()
        kill_at = boot_ms() + grace
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)

    def _finish(self) -> None:
        killed, survivors = self.tree.kill_all()
        status = self.tree.statuses[self.agent]
        code = None if status is None or os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
        leftovers = len(killed - {self.agent})
        self._report("exited", code=code, signal=number, leftovers=leftovers, survivors=survivors)

    def _report(self, kind: str, **facts: object) -> None:
        try:
            os.write(self.channel, pack_message({"type": kind, "id": self.order.id, **facts}))
        except BrokenPipeError:  # the warden is dead; only the death of the tree matters
            return


def run_guard(order: Order, channel: int, lock: int) -> NoReturn:
    """Run the guard; it keeps the lock open, because the attempt is not over while its tree lives."""
    try:
        close_others({0, 1, 2, channel, lock, *order.fds})
        Guard(order, channel).run()
    except OSError as error:  # no descriptor or process left: the agent was never started
        failure = {"type": "spawn_failed", "id": order.id, "errno": error.errno, "text": str(error)}
        os.write(channel, pack_message(failure))
    finally:
        os._exit(0)
