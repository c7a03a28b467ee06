"""The ollama helper as a real process, against the fake model and a little gate in a thread."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jackline.agents.ollama import ADAPTER
from jackline.domain.outcome import Usage
from jackline.domain.states import Failure, WaitReason
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from jackline.fake_model.wires.ollama_api import WIRE
from tests.support.gate import SECONDS, Json, ask, deny
from tests.support.helpers import Stage, heard_until, is_alive, wait_until

SESSION = "7a4f9c1e-0000-4000-8000-000000000001"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(ADAPTER, tmp_path)
    yield made
    made.close()


@contextmanager
def model(stage: Stage, *replies: Reply) -> Iterator[FakeModel]:
    with FakeModel(Script(replies), wires=(WIRE,)) as fake:
        stage.env["OLLAMA_HOST"] = fake.address
        yield fake


def messages(stage: Stage) -> list[Json]:
    found: list[Json] = json.loads((stage.agent / f"session-{SESSION}.json").read_bytes())["messages"]
    return found


def test_hello(stage: Stage) -> None:
    with model(stage, Reply(say="hello", thinking="hm", tokens_input=30, tokens_output=5)) as fake:
        done = stage.play("greet", session=SESSION, model="tiny")
    assert (done.code, done.outcome.failure, done.errors) == (0, None, "")
    assert done.kinds() == ["session", "thinking", "message", "usage", "end"]
    assert done.texts("session") == [SESSION]
    assert done.texts() == ["hello"]
    assert done.of("usage")[0].usage == Usage(30, 5)
    (asked,) = fake.asked
    assert (asked.model, asked.stream) == ("tiny", True)
    assert asked.text.endswith("\ngreet")
    assert str(stage.workspace) in asked.text
    assert [tool.name for tool in asked.tools] == ["shell", "read_file", "write_file", "list_files"]


def test_every_call_asks_the_gate_and_reports_to_it(stage: Stage) -> None:
    with model(stage, Reply(shell="echo out; echo err >&2; exit 3"), Reply(write=("a/b.txt", "é\n"))) as fake:
        done = stage.play(session=SESSION)
    assert done.outcome.failure is None
    assert [(one["tool"], one["input"]) for one in stage.gate.ops("prepare")] == [
        ("shell", {"command": "echo out; echo err >&2; exit 3"}),
        ("write", {"path": "a/b.txt", "content": "é\n"}),
    ]
    names = [one["agent_call"] for one in stage.gate.ops("prepare")]
    assert [one["call"] for one in stage.gate.ops("finish")] == [f"c-{name}" for name in names]
    assert [(one["ok"], one.get("exit_code")) for one in stage.gate.ops("finish")] == [(False, 3), (True, None)]
    assert [one.data["call"] for one in done.of("call.started")] == [f"c-{name}" for name in names]
    assert done.of("call.finished")[0].data["exit_code"] == 3
    assert (stage.workspace / "a" / "b.txt").read_bytes() == "é\n".encode()
    assert "exit code 3\nout\nerr" in fake.asked[1].text


def test_reading_and_listing_stay_in_the_workspace(stage: Stage) -> None:
    (stage.workspace / "x.txt").write_text("1\n2\n3\n")
    (stage.workspace / "sub").mkdir()
    (stage.workspace / "out").symlink_to("/etc")
    elsewhere = stage.home / "written"
    calls: tuple[tuple[str, Json], ...] = (
        ("read_file", {"path": "x.txt", "first": "2", "count": 1}),
        ("list_files", {}),
        ("read_file", {"path": "../../home"}),
        ("read_file", {"path": "out/passwd"}),
        ("write_file", {"path": str(elsewhere), "content": ""}),
    )
    with model(stage, *(Reply(call={"tool": tool, "input": given}) for tool, given in calls)):
        assert stage.play(session=SESSION).outcome.failure is None
    results = [one["content"] for one in messages(stage) if one["role"] == "tool"]
    assert results[:2] == ["2\n", "out/\nsub/\nx.txt"]
    assert all("outside the workspace" in one for one in results[2:])
    assert not elsewhere.exists()


def test_a_call_that_does_not_fit_is_told_to_the_model_and_not_to_the_gate(stage: Stage) -> None:
    with model(stage, Reply(call={"tool": "rm", "input": {}}), Reply(call={"tool": "shell", "input": {"cmd": "x"}})):
        assert stage.play(session=SESSION).outcome.failure is None
    results = [one["content"] for one in messages(stage) if one["role"] == "tool"]
    assert results[0].startswith("error: there is no tool 'rm'; the tools are shell")
    assert results[1] == "error: shell needs 'command': the command"
    assert stage.gate.asked == []


def test_denied(stage: Stage) -> None:
    stage.gate.prepare = deny
    with model(stage, Reply(shell="touch ran"), Reply(say="fine")) as fake:
        done = stage.play(session=SESSION)
    assert done.texts() == ["shell was denied: not today", "fine"]
    assert not (stage.workspace / "ran").exists()
    assert "denied: not today" in fake.asked[1].text
    assert done.of("call.started") == []


def test_without_a_gate_nothing_runs(stage: Stage) -> None:
    stage.gate.prepare = lambda _question: None
    with model(stage, Reply(shell="touch ran")):
        done = stage.play(session=SESSION)
    assert done.outcome.failure is Failure.UNGATED
    assert not (stage.workspace / "ran").exists()


def test_a_call_that_waits_for_a_person_is_made_by_the_resume(stage: Stage) -> None:
    stage.gate.prepare = ask
    with model(stage, Reply(shell="echo once >> ran"), Reply(say="done")) as fake:
        first = stage.play(session=SESSION)
        assert (first.code, first.outcome.waits) == (0, WaitReason.APPROVAL)
        assert not (stage.workspace / "ran").exists()
        stage.gate.prepare = lambda question: {"decision": "allow", "call": question["agent_call"]}
        second = stage.play("go on", session=SESSION, resume=True)
    assert second.outcome.failure is None
    assert (stage.workspace / "ran").read_text() == "once\n"
    assert [one["role"] for one in messages(stage)] == ["system", "user", "assistant", "tool", "user", "assistant"]
    assert fake.asked[1].text.endswith("exit code 0\n\ngo on")


def test_resume_keeps_the_conversation(stage: Stage) -> None:
    with model(stage, Reply(say="the word is heron")) as fake:
        stage.play("what is the word?", session=SESSION)
        stage.play("again?", session=SESSION, resume=True)
    assert "what is the word?\nthe word is heron\nagain?" in fake.asked[1].text
    path = stage.agent / f"session-{SESSION}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(stage.agent.stat().st_mode) == 0o700
    assert os.listdir(stage.agent) == [path.name]


def test_killed_in_a_call_asks_the_gate_again(stage: Stage) -> None:
    fifo = stage.workspace / "fifo"
    os.mkfifo(fifo)
    with model(stage, Reply(shell=f"echo $$ > pid; cat {fifo}"), Reply(say="looked")):
        process = stage.start(session=SESSION)
        heard_until(process, "call.started")
        wait_until(lambda: (stage.workspace / "pid").exists() and (stage.workspace / "pid").read_text().endswith("\n"))
        process.kill()
        process.communicate()
        os.killpg(int((stage.workspace / "pid").read_text()), signal.SIGKILL)  # what the warden does
        stage.gate.prepare = deny  # what the gate says to a call that was cut off
        done = stage.play("go on", session=SESSION, resume=True)
    assert done.texts() == ["shell was denied: not today", "looked"]
    first, second = stage.gate.ops("prepare")
    assert (first["input"], first["agent_call"]) == (second["input"], second["agent_call"])


@pytest.mark.parametrize("content", [None, b"{", b'{"version": 9, "messages": []}', b'{"version": 1}'])
def test_an_unknown_session_is_lost(stage: Stage, content: bytes | None) -> None:
    if content is not None:
        stage.agent.mkdir(parents=True)
        (stage.agent / f"session-{SESSION}.json").write_bytes(content)
    with model(stage) as fake:
        done = stage.play(session=SESSION, resume=True)
    assert (done.code, done.outcome.session_lost) == (1, True)
    assert done.texts("session") == []
    assert fake.asked == []


@pytest.mark.parametrize(
    ("reply", "failure", "words"),
    [
        (Reply(status=401, message="no key"), Failure.AUTHENTICATION, "401: no key"),
        (Reply(status=404, message="model 'm' not found"), Failure.MODEL_NOT_FOUND, "`ollama pull m`"),
        (Reply(status=400, message="m does not support tools"), Failure.AGENT_ERROR, "does not support tools"),
        (Reply(status=429, message="slow down"), Failure.LIMIT, "slow down"),
        (Reply(status=500, message="out of memory"), Failure.OVERLOADED, "500: out of memory"),
        (Reply(status=503, message="busy"), Failure.OVERLOADED, "503: busy"),
        (Reply(drop="before"), Failure.CONNECTIVITY, "connection to ollama"),
        (Reply(say="half of it", drop="middle"), Failure.CONNECTIVITY, ""),
    ],
)
def test_errors_have_their_class(stage: Stage, reply: Reply, failure: Failure, words: str) -> None:
    with model(stage, reply):
        done = stage.play(session=SESSION, model="m")
    assert (done.code, done.outcome.failure, done.errors) == (1, failure, "")
    assert words in done.outcome.detail


def test_words_of_the_model_are_no_error(stage: Stage) -> None:
    with model(stage, Reply(say='429 rate limit {"type":"error","class":"limit"} {"error":"x"}')):
        assert stage.play(session=SESSION).outcome.failure is None


def test_nobody_listens(stage: Stage) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        stage.env["OLLAMA_HOST"] = f"127.0.0.1:{taken.getsockname()[1]}"
        done = stage.play(session=SESSION, model="m")
    assert done.outcome.failure is Failure.CONNECTIVITY
    assert "is `ollama serve` running?" in done.outcome.detail


def test_a_silent_server_is_given_up(stage: Stage) -> None:
    stage.env["JACKLINE_ANSWER_SECONDS"] = "0.2"
    with model(stage, Reply(say="half of it", hang="middle")):
        done = stage.play(session=SESSION, model="m")
    assert done.outcome.failure is Failure.CONNECTIVITY
    assert "sent nothing for 0.2 s" in done.outcome.detail


def test_the_only_model_is_taken(stage: Stage) -> None:
    with model(stage, Reply(say="hi")) as fake:
        stage.play(session=SESSION)
    assert fake.asked[0].model == "fake-model:latest"


class Tags:
    """A server with other models than the fake's."""

    def __init__(self, *names: str) -> None:
        self.name, self._names = "tags", names

    def __getattr__(self, name: str) -> Any:
        return getattr(WIRE, name)

    def build_page(self, method: str, path: str) -> Json | None:
        return {"models": [{"name": name} for name in self._names]} if path == "/api/tags" else None


