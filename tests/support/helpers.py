"""Helper programs as the engine starts them, with a little gate in a thread. For tests of ollama, acp and command."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jackline.domain.adapter import Adapter, TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome
from tests.support.gate import SECONDS, FakeGate, Json

TELLING = ("end", "error", "limit", "session")


@dataclass(frozen=True)
class Done:
    """A finished turn."""

    code: int
    errors: str
    heard: tuple[AgentEvent, ...]
    outcome: Outcome

    def kinds(self) -> list[str]:
        return [one.kind for one in self.heard]

    def of(self, kind: str) -> list[AgentEvent]:
        return [one for one in self.heard if one.kind == kind]

    def texts(self, kind: str = "message") -> list[str]:
        return [one.text for one in self.of(kind)]


class Stage:
    """A workspace, an agent's folder, a gate, and the way the engine starts an agent there."""

    def __init__(self, adapter: Adapter, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.adapter = adapter
        self.workspace, self.agent, self.home = folder / "workspace", folder / "run" / "agent", folder / "home"
        self.workspace.mkdir()
        self.home.mkdir()
        self.gate = FakeGate()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), **(env or {})}
        self._started: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        """End what a test that failed has left."""
        self.gate.close()
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def request(self, prompt: str = "do it", **facts: Any) -> TurnRequest:
        given: Json = {"attempt": 1, "turn": 1, "role": "work", **facts}
        return TurnRequest(
            run_id="r1", prompt=prompt, workspace=str(self.workspace), folder=str(self.agent),
            gate=self.gate.address, token="secret", **given,
        )  # fmt: skip

    def start(self, prompt: str = "do it", **facts: Any) -> subprocess.Popen[bytes]:
        launch = self.adapter.launch(self.request(prompt, **facts))
        for path, content in launch.files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        stdin = tempfile.TemporaryFile()  # noqa: SIM115 - closed below; the engine gives a file as well
        stdin.write(launch.stdin or b"")
        stdin.seek(0)
        process = subprocess.Popen(
            launch.argv,
            cwd=self.workspace,
            env={**self.env, **launch.env},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        stdin.close()
        self._started.append(process)
        return process

    def play(self, prompt: str = "do it", seconds: float = SECONDS, **facts: Any) -> Done:
        return self.ended(self.start(prompt, **facts), seconds=seconds)

    def ended(self, process: subprocess.Popen[bytes], before: bytes = b"", seconds: float = SECONDS) -> Done:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        heard = tuple(one for line in (before + output).split(b"\n") for one in self.adapter.parse(line))
        code = process.returncode
        telling = tuple(one for one in heard if one.kind in TELLING)
        tail = errors.decode("utf-8", "replace")
        outcome = self.adapter.classify(Exit(None, -code) if code < 0 else Exit(code), telling, tail)
        return Done(code, tail, heard, outcome)


def heard_until(process: subprocess.Popen[bytes], word: str) -> bytes:
    """Its lines up to the one with that word."""
    assert process.stdout is not None
    lines = b""
    while word.encode() not in lines:
        line = process.stdout.readline()
        assert line, f"it ended before it said {word}: {lines!r}"
        lines += line
    return lines


def wait_until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process is there and not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
