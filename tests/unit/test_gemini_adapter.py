"""The adapter of Gemini CLI, against lines that the real one printed (tests/agents/recorded/gemini)."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import cli_args
from jackline.agents.gemini import ADAPTER, DECLARATION
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage, UsageMeter
from jackline.domain.states import Failure
from jackline.errors import UsageError
from tests.support.adapters import Ear, turn_request

SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
DEFAULTS = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
REPORT = (
    "Error when talking to Gemini API Full report available at: /x.json {}: the message\n    at f (file:///y.js:1:2)\n"
)
EAR = Ear(ADAPTER)
hear, outcome_of = EAR.hear, EAR.outcome_of


def one(**fields: object) -> tuple[AgentEvent, ...]:
    return ADAPTER.parse(json.dumps(fields).encode() + b"\n")


def failed(message: str, **more: object) -> tuple[AgentEvent, ...]:
    return one(type="result", status="error", error={"type": "unknown", "message": message}, stats={}, **more)


def request(**more: Any) -> TurnRequest:
    return turn_request(**{"session": SESSION, "binary": "/opt/gemini.js", **more})


# --- launch


def test_node_runs_the_program_itself_and_the_session_is_chosen_by_us() -> None:
    launch = ADAPTER.launch(request(arguments=("--debug",), model="m"))
    assert launch.argv == (
        "node", "/opt/gemini.js", "--output-format", "stream-json", "--skip-trust", "--yolo",
        "--session-id", SESSION, "--model=m", "--debug",
    )  # fmt: skip
    assert launch.env["GEMINI_CLI_NO_RELAUNCH"] == "true"
    assert launch.env["GEMINI_TELEMETRY_ENABLED"] == "false"
    assert launch.stdin == b"hello"


def test_a_wrapper_is_started_as_it_is() -> None:
    assert ADAPTER.launch(request(binary="/usr/local/bin/gemini")).argv[0] == "/usr/local/bin/gemini"
    assert ADAPTER.launch(request(binary="")).argv[0] == "gemini"


def test_resume_names_the_session() -> None:
    argv = ADAPTER.launch(request(resume=True)).argv
    assert argv[argv.index("--resume") + 1] == SESSION
    assert "--session-id" not in argv


def test_without_a_session_the_cli_chooses_one() -> None:
    assert not {"--resume", "--session-id"} & set(ADAPTER.launch(request(session=None)).argv)


@pytest.mark.parametrize("given", [("--approval-mode", "plan"), ("--approval-mode=plan",)])
def test_the_users_own_approval_mode_takes_the_place_of_ours(given: tuple[str, ...]) -> None:
    argv = ADAPTER.launch(request(arguments=given)).argv
    assert "--yolo" not in argv
    assert argv[-len(given) :] == given


@pytest.mark.parametrize("flag", ["-p", "--output-format=json", "--resume", "--session-id", "-w", "--acp"])
def test_arguments_that_take_something_from_jackline_are_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=rf"gemini does not accept {flag.partition('=')[0]} here: .*; remove it"):
        ADAPTER.launch(request(arguments=(flag,)))


def test_a_prompt_that_the_cli_would_cut_off_is_refused() -> None:
    assert ADAPTER.launch(request(prompt="é" * 4 * 2**20)).stdin == "é".encode() * 4 * 2**20
    with pytest.raises(UsageError, match="gemini reads at most 8 MiB of prompt"):
        ADAPTER.launch(request(prompt="é" * 4 * 2**20 + "x"))


def test_as_root_the_defaults_are_a_file_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    launch = ADAPTER.launch(request())
    place = launch.env[DEFAULTS]
    assert place == "/home/ada/runs/r/agent/gemini-defaults.json"
    defaults = json.loads(launch.files[place])
    assert defaults["privacy"] == {"usageStatisticsEnabled": False}
    assert defaults["general"]["maxAttempts"] == 2
    assert "security" not in defaults, "how the user logs in is the user's"
    assert DEFAULTS not in ADAPTER.launch(request(environ={DEFAULTS: "/etc/own.json"})).env


def test_for_others_no_file_is_named_because_the_cli_would_refuse_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    launch = ADAPTER.launch(request())
    assert DEFAULTS not in launch.env
    assert not launch.files


def test_the_option_that_makes_output_blocking_takes_itself_back() -> None:
    options = ADAPTER.launch(request()).env["NODE_OPTIONS"]
    assert " " not in options, "node splits the variable at spaces"
    assert unquote(options).startswith("--import=data:text/javascript,delete process.env.NODE_OPTIONS;")


def test_the_declaration_says_what_the_cli_can() -> None:
    assert DECLARATION.chooses_session
    assert DECLARATION.resumes
    assert not DECLARATION.forks
    assert not DECLARATION.efforts
    assert {"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT"} <= set(DECLARATION.passes)
    assert "GOOGLE_CLOUD_ACCESS_TOKEN" not in DECLARATION.list_visible({"GOOGLE_CLOUD_ACCESS_TOKEN": "t"})
    assert "GOOGLE_CLOUD_ACCESS_TOKEN" in DECLARATION.list_visible({"GOOGLE_GENAI_USE_GCA": "true"})


# --- parse


def test_a_turn_with_tools() -> None:
    heard = [(one.kind, one.text) for one in hear("tools") if one.kind != "usage"]
    assert [kind for kind, _ in heard] == [
        "session", "call.started", "call.finished", "call.started", "call.finished", "message", "message", "end",
    ]  # fmt: skip
    assert "".join(text for kind, text in heard if kind == "message") == "All done: no 429 rate limit here."


def test_the_pieces_of_a_message_say_that_they_are_pieces() -> None:
    assert [one.data for one in hear("tools") if one.kind == "message"] == [{"delta": True}, {"delta": True}]
    assert one(type="message", role="assistant", content="x") == (AgentEvent("message", "x"),)
    assert one(type="message", role="user", content="x") == ()


def test_a_call_and_its_result_carry_the_same_id() -> None:
    started, finished, *_ = (one.data for one in hear("tools") if one.kind.startswith("call."))
    assert started["tool"] == "run_shell_command"
    assert started["input"] == {"command": "echo hi; exit 3"}
    assert finished == {"call": started["call"], "ok": True, "output": "hi"}


def test_a_failed_tool_says_why() -> None:
    (heard,) = one(type="tool_result", tool_id="t", status="error", error={"type": "X", "message": "no such file"})
    assert heard.data == {"call": "t", "ok": False, "output": "no such file"}


@pytest.mark.parametrize(("name", "usage"), [("tools", Usage(33, 21, 3)), ("resumed", Usage(11, 7, 0))])
def test_usage_is_that_of_the_process_also_after_a_resume(name: str, usage: Usage) -> None:
    meter = UsageMeter(before=Usage(1000, 1000, 1000))
    figures = [one for one in hear(name) if one.usage is not None]
    assert [one.scope for one in figures] == [Scope.TURN]
    assert meter.add(figures[0]) == usage


def test_thoughts_count_as_output() -> None:
    usage, _ = one(
        type="result", status="success", stats={"total_tokens": 100, "input_tokens": 60, "output_tokens": 10}
    )
    assert usage.usage == Usage(60, 40)


@given(st.binary(max_size=200))
def test_no_line_raises(line: bytes) -> None:
    ADAPTER.parse(line)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=9), lambda inner: st.lists(inner) |
                    st.dictionaries(st.sampled_from(["type", "stats", "error", "message", "status", "timestamp"]),
                                    inner), max_leaves=8),
       st.sampled_from(["init", "message", "tool_use", "tool_result", "error", "result"]))  # fmt: skip
def test_no_shape_raises(value: object, kind: str) -> None:
    fields = {"type": kind, "session_id": value, "role": "assistant", "content": value, "stats": value, "error": value,
              "timestamp": value, "message": value, "parameters": value, "status": value}  # fmt: skip
    ADAPTER.parse(json.dumps(fields).encode())


# --- classify


def test_an_answer_that_speaks_of_limits_is_a_good_one() -> None:
    assert outcome_of("tools", Exit(0)) == Outcome()


@pytest.mark.parametrize(
    ("name", "code", "tail", "failure"),
    [
        ("401", 145, "", Failure.AUTHENTICATION),
        ("404", 1, REPORT.format("ModelNotFoundError"), Failure.MODEL_NOT_FOUND),
        ("429", 173, "", Failure.LIMIT),
        ("429_day", 173, "", Failure.LIMIT),
        ("500", 244, "", Failure.OVERLOADED),
        ("refused", 1, REPORT.format("Error"), Failure.CONNECTIVITY),
        ("drop_middle", 1, REPORT.format("TypeError"), Failure.CONNECTIVITY),
    ],
)
def test_errors_of_the_provider(name: str, code: int, tail: str, failure: Failure) -> None:
    outcome = outcome_of(name, Exit(code), tail)
    assert outcome.failure is failure
    assert outcome.detail
    assert not outcome.session_lost


@pytest.mark.parametrize(
    ("status", "message", "failure"),
    [
        (400, "API key not valid. Please pass a valid API key.", Failure.AUTHENTICATION),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", Failure.CONTEXT_TOO_LONG),
        (400, "Request contains an invalid argument: socket.", Failure.AGENT_ERROR),
        (403, "This API method requires billing to be enabled.", Failure.BILLING),
        (403, "Permission denied on resource project x.", Failure.AUTHENTICATION),
        (429, "You exceeded your current quota, please check your plan and billing details.", Failure.LIMIT),
        (503, "The model is overloaded. Please try again later.", Failure.OVERLOADED),
    ],
)
def test_the_status_decides_and_the_words_where_it_says_little(status: int, message: str, failure: Failure) -> None:
    error = json.dumps({"error": {"code": status, "message": message}})
    outcome = ADAPTER.classify(Exit(status & 0xFF), failed(f"[API Error: {error}]"), "")
    assert (outcome.failure, outcome.detail) == (failure, message)
    bare = ADAPTER.classify(Exit(status & 0xFF), failed(f"[API Error: {message}]"), "")
    assert bare.failure is failure, "the exit code says it too"


@pytest.mark.parametrize(
    ("words", "delay_ms"),
    [
        ("Suggested retry after 1s.", 1_000),
        ("Please retry in 36.5s.", 36_500),
        ("Your quota will reset after 18h31m10s.", ((18 * 60 + 31) * 60 + 10) * 1000),
        ("please wait", None),
    ],
)
def test_a_limit_tells_when_it_is_over(words: str, delay_ms: int | None) -> None:
    timestamp = "2026-11-15T22:55:22.909Z"
    heard = failed(f"[API Error: too much\n{words}]", timestamp=timestamp)
    outcome = ADAPTER.classify(Exit(429 & 0xFF), heard, "")
    said = round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    assert outcome.failure is Failure.LIMIT
    assert outcome.resets_at == (None if delay_ms is None else said + delay_ms)


def test_a_time_that_is_none_tells_no_reset() -> None:
    outcome = ADAPTER.classify(Exit(173), failed("[API Error: retry after 1s]", timestamp="soon"), "")
    assert (outcome.failure, outcome.resets_at) == (Failure.LIMIT, None)


def test_an_agent_that_stopped_in_a_loop_did_not_do_its_work() -> None:
    outcome = outcome_of("loop", Exit(0))
    assert (outcome.failure, outcome.detail) == (Failure.AGENT_ERROR, "Loop detected, stopping execution")


def test_a_complaint_before_a_good_result_was_got_over() -> None:
    complaint = one(type="error", severity="warning", message="Agent execution blocked: a hook")
    end = one(type="result", status="success", stats={"models": {"m": {}}})
    assert ADAPTER.classify(Exit(0), complaint + end, "") == Outcome()


def test_success_without_a_question_to_a_model_is_none() -> None:
    end = one(type="result", status="success", stats={"total_tokens": 0, "models": {}})
    assert ADAPTER.classify(Exit(0), end, "").failure is Failure.CONTEXT_TOO_LONG


def test_an_answer_that_could_not_be_used_fails_with_the_line_before_it() -> None:
    heard = one(type="error", severity="error", message="The model returned an empty response.")
    outcome = ADAPTER.classify(Exit(0), heard + one(type="result", status="error", stats={}), "")
    assert outcome == Outcome(Failure.AGENT_ERROR, "The model returned an empty response.")


def test_an_unknown_session_is_lost() -> None:
    tail = f'Warning: 256-color\nError resuming session: Invalid session identifier "{SESSION}".\n  Searched in /x.\n'
    outcome = ADAPTER.classify(Exit(42), (), tail)
    assert outcome.session_lost
    assert outcome.detail == f'Error resuming session: Invalid session identifier "{SESSION}".'


def test_a_session_that_exists_already_is_not_lost() -> None:
    outcome = ADAPTER.classify(Exit(42), (), f'Error starting session: Session ID "{SESSION}" already exists.')
    assert (outcome.failure, outcome.session_lost) == (Failure.AGENT_ERROR, False)


def test_nobody_is_logged_in() -> None:
    outcome = ADAPTER.classify(Exit(41), (), "YOLO mode is enabled.\nPlease set an Auth method in your settings\n")
    assert outcome == Outcome(Failure.AUTHENTICATION, "Please set an Auth method in your settings")


@pytest.mark.parametrize(
    ("exit_", "failure"),
    [
        (Exit(0), Failure.NO_TERMINAL_EVENT),  # what SIGTERM comes to
        (Exit(130), Failure.CRASHED),
        (Exit(None, 9), Failure.CRASHED),
        (Exit(1), Failure.AGENT_ERROR),
    ],
)
def test_without_a_result_the_exit_decides(exit_: Exit, failure: Failure) -> None:
    assert ADAPTER.classify(exit_, hear("tools")[:1], "").failure is failure


def test_the_complaint_stands_above_the_help_and_without_its_colours() -> None:
    assert (
        cli_args.find_error_line("\x1b[31mUnknown argument: x\x1b[0m\n\n  -h, --help  Show help\n")
        == "Unknown argument: x"
    )
    assert cli_args.find_error_line("one\n\x1b[31mtwo\x1b[0m\n") == "two"
