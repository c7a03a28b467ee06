"""The scripted agent as a real process, against a little gate in a thread."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jackline.agents.scripted.scripted_adapter import ADAPTER, PLAYER
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import Exit, Outcome
from jackline.domain.states import Failure, WaitReason
from tests.support.gate import SECONDS, Answer, FakeGate, Json, allow, deny
from tests.support.skips import NOT_POSSIBLE

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def hold(over: threading.Event) -> None:
    over.wait(SECONDS)


@dataclass
class Played:
    """A finished turn."""

    code: int
    output: bytes
    errors: bytes
    lines: list[Json] = field(default_factory=list)

    def kinds(self) -> list[str]:
        return [line["type"] for line in self.lines]

    def of(self, kind: str) -> list[Json]:
        return [line for line in self.lines if line["type"] == kind]

    def outcome(self) -> Outcome:
        """What the adapter makes of it: player and adapter must understand each other."""
        heard = [one for line in self.output.split(b"\n") for one in ADAPTER.parse(line)]
        ended = Exit(None, -self.code) if self.code < 0 else Exit(self.code)
        return ADAPTER.classify(ended, tuple(one for one in heard if one.kind in ("end", "error", "limit")), "")


class Stage:
    """A workspace, an agent's folder, and the way the engine would start the player there."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.agent = folder / "workspace", folder / "agent"
        self.workspace.mkdir()
        self.agent.mkdir()
        self.gates: list[FakeGate] = []

    def gate(self, **answers: Answer) -> FakeGate:
        self.gates.append(FakeGate(**answers))
        return self.gates[-1]

    def start(
        self, *steps: Json, gate: FakeGate | None = None, env: dict[str, str] | None = None, **facts: Any
    ) -> subprocess.Popen[bytes]:
        script = {"version": 1, "session": facts.pop("memory", True), "steps": list(steps)}
        text = facts.pop("script", json.dumps(script))
        given: Json = {"attempt": 1, "session": "s1", "resume": False, **facts}
        launch = ADAPTER.launch(
            TurnRequest(
                run_id="r1", turn=1, role="work", prompt="play", workspace=str(self.workspace),
                folder=str(self.agent), gate=gate.address if gate else "", token="secret",
                options={"script": text}, **given,
            )
        )  # fmt: skip
        for path, content in launch.files.items():
            Path(path).write_bytes(content)
        process = subprocess.Popen(
            launch.argv,
            cwd=self.workspace,
            env={"PATH": os.environ["PATH"], "HOME": str(self.agent), **launch.env, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(launch.stdin or b"")
        process.stdin.close()
        process.stdin = None
        return process

    def play(self, *steps: Json, **facts: Any) -> Played:
        return ended(self.start(*steps, **facts))


def ended(process: subprocess.Popen[bytes], before: bytes = b"") -> Played:
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    lines = [json.loads(line) for line in (before + output).splitlines() if line.startswith(b"{")]
    return Played(process.returncode, before + output, errors, lines)


def heard(process: subprocess.Popen[bytes], word: str) -> bytes:
    """Read its lines up to the one with that word."""
    assert process.stdout is not None
    lines = b""
    while word.encode() not in lines:
        line = process.stdout.readline()
        assert line, f"it ended before it said {word}: {lines!r}"
        lines += line
    return lines


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for gate in made.gates:
        gate.close()
    for path in made.workspace.iterdir():
        if path.is_fifo():  # a tool of a test that failed may still wait at it
            os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


# --- talking ---------------------------------------------------------------------------------------------


def test_it_says_thinks_and_is_done(stage: Stage) -> None:
    played = stage.play({"say": "héllo"}, {"think": "hm"}, {"usage": {"input": 5, "usd": 0.25}}, {"sleep": 0.001})
    assert played.lines == [
        {"type": "session", "id": "s1"},
        {"type": "message", "text": "héllo"},
        {"type": "thinking", "text": "hm"},
        {"type": "usage", "input": 5, "output": 0, "cached": 0, "usd": 0.25},
        {"type": "end", "reason": "done"},
    ]
    assert (played.code, played.errors, played.outcome()) == (0, b"", Outcome())


def test_it_makes_a_session_id_when_none_is_given(stage: Stage) -> None:
    name = stage.play({"say": "x"}, session=None).lines[0]["id"]
    assert (stage.agent / f"session-{name}.json").exists()


def test_a_session_id_does_not_lead_out_of_the_folder(stage: Stage) -> None:
    assert stage.play({"say": "x"}, session="../../x").code == 0
    assert (stage.agent / "session-.._.._x.json").exists()


def test_it_does_not_import_jackline(stage: Stage) -> None:
    (stage.agent / "script.json").write_text('{"version": 1, "steps": [{"say": "x"}]}')
    env = {"JACKLINE_SCRIPT": str(stage.agent / "script.json"), "JACKLINE_AGENT_FOLDER": str(stage.agent)}
    argv = [sys.executable, "-X", "importtime", "-I", PLAYER]
    done = subprocess.run(argv, env=env, input=b"", capture_output=True, timeout=SECONDS, check=True)
    assert b"playback.steps" in done.stderr
    assert b"jackline" not in done.stderr


def test_a_long_prompt_does_not_block(stage: Stage) -> None:
    """More than a pipe holds: whoever writes it must get rid of it."""
    (stage.agent / "script.json").write_text('{"version": 1, "steps": [{"say": "x"}]}')
    env = {"JACKLINE_SCRIPT": str(stage.agent / "script.json"), "JACKLINE_AGENT_FOLDER": str(stage.agent)}
    done = subprocess.run(
        [sys.executable, "-I", PLAYER],
        input=b"x" * 2**20,
        env=env,
        capture_output=True,
        timeout=SECONDS,
        check=True,
    )
    assert b'"end"' in done.stdout


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 2, "steps": []}', '{"version": 1, "steps": [{"fly": 1}]}']
)
def test_a_script_that_it_cannot_play_is_an_error_line(stage: Stage, text: str) -> None:
    played = stage.play(script=text)
    assert (played.code, played.kinds()) == (1, ["error"])
    assert "script" in played.outcome().detail
    assert played.errors == b""


