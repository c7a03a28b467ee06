"""The adapter of Qwen Code, against lines that the real one printed (tests/agents/recorded/qwen)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents.qwen import ADAPTER, DECLARATION
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage, UsageMeter
from jackline.domain.states import Failure
from jackline.errors import UsageError
from tests.support.adapters import Ear, turn_request

SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
PACKAGE = "/opt/qwen-code"
FOLDER = "/home/ada/runs/r/agent"
LOST = f"No saved session found with ID {SESSION}. Run `qwen --resume` without an ID to choose from existing sessions."
EAR = Ear(ADAPTER)
hear, outcome_of = EAR.hear, EAR.outcome_of


def one(**fields: object) -> tuple[AgentEvent, ...]:
    return ADAPTER.parse(json.dumps(fields).encode() + b"\n")


def failed(message: str) -> tuple[AgentEvent, ...]:
    return one(type="result", subtype="error_during_execution", is_error=True, error={"message": message})


def request(**more: Any) -> TurnRequest:
    return turn_request(**{"folder": FOLDER, "session": SESSION, "binary": f"{PACKAGE}/cli-entry.js", **more})


# --- launch


def test_node_runs_the_program_beside_the_launcher() -> None:
    launch = ADAPTER.launch(request(arguments=("--debug",), model="m"))
    assert launch.argv == (
        "node", "--expose-gc", f"{PACKAGE}/cli.js", "--output-format", "stream-json", "--yolo",
        "--session-id", SESSION, "--model=m", "--debug",
    )  # fmt: skip
    assert launch.env["QWEN_CODE_NO_RELAUNCH"] == "true"
    assert launch.env["QWEN_TELEMETRY_ENABLED"] == launch.env["QWEN_USAGE_STATISTICS_ENABLED"] == "false"
    assert launch.env["NODE_OPTIONS"].startswith("--import=data:text/javascript,")
    assert launch.stdin == b"hello"


@pytest.mark.parametrize("binary", [f"{PACKAGE}/cli.js", "/opt/other/main.mjs"])
def test_another_script_is_the_program_itself(binary: str) -> None:
    assert ADAPTER.launch(request(binary=binary)).argv[:3] == ("node", "--expose-gc", binary)


def test_a_wrapper_is_started_as_it_is() -> None:
    assert ADAPTER.launch(request(binary="/usr/local/bin/qwen")).argv[:2] == ("/usr/local/bin/qwen", "--output-format")


def test_resume_and_fork_name_the_session_that_is_there() -> None:
    resumed = ADAPTER.launch(request(resume=True)).argv
    assert resumed[-2:] == ("--resume", SESSION)
    forked = ADAPTER.launch(request(fork_of="old", session="new")).argv
    assert forked[-3:] == ("--resume", "old", "--fork-session")
    assert "new" not in forked, "the CLI refuses an id for a fork, and tells the one it chose"


@pytest.mark.parametrize("flag", ["-p", "--input-format=stream-json", "--continue", "--fork-session", "--worktree"])
def test_arguments_that_take_something_from_jackline_are_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=rf"qwen does not accept {flag.partition('=')[0]} here: .*; remove it"):
        ADAPTER.launch(request(arguments=(flag,)))


def test_the_users_own_approval_mode_takes_the_place_of_ours() -> None:
    assert "--yolo" not in ADAPTER.launch(request(arguments=("--approval-mode", "plan"))).argv


def test_the_files_are_the_runs_own_and_leave_the_login_alone() -> None:
    launch = ADAPTER.launch(request())
    assert set(launch.files) == {f"{FOLDER}/qwen-defaults.json", f"{FOLDER}/qwen-trusted.json"}
    defaults = json.loads(launch.files[launch.env["QWEN_CODE_SYSTEM_DEFAULTS_PATH"]])
    assert defaults["memory"] == dict.fromkeys(defaults["memory"], False)
    assert defaults["model"] == {"generationConfig": {"maxRetries": 0}}
    assert "security" not in defaults
    trusted = json.loads(launch.files[launch.env["QWEN_CODE_TRUSTED_FOLDERS_PATH"]])
    assert trusted == {"/home/ada/project": "TRUST_FOLDER"}
    assert "QWEN_CODE_SYSTEM_SETTINGS_PATH" not in launch.env, "an administrator's stay in force"


def test_defaults_that_somebody_named_are_kept() -> None:
    launch = ADAPTER.launch(request(environ={"QWEN_CODE_SYSTEM_DEFAULTS_PATH": "/etc/own.json"}))
    assert "QWEN_CODE_SYSTEM_DEFAULTS_PATH" not in launch.env


def test_effort_goes_by_a_setting_that_wins_over_the_users() -> None:
    launch = ADAPTER.launch(request(effort="high"))
    settings = launch.files[launch.env["QWEN_CODE_SYSTEM_SETTINGS_PATH"]]
    assert json.loads(settings) == {"model": {"reasoningEffort": "high"}}
    assert "high" in DECLARATION.efforts


def test_the_declaration_says_what_the_cli_can() -> None:
    assert DECLARATION.model_variables == ("QWEN_MODEL",)
    assert {"OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY", "QWEN_HOME"} <= set(DECLARATION.passes)
    assert not any(one.endswith("*") for one in DECLARATION.passes)
    assert "QWEN_CODE_UNATTENDED_RETRY" not in DECLARATION.passes, "it would wait for hours"
    assert "QWEN_*" not in DECLARATION.passes


# --- parse


def test_a_turn_with_tools() -> None:
    kinds = [one.kind for one in hear("tools") if one.kind != "usage"]
    assert kinds == [
        "session", "thinking", "call.started", "call.finished", "call.started", "call.finished", "message", "end",
    ]  # fmt: skip


def test_a_command_that_failed_tells_its_exit_code() -> None:
    first, second = (one.data for one in hear("tools") if one.kind == "call.finished")
    assert (first["ok"], first["exit_code"]) == (False, 3)
    assert second["ok"] is True
    assert "exit_code" not in second


def test_the_exit_code_is_the_clis_and_not_one_that_the_command_printed() -> None:
    words = "Command: x\nOutput: Exit Code: 7\nExit Code: 8\nError: (none)\nExit Code: 3\nSignal: (none)"
    block = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": words}
    (heard,) = one(type="user", message={"content": [block]})
    assert heard.data["exit_code"] == 3


@pytest.mark.parametrize(("name", "usage"), [("tools", Usage(33, 21, 3)), ("resumed", Usage(11, 7, 0))])
def test_usage_is_added_up_from_the_messages(name: str, usage: Usage) -> None:
    meter = UsageMeter(before=Usage(1000, 1000, 1000))
    figures = [one for one in hear(name) if one.usage is not None]
    assert {one.scope for one in figures} == {Scope.MESSAGE}
    for figure in figures:
        meter.add(figure)
    assert meter.total == usage


def test_the_sum_of_the_session_is_not_taken() -> None:
    line = EAR.lines("resumed")[-1]
    assert json.loads(line)["usage"]["input_tokens"] == 44
    assert [one.kind for one in ADAPTER.parse(line)] == ["end"]


def test_what_a_subagent_says_is_not_the_agents_message() -> None:
    blocks = [{"type": "text", "text": "inner"}, {"type": "tool_use", "id": "t", "name": "x", "input": {}}]
    heard = one(type="assistant", parent_tool_use_id="p", message={"id": "m", "content": blocks})
    assert [one.kind for one in heard] == ["call.started", "usage"]


def test_retries_are_told() -> None:
    (heard,) = one(type="system", subtype="retry", data={"reason": "retry", "attempt": 1, "delayMs": 1000})
    assert heard == AgentEvent("retry", "retry", {"attempt": 1, "delay_ms": 1000, "status": None})


@given(st.binary(max_size=200))
def test_no_line_raises(line: bytes) -> None:
    ADAPTER.parse(line)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=9), lambda inner: st.lists(inner) |
                    st.dictionaries(st.sampled_from(["type", "content", "error", "message", "usage", "id"]),
                                    inner), max_leaves=8),
       st.sampled_from(["system", "assistant", "user", "result", "stream_event"]))  # fmt: skip
def test_no_shape_raises(value: object, kind: str) -> None:
    fields = {"type": kind, "subtype": "retry", "session_id": value, "data": value, "message": value, "error": value}
    ADAPTER.parse(json.dumps(fields).encode())
    ADAPTER.parse(json.dumps({**fields, "message": {"content": value, "usage": value, "id": value}}).encode())


# --- classify


def test_an_answer_that_speaks_of_limits_is_a_good_one() -> None:
    assert any("429 rate limit" in one.text for one in hear("tools"))
    assert outcome_of("tools", Exit(0)) == Outcome()


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("401", Failure.AUTHENTICATION),
        ("404", Failure.MODEL_NOT_FOUND),
        ("429", Failure.LIMIT),
        ("500", Failure.OVERLOADED),
        ("refused", Failure.CONNECTIVITY),
        ("drop_middle", Failure.CONNECTIVITY),
    ],
)
def test_errors_of_the_provider(name: str, failure: Failure) -> None:
    outcome = outcome_of(name, Exit(1))
    assert outcome.failure is failure
    assert outcome.detail.startswith("[API Error: ")
    assert not outcome.session_lost


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        ("[API Error: 400 This model's maximum context length is 8 tokens]", Failure.CONTEXT_TOO_LONG),
        ("[API Error: Context is too large to send safely after automatic compression.]", Failure.CONTEXT_TOO_LONG),
        (
            "[API Error: Model request exceeds the endpoint request-body limit (HTTP 413) and so]",
            Failure.CONTEXT_TOO_LONG,
        ),
        ("[API Error: 400 Arrearage: access denied, your account is overdue]", Failure.BILLING),
        ("[API Error: 402 pay first]", Failure.BILLING),
        ("[API Error: 403 no]", Failure.AUTHENTICATION),
        ("[API Error: 429 You exceeded your current quota, check your plan and billing details]", Failure.LIMIT),
        ("[API Error: 503 busy]", Failure.OVERLOADED),
        ("[API Error: 400 a job was terminated]", Failure.AGENT_ERROR),
        ("No auth type is selected. Please configure an auth type", Failure.AUTHENTICATION),
        ("Reached max session turns for this session.", Failure.AGENT_ERROR),
    ],
)
def test_the_clis_error_line_decides(message: str, failure: Failure) -> None:
    assert ADAPTER.classify(Exit(1), failed(message), "").failure is failure


def test_the_models_words_decide_nothing() -> None:
    said = one(type="assistant", message={"content": [{"type": "text", "text": "[API Error: 401 no]"}]})
    end = one(type="result", subtype="success", is_error=False)
    assert ADAPTER.classify(Exit(0), said + end, "") == Outcome()


def test_an_error_before_a_good_result_was_got_over() -> None:
    good = one(type="result", subtype="success", is_error=False)
    assert ADAPTER.classify(Exit(0), failed("[API Error: 500 x]") + good, "") == Outcome()


def test_an_unknown_session_is_lost() -> None:
    outcome = ADAPTER.classify(Exit(1), (), f"Ripgrep not available.\n{LOST}\n")
    assert (outcome.session_lost, outcome.detail) == (True, LOST)


def test_a_session_that_exists_already_is_not_lost() -> None:
    outcome = ADAPTER.classify(Exit(1), (), f"Error: Session Id {SESSION} already exists (active or archived).")
    assert (outcome.failure, outcome.session_lost) == (Failure.AGENT_ERROR, False)


@pytest.mark.parametrize(
    ("exit_", "failure"),
    [
        (Exit(130), Failure.CRASHED),  # what SIGTERM comes to
        (Exit(0), Failure.NO_TERMINAL_EVENT),
        (Exit(None, 9), Failure.CRASHED),
        (Exit(55), Failure.AGENT_ERROR),
    ],
)
def test_without_a_result_the_exit_decides(exit_: Exit, failure: Failure) -> None:
    assert ADAPTER.classify(exit_, hear("tools")[:1], "").failure is failure
