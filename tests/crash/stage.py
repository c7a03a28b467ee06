"""What the crash tests play on: a repository, a script with two effects and a probe each, and the world outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jackline.engine import orphans, run_env
from jackline.store.open import open_store
from tests.crash import outbox

if TYPE_CHECKING:
    from pathlib import Path

RUN = "run-under-test"
KILLED = -signal.SIGKILL
PROGRAM = outbox.__file__


@dataclass(frozen=True)
class Stage:
    """One run in a place of its own."""

    folder: Path
    database: str
    run_id: str = RUN

    @property
    def outbox(self) -> Path:
        return self.folder / "outbox.jsonl"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self, **more: str) -> dict[str, str]:
        isolated = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "JACKLINE_HOME": str(self.home)}
        shared = {"JACKLINE_DATABASE": self.database} if "://" in self.database else {}
        return {**isolated, **shared, **more}

    def write_script(self, steps: list[dict[str, Any]], *, session: bool = True) -> None:
        script = {"version": 1, "session": session, "steps": steps}
        (self.folder / "script.json").write_text(json.dumps(script))

    def start(self, **more: str) -> subprocess.Popen[bytes]:
        """`jackline run` of the script, in its own process."""
        words = ["run", "task", "--agent", "scripted", "--run-id", self.run_id, "--json", "--proof", "test -s note.txt"]
        words += ["--script", str(self.folder / "script.json"), "--policy", str(self.folder / "policy.toml")]
        return self._open(words, **more)

    def resume(self, **more: str) -> subprocess.CompletedProcess[bytes]:
        return self.command("resume", self.run_id, "--json", **more)

    def command(self, *words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        process = self._open(list(words), **more)
        out, err = process.communicate(timeout=90)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def _open(self, words: list[str], **more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "jackline", *words],
            cwd=self.folder / "repository",
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def sent(self) -> list[str]:
        """The messages that are really in the world outside."""
        if not self.outbox.exists():
            return []
        return [json.loads(line)["text"] for line in self.outbox.read_text().splitlines()]

    def processes_left(self) -> list[int]:
        """Every living process that bears the run's mark."""
        store = open_store(self.database, create=False)
        try:
            mark = run_env.build_process_tag(store.secret, self.run_id)
        finally:
            store.close()
        return [one.pid for one in orphans.find_orphans(mark)]


def build(folder: Path, database: str, run_id: str = RUN) -> Stage:
    """A stage with the usual script: edit, send, read, send again, and a word at the end."""
    stage = Stage(folder, database, run_id)
    (folder / "repository").mkdir()
    probe = f"{sys.executable} {PROGRAM} probe {stage.outbox}"
    rule = '[[rule]]\ntool = "send"\nclass = "effect"\ndecision = "allow"\nkey = ["to", "text"]\ntarget = "{to}"\n'
    (folder / "policy.toml").write_text(rule + f"probe = {json.dumps(probe)}\n")
    stage.write_script(usual_steps(stage))
    return stage


def send_step(stage: Stage, text: str) -> dict[str, Any]:
    run = [sys.executable, PROGRAM, "send", str(stage.outbox), "{to}", "{text}"]
    made = {"tool": "send", "input": {"to": text, "text": text}, "run": run, "external_id": "{stdout}"}
    return {"call": made}


def usual_steps(stage: Stage) -> list[dict[str, Any]]:
    return [
        {"say": "starting"},
        {"edit": {"path": "note.txt", "content": "hello\n"}},
        send_step(stage, "first"),
        {"call": {"tool": "read", "input": {"path": "note.txt"}, "run": ["cat", "note.txt"]}},
        send_step(stage, "second"),
        {"usage": {"input": 10, "output": 5, "usd": 0.01}},
        {"say": "done"},
    ]
