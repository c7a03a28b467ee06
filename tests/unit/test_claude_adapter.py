"""The adapter of Claude Code, against lines that the real one printed (tests/agents/recorded/claude)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackline.agents.claude.claude_adapter import ADAPTER, DECLARATION
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage
from jackline.domain.states import Failure, WaitReason
from jackline.engine.settings import select_variables
from jackline.errors import UsageError
from tests.support.adapters import Ear, turn_request

OK, FAILED = Exit(0), Exit(1)
SESSION = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
LOST = "No conversation found with session ID: 00000000-0000-4000-8000-000000000000"
EAR = Ear(ADAPTER)
hear, outcome_of, used, texts = EAR.hear, EAR.outcome_of, EAR.used, EAR.texts


def request(**more: Any) -> TurnRequest:
    return turn_request(**{"session": SESSION, "binary": "/opt/claude", **more})


# --- launch


def test_the_prompt_goes_by_stdin_and_the_session_is_chosen_by_us() -> None:
    launch = ADAPTER.launch(request(prompt="x" * 2**20))
    assert launch.argv[:2] == ("/opt/claude", "-p")
    assert launch.argv[-2:] == ("--session-id", SESSION)
    assert launch.stdin == b"x" * 2**20
    assert max(map(len, launch.argv)) < 1000


def test_a_resume_names_the_session_and_a_fork_both() -> None:
    assert ADAPTER.launch(request(resume=True)).argv[-2:] == ("--resume", SESSION)
    fork = ADAPTER.launch(request(fork_of="old")).argv[-5:]
    assert fork == ("--resume", "old", "--fork-session", "--session-id", SESSION)


def test_model_effort_and_further_arguments_are_handed_on_in_this_order() -> None:
    launch = ADAPTER.launch(request(model="m", effort="low", arguments=("--add-dir", "/srv")))
    assert launch.argv[-5:] == ("--model=m", "--effort", "low", "--add-dir", "/srv")


def test_the_rest_of_the_runs_budget_is_its_limit() -> None:
    assert "--max-budget-usd" not in ADAPTER.launch(request()).argv
    assert ADAPTER.launch(request(usd_micros_left=1_250_000)).argv[-2:] == ("--max-budget-usd", "1.250000")
    assert ADAPTER.launch(request(usd_micros_left=1)).argv[-1] == "0.000001", "the CLI refuses 0"


def test_the_end_of_the_budget_parks_the_run() -> None:
    outcome = outcome_of("max_budget", FAILED)
    assert (outcome.failure, outcome.waits) == (Failure.BUDGET, WaitReason.BUDGET)
    assert outcome.detail == "Reached maximum budget ($0.000001)"


@pytest.mark.parametrize(
    "flag", ["--bare", "--safe-mode", "--settings", "--settings={}", "--output-format=json", "--resume", "-c", "--bg"]
)
def test_what_would_break_the_run_is_refused(flag: str) -> None:
    with pytest.raises(UsageError, match=f"claude does not accept {flag.partition('=')[0]} here"):
        ADAPTER.launch(request(arguments=(flag,)))


def test_the_settings_stand_in_the_runs_folder_and_are_json() -> None:
    launch = ADAPTER.launch(request())
    ((path, content),) = launch.files.items()
    assert path == "/home/ada/runs/r/agent/claude-settings.json"
    assert launch.argv[launch.argv.index("--settings") + 1] == path
    assert {"PreToolUse", "PostToolUse", "PostToolUseFailure"} <= set(json.loads(content)["hooks"])


def test_the_token_of_the_gate_is_in_the_environment_and_nowhere_else() -> None:
    launch = ADAPTER.launch(request(gate="http://127.0.0.1:9/hook", token="s3cret-of-this-attempt"))
    assert "s3cret-of-this-attempt" in launch.env.values()
    assert not any("s3cret" in word for word in launch.argv)
    assert not any(b"s3cret" in content for content in launch.files.values())


def test_no_tool_is_allowed_before_the_gate_was_asked() -> None:
    assert not {"--allowedTools", "--dangerously-skip-permissions"} & set(ADAPTER.launch(request()).argv)


def test_what_would_switch_the_hooks_off_is_switched_off_itself() -> None:
    ((_, content),) = ADAPTER.launch(request()).files.items()
    told = json.loads(content)
    assert told["disableAllHooks"] is False
    assert told["disableSkillShellExecution"] is True
    assert told["env"] == {"CLAUDE_CODE_SIMPLE": "0", "CLAUDE_CODE_SAFE_MODE": "0"}
    assert told["env"].items() <= ADAPTER.launch(request()).env.items()


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "example.org"}, "example.org,127.0.0.1"),
        ({"no_proxy": "here.example", "NO_PROXY": "example.org"}, "here.example,127.0.0.1"),
    ],
)
def test_the_gate_is_reached_past_any_proxy(environ: dict[str, str], wanted: str) -> None:
    env = ADAPTER.launch(request(environ=environ)).env
    assert (env["no_proxy"], env["NO_PROXY"]) == (wanted, wanted)


def test_a_session_whose_call_was_answered_goes_on_without_a_prompt() -> None:
    assert ADAPTER.launch(request(resume=True, prompt="")).stdin == b""


def test_the_users_own_number_of_retries_is_kept() -> None:
    assert ADAPTER.launch(request()).env["CLAUDE_CODE_MAX_RETRIES"] == "3"
    kept = ADAPTER.launch(request(environ={"CLAUDE_CODE_MAX_RETRIES": "7"}))
    assert kept.env["CLAUDE_CODE_MAX_RETRIES"] == "7"


def test_credentials_pass_and_what_belongs_to_another_session_does_not() -> None:
    wanted = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN")
    unwanted = (
        "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_RESUME_INTERRUPTED_TURN", "CLAUDE_CODE_SIMPLE",
        "OPENAI_API_KEY", "GOOGLE_API_KEY", "AWS_LAMBDA_FUNCTION_NAME", "AWS_PROFILE", "AWS_SECRET_ACCESS_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
    )  # fmt: skip
    environ = dict.fromkeys((*wanted, *unwanted), "1")
    assert tuple(select_variables(environ, DECLARATION.list_visible(environ))) == wanted


@pytest.mark.parametrize(
    ("switch", "value", "seen"),
    [
        ("CLAUDE_CODE_USE_BEDROCK", "1", {"CLAUDE_CODE_USE_BEDROCK", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"}),
        ("CLAUDE_CODE_USE_VERTEX", "true", {"CLAUDE_CODE_USE_VERTEX", "GOOGLE_APPLICATION_CREDENTIALS"}),
        ("CLAUDE_CODE_USE_BEDROCK", "0", {"CLAUDE_CODE_USE_BEDROCK"}),
        ("CLAUDE_CODE_USE_VERTEX", "", {"CLAUDE_CODE_USE_VERTEX"}),
    ],
)
def test_the_keys_to_an_account_pass_only_where_it_is_used(switch: str, value: str, seen: set[str]) -> None:
    account = ("AWS_SECRET_ACCESS_KEY", "AWS_REGION", "GOOGLE_APPLICATION_CREDENTIALS")
    environ = {**dict.fromkeys(account, "k"), switch: value}
    assert set(select_variables(environ, DECLARATION.list_visible(environ))) == seen


# --- parse


def test_hello_is_a_session_a_thought_a_message_and_a_good_end() -> None:
    kinds = [heard.kind for heard in hear("hello")]
    assert kinds == ["session", "thinking", "usage", "usage", "message", "usage", "usage", "usage", "end"]
    assert texts("hello", "session") == ["da9c7c83-825c-4713-932a-64b2371a3c6d"]
    assert (texts("hello", "thinking"), texts("hello", "message")) == (["hm"], ["hello there"])
    assert used("hello") == Usage(13, 7, 3, 183)


def test_calls_are_told_with_their_input_output_and_exit_code() -> None:
    started = [heard.data for heard in hear("calls") if heard.kind == "call.started"]
    finished = [heard.data for heard in hear("calls") if heard.kind == "call.finished"]
    assert [one["tool"] for one in started] == ["Bash", "Write", "Bash"]
    assert started[2]["input"] == {"command": "echo two"}
    assert [one["call"] for one in finished] == [one["call"] for one in started]
    assert finished[0] == {**finished[0], "ok": False, "exit_code": 3, "output": "Exit code 3\nhi"}
    assert [one["ok"] for one in finished] == [False, True, True]
    assert [one.get("exit_code") for one in finished] == [3, None, 0]  # a file has none


def test_a_turn_is_charged_once_although_its_messages_were_told_block_by_block() -> None:
    assert used("calls") == Usage(39, 21, 9, 548)


def test_a_resumed_or_forked_turn_is_charged_for_itself_alone() -> None:
    """The CLI's total goes on from the earlier process, also into a fork."""
    before = Usage(39, 21, 9, 548)
    assert used("resumed", before) == Usage(13, 7, 3, 183)
    assert used("forked") == Usage(13, 7, 3, 183)