@pytest.mark.parametrize(("names", "words"), [((), "no model is installed"), (("b", "a"), "no model given")])
def test_no_model_or_more_than_one_is_a_question(stage: Stage, names: tuple[str, ...], words: str) -> None:
    with FakeModel(Script(()), wires=(Tags(*names),)) as fake:
        stage.env["OLLAMA_HOST"] = fake.address
        done = stage.play(session=SESSION)
    assert done.outcome.failure is Failure.MODEL_NOT_FOUND
    assert words in done.outcome.detail
    assert "--model, OLLAMA_MODEL or JACKLINE_OLLAMA_MODEL" in done.outcome.detail
    assert names == () or "a, b" in done.outcome.detail


def test_a_bad_option_is_named(stage: Stage) -> None:
    with model(stage):
        done = stage.play(session=SESSION, arguments=("--verbose",))
    assert "'--verbose' is not an option of a model" in done.outcome.detail


def test_a_large_prompt(stage: Stage) -> None:
    with model(stage, Reply(say="read")) as fake:
        stage.play("x" * 2**20, session=SESSION)
    assert fake.asked[0].text.endswith("x" * 2**20)


def test_output_of_a_command_is_bounded_and_its_time_too(stage: Stage) -> None:
    noisy = {"command": "yes jackline | head -c 3000000; echo the end"}
    slow = {"command": "sleep 600 & echo $! > pid; wait", "timeout": 3}
    with model(stage, *(Reply(call={"tool": "shell", "input": given}) for given in (noisy, slow))):
        assert stage.play(session=SESSION).outcome.failure is None
    loud, late = (one["content"] for one in messages(stage) if one["role"] == "tool")
    assert len(loud) < 40_000
    assert "bytes left out" in loud
    assert loud.endswith("the end\n")
    assert late.startswith("exit code 124\n")
    assert "[killed: it took longer than 3 s]" in late
    wait_until(lambda: not is_alive(int((stage.workspace / "pid").read_text())))


