"""The memory of a run besides its agent: supervisor, warden and guard, as their proportional set size (PSS).

It is read while the agent of a real CLI waits for its model, after a first tool call: by then the policy is loaded.
Pages that several processes share count in part, so that other Python processes on the machine make it smaller.
"""

from __future__ import annotations

import os
import statistics
import subprocess

from benchmarks import command, real_cli
from benchmarks.report import Table
from jackline.engine.warden.process_tree import find_descendants, list_processes
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from jackline.fake_model.wire import ModelRequest

KEY = "run-memory"
GOAL_MB = 20.0
_AGENTS = ("claude", "codex")
_WARDEN = b"/warden/__main__.py"
_PARTS = ("supervisor", "warden", "guard")


class MeasuringScript(Script):
    """Requests one command of each run, and measures the run before it answers the next request."""

    def __init__(self) -> None:
        super().__init__(())
        self.supervisor = 0
        self.megabytes: list[float] = []  # of each part
        self._requests = 0

    def start(self, words: tuple[str, ...], stage: real_cli.CliStage) -> subprocess.Popen[bytes]:
        """Start the next run."""
        self.megabytes, self._requests = [], 0
        process = subprocess.Popen(
            words, cwd=stage.repository, env=stage.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.supervisor = process.pid
        return process

    def next_reply(self, asked: ModelRequest) -> Reply:
        if not asked.tools:
            return super().next_reply(asked)
        self._requests += 1
        if self._requests == 1:
            return Reply(shell="true")  # noqa: S604 - for the agent
        self.megabytes = self.megabytes or [read_pss(pid) for pid in _find_parts(self.supervisor)]
        return Reply(say="done")


def measure(folder: str, *, quick: bool) -> Table:
    title = "The memory that a run adds to its agent"
    if not os.path.exists("/proc/self/smaps_rollup"):
        return Table(KEY, title, (), ("not measured: this system has no /proc/PID/smaps_rollup",))
    missing = {name: why for name in _AGENTS if (why := real_cli.find_obstacle(name))}
    rounds = 2 if quick else 5
    notes = [_measure_agent(name, os.path.join(folder, name), rounds) for name in _AGENTS if name not in missing]
    return Table(KEY, title, (), (*notes, *(f"{name}: not measured, {why}" for name, why in missing.items())))


def _measure_agent(name: str, folder: str, rounds: int) -> str:
    script = MeasuringScript()
    with FakeModel(script) as model:
        stage = real_cli.prepare_stage(name, folder, model.address)
        # The first run in a home also checks the agent's hooks.
        found = [_measure_run(script, name, stage) for _ in range(1 + rounds)][1:]
    parts = [statistics.median(values) for values in zip(*found, strict=True)]
    total = sum(parts)
    shown = ", ".join(f"{part} {size:.1f}" for part, size in zip(_PARTS, parts, strict=True))
    verdict = "met" if total <= GOAL_MB else "missed"
    return f"around {real_cli.format_name(name)}: {total:.1f} MB ({shown}); goal ≤ {GOAL_MB:g} MB: {verdict}"


def _measure_run(script: MeasuringScript, name: str, stage: real_cli.CliStage) -> list[float]:
    process = script.start((command.JACKLINE, "run", "do it", "--agent", name), stage)
    output, _ = process.communicate()
    if process.returncode != 0 or len(script.megabytes) != len(_PARTS):
        raise command.CommandFailed(f"jackline run: exit {process.returncode}: {output.decode().strip()}")
    return script.megabytes


def _find_parts(supervisor: int) -> list[int]:
    """The processes of the run: the guard is a fork of the warden."""
    below = sorted(find_descendants(list_processes(), [supervisor]))
    return [supervisor, *(pid for pid in below if _WARDEN in _read(pid, "cmdline"))]


def read_pss(pid: int) -> float:
    """The proportional set size of a process, in megabytes."""
    line = next(line for line in _read(pid, "smaps_rollup").splitlines() if line.startswith(b"Pss:"))
    return int(line.split()[1]) / 1000


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