# --- calls and the gate ----------------------------------------------------------------------------------


def test_a_call_is_asked_for_run_and_reported(stage: Stage) -> None:
    gate = stage.gate()
    call = {
        "tool": "send",
        "input": {"to": "ada", "count": 2},
        "run": ["sh", "-c", "echo id-{to}-{count}; echo {workspace} {odd}; cat"],
        "external_id": "mail:{stdout}:{to}",
    }
    played = stage.play({"say": "x"}, {"call": call}, gate=gate)
    output = f'id-ada-2\n{stage.workspace} {{odd}}\n{{"to": "ada", "count": 2}}'
    assert gate.asked == [
        {"op": "prepare", "token": "secret", "tool": "send", "input": call["input"], "agent_call": "s2"},
        {
            "op": "finish",
            "token": "secret",
            "call": "c-s2",
            "ok": True,
            "exit_code": 0,
            "output": output,
            "external_id": "mail:id-ada-2:ada",
        },
    ]
    assert played.lines[2:4] == [
        {"type": "call.started", "call": "c-s2", "tool": "send", "input": call["input"]},
        {
            "type": "call.finished",
            "call": "c-s2",
            "tool": "send",
            "ok": True,
            "exit_code": 0,
            "output": output,
            "stored": False,
        },
    ]


def test_the_call_starts_only_after_the_gate_has_answered(stage: Stage) -> None:
    gate = stage.gate(prepare=lambda q: allow(q) if not (stage.workspace / "ran").exists() else None)
    played = stage.play({"call": {"tool": "t", "run": ["touch", "ran"]}}, gate=gate)
    assert played.code == 0
    assert (stage.workspace / "ran").exists()


