"""Runs the real command line in an environment like that of a user's machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

JACKLINE = os.path.join(os.path.dirname(sys.executable), "jackline")
PYTHON_PASS = (sys.executable, "-c", "pass")


class CommandFailed(RuntimeError):
    """A measured command failed; the message holds its output."""


def build_environment(home: str) -> Mapping[str, str]:
    """This environment without Python settings: byte code is cached, as on a user's machine."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JACKLINE"))}
    return {**kept, "JACKLINE_HOME": home, "HOME": home}


def build_turn(command: Sequence[str], folder: str, environ: Mapping[str, str]) -> Callable[[], float]:
    """Build a function that runs the command in the folder and returns the seconds."""

    def start() -> float:
        begin = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        took = time.perf_counter() - begin
        if done.returncode != 0:
            raise CommandFailed(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode().strip()}")
        return took

    return start
