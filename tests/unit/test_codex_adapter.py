"""The adapter of Codex, against lines that the real one printed (tests/agents/recorded/codex)."""

from __future__ import annotations

import calendar
import json
import os
import re
import sys
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import registry
from jackline.agents.codex import ADAPTER, DECLARATION, CodexAdapter, classify_error
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Scope, Usage
from jackline.domain.states import Failure
from jackline.engine.settings import select_variables
from jackline.errors import UsageError
from tests.support.adapters import Ear, turn_request
from tests.support.skips import NOT_POSSIBLE

if TYPE_CHECKING:
    from collections.abc import Iterator

OK, FAILED = Exit(0), Exit(1)
THREAD = "01a1e174-51c2-7cc3-9993-0a992cbec190"
EVENING = calendar.timegm((2026, 11, 15, 23, 4, 10)) * 1000
LOST = (
    "WARNING: proceeding\nError: thread/resume: thread/resume failed: no rollout found for thread id "
    "00000000-0000-4000-8000-000000000000 (code -32600)\n"
)
TOO_LARGE = (
    "Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters. (code -32602), "
    'data: {"input_error_code":"input_too_large","max_chars":1048576,"actual_chars":1048577}\n'
)


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """The zone of this machine, as the test names it."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


EAR = Ear(CodexAdapter(lambda: EVENING))
hear, outcome_of, used, texts = EAR.hear, EAR.outcome_of, EAR.used, EAR.texts


def said(**fields: object) -> tuple[AgentEvent, ...]:
    return ADAPTER.parse(json.dumps(fields).encode())


def request(**more: Any) -> TurnRequest:
    return turn_request(**{"binary": "/opt/codex", **more})


# --- launch


def test_the_registry_has_it() -> None:
    assert registry.load_adapter("codex") is ADAPTER


def test_the_prompt_goes_by_stdin() -> None:
    launch = ADAPTER.launch(request(prompt="é" * 2**20))
    assert launch.argv[:2] == ("/opt/codex", "exec")
    assert launch.argv[-3:] == ("-C", "/home/ada/project", "-")
    assert launch.stdin == ("é" * 2**20).encode()
    assert max(map(len, launch.argv)) < 1000


def test_nothing_asks_calls_out_or_tries_for_ever() -> None:
    argv = ADAPTER.launch(request()).argv
    assert {"--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"} <= set(argv)
    settings = {after for word, after in pairwise(argv) if word == "-c"}
    assert settings == {
        "analytics.enabled=false", "check_for_update_on_startup=false", "features.plugins=false",
        "features.unbounded_connection_retries=false",
    }  # fmt: skip


def test_a_resume_and_a_fork_name_the_thread() -> None:
    assert ADAPTER.launch(request(session=THREAD, resume=True)).argv[-3:] == ("resume", THREAD, "-")
    assert ADAPTER.launch(request(fork_of=THREAD)).argv[-3:] == ("fork", THREAD, "-")
    assert ADAPTER.launch(request(session=THREAD)).argv[-1] == "-"
    assert THREAD not in ADAPTER.launch(request(session=THREAD)).argv


@pytest.mark.parametrize("session", ["my-thread", "--last", THREAD[:-1], f"{THREAD} ", THREAD.upper()])
def test_only_an_id_is_resumed_because_an_unknown_name_would_silently_begin_anew(session: str) -> None:
    with pytest.raises(UsageError, match="is not a codex session"):
        ADAPTER.launch(request(session=session, resume=True))
    with pytest.raises(UsageError, match="is not a codex session"):
        ADAPTER.launch(request(fork_of=session))


def test_model_effort_and_arguments_come_before_what_ends_a_list_of_images() -> None:
    argv = ADAPTER.launch(request(model="gpt-x", effort="high", arguments=("--image", "a.png"))).argv
    place = argv.index("--model=gpt-x")
    assert argv[place - 2 : place] == ("-c", "model_reasoning_effort=high")
    assert argv[place + 1 : place + 4] == ("--image", "a.png", "--json")


@pytest.mark.parametrize("argument", ["--ephemeral", "--worktree", "-C", "--cd=/elsewhere", "--last"])
def test_arguments_that_would_lose_the_session_or_the_workspace_are_refused(argument: str) -> None:
    with pytest.raises(UsageError, match=f"codex does not accept {argument.partition('=')[0]} here: "):
        ADAPTER.launch(request(arguments=(argument,)))


@pytest.mark.parametrize(
    "arguments",
    [("-s", "read-only"), ("-sread-only",), ("--sandbox=workspace-write",), ("--sandbox", "read-only"),
     ("--approve-for-me",), ("-c", "sandbox_mode=read-only"), ("-csandbox_mode=read-only",)],
)  # fmt: skip
def test_a_sandbox_that_is_asked_for_is_not_silently_taken_away(arguments: tuple[str, ...]) -> None:
    argv = ADAPTER.launch(request(arguments=arguments)).argv
    assert "--dangerously-bypass-approvals-and-sandbox" not in argv
    others = ADAPTER.launch(request(arguments=("--search", "-c", "shell_environment_policy.inherit=all"))).argv
    assert "--dangerously-bypass-approvals-and-sandbox" in others


def test_of_the_environment_only_its_own_is_passed() -> None:
    mine = {"CODEX_HOME": "/h", "CODEX_API_KEY": "k", "OPENAI_API_KEY": "k"}
    others = {"ANTHROPIC_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "k", "CODEX_SANDBOX": "seatbelt", "RUST_LOG": "trace"}
    assert select_variables({**mine, **others}, DECLARATION.passes) == mine


# --- the program behind npm's launcher


@pytest.mark.skipif(sys.platform != "linux", reason=f"{NOT_POSSIBLE}the names of Linux packages")
def test_the_program_is_found_beside_the_launcher_inside_it_or_in_an_old_package() -> None:
    package, triple = {
        "x86_64": ("codex-linux-x64", "x86_64-unknown-linux-musl"),
        "aarch64": ("codex-linux-arm64", "aarch64-unknown-linux-musl"),
    }[os.uname().machine]
    openai = "/usr/lib/node_modules/@openai"
    program = f"vendor/{triple}/bin/codex"
    assert CodexAdapter().native_path(f"{openai}/codex/bin/codex.js") == (
        f"{openai}/{package}/{program}",
        f"{openai}/codex/node_modules/@openai/{package}/{program}",
        f"{openai}/codex/{program}",
    )


@pytest.mark.parametrize("path", ["/usr/bin/codex", "/opt/codex/bin/codex.js", "/usr/lib/@openai/codex/bin/codex", ""])
def test_what_is_no_launcher_stays_as_it_is(path: str) -> None:
    assert CodexAdapter().native_path(path) == ()


# --- parse


def test_a_hello_has_a_session_a_thought_words_figures_and_an_end() -> None:
    heard = hear("hello")
    assert [one.kind for one in heard] == ["session", "error", "thinking", "message", "usage", "end"]
    assert re.fullmatch(r"[0-9a-f-]{36}", heard[0].text)
    assert heard[1].data["notice"] is True
    assert heard[2].text == "They greet me."
    assert heard[3].text == "Hello. A 429 is a rate limit, and 401 is unauthorized."
    assert heard[4].usage == Usage(tokens_input=100, tokens_output=10, tokens_cached=40)
    assert heard[4].scope is Scope.SESSION
    assert heard[5].data == {"ok": True}


def test_a_command_is_told_without_its_shell_and_with_its_exit_code() -> None:
    started, finished, *_ = [one for one in hear("calls") if one.kind.startswith("call.")]
    command = "echo 'one\ntwo \"x\" $HOME'; exit 3"
    assert started.data == {"call": "item_1", "tool": "shell", "input": {"command": command}}
    output = 'one\ntwo "x" $HOME\n'
    assert finished.data == {"call": "item_1", "ok": False, "exit_code": 3, "output": output}


@pytest.mark.parametrize("name", ["calls", "nested_calls"])
def test_a_patch_is_told_with_the_files_that_it_changed(name: str) -> None:
    (started,) = [one.data for one in hear(name) if one.data.get("tool") == "apply_patch"]
    assert started["input"] == {"changes": [{"path": "/home/ada/project/new.txt", "kind": "add"}]}
    (finished,) = [
        one.data for one in hear(name) if one.kind == "call.finished" and one.data["call"] == started["call"]
    ]
    assert finished == {"call": started["call"], "ok": True, "output": ""}


def test_a_call_of_a_server_is_told_by_both_names() -> None:
    calls = [one.data for one in hear("mcp") if one.kind.startswith("call.")]
    assert calls[0] == {"call": "item_1", "tool": "mcp__t__add", "input": {"a": 1}}
    assert calls[1] == {"call": "item_1", "ok": True, "output": "sum 3"}
    assert calls[3] == {"call": "item_2", "ok": False, "output": "sum 3"}


def test_a_plan_is_a_thought_and_is_not_told_again_at_the_end() -> None:
    item = {"id": "item_1", "type": "todo_list", "items": [{"text": "a", "completed": True}, {"text": "b"}]}
    assert [one.text for one in said(type="item.updated", item=item)] == ["[x] a\n[ ] b"]
    assert said(type="item.completed", item=item) == ()


def test_a_search_is_a_call() -> None:
    line = b'{"type":"%s","item":{"id":"item_1","type":"web_search","id":"ws_1","query":"cats","action":{}}}'
    (started,), (finished,) = ADAPTER.parse(line % b"item.started"), ADAPTER.parse(line % b"item.completed")
    assert started.data == {"call": "ws_1", "tool": "web_search", "input": {"query": "cats"}}
    assert finished.data == {"call": "ws_1", "ok": True, "output": ""}


def test_a_reconnect_is_a_retry_and_no_error() -> None:
    retries = [one for one in hear("401") if one.kind == "retry"]
    assert [one.data for one in retries] == [{"attempt": 1, "delay_ms": None, "status": 401}]
    (waiting,) = said(type="error", message="Reconnecting... waiting for network (Connection failed: x)")
    assert (waiting.kind, waiting.data["attempt"]) == ("retry", 0)


@pytest.mark.parametrize(
    ("wrapped", "command"),
    [
        ("/bin/bash -lc 'echo hi'", "echo hi"),
        ("/bin/bash -lc pwd", "pwd"),
        ("/usr/bin/zsh -c 'a'\"'\"'b'", "a'b"),
        ('/bin/bash -lc "echo \\$HOME \\`x\\` \\"y\\""', 'echo $HOME `x` "y"'),
        ("/bin/bash -lc 'one' 'two'", "/bin/bash -lc 'one' 'two'"),
        ("/bin/bash -lc 'never closed", "/bin/bash -lc 'never closed"),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
    ],
)
def test_only_a_shell_around_one_whole_word_is_taken_off(wrapped: str, command: str) -> None:
    item = {"id": "i", "type": "command_execution", "command": wrapped}
    (heard,) = said(type="item.started", item=item)
    assert heard.data["input"] == {"command": command}


@pytest.mark.parametrize("line", [b"not json", b"{", b"[]", b'{"type":"new.event"}', b'{"type":"item.started"}', b"{}"])
def test_what_cannot_be_read_is_raw(line: bytes) -> None:
    assert [one.kind for one in ADAPTER.parse(line)] == ["raw"]
    assert ADAPTER.parse(b" \n") == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = ("thread.started", "item.started", "item.updated", "item.completed", "error", "turn.failed", "turn.completed")
ITEMS = ("agent_message", "reasoning", "todo_list", "error", "command_execution", "file_change", "mcp_tool_call",
         "collab_tool_call", "web_search")  # fmt: skip
NAMES = ("id", "text", "items", "message", "command", "changes", "server", "arguments", "result", "error", "exit_code",
         "status", "aggregated_output", "query", "usage")  # fmt: skip


@given(
    st.sampled_from(KINDS),
    st.fixed_dictionaries({"type": st.sampled_from(ITEMS)}, optional=dict.fromkeys(NAMES, JSON)),
    st.fixed_dictionaries({}, optional=dict.fromkeys(("thread_id", "message", "error", "usage"), JSON)),
)
def test_no_line_whatever_is_in_it_raises(kind: str, item: dict[str, object], more: dict[str, object]) -> None:
    for heard in said(type=kind, item=item, **more):
        assert isinstance(heard.text, str)


# --- figures


def test_figures_are_those_of_the_turn_also_after_a_resume_and_in_a_fork() -> None:
    first = used("first")
    assert first == Usage(tokens_input=100, tokens_output=10, tokens_cached=40)
    assert used("resumed", first) == Usage(tokens_input=120, tokens_output=5, tokens_cached=100)
    both = Usage(tokens_input=220, tokens_output=15, tokens_cached=140)
    assert used("forked", both) == Usage(tokens_input=140, tokens_output=6, tokens_cached=120)


def test_a_resume_keeps_the_session_and_a_fork_has_one_of_its_own() -> None:
    assert texts("first", "session") == texts("resumed", "session")
    assert texts("first", "session") != texts("forked", "session")


# --- classify


@pytest.mark.parametrize("name", ["hello", "calls", "nested_calls", "mcp", "first", "resumed", "forked", "recovered"])
def test_what_ended_well_is_ok_whatever_the_model_said_or_what_was_tried_again(name: str) -> None:
    assert outcome_of(name, OK) == Outcome()


@pytest.mark.parametrize(
    ("name", "failure", "words"),
    [
        ("400", Failure.AGENT_ERROR, "Unsupported value"),
        ("401", Failure.AUTHENTICATION, "unexpected status 401 Unauthorized: Incorrect API key"),
        ("403", Failure.AUTHENTICATION, "unexpected status 403 Forbidden"),
        ("404", Failure.MODEL_NOT_FOUND, "The model `fake-model` does not exist"),
        ("429", Failure.LIMIT, "exceeded retry limit, last status: 429"),
        ("quota", Failure.BILLING, "Quota exceeded."),
        ("usage_limit", Failure.LIMIT, "You\u2019ve hit your usage limit."),
        ("500", Failure.OVERLOADED, "We\u2019re currently experiencing high demand"),
        ("503", Failure.OVERLOADED, "Selected model is at capacity."),
        ("529", Failure.OVERLOADED, "unexpected status 529"),
        ("context", Failure.CONTEXT_TOO_LONG, "Your input exceeds the context window"),
        ("refused", Failure.CONNECTIVITY, "Connection failed: error sending request"),
        ("dropped_before", Failure.CONNECTIVITY, "stream disconnected before completion: error sending"),
        ("dropped_middle", Failure.CONNECTIVITY, "stream disconnected before completion: Transport error"),
    ],
)
def test_every_failure_has_its_class_and_the_words_of_the_cli(name: str, failure: Failure, words: str) -> None:
    outcome = outcome_of(name, FAILED)
    assert outcome.failure is failure
    assert outcome.detail.startswith(words)
    assert not outcome.session_lost


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Codex ran out of room in the model's context window. Start a new thread", Failure.CONTEXT_TOO_LONG),
        ("rate limit exceeded: Please try again in 1.2s.", Failure.LIMIT),
        ("To use Codex with your ChatGPT plan, upgrade to Plus: https://x", Failure.BILLING),
        ("Missing environment variable: `AZURE_OPENAI_API_KEY`.", Failure.AUTHENTICATION),
        ("Your access token could not be refreshed. Please log out and sign in again.", Failure.AUTHENTICATION),
        ("unexpected status 402 Payment Required: x", Failure.BILLING),
        ("unexpected status 413 Payload Too Large: x", Failure.CONTEXT_TOO_LONG),
        ('{"detail":"The \'gpt-x\' model is not supported when using Codex with a ChatGPT account."}',
         Failure.MODEL_NOT_FOUND),
        ("Incomplete response returned, reason: max_output_tokens", Failure.AGENT_ERROR),
        ("your prompt said: Quota exceeded, unexpected status 401, hit your usage limit", Failure.AGENT_ERROR),
        ("", Failure.AGENT_ERROR),
    ],
)  # fmt: skip
def test_an_error_line_is_known_by_how_it_begins(text: str, failure: Failure) -> None:
    assert classify_error(text, EVENING).failure is failure
    (end,) = said(type="turn.failed", error={"message": text})
    assert ADAPTER.classify(FAILED, (end,), "").failure is failure


def test_a_session_that_is_unknown_is_lost_but_only_before_it_began() -> None:
    lost = ADAPTER.classify(FAILED, (), LOST)
    assert lost.session_lost
    assert lost.detail.startswith("Error: thread/resume: ")
    assert not ADAPTER.classify(FAILED, (AgentEvent("session", THREAD),), LOST).session_lost
    assert not ADAPTER.classify(FAILED, (), "the shell said: no rollout found for thread id\n").session_lost


def test_a_prompt_that_it_refuses_is_too_long() -> None:
    assert outcome_of("too_large", FAILED, TOO_LARGE).failure is Failure.CONTEXT_TOO_LONG


def test_a_wrong_setting_is_told_by_its_own_line_not_by_the_last_one() -> None:
    tail = "WARNING: x\nError loading config.toml: provider name must not be empty\nin `model_providers`\n\n"
    outcome = ADAPTER.classify(FAILED, (), tail)
    assert outcome.failure is Failure.AGENT_ERROR
    assert outcome.detail == "exit code 1: Error loading config.toml: provider name must not be empty"
    usage = ADAPTER.classify(Exit(2), (), "error: unexpected argument '--nosuch' found\n\nFor more, try '--help'.\n")
    assert usage.detail == "exit code 2: error: unexpected argument '--nosuch' found"


def test_a_warning_never_hides_how_the_process_ended() -> None:
    assert outcome_of("terminated", Exit(None, 15)) == Outcome(Failure.CRASHED, "killed by SIGTERM")
    assert outcome_of("interrupted", FAILED).detail == "exit code 1"
    assert outcome_of("terminated", OK).failure is Failure.NO_TERMINAL_EVENT


# --- when a limit is reset


@pytest.mark.parametrize("zone", ["UTC"], indirect=True)
@pytest.mark.usefixtures("zone")
def test_a_reset_is_the_end_of_the_minute_that_is_told() -> None:
    (limit,) = [one for one in hear("usage_limit") if one.kind == "limit"]
    assert limit.data["resets_at"] == (1_999_999_999 // 60 + 1) * 60_000
    assert outcome_of("usage_limit", FAILED).resets_at == limit.data["resets_at"]


@pytest.mark.parametrize("zone", ["UTC"], indirect=True)
@pytest.mark.usefixtures("zone")
def test_a_time_without_a_date_is_one_of_today() -> None:
    (limit,) = [one for one in hear("usage_limit_today") if one.kind == "limit"]
    assert limit.data["resets_at"] == calendar.timegm((2026, 11, 15, 23, 7, 0)) * 1000


@pytest.mark.parametrize(
    ("zone", "told", "resets"),
    [
        ("Asia/Tokyo", "Nov 19th, 2026 8:00 AM", (2026, 11, 18, 23, 1)),
        ("America/New_York", "6:10 PM", (2026, 11, 15, 23, 11)),
        ("UTC", "12:00 AM", (2026, 11, 15, 0, 1)),
        ("UTC", "Dec 1st, 2026 12:59 PM", (2026, 12, 1, 13, 0)),
    ],
    indirect=["zone"],
)
@pytest.mark.usefixtures("zone")
def test_a_reset_is_told_in_the_zone_of_this_machine(told: str, resets: tuple[int, ...]) -> None:
    complaint = classify_error(f"You\u2019ve hit your usage limit. Try again at {told}.", EVENING)
    assert complaint.resets_at == calendar.timegm((*resets, 0)) * 1000


def test_a_reset_may_be_told_as_a_wait_or_not_at_all() -> None:
    assert classify_error("rate limit exceeded: Please try again in 1.5s.", EVENING).resets_at == EVENING + 1_500
    assert classify_error("rate limit exceeded: Please try again in 20ms.", EVENING).resets_at == EVENING + 20
    assert classify_error("You\u2019ve hit your usage limit. Try again later.", EVENING).resets_at is None
    assert (
        classify_error("You\u2019ve hit your usage limit. Try again at Foo 9th, 2027 1:00 AM.", EVENING).resets_at
        is None
    )