def test_two_results_of_one_process_are_added() -> None:
    assert [heard.kind for heard in hear("background")].count("end") == 2
    assert used("background") == Usage(39, 21, 9, 548)
    assert outcome_of("background", OK) == Outcome()


def test_the_figures_of_an_older_version_are_read_too() -> None:
    line = {
        "type": "result", "subtype": "success", "is_error": False, "total_cost_usd": 0.5,
        "usage": {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 4},
    }  # fmt: skip
    tokens, cost, _ = ADAPTER.parse(json.dumps(line).encode())
    assert (tokens.usage, tokens.scope) == (Usage(5, 2, 4), Scope.TURN)
    assert (cost.usage, cost.scope) == (Usage(usd_micros=500_000), Scope.SESSION)


def test_a_subagents_words_are_not_the_runs_but_its_calls_and_cost_are() -> None:
    assert texts("subagent", "message") == ["delegating", "main final"]
    assert [one.data["tool"] for one in hear("subagent") if one.kind == "call.started"] == ["Agent", "Bash"]
    assert used("subagent") == Usage(52, 28, 12, 730)


def test_a_turn_that_was_killed_is_charged_what_its_messages_told() -> None:
    """The figures of a message are from its start: what it says is added."""
    assert used("killed") == Usage(13, 19, 3)


