"""The hooks of Claude Code, against what the real one sent (tests/agents/recorded/claude/hooks)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.agents.claude.claude_hooks import HOOKS, build_settings
from jackline.domain.adapter import SubagentEvent, ToolFinished, ToolRequested
from jackline.domain.states import Decision
from tests.support.recordings import FOLDER

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop", "Stop")
FIELDS = ("tool_name", "tool_input", "tool_use_id", "tool_response", "error", "agent_id", "duration_ms", "cwd")


def recorded(name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((FOLDER / "claude" / "hooks" / f"{name}.json").read_text())
    return fields


def asked(name: str) -> ToolRequested:
    one = HOOKS.parse(recorded(name))
    assert isinstance(one, ToolRequested)
    return one


def told(name: str) -> ToolFinished:
    one = HOOKS.parse(recorded(name))
    assert isinstance(one, ToolFinished)
    return one


def said(answer: dict[str, Any]) -> dict[str, Any]:
    words: dict[str, Any] = answer["hookSpecificOutput"]
    return words


# --- what it asks


def test_a_command_is_asked_for_with_its_input_its_name_and_its_folder() -> None:
    name = recorded("asks_bash")["tool_use_id"]
    assert asked("asks_bash") == ToolRequested("Bash", {"command": "echo hello"}, name, "/home/ada/project")


def test_a_call_of_a_subagent_names_it() -> None:
    assert asked("asks_in_subagent").subagent == recorded("subagent_start")["agent_id"]
    assert asked("asks_bash").subagent == ""


def test_only_a_subagents_task_launches_one() -> None:
    launches = {name: asked(name).starts_subagent for name in ("asks_agent", "asks_bash", "asks_write", "asks_mcp")}
    assert launches == {"asks_agent": True, "asks_bash": False, "asks_write": False, "asks_mcp": False}


# --- what it tells


def test_the_words_of_a_command_are_its_output() -> None:
    one = told("told_bash")
    assert (one.ok, one.exit_code, one.output, one.is_over) == (True, 0, "hello", True)
    assert one.duration_ms == recorded("told_bash")["duration_ms"]


def test_a_failed_command_tells_its_exit_code() -> None:
    one = told("told_failure")
    assert (one.ok, one.exit_code, one.output) == (False, 3, "Exit code 3\nhello")


@pytest.mark.parametrize("name", ["told_background", "told_agent_launched", "told_monitor", "told_workflow"])
def test_what_was_only_begun_is_not_over(name: str) -> None:
    assert told(name).is_over is False


@pytest.mark.parametrize("name", ["told_bash", "told_write", "told_agent", "told_mcp", "told_failure"])
def test_everything_else_is_over(name: str) -> None:
    assert told(name).is_over is True


def test_the_words_of_a_subagent_and_of_a_server_are_their_output() -> None:
    assert told("told_agent").output.endswith("sub done")
    assert told("told_mcp").output == "poked"
    assert json.loads(told("told_write").output)["type"] == "create"


def test_a_subagent_is_tied_to_the_call_that_started_it() -> None:
    launched, start = told("told_agent_launched"), HOOKS.parse(recorded("subagent_start"))
    assert isinstance(start, SubagentEvent)
    assert (launched.subagent, launched.agent_call) == (start.name, asked("asks_agent").agent_call)
    stop = HOOKS.parse(recorded("subagent_stop"))
    assert stop == SubagentEvent(start.name, ended=True, output=recorded("subagent_stop")["last_assistant_message"])


def test_an_interrupted_command_did_not_end_well() -> None:
    fields = recorded("told_bash")
    fields["tool_response"]["interrupted"] = True
    one = HOOKS.parse(fields)
    assert isinstance(one, ToolFinished)
    assert one.ok is False


# --- what is answered


@pytest.mark.parametrize(
    ("decision", "word"), [(Decision.ALLOW, "allow"), (Decision.DENY, "deny"), (Decision.ASK, "defer")]
)
def test_each_decision_has_its_word(decision: Decision, word: str) -> None:
    words = said(HOOKS.build_answer(asked("asks_write"), decision, "because", ""))
    assert (words["hookEventName"], words["permissionDecision"]) == ("PreToolUse", word)
    assert words["permissionDecisionReason"] == "because"


def test_an_allowed_call_is_allowed_as_it_was_asked_for_so_that_no_other_hook_changes_it() -> None:
    words = said(HOOKS.build_answer(asked("asks_bash"), Decision.ALLOW, "", ""))
    assert words["updatedInput"] == {"command": "echo hello"}


def test_a_stored_result_of_a_command_is_its_own_output_after_a_command_that_does_nothing() -> None:
    before = said(HOOKS.build_answer(asked("asks_bash"), Decision.STORED, "done before", "pushed"))
    assert (before["permissionDecision"], before["updatedInput"]) == ("allow", {"command": "true"})
    after = said(HOOKS.replay_result(asked("asks_bash"), "pushed"))
    assert (after["hookEventName"], after["updatedToolOutput"]["stdout"]) == ("PostToolUse", "pushed")


@pytest.mark.parametrize("name", ["asks_write", "asks_agent", "asks_mcp"])
def test_a_stored_result_of_any_other_tool_is_told_with_a_denial(name: str) -> None:
    words = said(HOOKS.build_answer(asked(name), Decision.STORED, "done before", "the old output"))
    assert words["permissionDecision"] == "deny"
    assert words["permissionDecisionReason"] == "done before\nthe old output"
    assert "updatedInput" not in words
    assert HOOKS.replay_result(asked(name), "the old output") == {}


def test_every_hook_that_asks_or_tells_blocks_when_nobody_answers() -> None:
    hooks = build_settings("http://127.0.0.1:9/hook", "TOKEN")["hooks"]
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
        ((hook,),) = (one["hooks"] for one in hooks[event])
        assert hook == {**hook, "type": "http", "onFailure": "block", "timeout": 86_400}
        assert "matcher" not in hooks[event][0]
        assert (hook["headers"], hook["allowedEnvVars"]) == ({"Authorization": "Bearer $TOKEN"}, ["TOKEN"])
    for event in ("SubagentStart", "SubagentStop"):  # blocked, a subagent would be sent on
        assert "onFailure" not in hooks[event][0]["hooks"][0]


# --- what nobody expects


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from((*FIELDS, "hook_event_name")), ANY_JSON), st.sampled_from(EVENTS))
def test_whatever_comes_is_understood_or_refused_and_never_anything_else(fields: dict[str, Any], event: str) -> None:
    fields = {**fields, "hook_event_name": event}
    try:
        one = HOOKS.parse(fields)
    except ValueError:
        return
    assert one is None or isinstance(one, ToolRequested | ToolFinished | SubagentEvent)
    if isinstance(one, ToolRequested):
        for decision in Decision:
            json.dumps(HOOKS.build_answer(one, decision, "why", "output"))


def test_a_call_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="tool_use_id"):
        HOOKS.parse({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}})
