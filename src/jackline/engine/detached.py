"""Starts a jackline command that outlives this process and its terminal. It does not wait for the command's end."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING

from jackline.engine.run_env import DETACHED
from jackline.errors import disk_error

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DetachedProcess:
    """A command in a new session, without a terminal; its output goes to a file."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], folder: str, log: str) -> None:
        """Start it. OSError if that fails; the log, readable by its owner only, is overwritten."""
        try:
            os.makedirs(os.path.dirname(log), mode=0o700, exist_ok=True)
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise disk_error(error, log) from error
        self.log = log
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                argv,
                cwd=folder,
                env={**env, DETACHED: "1"},
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
        self.pid = self._process.pid

    def wait(self, seconds: float) -> int | None:
        """The exit code; None if it is still running after `seconds`."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def leave(self) -> None:
        """Let it run on: it is no longer this process's to wait for."""
        self._process.returncode = self._process.poll() or 0  # else Python warns about a child that still runs

    def read_end(self) -> str:
        """The last line that it printed."""
        with open(self.log, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
        return lines[-1] if lines else ""