def test_retries_are_told() -> None:
    retries = [heard for heard in hear("429") if heard.kind == "retry"]
    assert [one.data["attempt"] for one in retries] == [1, 2]
    assert retries[0].text == "rate_limit"
    assert retries[0].data == {"attempt": 1, "delay_ms": 1000, "status": 429}


@pytest.mark.parametrize("line", [b"hello", b"[1]", b'{"type":"news"}', b'{"a":', b"{}", b'{"type":7}'])
def test_what_is_not_known_is_raw(line: bytes) -> None:
    assert [heard.kind for heard in ADAPTER.parse(line)] == ["raw"]


@pytest.mark.parametrize("kind", ["system", "assistant", "user", "result", "rate_limit_event"])
def test_fields_of_the_wrong_kind_do_no_harm(kind: str) -> None:
    for value in (None, 1, "x", [1, None], {"content": 3}, {"content": [4, {"type": "tool_use"}]}):
        names = ("subtype", "message", "usage", "errors", "rate_limit_info", "model_usage_since_last_result")
        line = {"type": kind, **dict.fromkeys(names, value)}
        assert all(heard.kind != "raw" for heard in ADAPTER.parse(json.dumps(line).encode()))


def test_an_empty_line_says_nothing() -> None:
    assert ADAPTER.parse(b"\n") == ()


