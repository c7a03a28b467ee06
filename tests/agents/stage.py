"""Where a real CLI works for `jackline run`: its own HOME and repository, a fake model, and the processes it starts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jackline.app import agent_versions
from jackline.engine import orphans, run_env
from jackline.fake_model.pointing import point
from jackline.store.open import open_store
from tests.cli.place import Ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jackline.fake_model.server import FakeModel

RUN = "run-under-test"
SECONDS = 150.0  # what no command of these tests may take, the slowest CLI on a busy machine included
_TICK = 0.02


@dataclass
class Stage:
    """One agent in a place of its own."""

    agent: str
    binary: str
    folder: Path
    model: FakeModel
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    mcp: str = "off"  # tests/mcp has every CLI with the server; elsewhere it would only take time

    @property
    def repository(self) -> Path:
        return self.folder / "repository"

    def build(self) -> None:
        """A repository with one commit, and the settings that point the CLI at the fake model."""
        self.repository.mkdir()
        for words in (("init", "--quiet"), ("config", "user.name", "Ada"), ("config", "user.email", "ada@example.org")):
            self.git(*words)
        self.git("commit", "--quiet", "--allow-empty", "--message", "start")
        for path, content in point(self.agent, self.model.address, str(self._user)).files.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
        self.home.mkdir(mode=0o700)
        _copied_notes(self._notes, self.home)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def _notes(self) -> Path:
        """What an earlier test of this worker has found out about the same programs: it would only take time again."""
        return self.folder.parent / "notes-on-agents"

    @property
    def _user(self) -> Path:
        return self.folder / "user"

    @property
    def environment(self) -> dict[str, str]:
        self._user.mkdir(exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "JACKLINE_HOME": str(self.home),
            **({"JACKLINE_MCP": self.mcp} if self.mcp else {}),
            f"JACKLINE_{self.agent.upper()}_BINARY": self.binary,
            **point(self.agent, self.model.address, str(self._user)).env,
        }

    # --- commands

    def start(self, *words: str, program: tuple[str, ...] = ("-m", "jackline")) -> subprocess.Popen[str]:
        """A jackline command that is left running; it is ended with the test. `program`: how Python starts it."""
        process = subprocess.Popen(
            [sys.executable, *program, *words],
            cwd=self.repository,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def type(self, *words: str) -> Ended:
        return self.end_of(self.start(*words))

    def end_of(self, process: subprocess.Popen[str]) -> Ended:
        out, err = process.communicate(timeout=SECONDS)
        return Ended(process.returncode, out, err)

    def start_run(self, prompt: str, *words: str, run_id: str = RUN) -> subprocess.Popen[str]:
        return self.start("run", prompt, "--agent", self.agent, "--run-id", run_id, "--json", *words)

    def run(self, prompt: str, *words: str, run_id: str = RUN) -> Ended:
        """`jackline run` of the agent, until it has ended."""
        return self.end_of(self.start_run(prompt, *words, run_id=run_id))

    def show(self, run_id: str = RUN) -> dict[str, Any]:
        """All that is known of the run."""
        return self.type("show", run_id, "--json").json

    def events(self, run_id: str = RUN) -> list[dict[str, Any]]:
        return self.type("logs", run_id, "--events", "--json").rows

    def git(self, *words: str) -> str:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        done = subprocess.run(
            ["git", *words], cwd=self.repository, env=environ, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    # --- processes

    def wait_for_file(self, name: str) -> str:
        """The words in a file of the repository, as soon as there are any: the agent's shell has come so far."""
        path = self.repository / name
        wait_until(lambda: path.exists() and bool(path.read_text().strip()), f"{name} never appeared", self._said)
        return path.read_text().strip()

    def kill_agent(self) -> None:
        """SIGKILL for the CLI itself, and for nothing that it started: it is the first child of the warden's guard."""
        (guard,) = children_of(self.show()["attempts"][-1]["warden_pid"])
        os.kill(children_of(guard)[0], signal.SIGKILL)

    def processes_left(self) -> list[int]:
        """Every living process that bears the run's mark."""
        store = open_store(str(self.home / "state.sqlite"), create=False)
        try:
            mark = run_env.build_process_tag(store.secret, RUN)
        finally:
            store.close()
        return [one.pid for one in orphans.find_orphans(mark)]

    def close(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self._notes.mkdir(exist_ok=True)
        _copied_notes(self.home, self._notes)

    def _said(self) -> str:
        """What a test needs to know when something did not happen: how the commands stand."""
        polled = [process.poll() for process in self.started]
        return f"exit codes {polled}, {len(self.model.asked)} requests"


def _copied_notes(source: Path, target: Path) -> None:
    for name in (agent_versions.CACHE, agent_versions.CANARIES):
        if (source / name).exists():
            shutil.copy(source / name, target / name)


def wait_until(holds: Callable[[], bool], otherwise: str, more: Callable[[], str] = str) -> None:
    """A bounded look, again and again, for what no pipe tells."""
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until, f"{otherwise} ({more()})"
        time.sleep(_TICK)


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be collected does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return _stat(file.read())[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(parent: int) -> list[int]:
    """Oldest first."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = _stat(file.read())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended while we looked
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append((int(fields[19]), int(name)))
    return [pid for _, pid in sorted(found)]


def _stat(text: str) -> list[str]:
    """State, parent and so on: what follows the name, which may contain anything."""
    return text.rpartition(")")[2].split()
