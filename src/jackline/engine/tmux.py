"""Starts a jackline command in a detached session of tmux, and shows such a session at this terminal.

The command gets the environment of this process, not that of the tmux server, which another program may have started.
It goes through a FIFO: in the arguments of tmux, every user of the machine could read it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from jackline.engine.run_env import DETACHED
from jackline.errors import JacklineError, UsageError, disk_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

START_SECONDS = 30
_LOOK_SECONDS = 0.02
_PIPE = "tmux.fifo"
_OF_THE_WINDOW = ("COLUMNS", "LINES", DETACHED)  # what the command must learn from its own window


class TmuxServer:
    """The server of tmux at a socket; without one, that of this terminal or of this user."""

    def __init__(self, socket: str = "", environ: Mapping[str, str] | None = None) -> None:
        """UsageError if tmux is not installed."""
        self._environ = dict(os.environ if environ is None else environ)
        program = shutil.which("tmux", path=self._environ.get("PATH"))
        if program is None:
            raise UsageError("tmux is not installed: install it, or use --detach, which needs no tmux")
        self._words = (program, *(("-S", socket) if socket else ()))

    def _call(self, *words: str, folder: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own words
            [*self._words, *words],
            cwd=folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def has_session(self, name: str) -> bool:
        """Whether a session has exactly this name."""
        return self._call("has-session", "-t", f"={name}").returncode == 0

    def start_session(self, name: str, argv: Sequence[str], folder: str, size: tuple[int, int]) -> str:
        """Start the command in a new detached session; returns the socket of the server."""
        columns, rows = size
        words = ("-d", "-P", "-F", "#{socket_path}", "-s", name, "-x", str(columns), "-y", str(rows), *argv)
        try:  # not with `-c`: tmux expands formats in it, and runs the command of a folder called `#(command)`
            started = self._call("new-session", *words, folder=folder)
        except OSError as error:
            raise disk_error(error, folder) from error
        if started.returncode != 0:
            reason = started.stderr.strip().partition("\n")[0] or f"exit code {started.returncode}"
            raise JacklineError(f"tmux cannot start the session '{name}' ({reason}): use --detach, which needs no tmux")
        return started.stdout.strip()

    def show_session(self, name: str) -> int:
        """Show the session at this terminal until it ends or the person detaches; returns the exit code of tmux."""
        words = ("switch-client",) if self._environ.get("TMUX") else ("attach-session",)
        return subprocess.run([*self._words, *words, "-t", f"={name}"], env=self._environ, check=False).returncode  # noqa: S603 - our own words


class EnvironmentPipe:
    """A FIFO in a folder of ours, over which a command in tmux gets its environment. Remove it with `close`."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, _PIPE)
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self.close()  # of a process that was killed
            os.mkfifo(self.path, 0o600)
        except OSError as error:
            raise disk_error(error, self.path) from error

    def wrap(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The command that reads the environment, then becomes `argv`."""
        return (sys.executable, "-P", "-m", "jackline.engine.tmux_child", self.path, *argv)

    def send(self, environ: Mapping[str, str]) -> bool:
        """Send the environment as soon as the command reads; False if it does not."""
        kept = (f"{name}={value}" for name, value in environ.items() if name not in _OF_THE_WINDOW)
        data = os.fsencode("\0".join(kept))
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            try:
                descriptor = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                if error.errno != errno.ENXIO:  # no reader yet
                    raise disk_error(error, self.path) from error
                time.sleep(_LOOK_SECONDS)
                continue
            os.set_blocking(descriptor, True)
            with contextlib.suppress(BrokenPipeError), os.fdopen(descriptor, "wb") as pipe:
                pipe.write(data)
                return True
            return False
        return False

    def close(self) -> None:
        """Remove the FIFO."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)
