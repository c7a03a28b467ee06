"""The ACP client as a real process, with a tiny agent behind it; and with the real ones, where they are."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jackline.agents.acp import ADAPTER
from jackline.domain.outcome import Scope, Usage
from jackline.domain.states import Failure, WaitReason
from jackline.fake_model.pointing import point
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from tests.real_agents import binary
from tests.support.gate import Json, ask, deny
from tests.support.helpers import Done, Stage, heard_until, is_alive, wait_until

AGENT = str(Path(__file__).parents[1] / "programs" / "acp_agent.py")
SESSION = "session-of-the-agent"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(ADAPTER, tmp_path)
    yield made
    made.close()


def words(*parts: str) -> tuple[str, ...]:
    return (sys.executable, AGENT, *parts)


def play(stage: Stage, *parts: str, prompt: str = "do it", **facts: Any) -> Done:
    return stage.play(prompt, arguments=words(*parts), **facts)


def test_words_come_together_and_the_session_first(stage: Stage) -> None:
    done = play(stage, "noise", "talk", "usage")
    assert (done.code, done.outcome.failure) == (0, None)
    assert done.kinds() == ["session", "thinking", "usage", "message", "usage", "end"]
    assert done.texts("session") == [SESSION]
    assert done.texts("thinking") == ["I think"]
    assert done.texts() == ["so I am"]
    cost, tokens = done.of("usage")
    assert (cost.usage, cost.scope) == (Usage(usd_micros=250_000), Scope.SESSION)
    assert (tokens.usage, tokens.scope) == (Usage(1110, 7, 100), Scope.STEP)
    assert "Loaded cached credentials." in done.errors


def test_tokens_where_another_agent_tells_them(stage: Stage) -> None:
    (tokens,) = play(stage, "quota").of("usage")
    assert (tokens.usage, tokens.scope) == (Usage(8, 3), Scope.TURN)


def test_a_large_prompt(stage: Stage) -> None:
    assert play(stage, "echo", prompt="x" * 2**20 + "0123456789").texts() == [f"{2**20 + 10} 0123456789"]


@pytest.mark.parametrize("part", ["ask", "ask-late"])
def test_leave_is_the_gates_to_give(stage: Stage, part: str) -> None:
    done = play(stage, part)
    (asked,) = stage.gate.ops("prepare")
    assert (asked["tool"], asked["input"], asked["agent_call"]) == ("shell", {"command": "echo hi"}, "t1")
    (finished,) = stage.gate.ops("finish")
    assert (finished["call"], finished["ok"], finished["exit_code"], finished["output"]) == ("c-t1", True, 0, "hi")
    assert [one.data["call"] for one in done.of("call.started")] == ["c-t1"]
    assert [one.data["call"] for one in done.of("call.finished")] == ["c-t1"]
    assert done.texts() == ["[yes]"]


@pytest.mark.parametrize("part", ["ask", "ask-late"])
def test_a_denied_call_is_rejected_and_was_never_started(stage: Stage, part: str) -> None:
    stage.gate.prepare = deny
    done = play(stage, part)
    assert done.texts() == ["shell was denied: not today", "[no]"]
    assert done.of("call.started") == []
    assert stage.gate.ops("finish") == []
    assert done.outcome.failure is None


def test_what_was_done_before_is_not_done_again(stage: Stage) -> None:
    stage.gate.prepare = lambda _question: {"decision": "stored", "call": "c0", "output": "sent"}
    assert play(stage, "ask").texts() == ["shell was done before and is not repeated: sent", "[no]"]


def test_a_call_that_needs_a_person_ends_the_turn(stage: Stage) -> None:
    stage.gate.prepare = ask
    done = play(stage, "ask-late", "ask")
    assert (done.code, done.outcome.waits) == (0, WaitReason.APPROVAL)
    assert done.texts() == ["[cancelled][cancelled]"]
    assert len(stage.gate.ops("prepare")) == 1
    assert done.of("call.started") == []


def test_without_a_gate_nothing_is_allowed(stage: Stage) -> None:
    stage.gate.prepare = lambda _question: None
    done = play(stage, "ask")
    assert done.outcome.failure is Failure.UNGATED
    assert "[yes]" not in done.texts()


def test_a_call_without_leave_is_told(stage: Stage) -> None:
    done = play(stage, "run", "run-long")
    (started,) = done.of("call.started")
    assert started.data["tool"] == "read"
    assert started.data["input"] == {"title": "Looking", "paths": ["/x"]}
    (finished,) = done.of("call.finished")
    assert (finished.data["call"], finished.data["ok"], finished.data["exit_code"]) == ("t2", False, 4)
    assert stage.gate.asked == []


def test_a_call_that_takes_long_is_told_when_it_runs(stage: Stage) -> None:
    process = stage.start(arguments=words("run-long", "wait"))
    before = heard_until(process, "call.started")
    process.terminate()
    done = stage.ended(process, before)
    assert [one.data["tool"] for one in done.of("call.started")] == ["mcp_tool"]


def test_writing_goes_through_the_gate(stage: Stage) -> None:
    path = stage.workspace / "a" / "b.txt"
    assert play(stage, "write", prompt=str(path)).texts() == ["{}"]
    assert path.read_text() == "written"
    assert [one["tool"] for one in stage.gate.ops("prepare")] == ["write"]
    stage.gate.prepare = deny
    assert play(stage, "write", prompt=str(stage.workspace / "c")).texts() == ['"denied: not today"']
    assert not (stage.workspace / "c").exists()


def test_files_elsewhere_are_refused(stage: Stage) -> None:
    (said,) = play(stage, "write", prompt=str(stage.home / "x")).texts()
    assert "is outside the workspace" in said
    assert not (stage.home / "x").exists()


def test_reading(stage: Stage) -> None:
    (stage.workspace / "x").write_text("1\n2\n3\n")
    assert play(stage, "read", prompt=str(stage.workspace / "x")).texts() == ['{"content": "2\\n"}']
    (said,) = play(stage, "read", prompt=str(stage.workspace / "y")).texts()
    assert "No such file" in said


def test_resume_loads_and_tells_nothing_of_the_past(stage: Stage) -> None:
    done = play(stage, "echo", session="s9", resume=True)
    assert done.kinds() == ["session", "message", "end"]
    assert done.texts("session") == ["s9"]
    assert done.texts() == ["5 do it"]


@pytest.mark.parametrize("parts", [("session/load=-32602",), ("forgetful",)])
def test_an_unknown_session_is_lost(stage: Stage, parts: tuple[str, ...]) -> None:
    done = play(stage, *parts, session="s9", resume=True)
    assert (done.code, done.outcome.failure, done.outcome.session_lost) == (1, Failure.AGENT_ERROR, True)


@pytest.mark.parametrize(
    ("part", "failure", "detail"),
    [
        ("session/new=-32000", Failure.AUTHENTICATION, "no: because; start the agent once"),
        ("session/prompt=-32000", Failure.AUTHENTICATION, "no: because"),
        ("session/prompt=401", Failure.AUTHENTICATION, "no: because"),
        ("session/prompt=404", Failure.MODEL_NOT_FOUND, "no: because"),
        ("session/prompt=429", Failure.LIMIT, "no: because"),
        ("session/prompt=500", Failure.OVERLOADED, "no: because"),
        ("session/prompt=-32603", Failure.AGENT_ERROR, "no: because"),
        ("initialize=-32603", Failure.AGENT_ERROR, "no: because"),
        ("new", Failure.UNAVAILABLE, "speaks version 9 of ACP"),
        ("exit", Failure.CRASHED, "with exit code 7"),
        ("stop=max_tokens", Failure.CONTEXT_TOO_LONG, "ran out of tokens"),
        ("stop=refusal", Failure.AGENT_ERROR, "refused"),
        ("stop=cancelled", Failure.AGENT_ERROR, "not by us"),
        ("stop=whatever", Failure.AGENT_ERROR, "the agent stopped: whatever"),
    ],
)
def test_errors_have_their_class(stage: Stage, part: str, failure: Failure, detail: str) -> None:
    done = play(stage, part)
    assert (done.code, done.outcome.failure) == (1, failure)
    assert detail in done.outcome.detail
    assert "Traceback" not in done.errors


def test_a_missing_program_is_unavailable(stage: Stage) -> None:
    done = stage.play(arguments=("no-such-agent", "--acp"))
    assert done.outcome.failure is Failure.UNAVAILABLE
    assert "cannot start no-such-agent" in done.outcome.detail


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("models", {"method": "session/set_model", "sessionId": SESSION, "modelId": "m"}),
        ("options", {"method": "session/set_config_option", "sessionId": SESSION, "configId": "llm", "value": "m"}),
    ],
)
def test_a_model_is_chosen_by_the_way_that_the_agent_knows(stage: Stage, part: str, expected: Json) -> None:
    assert play(stage, part, model="m").outcome.failure is None
    assert json.loads((stage.workspace / "model.json").read_text()) == expected


def test_a_model_that_is_refused_or_cannot_be_chosen(stage: Stage) -> None:
    done = play(stage, "models", "session/set_model=-32602", model="m")
    assert (done.outcome.failure, done.texts("session")) == (Failure.MODEL_NOT_FOUND, [SESSION])
    assert "takes no model over ACP" in play(stage, model="m").outcome.detail


def test_the_agent_sees_neither_gate_nor_token(stage: Stage) -> None:
    (shown,) = play(stage, "environment").texts()
    assert json.loads(shown)["JACKLINE_RUN_ID"] == "r1"
    assert "secret" not in shown
    assert stage.gate.address not in shown


def test_told_to_end_it_cancels_and_the_agents_shell_dies(stage: Stage) -> None:
    process = stage.start(arguments=words("wait"))
    shell = stage.workspace / "shell.pid"
    wait_until(shell.exists)
    assert is_alive(int(shell.read_text()))
    process.send_signal(signal.SIGTERM)
    done = stage.ended(process)
    assert (done.code, done.kinds()) == (143, ["session"])
    assert not is_alive(int(shell.read_text()))


def test_an_agent_that_does_not_end_is_ended(stage: Stage) -> None:
    stubborn = (
        "import signal,sys,os\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('pid','w').write(str(os.getpid()))"
    )
    stubborn += '\nprint(\'{"id": 1, "error": {"code": 1, "message": "no"}}\', flush=True)\nsignal.pause()'
    done = stage.play(arguments=(sys.executable, "-c", stubborn))
    assert done.outcome.detail == "no"
    assert not is_alive(int((stage.workspace / "pid").read_text()))


# --- the real ones, against the fake model -----------------------------------------------------------------

REAL = {"gemini": ("--acp", "--skip-trust"), "opencode": ("acp",)}
REAL_SECONDS = 90  # opencode takes five by itself, on a machine that does nothing else


@contextmanager
def real(stage: Stage, name: str, *replies: Reply) -> Iterator[tuple[str, ...]]:
    """Its command line, with its model pointed at the fake one."""
    argv = (binary(name), *REAL[name])
    with FakeModel(Script(replies)) as model:
        pointed = point(name, model.address, str(stage.home))
        for path, content in pointed.files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        stage.env.update(pointed.env)
        yield argv


@pytest.mark.full
@pytest.mark.parametrize("name", REAL)
def test_a_real_agent_calls_its_tools(stage: Stage, name: str) -> None:
    path = stage.workspace / "written.txt"
    replies = (Reply(say="first", shell="echo ran > ran.txt"), Reply(write=(str(path), "heron")), Reply(say="done"))
    with real(stage, name, *replies) as argv:
        done = stage.play(arguments=argv, seconds=REAL_SECONDS)
    assert done.outcome.failure is None, done.errors
    assert done.kinds()[0] == "session"
    assert done.texts() == ["first", "done"]
    assert [one.data["tool"] for one in done.of("call.started")] == ["shell", "edit"]
    assert [one.data["ok"] for one in done.of("call.finished")] == [True, True]
    assert "echo ran > ran.txt" in done.of("call.started")[0].data["input"]["command"]
    assert ((stage.workspace / "ran.txt").read_text(), path.read_text()) == ("ran\n", "heron")
    assert any(one.usage and one.usage.tokens_input for one in done.of("usage"))


@pytest.mark.full
@pytest.mark.parametrize("name", REAL)
def test_a_real_agent_does_not_know_the_session(stage: Stage, name: str) -> None:
    unknown = "00000000-0000-4000-8000-00000000000a"
    with real(stage, name) as argv:
        done = stage.play(arguments=argv, session=unknown, resume=True, seconds=REAL_SECONDS)
    assert (done.outcome.failure, done.outcome.session_lost) == (Failure.AGENT_ERROR, True)


@pytest.mark.full
def test_a_real_agent_goes_on_with_its_session(stage: Stage) -> None:
    """Not gemini: it loses a session that is loaded in the minute in which it was made."""
    with real(stage, "opencode", Reply(say="the word is heron"), Reply(say="again")) as argv:
        first = stage.play(arguments=argv, seconds=REAL_SECONDS)
        (session,) = first.texts("session")
        second = stage.play(arguments=argv, session=session, resume=True, seconds=REAL_SECONDS)
    assert (second.outcome.failure, second.texts(), second.texts("session")) == (None, ["again"], [session])


@pytest.mark.full
@pytest.mark.parametrize("name", REAL)
def test_a_real_agents_shell_dies_when_we_are_told_to_end(stage: Stage, name: str) -> None:
    with real(stage, name, Reply(shell="echo $$ > new; mv new pid; sleep 600")) as argv:
        process = stage.start(arguments=argv)
        wait_until((stage.workspace / "pid").exists, REAL_SECONDS)
        process.terminate()
        done = stage.ended(process, seconds=REAL_SECONDS)
    pid = int((stage.workspace / "pid").read_text())
    wait_until(lambda: not is_alive(pid))
    assert done.code == 143


@pytest.mark.full
def test_a_real_agents_wrong_key_is_authentication(stage: Stage) -> None:
    with real(stage, "gemini", *[Reply(status=401, message="bad key")] * 9) as argv:
        done = stage.play(arguments=argv, seconds=REAL_SECONDS)
    assert done.outcome.failure is Failure.AUTHENTICATION