def test_one_connection_for_all_calls(stage: Stage) -> None:
    gate = stage.gate()
    assert stage.play(*[{"call": {"tool": "t"}}] * 3, gate=gate).code == 0
    assert (gate.connections, len(gate.asked)) == (1, 6)


def test_an_input_does_not_become_a_shell_command(stage: Stage) -> None:
    gate = stage.gate()
    call = {
        "tool": "t",
        "input": {"text": "it's; touch pwned $(touch pwned)"},
        "run": "echo {text} ${HOME:+home}",
    }
    stage.play({"call": call}, gate=gate)
    assert gate.ops("finish")[0]["output"] == "it's; touch pwned $(touch pwned) home\n"
    assert not (stage.workspace / "pwned").exists()


@pytest.mark.parametrize(
    ("run", "code"),
    [("exit 3", 3), (["/does/not/exist"], 127), ("kill -9 $$", 137), (["true"], 0), (None, 0)],
)
def test_exit_codes_of_tools_are_reported_and_the_script_goes_on(stage: Stage, run: object, code: int) -> None:
    gate = stage.gate()
    call = {"tool": "t", "external_id": "x", **({"run": run} if run else {})}
    played = stage.play({"call": call}, {"say": "on"}, gate=gate)
    outcome = gate.ops("finish")[0]
    assert (outcome["exit_code"], outcome["ok"]) == (code, code == 0)
    assert outcome["external_id"] == ("x" if code == 0 else "")
    assert played.kinds()[-2:] == ["message", "end"]


def test_of_a_long_output_the_end_and_the_first_line_are_kept(stage: Stage) -> None:
    gate = stage.gate()
    run = "echo first; yes 0123456789abcde | head -c 1000000; echo last"
    stage.play({"call": {"tool": "t", "run": run, "external_id": "{stdout}"}}, gate=gate)
    outcome = gate.ops("finish")[0]
    assert len(outcome["output"]) == 65_536
    assert outcome["output"].endswith("\nlast\n")
    assert outcome["external_id"] == "first"


def test_a_tool_runs_in_its_own_session_with_the_agents_environment(stage: Stage) -> None:
    gate = stage.gate()
    run = [
        sys.executable,
        "-c",
        "import os; print(os.getsid(0) == os.getpid(), os.environ['JACKLINE_RUN_ID'])",
    ]
    stage.play({"call": {"tool": "t", "run": run}}, gate=gate)
    assert gate.ops("finish")[0]["output"] == "True r1\n"


def test_a_child_that_a_tool_leaves_with_its_output_is_not_waited_for(stage: Stage) -> None:
    gate = stage.gate()
    os.mkfifo(stage.workspace / "held")
    played = stage.play({"call": {"tool": "t", "run": "(exec cat held >&1 2>/dev/null) & echo done"}}, gate=gate)
    assert gate.ops("finish")[0]["output"] == "done\n"
    assert played.code == 0
    (stage.workspace / "held").write_text("")  # opened and closed: the child reads the end, and is gone


def test_denied_is_said_and_the_script_goes_on(stage: Stage) -> None:
    played = stage.play(
        {"call": {"tool": "send", "run": ["touch", "ran"]}}, {"say": "on"}, gate=stage.gate(prepare=deny)
    )
    assert played.kinds() == ["session", "message", "message", "end"]
    assert played.lines[1]["text"] == "send was denied: not today"
    assert not (stage.workspace / "ran").exists()


def test_denied_can_stop_the_script_and_is_asked_again_by_a_resume(stage: Stage) -> None:
    step = {"call": {"tool": "send", "on_denied": "stop"}}
    played = stage.play(step, {"say": "on"}, gate=stage.gate(prepare=deny))
    assert (played.code, played.kinds()) == (1, ["session", "message", "error"])
    assert played.outcome() == Outcome(Failure.AGENT_ERROR, "send was denied: not today")
    gate = stage.gate()
    assert stage.play(step, {"say": "on"}, gate=gate, resume=True).kinds()[-1] == "end"
    assert len(gate.ops("prepare")) == 1


