"""Runs jackline's own commands for a case: real processes that can be killed, with their output in files.

Each command is a child of a small shell that outlives it. So the drill does not end what a killed supervisor leaves
behind: only jackline's own warden, or its resume, can do that. When the case is over, everything is ended.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from jackline.clock import boot_ms
from jackline.engine.command_runner import start_command_warden
from jackline.named import NamedTuple
from jackline.scenarios.drill_cases import DrillFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.engine.process import Child
    from jackline.scenarios.sandbox import Sandbox

_PATIENCE_S = 120.0  # longer than anything here may take, even the slowest CLI on a busy machine
_MOST_MS = 1_800_000
_TICK_S = 0.01
_REASON_LENGTH = 300
_SHELL = '"$@" >"$0.out" 2>"$0.err" & echo $! >"$0.pid"; wait $!; echo $? >"$0.code"; exec sleep 86400'


class FinishedCommand(NamedTuple):
    """A command that has ended: its exit code (137: SIGKILL) and its output."""

    code: int
    out: str
    err: str

    def __str__(self) -> str:
        """The exit code and the reason, on one line; a command with --json prints the reason as `detail`."""
        reason = self.err
        if not reason:
            with suppress(ValueError, AttributeError):
                reason = str(json.loads(self.out).get("detail", ""))
        reason = " ".join(reason.split())[-_REASON_LENGTH:]
        return f"exit code {self.code}" + (f", {reason}" if reason else "")


class StartedCommand(NamedTuple):
    """A command that was started; its output goes to files that begin with `path`."""

    words: tuple[str, ...]
    path: str
    pid: int

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return not _read_text(f"{self.path}.code").endswith("\n")

    def wait(self) -> FinishedCommand:
        """Wait for its end."""
        wait_until(lambda: not self.is_running, f"the end of `jackline {' '.join(self.words)}`")
        code = int(_read_text(f"{self.path}.code"))
        return FinishedCommand(code=code, out=_read_text(f"{self.path}.out"), err=_read_text(f"{self.path}.err"))


class CommandSession:
    """All commands of one case; leaving it ends everything that still runs."""

    def __init__(self, sandbox: Sandbox, environment: Mapping[str, str]) -> None:
        self._sandbox, self._environment = sandbox, environment
        self._warden = start_command_warden(_MOST_MS)
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._warden.close()
        for child in self._children:
            child.close()

    def start(self, *words: str, **more: str) -> StartedCommand:
        """Start a command and leave it running; `more` goes into its environment."""
        path = self._sandbox.at("said", f"{len(self._children) + 1:02}-{words[0]}")
        # Through env(1): the shell around it must not look like a process of the case.
        variables = [f"{name}={value}" for name, value in {**self._environment, **more}.items()]
        argv = ("/bin/sh", "-c", _SHELL, path, "env", "-i", *variables, sys.executable, "-m", "jackline", *words)
        child = self._warden.spawn(argv, {"PATH": os.environ.get("PATH", os.defpath)}, self._sandbox.repository)
        self._children.append(child)
        wait_until(lambda: _read_text(f"{path}.pid").endswith("\n"), f"the start of `jackline {words[0]}`")
        return StartedCommand(words=words, path=path, pid=int(_read_text(f"{path}.pid")))

    def run(self, *words: str, **more: str) -> FinishedCommand:
        """Start a command and wait for its end."""
        return self.start(*words, **more).wait()

    def show(self, run_id: str) -> dict[str, Any]:
        """Read the run as `jackline show --json` prints it."""
        ended = self.run("show", run_id, "--json")
        if ended.code != 0:
            raise DrillFailed(f"`jackline show` failed: {ended}")
        shown: dict[str, Any] = json.loads(ended.out)
        return shown


def wait_until(holds: Callable[[], bool], what: str, seconds: float = _PATIENCE_S) -> None:
    """Poll for something that no pipe reports. The bound exists only to fail, never to pass."""
    end = boot_ms() + int(seconds * 1000)
    while not holds():
        if boot_ms() > end:
            raise DrillFailed(f"timed out after {seconds:.0f} s waiting for {what}")
        time.sleep(_TICK_S)


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
