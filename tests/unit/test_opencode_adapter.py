"""The adapter of opencode, against lines that the real one printed (tests/agents/recorded/opencode)."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import json_fields, registry
from jackline.agents.opencode import ADAPTER, DECLARATION, OpencodeAdapter
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Usage, UsageMeter
from jackline.domain.states import Failure
from jackline.engine.settings import select_variables
from jackline.errors import UsageError
from tests.support.adapters import Ear, turn_request

OK, FAILED = Exit(0), Exit(1)
SESSION = "ses_e1e90dc08ffeWNUoyAJz1yJLw4"
LOST = "\x1b[91m\x1b[1mError: \x1b[0mSession not found\n"
LOGGED = (
    'timestamp=2026-11-15T22:58:56.813Z level=ERROR run=18531fab message=failed ref=err_daa70508 '
    'error="ProviderModelNotFoundError: Model not found: fake/other." cause="ProviderModelNotFoundError: Model not…"\n'
)  # fmt: skip
EAR = Ear(ADAPTER)
hear = EAR.hear


def outcome_of(name: str, exit_: Exit = FAILED, tail: str = "") -> Outcome:
    return EAR.outcome_of(name, exit_, tail)


def request(**more: Any) -> TurnRequest:
    return turn_request(**{"prompt": "do it", "binary": "/opt/opencode", **more})


def settings(**environ: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(ADAPTER.launch(request(environ=environ)).env["OPENCODE_CONFIG_CONTENT"])
    return content


# --- launch


def test_the_registry_knows_it() -> None:
    assert registry.load_adapter("opencode") is ADAPTER
    assert DECLARATION.model_variables == ("OPENCODE_MODEL",)


def test_the_prompt_goes_by_stdin_and_nothing_is_asked() -> None:
    launch = ADAPTER.launch(request(prompt="é" * 2**20))
    assert launch.argv[:5] == ("/opt/opencode", "run", "--auto", "--format", "json")
    assert launch.argv[-2:] == ("--title", "jackline r")
    assert launch.stdin == ("é" * 2**20).encode()
    assert launch.files == {}


def test_a_resume_and_a_fork_name_the_session() -> None:
    resumed = ADAPTER.launch(request(session=SESSION, resume=True)).argv
    assert resumed[-2:] == ("--session", SESSION)
    assert "--title" not in resumed
    assert ADAPTER.launch(request(fork_of=SESSION)).argv[-3:] == ("--session", SESSION, "--fork")


def test_model_effort_and_further_arguments_are_handed_on_in_this_order() -> None:
    launch = ADAPTER.launch(request(model="fake/m", effort="high", arguments=("--agent", "plan")))
    assert launch.argv[-5:] == ("--model=fake/m", "--variant", "high", "--agent", "plan")


@pytest.mark.parametrize("flag", ["--format=default", "-s", "--attach", "--share", "-i", "--dir=/etc"])
def test_what_would_break_the_run_is_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=f"opencode does not accept {flag.partition('=')[0]} here"):
        ADAPTER.launch(request(arguments=(flag,)))


def test_updates_downloads_and_sharing_are_off_and_nobody_is_asked() -> None:
    launch = ADAPTER.launch(request())
    assert all(launch.env[f"OPENCODE_DISABLE_{what}"] == "1" for what in ("AUTOUPDATE", "MODELS_FETCH", "SHARE"))
    assert settings() == {
        "autoupdate": False,
        "share": "disabled",
        "permission": {"question": "deny", "plan_enter": "deny", "plan_exit": "deny"},
    }


def test_settings_that_the_user_gave_by_the_same_variable_stay() -> None:
    theirs = {"model": "a/b", "share": "auto", "permission": {"question": "allow", "bash": "deny"}}
    merged = settings(OPENCODE_CONFIG_CONTENT=json.dumps(theirs))
    assert merged["model"] == "a/b"
    assert merged["share"] == "disabled"
    assert next(iter(merged["permission"].items())) == ("bash", "deny")
    assert merged["permission"]["question"] == "deny"


def test_a_rule_for_everything_comes_before_ours() -> None:
    merged = settings(OPENCODE_CONFIG_CONTENT='{"permission": "allow"}')
    assert list(merged["permission"]) == ["*", "question", "plan_enter", "plan_exit"]


def test_settings_that_are_no_plain_json_are_left_to_it() -> None:
    env = ADAPTER.launch(request(environ={"OPENCODE_CONFIG_CONTENT": "// mine\n{}"})).env
    assert "OPENCODE_CONFIG_CONTENT" not in env


def test_it_sees_its_own_variables_and_keys_and_nothing_of_another_opencode_around_it() -> None:
    ours = {"OPENCODE_CONFIG_DIR": "c", "OPENROUTER_API_KEY": "k", "OPENCODE_DISABLE_PRUNE": "1"}
    others = {"OPENCODE_PID": "7", "OPENCODE_CLIENT": "desktop", "GITHUB_TOKEN": "t", "SECRET": "s"}
    assert select_variables({**ours, **others}, DECLARATION.list_visible({**ours, **others})) == ours


@pytest.mark.parametrize("named", ["AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE"])
def test_of_aws_it_sees_what_was_made_for_a_model_and_never_the_keys_to_the_account(named: str) -> None:
    account = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"), "k")
    assert select_variables(account, DECLARATION.list_visible(account)) == {}
    environ = {**account, named: "n"}
    assert select_variables(environ, DECLARATION.list_visible(environ)) == {"AWS_REGION": "k", named: "n"}


# --- the launcher of npm


def test_before_the_program_itself_was_linked_a_launcher_stayed_in_between() -> None:
    assert isinstance(ADAPTER, OpencodeAdapter)
    found = ADAPTER.native_path("/usr/lib/node_modules/opencode-ai/bin/opencode")
    assert found[:2] == (
        "/usr/lib/node_modules/opencode-ai/bin/.opencode",
        "/usr/lib/node_modules/opencode-ai/node_modules/opencode-linux-x64/bin/opencode",
    )
    assert "/usr/lib/node_modules/opencode-linux-x64/bin/opencode" in found


@pytest.mark.parametrize(
    "path",
    [
        "/usr/lib/node_modules/opencode-ai/bin/opencode.exe",
        "/usr/lib/node_modules/opencode-linux-x64/bin/opencode",
        "/usr/local/bin/opencode",
    ],
)
def test_the_program_itself_has_no_other_place(path: str) -> None:
    assert isinstance(ADAPTER, OpencodeAdapter)
    assert ADAPTER.native_path(path) == ()


# --- lines


def test_a_session_with_calls_is_heard_in_full() -> None:
    heard = hear("calls")
    assert {one.text for one in heard if one.kind == "session"} == {SESSION}
    assert [one.text for one in heard if one.kind == "message"] == ["running", "done, no rate limit 429"]
    assert [one.text for one in heard if one.kind == "thinking"] == ["hm"]
    started = [one.data for one in heard if one.kind == "call.started"]
    finished = [one.data for one in heard if one.kind == "call.finished"]
    assert [one["tool"] for one in started] == ["bash", "write", "bash"]
    assert started[0]["input"] == {"command": "echo hi; exit 3"}
    assert [one["call"] for one in started] == [one["call"] for one in finished]
    assert [(one["ok"], one.get("exit_code")) for one in finished] == [(False, 3), (True, None), (True, 0)]
    assert finished[0]["output"] == "hi\n"
    assert [one.kind for one in heard].count("end") == 1
    assert heard[-1] == AgentEvent("end", "stop", {"ok": True})


def test_steps_are_added_up_with_what_came_from_the_cache() -> None:
    meter = UsageMeter()
    for one in hear("calls"):
        if one.usage is not None:
            meter.add(one)
    assert meter.total == Usage(tokens_input=44, tokens_output=28, tokens_cached=4, usd_micros=96)


def test_reasoning_counts_as_output_and_cache_writes_as_input() -> None:
    tokens = {"input": 5, "output": 2, "reasoning": 3, "cache": {"read": 7, "write": 11}}
    line = {"type": "step_finish", "part": {"reason": "tool-calls", "tokens": tokens, "cost": 0.5}}
    (usage,) = ADAPTER.parse(json.dumps(line).encode())
    assert usage.usage == Usage(tokens_input=23, tokens_output=5, tokens_cached=7, usd_micros=500_000)


def test_a_rejected_call_is_heard_with_its_reason() -> None:
    (finished,) = [one for one in hear("rejected") if one.kind == "call.finished"]
    assert finished.data["ok"] is False
    assert finished.data["output"] == "The user rejected permission to use this specific tool call."


@given(st.binary(max_size=200))
def test_no_line_raises(line: bytes) -> None:
    assert isinstance(ADAPTER.parse(line), tuple)


@given(
    st.sampled_from(["step_start", "text", "reasoning", "tool_use", "step_finish", "error", "other"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["state", "tokens", "cache", "read", "metadata", "exit", "reason", "data", "name",
                                 "message", "statusCode", "responseBody", "responseHeaders", "retry-after"]),
                inner, max_size=4,
            )
        ),
        max_leaves=12,
    ),
)  # fmt: skip
def test_no_shape_of_an_event_raises(kind: str, value: object) -> None:
    heard = ADAPTER.parse(json.dumps({"type": kind, "sessionID": value, "part": value, "error": value}).encode())
    ADAPTER.classify(FAILED, heard, "")


def test_what_is_no_event_is_raw_and_an_empty_line_nothing() -> None:
    assert ADAPTER.parse(b"! agent not found\n") == json_fields.RAW
    assert ADAPTER.parse(b'{"type":"new"}\n') == json_fields.RAW
    assert ADAPTER.parse(b"\n") == ()


# --- ends


def test_a_turn_whose_last_step_stopped_ended_well_whatever_the_model_said() -> None:
    assert outcome_of("calls", OK) == Outcome()
    assert outcome_of("resumed", OK) == Outcome()


@pytest.mark.parametrize(
    ("name", "failure", "detail"),
    [
        ("401", Failure.AUTHENTICATION, "Incorrect API key provided"),
        ("404", Failure.MODEL_NOT_FOUND, "The model does not exist"),
        ("429", Failure.LIMIT, "Rate limit reached"),
        ("quota", Failure.BILLING, "You exceeded your current quota"),
        ("500", Failure.OVERLOADED, "boom"),
        ("refused", Failure.CONNECTIVITY, "Cannot connect to API"),
        ("dropped", Failure.CONNECTIVITY, "Connection reset by server"),
        ("unknown_model", Failure.AGENT_ERROR, "Unexpected server error"),
    ],
)
def test_errors_are_classified_by_their_fields(name: str, failure: Failure, detail: str) -> None:
    outcome = outcome_of(name)
    assert outcome.failure is failure
    assert outcome.detail.startswith(detail)
    assert not outcome.session_lost


def test_a_limit_says_when_it_ends_where_the_provider_does() -> None:
    (line,) = EAR.lines("429")
    assert outcome_of("429").resets_at == json.loads(line)["timestamp"] + 2000


def test_an_error_that_only_names_its_log_is_explained_by_that_line_of_the_log() -> None:
    outcome = outcome_of("unknown_model", tail=LOGGED)
    assert outcome.failure is Failure.MODEL_NOT_FOUND
    assert outcome.detail == "ProviderModelNotFoundError: Model not found: fake/other."
    assert outcome_of("unknown_model", tail=LOGGED.replace("err_daa70508", "err_1")).failure is Failure.AGENT_ERROR


def test_an_error_that_it_got_over_is_none_though_its_exit_code_says_so() -> None:
    assert [one.kind for one in hear("recovered")].count("error") == 1
    assert outcome_of("recovered", FAILED) == Outcome()
    assert outcome_of("calls", FAILED, "boom").failure is Failure.AGENT_ERROR


def test_an_unknown_session_is_known_by_the_line_on_stderr() -> None:
    assert ADAPTER.classify(FAILED, (), LOST) == Outcome(Failure.AGENT_ERROR, "Session not found", session_lost=True)
    assert not outcome_of("401", FAILED, LOST).session_lost
    assert not ADAPTER.classify(FAILED, (), "error: no Session not found here\n").session_lost


def test_a_run_whose_call_was_rejected_is_not_done_though_it_exits_with_0() -> None:
    assert outcome_of("rejected", OK).failure is Failure.NO_TERMINAL_EVENT


@pytest.mark.parametrize("reason", ["length", "content-filter", "error", "unknown"])
def test_another_reason_than_being_done_is_a_failure(reason: str) -> None:
    heard = ADAPTER.parse(json.dumps({"type": "step_finish", "part": {"reason": reason}}).encode())
    outcome = ADAPTER.classify(OK, heard, "")
    assert outcome.failure is Failure.AGENT_ERROR
    assert outcome.detail.endswith(reason)


def test_a_kill_is_a_crash_also_after_an_end() -> None:
    assert outcome_of("calls", Exit(None, signal.SIGKILL)).failure is Failure.CRASHED
    assert outcome_of("429", Exit(None, signal.SIGTERM)).failure is Failure.CRASHED
    assert ADAPTER.classify(Exit(None, lost=True), (), "").failure is Failure.CRASHED


def test_a_complaint_without_an_event_is_told_without_its_colours() -> None:
    tail = "\x1b[91m\x1b[1mError: \x1b[0mYou must provide a message or a command\n"
    assert ADAPTER.classify(FAILED, (), tail) == Outcome(
        Failure.AGENT_ERROR, "exit code 1: Error: You must provide a message or a command"
    )