def test_a_stored_result_is_used_and_nothing_runs(stage: Stage) -> None:
    gate = stage.gate(prepare=lambda _q: {"decision": "stored", "call": "c0", "output": "sent before"})
    played = stage.play({"call": {"tool": "send", "run": ["touch", "ran"]}}, gate=gate)
    assert played.kinds() == ["session", "call.finished", "end"]
    assert (played.lines[1]["output"], played.lines[1]["stored"], played.lines[1]["ok"]) == (
        "sent before",
        True,
        True,
    )
    assert gate.ops("finish") == []
    assert not (stage.workspace / "ran").exists()


def test_ask_defers_the_turn_and_a_resume_issues_the_step_again(stage: Stage) -> None:
    steps = ({"say": "a"}, {"call": {"tool": "send", "run": ["touch", "ran"]}}, {"say": "b"})
    played = stage.play(*steps, gate=stage.gate(prepare=lambda _q: {"decision": "ask", "call": "c1"}))
    assert (played.code, played.lines[-1]) == (0, {"type": "end", "reason": "deferred"})
    assert played.outcome() == Outcome(waits=WaitReason.APPROVAL)
    assert not (stage.workspace / "ran").exists()
    gate = stage.gate()
    resumed = stage.play(*steps, gate=gate, resume=True)
    assert resumed.kinds() == ["session", "call.started", "call.finished", "message", "end"]
    assert gate.ops("prepare")[0]["agent_call"] == "s2"
    assert (stage.workspace / "ran").exists()


def test_ungated_call_is_shown_and_never_asked_for(stage: Stage) -> None:
    gate = stage.gate()
    played = stage.play({"call": {"tool": "send", "ungated": True, "run": ["touch", "ran"]}}, gate=gate)
    assert played.of("call.started")[0]["call"] == "ungated-s1"
    assert gate.asked == []
    assert (stage.workspace / "ran").exists()


def assert_failed_closed(stage: Stage, played: Played, words: str) -> None:
    assert (played.code, played.lines[-1]["class"]) == (1, "ungated")
    assert words in played.lines[-1]["detail"]
    assert played.outcome().failure is Failure.UNGATED
    assert not (stage.workspace / "ran").exists()
    assert played.of("call.started") == []


TOUCH: Json = {"call": {"tool": "send", "run": ["touch", "ran"]}}


@pytest.mark.parametrize("step", [TOUCH, {"edit": {"path": "ran", "content": ""}}, {"commit": "x"}])
def test_without_a_gate_nothing_runs(stage: Stage, step: Json) -> None:
    assert_failed_closed(stage, stage.play(step), "JACKLINE_GATE is not set")


def test_a_gate_that_is_gone(stage: Stage) -> None:
    played = stage.play(TOUCH, env={"JACKLINE_GATE": str(stage.agent / "nothing")})
    assert_failed_closed(stage, played, "the gate does not answer")


def test_a_gate_that_hangs_up(stage: Stage) -> None:
    assert_failed_closed(stage, stage.play(TOUCH, gate=stage.gate(prepare=lambda _q: None)), "without an answer")


def test_a_gate_that_never_answers(stage: Stage) -> None:
    over = threading.Event()
    gate = stage.gate(prepare=lambda _question: hold(over))
    played = stage.play(TOUCH, gate=gate, env={"JACKLINE_GATE_SECONDS": "0.1"})
    over.set()
    assert_failed_closed(stage, played, "timed out")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"decision": "maybe"},
        {"decision": "allow"},
        {"ok": False, "reason": "wrong token"},
        {"decision": ["allow"]},
    ],
)
def test_an_answer_that_is_no_decision(stage: Stage, answer: Json) -> None:
    played = stage.play(TOUCH, gate=stage.gate(prepare=lambda _q: answer))
    assert_failed_closed(stage, played, answer.get("reason", "the gate gave no decision"))