def test_a_child_left_behind_does_not_hold_the_call(stage: Stage) -> None:
    with model(stage, Reply(shell="sleep 600 & echo $! > pid; echo left")):
        done = stage.play(session=SESSION)
    os.kill(int((stage.workspace / "pid").read_text()), signal.SIGKILL)
    assert done.of("call.finished")[0].data["output"] == "left\n"


def test_the_command_sees_neither_gate_nor_key(stage: Stage) -> None:
    stage.env["OLLAMA_API_KEY"] = "secret-key"
    with model(stage, Reply(shell="env")):
        done = stage.play(session=SESSION)
    shown = done.of("call.finished")[0].data["output"]
    assert "JACKLINE_RUN_ID=r1" in shown
    assert "secret" not in shown
    assert stage.gate.address not in shown


def test_endless_loops_end(stage: Stage) -> None:
    stage.gate.prepare = deny
    endless = Script((), otherwise=Reply(shell="true"))
    with FakeModel(endless, wires=(WIRE,)) as fake:
        stage.env["OLLAMA_HOST"] = fake.address
        done = stage.play(session=SESSION)
    assert done.outcome.failure is Failure.AGENT_ERROR
    assert "200 steps" in done.outcome.detail
    assert len(fake.asked) == 200


# --- through jackline -----------------------------------------------------------------------------------------


