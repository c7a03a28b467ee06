"""Jackline's own command line, as a case types it: real processes that can be killed, and what they said in files.

Each command is a child of a small shell that outlives it. So what a killed supervisor leaves behind is not ended by the
drill: only jackline's own warden, or its resume, can do that. When the case is over, all of it is ended.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from typing import TYPE_CHECKING, Self

from jackline.app.drill.failing import DrillFailed
from jackline.clock import boot_ms
from jackline.engine.process import Warden
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.app.drill.place import Place
    from jackline.engine.child import Child

PATIENCE_S = 120.0  # what nothing here may take, the slowest CLI on a busy machine included
_LONGEST_S = 1800
_TICK_S = 0.01
_TYPIST = '"$@" >"$0.out" 2>"$0.err" & echo $! >"$0.pid"; wait $!; echo $? >"$0.code"; exec sleep 86400'


class Ended(NamedTuple):
    """A command that has ended: its words, its exit code (137: SIGKILL), and what it printed."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str


class Typed(NamedTuple):
    """A command that was started; its output goes to files that begin with `path`."""

    words: tuple[str, ...]
    path: str
    pid: int

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return not _read(f"{self.path}.code").endswith("\n")

    def end(self) -> Ended:
        """How it ended; it must be over by now or soon."""
        until(lambda: not self.running, f"the end of `jackline {' '.join(self.words)}`")
        code = int(_read(f"{self.path}.code"))
        return Ended(self.words, code, _read(f"{self.path}.out"), _read(f"{self.path}.err"))


class Commands:
    """All that is typed in one case; leaving it ends everything that still runs."""

    def __init__(self, place: Place, environment: Mapping[str, str]) -> None:
        self._place, self._environment = place, environment
        deadline = boot_ms() + _LONGEST_S * 1000
        self._warden = Warden.start(deadline_ms=deadline, marker={"JACKLINE_COMMAND": secrets.token_hex(8)})
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._warden.close()
        for child in self._children:
            child.close()

    def start(self, *words: str, **more: str) -> Typed:
        """Type a command and leave it running; `more` goes into its environment."""
        path = self._place.at("said", f"{len(self._children) + 1:02}-{words[0]}")
        # By env: the shell around it must not look like a process of the case.
        given = [f"{name}={value}" for name, value in {**self._environment, **more}.items()]
        argv = ("/bin/sh", "-c", _TYPIST, path, "env", "-i", *given, sys.executable, "-m", "jackline", *words)
        child = self._warden.spawn(argv, {"PATH": os.environ.get("PATH", os.defpath)}, self._place.repository)
        self._children.append(child)
        until(lambda: _read(f"{path}.pid").endswith("\n"), f"the start of `jackline {words[0]}`")
        return Typed(words, path, int(_read(f"{path}.pid")))

    def type(self, *words: str, **more: str) -> Ended:
        """Type a command and wait for its end."""
        return self.start(*words, **more).end()


def until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """Look again and again for what no pipe tells; the bound is only there to fail, never to pass."""
    end = boot_ms() + int(seconds * 1000)
    while not holds():
        if boot_ms() > end:
            raise DrillFailed(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(_TICK_S)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""