def test_a_gate_that_dies_in_the_middle_of_a_call(stage: Stage) -> None:
    """The effect happened and nobody wrote it down: the turn ends, and a resume issues the call again."""
    gate = stage.gate(finish=lambda _q: None)
    played = stage.play(TOUCH, {"say": "on"}, gate=gate)
    assert (played.code, played.kinds()) == (1, ["session", "call.started", "error"])
    assert played.outcome().failure is Failure.UNGATED
    assert (stage.workspace / "ran").exists()
    again = stage.gate()
    stage.play(TOUCH, {"say": "on"}, gate=again, resume=True)
    assert [question["agent_call"] for question in again.ops("prepare")] == ["s1"]


def test_an_outcome_that_the_gate_refuses(stage: Stage) -> None:
    gate = stage.gate(finish=lambda _q: {"ok": False, "reason": "another attempt owns the run"})
    played = stage.play({"call": {"tool": "t"}}, {"say": "on"}, gate=gate)
    assert played.outcome() == Outcome(
        Failure.AGENT_ERROR, "the gate rejected the outcome: another attempt owns the run"
    )


# --- edit and commit -------------------------------------------------------------------------------------


def test_edits_are_calls(stage: Stage) -> None:
    gate = stage.gate()
    edits: list[Json] = [
        {"path": "deep/a.txt", "content": "one two one\r\n"},
        {"path": "deep/a.txt", "find": "one", "replace": "three"},
        {"path": "deep/a.txt", "append": "é\n"},
    ]
    assert stage.play(*[{"edit": edit} for edit in edits], gate=gate).code == 0
    assert (stage.workspace / "deep/a.txt").read_bytes() == "three two one\r\né\n".encode()
    assert [(question["tool"], question["input"]) for question in gate.ops("prepare")] == [
        ("edit", edit) for edit in edits
    ]


@pytest.mark.parametrize("edit", [{"path": "a", "find": "x", "replace": "y"}, {"path": ".", "content": "x"}])
def test_an_edit_that_cannot_be_made_has_failed(stage: Stage, edit: Json) -> None:
    gate = stage.gate()
    assert stage.play({"edit": edit}, {"say": "on"}, gate=gate).kinds()[-1] == "end"
    assert gate.ops("finish")[0]["ok"] is False
    assert gate.ops("finish")[0]["output"]


def test_a_denied_edit_changes_nothing(stage: Stage) -> None:
    stage.play({"edit": {"path": "a", "content": "x"}}, gate=stage.gate(prepare=deny))
    assert list(stage.workspace.iterdir()) == []


def git(stage: Stage, *words: str) -> str:
    return subprocess.check_output(["git", "-C", stage.workspace, *words], text=True).strip()


def test_commit_is_a_call_whose_external_id_is_the_commit(stage: Stage) -> None:
    git(stage, "init", "-q")
    gate = stage.gate()
    played = stage.play({"edit": {"path": "a", "content": "x"}}, {"commit": "It's a start"}, gate=gate)
    assert played.code == 0
    assert gate.ops("prepare")[1]["input"] == {"message": "It's a start"}
    assert gate.ops("finish")[1]["external_id"] == git(stage, "rev-parse", "HEAD")
    assert git(stage, "log", "-1", "--format=%s/%an/%ae") == "It's a start/scripted/scripted@localhost"


def test_commit_keeps_the_author_that_git_knows_and_fails_when_there_is_nothing(stage: Stage) -> None:
    git(stage, "init", "-q")
    git(stage, "config", "user.name", "Ada")
    git(stage, "config", "user.email", "ada@example.org")
    gate = stage.gate()
    stage.play({"edit": {"path": "a", "content": "x"}}, {"commit": "one"}, {"commit": "two"}, gate=gate)
    assert git(stage, "log", "--format=%s/%an/%ae") == "one/Ada/ada@example.org"
    assert [question["ok"] for question in gate.ops("finish")] == [True, True, False]


# --- ends ------------------------------------------------------------------------------------------------


def test_limit_with_a_known_reset(stage: Stage) -> None:
    played = stage.play({"limit": {"resets_at": 1_900_000_000, "text": "full"}})
    assert played.code == 1
    assert played.outcome() == Outcome(Failure.LIMIT, "full", resets_at=1_900_000_000_000)


