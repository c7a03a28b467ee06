"""A contender in its own process, driven by lines on a pipe. It measures and does not judge.

Separate processes, because a framework's threads and garbage would otherwise slow down its neighbours.
The clock is read in that process, around the work alone: the pipe is not measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import Self

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class ContenderFailed(RuntimeError):
    """The process ended early; its output is on standard error."""


class LineProcess:
    """A module of this package as a process: it answers each line with a line. Use it as a context manager."""

    def __init__(self, *words: str) -> None:
        """`words` are the module and its arguments; its first line is its `note`."""
        command = [sys.executable, "-m", *words]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._command = " ".join(command[1:])
        self.note = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its input, on which it ends; a process that does not end is killed."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, line: str) -> str:
        """Send a line and return its answer."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        self._process.stdin.write(f"{line}\n")
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise ContenderFailed(f"{self._command} ended early")
        return line.strip()


class ContenderProcess(LineProcess):
    """One contender; a turn is `repeat` units of work."""

    def __init__(self, module: str, variant: str, folder: str, repeat: int) -> None:
        super().__init__("benchmarks.host", module, variant, folder, str(repeat))

    def turn(self) -> float:
        """The seconds of one unit of work."""
        return float(self.ask("go"))
