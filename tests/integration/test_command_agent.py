"""Any command as an agent: shell scripts as real processes, alone and through `jackline run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline.agents import registry
from jackline.agents.command import ADAPTER
from jackline.agents.toml_agents import parse_tables
from jackline.domain.outcome import Usage
from jackline.domain.states import Failure
from tests.support.gate import SECONDS
from tests.support.helpers import Done, Stage

GATED = """
import json, os, socket
gate = socket.socket(socket.AF_UNIX)
gate.connect(os.environ["JACKLINE_GATE"])
stream = gate.makefile("rw")
question = {"op": "prepare", "token": os.environ["JACKLINE_GATE_TOKEN"], "tool": "send", "input": {"to": "ada"}}
stream.write(json.dumps(question | {"agent_call": "1"}) + "\\n")
stream.flush()
print(json.loads(stream.readline())["decision"])
"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(ADAPTER, tmp_path)
    yield made
    made.close()


def sh(stage: Stage, script: str, *words: str, **facts: Any) -> Done:
    return stage.play(arguments=("/bin/sh", "-c", script, "sh", *words), **facts)


def test_the_prompt_on_stdin_and_its_output_as_messages(stage: Stage) -> None:
    done = stage.play("line one\nline two, é", arguments=("cat",))
    assert (done.code, done.outcome.failure) == (0, None)
    assert done.texts() == ["line one", "line two, é"]


def test_a_large_prompt(stage: Stage) -> None:
    assert stage.play("x" * 2**20, arguments=("wc", "-c")).texts() == [str(2**20)]


def test_placeholders(stage: Stage) -> None:
    words = ("{prompt}", "in {workspace}", "as={session}", "{model}", "{other} {", "{{prompt}}")
    done = stage.play("say {session}", arguments=("printf", "%s\\n", *words), session="s1", model="m")
    assert done.texts() == [
        "say {session}", f"in {stage.workspace}", "as=s1", "m", "{other} {", "{say {session}}"
    ]  # fmt: skip


def test_with_the_prompt_among_its_words_stdin_is_empty(stage: Stage) -> None:
    assert sh(stage, 'echo "$1:$(wc -c)"', "{prompt}").texts() == ["do it:0"]


def test_the_exit_code_is_its_verdict(stage: Stage) -> None:
    failed = sh(stage, "echo all is well; echo what went wrong >&2; exit 3")
    assert (failed.outcome.failure, failed.outcome.detail) == (Failure.AGENT_ERROR, "exit code 3: what went wrong")
    assert sh(stage, "echo error: 429 rate limit reached").outcome.failure is None
    assert sh(stage, "kill -9 $$").outcome.failure is Failure.CRASHED
    assert sh(stage, "true").outcome.failure is None


def test_event_lines_among_its_text(stage: Stage) -> None:
    script = """
    echo thinking aloud
    echo '{"type": "session", "id": "mine"}'
    echo '{"type": "usage", "input": 5, "output": 2, "usd": 0.5}'
    echo '{"answer": 42}'
    echo '{"type": "limit", "detail": "come back later", "resets_at": 1800000000}'
    """
    done = sh(stage, script)
    assert done.texts() == ["thinking aloud", '{"answer": 42}']
    assert done.texts("session") == ["mine"]
    assert done.of("usage")[0].usage == Usage(5, 2, 0, 500_000)
    assert (done.outcome.failure, done.outcome.resets_at) == (Failure.LIMIT, 1_800_000_000_000)


def test_a_home_made_agent_can_ask_the_gate(stage: Stage) -> None:
    assert stage.play(arguments=(sys.executable, "-c", GATED)).texts() == ["allow"]
    assert stage.gate.ops("prepare")[0]["tool"] == "send"


def test_a_described_agent_keeps_its_session(tmp_path: Path) -> None:
    tables = {
        "parrot": {
            "command": ["/bin/sh", "-c", 'cat > "$1"', "sh", "{folder}/{session}"],
            "resume": ["/bin/sh", "-c", 'cat "$1"; cat', "sh", "{folder}/{session}"],
        }
    }
    stage = Stage(registry.load_adapter("parrot", parse_tables(tables)), tmp_path)
    stage.agent.mkdir(parents=True)
    try:
        stage.play("the word is heron\n", session="s1")
        assert stage.play("again\n", session="s1", resume=True).texts() == ["the word is heron", "again"]
    finally:
        stage.close()


def test_through_jackline_run(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "JACKLINE_HOME": str(tmp_path / "home")}
    command = ("sh", "-c", "tr a-z A-Z | tee said", "sh", "--flag")
    argv = (sys.executable, "-m", "jackline", "run", "hello", "--agent", "command", "--run-id", "r1", "--", *command)
    done = subprocess.run(argv, cwd=workspace, env=env, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    assert (workspace / "said").read_text() == "HELLO"
    look = (sys.executable, "-m", "jackline", "show", "r1", "--json")
    shown = subprocess.run(look, cwd=workspace, env=env, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert "HELLO" in json.dumps(json.loads(shown.stdout))