def test_limit_with_a_reset_from_now_and_with_none(stage: Stage) -> None:
    before = time.time()
    resets_at = stage.play({"limit": {"resets_in": 60}}).outcome().resets_at
    assert resets_at is not None
    assert before + 60 - 0.001 <= resets_at / 1000 <= time.time() + 60.001
    assert stage.play({"limit": {}}).outcome() == Outcome(Failure.LIMIT, "usage limit reached")


def test_error_exit_and_crash(stage: Stage) -> None:
    played = stage.play({"error": {"class": "overloaded", "detail": "busy"}})
    assert (played.code, played.outcome()) == (1, Outcome(Failure.OVERLOADED, "busy"))
    played = stage.play({"exit": 7}, {"say": "never"})
    assert (played.code, played.kinds()) == (7, ["session"])
    assert stage.play({"exit": 0}).outcome().failure is Failure.NO_TERMINAL_EVENT


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM", "SIGINT"])
def test_crash_dies_of_the_signal_even_of_an_ignored_one(stage: Stage, name: str) -> None:
    played = stage.play({"ignore": ["SIGTERM", "SIGINT"]}, {"crash": name}, {"say": "never"})
    assert played.code == -signal.Signals[name]
    assert played.outcome() == Outcome(Failure.CRASHED, f"killed by {name}")
    assert played.errors == b""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_hang_hangs_until_it_is_killed(stage: Stage, number: int) -> None:
    process = stage.start({"say": "here"}, {"hang": True})
    before = heard(process, "here")
    process.send_signal(number)
    played = ended(process, before)
    assert (played.code, played.errors) == (-number, b"")


def test_an_ignored_signal_does_not_end_it(stage: Stage) -> None:
    os.mkfifo(stage.workspace / "go")
    process = stage.start({"ignore": ["SIGTERM"]}, {"say": "ready"}, {"wait_for": "go"}, {"say": "still here"})
    before = heard(process, "ready")
    process.terminate()
    (stage.workspace / "go").write_text("x")
    assert ended(process, before).kinds() == ["session", "message", "message", "end"]


def test_nobody_listens_any_more(stage: Stage) -> None:
    process = stage.start({"say": "here"}, {"wait_for": "go"}, {"say": "to whom?"}, {"touch": "after"})
    heard(process, "here")
    assert process.stdout is not None
    process.stdout.close()
    (stage.workspace / "go").touch()
    assert process.wait(SECONDS) == 1
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert not (stage.workspace / "after").exists()


# --- files to wait on ------------------------------------------------------------------------------------


def test_touch_and_wait_for_keep_two_in_step(stage: Stage) -> None:
    process = stage.start({"touch": "deep/here"}, {"wait_for": {"file": "go", "seconds": SECONDS}}, {"say": "gone"})
    wait_until((stage.workspace / "deep/here").exists)
    assert process.poll() is None
    (stage.workspace / "go").touch()
    assert ended(process).kinds() == ["session", "message", "end"]


def test_touching_a_fifo_waits_for_its_reader(stage: Stage) -> None:
    os.mkfifo(stage.workspace / "here")
    process = stage.start({"touch": "here"})
    assert (stage.workspace / "here").read_bytes() == b""
    assert ended(process).code == 0


def test_waiting_in_vain_is_an_error(stage: Stage) -> None:
    os.mkfifo(stage.workspace / "silent")
    for name in ("nothing", "silent"):
        played = stage.play({"wait_for": {"file": name, "seconds": 0.05}})
        assert played.outcome() == Outcome(Failure.AGENT_ERROR, f"waited 0.05 s for {name}")


def test_a_file_that_cannot_be_made_names_the_step(stage: Stage) -> None:
    (stage.workspace / "file").touch()
    played = stage.play({"say": "x"}, {"touch": "file/inside"})
    assert played.outcome().detail.startswith("step 2 (touch): ")
    assert played.errors == b""


