"""An isolated place to run jackline commands in, with its own HOME, jackline home and repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.command_server import start_jackline

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECONDS = 60.0


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Its output, which must be exactly one JSON object."""
        lines = self.out.splitlines()
        assert len(lines) == 1, self
        value: dict[str, Any] = json.loads(lines[0])
        return value

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Its output as newline-delimited JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Place:
    """Where commands run."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self, **more: str) -> dict[str, str]:
        isolated = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "JACKLINE_HOME": str(self.home),
            "TZ": "UTC",
        }
        return {**isolated, **self.environ, **more}

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """Start a command; it is killed when the test ends."""
        return self._start(partial(start_jackline, words), more)

    def python(self, program: str, *words: str, **more: Any) -> subprocess.Popen[str]:
        """Start a Python program in the same place."""
        return self.execute([sys.executable, "-c", program, *words], **more)

    def execute(self, argv: list[str], **more: Any) -> subprocess.Popen[str]:
        """Start any program in the same place."""
        return self._start(partial(subprocess.Popen, argv), more)

    def _start(self, start: Callable[..., subprocess.Popen[str]], more: dict[str, Any]) -> subprocess.Popen[str]:
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        environment = self.environment(**options.pop("environ", {}))
        folder = options.pop("cwd", self.repository)
        process = start(cwd=folder, env=environment, text=True, **options)
        self.started.append(process)
        return process

    def type(self, *words: str, stdin: str | None = None, **more: Any) -> Ended:
        """Run a command and wait for its end."""
        if stdin is not None:
            more["stdin"] = subprocess.PIPE
        return self.end_of(self.start(*words, **more), stdin)

    def end_of(self, process: subprocess.Popen[str], stdin: str | None = None) -> Ended:
        out, err = process.communicate(stdin, timeout=SECONDS)
        return Ended(process.returncode, out, err)

    def trust(self, answer: str = "y", cwd: Path | None = None) -> Ended:
        """Type `jackline trust` at a terminal and answer its question, if it asks one."""
        from tests.cli.test_terminal import Terminal

        terminal = Terminal(self, "trust", cwd=str(cwd) if cwd else None)
        while terminal.read():
            if terminal.seen.endswith("[y/N] "):
                os.write(terminal.ours, f"{answer}\n".encode())
        seen = terminal.end()
        return Ended(terminal.process.returncode, seen, "")

    def script(self, *steps: dict[str, Any], name: str = "script.json") -> str:
        path = self.folder / name
        path.write_text(json.dumps({"version": 1, "steps": list(steps)}))
        return str(path)

    def task(self, name: str, text: str = "Do it.\n") -> str:
        """Write a task of the repository; returns its name."""
        path = self.repository / ".agents" / "tasks" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def policy(self, text: str) -> str:
        path = self.folder / "policy.toml"
        path.write_text(text)
        return str(path)

    def play(self, *steps: dict[str, Any], words: tuple[str, ...] = (), **more: Any) -> Ended:
        """Run `jackline run` with these steps."""
        return self.type("run", "--agent", "scripted", "--script", self.script(*steps), *words, **more)

    def start_playing(self, *steps: dict[str, Any], words: tuple[str, ...] = (), **more: Any) -> subprocess.Popen[str]:
        return self.start("run", "--agent", "scripted", "--script", self.script(*steps), *words, **more)

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def wait_for(self, name: str) -> None:
        """Wait for a file that the agent creates when it reaches this step."""
        until = time.monotonic() + SECONDS
        while not (self.folder / name).exists():
            assert time.monotonic() < until, f"{name} never appeared: {[one.poll() for one in self.started]}"
            time.sleep(0.01)

    def let_go(self, name: str) -> None:
        """Create the file that an agent waits for."""
        (self.folder / name).touch()

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


SAY = {"say": "hello"}
EFFECT_RULE = '[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "allow"\nkey = ["to"]\ntarget = "mail:{to}"\n'
SEND = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "true"}}
SEND_FAILS = {"call": {"tool": "send", "input": {"to": "ada"}, "run": "false"}}


def is_one_line(ended: Ended) -> bool:
    """True if a mistake was reported in one line, without a traceback."""
    lines = ended.err.splitlines()
    return len(lines) == 1 and lines[0].startswith("jackline: ") and "Traceback" not in ended.err