def jackline(stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    return execute(stage, "-m", "jackline", *words)


def execute(stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**stage.env, "JACKLINE_HOME": str(stage.home / "jackline")}
    argv = (sys.executable, *words)
    return subprocess.run(
        argv, cwd=stage.workspace, env=env, capture_output=True, text=True, check=False, timeout=SECONDS
    )


def shown(stage: Stage) -> Json:
    found: Json = json.loads(jackline(stage, "show", "r1", "--json").stdout)
    return found


def test_a_run_with_its_calls_in_the_ledger(stage: Stage) -> None:
    with model(stage, Reply(shell="echo hi > hi.txt"), Reply(write=("b.txt", "hello")), Reply(say="done")) as fake:
        done = jackline(
            stage, "run", "do it", "--agent", "ollama", "--run-id", "r1", "--model", "m", "--", "num_ctx=99"
        )
    assert done.returncode == 0, done.stderr
    calls = shown(stage)["calls"]
    assert [(one["tool"], one["state"], one["call_class"]) for one in calls] == [
        ("shell", "done", "local"),
        ("write", "done", "local"),
    ]
    assert {one.model for one in fake.asked} == {"m"}


# The turn times out as soon as the file is there.
TIMED_OUT = """
import os, sys
from jackline.cli.main import main
from jackline.domain.run_inputs import StopReason
from jackline.engine import timeouts
timeouts.Timeouts.find_next = lambda self: self._started and (0 if os.path.exists("pid") else 0.02, StopReason.WALL)
sys.exit(main(sys.argv[1:]))
"""


def test_at_the_timeout_the_shell_dies_too_and_a_resume_is_warned(stage: Stage) -> None:
    # With a program that no rule knows: what stays in the workspace is simply made again, and would hang again.
    detached = "python3 -c pass; setsid sh -c 'echo $$ > new; mv new pid; sleep 600'"
    with model(stage, Reply(shell=detached), Reply(say="looked")) as fake:
        words = ("run", "do it", "--agent", "ollama", "--run-id", "r1")
        assert execute(stage, "-c", TIMED_OUT, *words).returncode == 11
        assert not is_alive(int((stage.workspace / "pid").read_text()))
        assert jackline(stage, "resume", "r1").returncode == 0
    assert "denied: a crash interrupted shell, outcome unknown" in fake.asked[1].text
    assert [one["state"] for one in shown(stage)["calls"]] == ["in_doubt", "denied"]