# --- leftovers and garbage -------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason=f"{NOT_POSSIBLE}looks into /proc")
def test_daemon_leaves_session_environment_and_output_behind(stage: Stage) -> None:
    played = stage.play({"daemon": {"seconds": 600, "touch": "late"}}, {"say": "on"})
    pid = int((stage.agent / "daemon-1.pid").read_text())
    try:
        assert played.kinds() == ["session", "message", "end"]
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert os.getsid(pid) != os.getsid(0)
        assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)} == {"/dev/null"}
        assert not (stage.workspace / "late").exists()
    finally:
        os.kill(pid, signal.SIGKILL)


def test_daemon_makes_its_file_at_the_end_of_its_life(stage: Stage) -> None:
    assert stage.play({"daemon": {"seconds": 0, "touch": "late"}}).code == 0
    wait_until((stage.workspace / "late").exists)


@pytest.mark.parametrize("kind", ["binary", "lines", "long_line"])
@pytest.mark.parametrize("newline", [True, False])
def test_garbage_is_exactly_as_long_as_asked_for(stage: Stage, kind: str, newline: bool) -> None:
    step = {"garbage": {"kind": kind, "bytes": 3_000_001, "newline": newline}}
    played = stage.play(step, {"garbage": {"kind": "lines", "bytes": 1}}, {"say": "on"})
    start = played.output.index(b"\n") + 1
    garbage = played.output[start : start + 3_000_001]
    assert garbage.endswith(b"\n") is newline
    assert played.output[start + 3_000_001 :].startswith(b"\n{")
    expected = {"binary": newline, "lines": True, "long_line": False}[kind]
    assert (b"\n" in garbage[:-1]) is expected
    assert played.outcome() == Outcome()


def test_garbage_on_standard_error(stage: Stage) -> None:
    played = stage.play({"garbage": {"kind": "binary", "bytes": 100_000, "stream": "stderr"}})
    assert (len(played.errors), played.kinds()) == (100_000, ["session", "end"])


def peak_kilobytes(stage: Stage, *steps: Json) -> tuple[int, int]:
    """How much memory it needed at most, and how many bytes it printed."""
    process = stage.start(*steps)
    assert process.stdout is not None
    assert process.stderr is not None
    read = 0
    while chunk := os.read(process.stdout.fileno(), 2**16):
        read += len(chunk)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    assert process.returncode == 0
    return used.ru_maxrss // (1024 if sys.platform == "darwin" else 1), read


def test_garbage_needs_no_memory(stage: Stage) -> None:
    quiet, _ = peak_kilobytes(stage, {"say": "x"})
    loud, read = peak_kilobytes(stage, {"garbage": {"kind": "binary", "bytes": 50_000_000, "newline": False}})
    assert read > 50_000_000
    assert loud - quiet < 8_000


# --- sessions --------------------------------------------------------------------------------------------


def test_a_killed_call_is_issued_again_by_a_resume_and_finished_steps_are_not(stage: Stage) -> None:
    for name in ("in", "out"):
        os.mkfifo(stage.workspace / name)
    steps: tuple[Json, ...] = (
        {"call": {"tool": "first"}},
        {"call": {"tool": "slow", "run": "echo x > in; cat out; echo x >> effects"}},
        {"say": "after"},
    )
    gate = stage.gate()
    process = stage.start(*steps, gate=gate)
    (stage.workspace / "in").read_text()  # the tool runs
    process.kill()
    assert process.wait(SECONDS) == -signal.SIGKILL
    (stage.workspace / "out").write_text("")  # the tool outlived the agent, and does its work
    ended(process)
    wait_until((stage.workspace / "effects").exists)
    assert [question["tool"] for question in gate.ops("prepare")] == ["first", "slow"]
    assert len(gate.ops("finish")) == 1

    again = stage.gate(prepare=lambda _q: {"decision": "stored", "call": "c-s2", "output": ""})
    resumed = stage.play(*steps, gate=again, resume=True, attempt=2)
    assert [(question["tool"], question["agent_call"]) for question in again.asked] == [("slow", "s2")]
    assert resumed.kinds() == ["session", "call.finished", "message", "end"]
    assert (stage.workspace / "effects").read_text() == "x\n"