# --- classify


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("401", Failure.AUTHENTICATION),
        ("not_logged_in", Failure.AUTHENTICATION),
        ("404", Failure.MODEL_NOT_FOUND),
        ("429", Failure.LIMIT),
        ("500", Failure.OVERLOADED),
        ("529", Failure.OVERLOADED),
        ("400", Failure.AGENT_ERROR),
        ("413", Failure.CONTEXT_TOO_LONG),
        ("prompt_too_long", Failure.CONTEXT_TOO_LONG),
        ("billing", Failure.BILLING),
        ("refused", Failure.CONNECTIVITY),
    ],
)
def test_the_provider_s_refusals(name: str, failure: Failure) -> None:
    outcome = outcome_of(name, FAILED)
    assert outcome.failure is failure
    assert outcome.detail
    assert texts(name, "message") == []  # it is the CLI's own line, not the model's


def test_a_usage_limit_knows_when_it_ends() -> None:
    line = json.loads(EAR.lines("usage_limit")[1])
    outcome = outcome_of("usage_limit", FAILED)
    assert outcome.failure is Failure.LIMIT
    assert outcome.resets_at == line["rate_limit_info"]["resetsAt"] * 1000


def test_a_mere_warning_is_no_limit() -> None:
    assert b"rate_limit_event" in b"".join(EAR.lines("limit_warning"))
    assert texts("limit_warning", "limit") == []
    assert outcome_of("limit_warning", OK) == Outcome()


def test_the_models_words_are_never_an_error() -> None:
    assert texts("calls", "message")[-1] == "done 429 rate limit"
    assert outcome_of("calls", OK) == Outcome()


def test_an_unknown_session_is_lost() -> None:
    outcome = outcome_of("unknown_session", FAILED, LOST)
    assert (outcome.session_lost, outcome.detail) == (True, LOST)
    assert ADAPTER.classify(FAILED, (), f"{LOST}\n").session_lost  # an older version says it on stderr only


def test_other_complaints_on_stderr_are_told_and_lose_nothing() -> None:
    outcome = ADAPTER.classify(FAILED, (), "Error: Session ID x is already in use.\n")
    assert (outcome.failure, outcome.session_lost) == (Failure.AGENT_ERROR, False)
    assert "already in use" in outcome.detail


def test_an_error_that_was_got_over_does_not_count() -> None:
    error, end = AgentEvent("error", "x", {"class": "overloaded"}), AgentEvent("end", data={"ok": True})
    assert ADAPTER.classify(OK, (error, end), "") == Outcome()


def test_an_interrupted_turn_exits_with_0_and_did_not_end_well() -> None:
    assert outcome_of("interrupted", OK).failure is Failure.CRASHED


def test_signals() -> None:
    assert outcome_of("terminated", Exit(143)) == Outcome(Failure.CRASHED, "killed by SIGTERM")
    assert outcome_of("killed", Exit(None, 9)) == Outcome(Failure.CRASHED, "killed by SIGKILL")


def test_a_zero_without_a_result_is_not_believed() -> None:
    assert outcome_of("killed", OK).failure is Failure.NO_TERMINAL_EVENT


# --- the gate, as the stream tells of it


def test_a_deferred_call_ends_the_turn_and_waits_for_a_person_however_the_process_ended() -> None:
    for exit_ in (OK, Exit(143), Exit(None, 9)):
        assert outcome_of("hooks/deferred", exit_) == Outcome(
            detail="a call needs approval", waits=WaitReason.APPROVAL, deferred=True
        )


def test_a_deferred_turn_that_was_resumed_is_judged_by_its_own_end() -> None:
    assert outcome_of("hooks/deferred_resumed", OK) == Outcome()
    (finished,) = [one.data for one in hear("hooks/deferred_resumed") if one.kind == "call.finished"]
    assert finished["ok"] is True
    assert not [one for one in hear("hooks/deferred_resumed") if one.kind == "raw"]