def test_a_resume_after_the_end_has_nothing_left_to_do(stage: Stage) -> None:
    stage.play({"say": "a"})
    assert stage.play({"say": "a"}, resume=True).kinds() == ["session", "end"]


def test_a_fresh_start_of_a_known_session_begins_at_the_top(stage: Stage) -> None:
    stage.play({"say": "a"})
    assert stage.play({"say": "a"}).kinds() == ["session", "message", "end"]


def test_sessions_are_apart(stage: Stage) -> None:
    stage.play({"say": "a"}, session="one")
    played = stage.play({"say": "a"}, session="two", resume=True)
    assert (played.code, played.kinds()) == (1, ["error"])
    assert played.outcome() == Outcome(Failure.AGENT_ERROR, "session not found", session_lost=True)


def test_a_damaged_session_is_an_error(stage: Stage) -> None:
    (stage.agent / "session-s1.json").write_text("{")
    assert "session cannot be read" in stage.play({"say": "a"}, resume=True).outcome().detail


def test_an_agent_without_memory_starts_from_the_top(stage: Stage) -> None:
    steps = ({"call": {"tool": "send"}}, {"crash": "SIGKILL", "when": {"attempt": 1}})
    for attempt in (1, 2):
        gate = stage.gate()
        stage.play(*steps, gate=gate, memory=False, attempt=attempt, resume=attempt > 1)
        assert len(gate.ops("prepare")) == 1
    assert not list(stage.agent.glob("session-*"))


def test_conditions_on_the_attempt(stage: Stage) -> None:
    conditions: list[Json] = [
        {"attempt": 2},
        {"attempt": [1, 3]},
        {"attempt_from": 2},
        {"attempt_to": 2},
        {"attempt_from": 2, "attempt_to": 2},
        {"attempt": [1, 2], "attempt_from": 2},
        {},
    ]
    steps: list[Json] = [{"say": str(number), "when": when} for number, when in enumerate(conditions)]
    said = {
        attempt: "".join(line["text"] for line in stage.play(*steps, attempt=attempt).of("message"))
        for attempt in (1, 2, 3)
    }
    assert said == {1: "136", 2: "023456", 3: "126"}


# --- examples --------------------------------------------------------------------------------------------


def example(name: str) -> str:
    return (ROOT / "examples" / "scripts" / name).read_text()


def test_example_hello(stage: Stage) -> None:
    assert stage.play(script=example("hello.json")).kinds() == [
        "session",
        "thinking",
        "message",
        "usage",
        "end",
    ]


def test_example_edit_test_send(stage: Stage) -> None:
    git(stage, "init", "-q")
    gate = stage.gate()
    assert stage.play(script=example("edit-test-send.json"), gate=gate).outcome() == Outcome()
    assert all(question["ok"] for question in gate.ops("finish"))
    assert gate.ops("finish")[-1]["external_id"] == "message-1"
    outbox = stage.workspace.parent / "outbox.txt"
    assert outbox.read_text() == "ada@example.org: The greeting is polite now.\n"
    assert git(stage, "status", "--porcelain") == ""


def test_example_limit(stage: Stage) -> None:
    assert stage.play(script=example("limit.json")).outcome().failure is Failure.LIMIT
    resumed = stage.play(script=example("limit.json"), attempt=2, resume=True)
    assert resumed.kinds() == ["session", "message", "end"]


def test_example_crash_once(stage: Stage) -> None:
    gate = stage.gate()
    assert stage.play(script=example("crash-once.json"), gate=gate).outcome().failure is Failure.CRASHED
    assert stage.play(script=example("crash-once.json"), gate=gate, attempt=2, resume=True).outcome() == Outcome()
    assert (stage.workspace / "notes.txt").read_text() == "one line\n"