def test_a_session_that_waits_for_nothing_is_tried_again_so_that_it_gets_a_prompt() -> None:
    words = "Error: No deferred tool marker found in the resumed session. Either the session was not deferred, …"
    outcome = ADAPTER.classify(FAILED, (), f"warning\n{words}\n")
    assert (outcome.failure, outcome.waits) == (Failure.CRASHED, None)
    assert not outcome.deferred


def test_a_call_that_did_not_run_is_told_from_one_that_failed() -> None:
    """Denied by the gate; allowed by it, and refused by the CLI's own rules; not even fit to be asked about."""
    held = [one.data for one in hear("hooks/held_back") if one.kind == "call.finished"]
    assert [(one["ok"], one["ran"]) for one in held] == [(False, False)] * 3
    failed = [one.data for one in hear("calls") if one.kind == "call.finished"]
    assert not any("ran" in one for one in failed)


def blocked(why: str) -> dict[str, Any]:
    words = 'PreToolUse:Bash hook error: [http://127.0.0.1:4711/hook]: failed; blocking because onFailure is "block"\n'
    block = {"type": "tool_result", "content": words + why, "is_error": True, "tool_use_id": "t1"}
    meta = [{"id": "t1", "non_execution_kind": "permission-rule"}]
    line = {"type": "user", "message": {"content": [block]}, "tool_result_meta": meta}
    (heard,) = ADAPTER.parse(json.dumps(line).encode())
    return dict(heard.data)


@pytest.mark.parametrize(
    ("why", "unreached"),
    [
        ("HTTP hook blocked: http://127.0.0.1:4711/hook does not match any pattern in allowedHttpHookUrls", True),
        ("HTTP 401 from http://127.0.0.1:4711/hook", True),
        ("connect ECONNREFUSED 127.0.0.1:4711", True),
        ("HTTP 500 from http://127.0.0.1:4711/hook", False),
        ("HTTP 400 from http://127.0.0.1:4711/hook", False),
    ],
)
def test_a_hook_that_does_not_get_through_is_told_from_an_answer_of_the_gate(why: str, *, unreached: bool) -> None:
    data = blocked(why)
    assert (data["ran"], data.get("unreached")) == (False, why if unreached else None)


def test_what_goes_on_in_the_background_is_over_when_its_task_is() -> None:
    begun, ended = (one.data for one in hear("hooks/background_failed") if one.kind == "call.finished")
    assert begun["background"] is True
    assert ended == {**ended, "call": begun["call"], "ok": False, "exit_code": 3, "task": True}
    assert "background" not in ended


def test_a_commands_own_words_do_not_make_it_one_that_did_not_run() -> None:
    block = {"type": "tool_result", "tool_use_id": "t", "content": "<tool_use_error> is what it printed"}
    line = {"type": "user", "message": {"content": [block]}}
    (heard,) = ADAPTER.parse(json.dumps(line).encode())
    assert "ran" not in heard.data


def test_a_provider_that_fails_inside_a_stream_is_overloaded() -> None:
    """The real CLI reported these after an endless overloaded_error with status 200; a model cannot say them."""
    malformed = "API Error: API returned an empty or malformed response (HTTP 200) — check for a proxy or gateway"
    result = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": None, "result": malformed}

    def classify(**more: object) -> Outcome:
        events = ADAPTER.parse(json.dumps({**result, **more}).encode())
        return ADAPTER.classify(Exit(1), tuple(events), "")

    assert classify(terminal_reason="api_error").failure is Failure.OVERLOADED
    assert classify(result="Overloaded", terminal_reason="api_error").failure is Failure.AGENT_ERROR
    assert classify().failure is Failure.AGENT_ERROR, "not an error of the API"
    assert classify(api_error_type="overloaded_error", result="x").failure is Failure.OVERLOADED
