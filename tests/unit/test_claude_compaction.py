"""What Claude Code says when it forgets, as the real one said it, and how it is given something back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jackline.agents.claude.claude_adapter import ADAPTER, DECLARATION
from jackline.agents.claude.claude_hooks import COMPACTION, build_settings
from jackline.agents.registry import AGENTS, load_adapter
from jackline.domain.adapter import CompactionMoment
from jackline.domain.outcome import AgentEvent
from tests.support.adapters import turn_request
from tests.support.recordings import FOLDER

REMINDER = ("/opt/my python/bin/python3", "-P", "-m", "jackline", "case", "hook", "claude")


def recorded(name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((FOLDER / "claude" / "hooks" / f"{name}.json").read_text())
    return fields


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("pre_compact_auto", CompactionMoment.BEFORE),
        ("pre_compact_manual", CompactionMoment.BEFORE),
        ("session_compact", CompactionMoment.AFTER),
        ("session_resume", CompactionMoment.AFTER),
        ("session_startup", None),
        ("asks_bash", None),
    ],
)
def test_each_hook_is_known_for_what_it_is(name: str, moment: CompactionMoment | None) -> None:
    assert COMPACTION.parse_moment(recorded(name)) is moment


@pytest.mark.parametrize(
    "fields", [{}, {"hook_event_name": 7}, {"hook_event_name": "SessionStart", "source": ["compact"]}]
)
def test_anything_else_means_nothing(fields: dict[str, Any]) -> None:
    assert COMPACTION.parse_moment(fields) is None


def test_before_it_is_plain_text_and_after_it_the_context_of_the_session() -> None:
    assert COMPACTION.render_reminder(CompactionMoment.BEFORE, "keep this") == "keep this"
    assert json.loads(COMPACTION.render_reminder(CompactionMoment.AFTER, 'the "case"\n')) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": 'the "case"\n'}
    }


def test_the_hooks_are_commands_that_cannot_fail_and_are_quoted() -> None:
    hooks = build_settings("http://127.0.0.1:9/hook", "TOKEN", REMINDER)["hooks"]
    for event in ("PreCompact", "SessionStart"):
        ((hook,),) = (one["hooks"] for one in hooks[event])
        assert hook["type"] == "command"
        assert hook["command"] == "'/opt/my python/bin/python3' -P -m jackline case hook claude || true"
        assert 0 < hook["timeout"] <= 60
    assert hooks["SessionStart"][0]["matcher"] == "compact|resume"
    assert {"PreToolUse", "PostToolUse"} <= hooks.keys()


def test_without_a_reminder_there_are_no_such_hooks() -> None:
    assert not {"PreCompact", "SessionStart"} & build_settings("http://127.0.0.1:9/hook", "TOKEN")["hooks"].keys()


def test_the_settings_of_a_turn_have_the_reminder_of_its_request() -> None:
    launch = ADAPTER.launch(turn_request(session="s", binary="/opt/claude", reminder=REMINDER))
    (content,) = (text for path, text in launch.files.items() if path.endswith("claude-settings.json"))
    assert b"jackline case hook claude || true" in content


def test_a_compaction_is_told_with_what_it_left() -> None:
    metadata = {"trigger": "auto", "pre_tokens": 990_008, "post_tokens": 2545, "duration_ms": 63}
    line = {"type": "system", "subtype": "compact_boundary", "compact_metadata": metadata}
    told = {"trigger": "auto", "tokens_before": 990_008, "tokens_after": 2545}
    assert ADAPTER.parse(json.dumps(line).encode()) == (AgentEvent("compacted", data=told),)
    bare = ADAPTER.parse(b'{"type":"system","subtype":"compact_boundary"}')
    assert bare == (AgentEvent("compacted", data={"trigger": "", "tokens_before": 0, "tokens_after": 0}),)


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_whoever_says_that_it_compacts_says_how(name: str) -> None:
    adapter = load_adapter(name)
    assert adapter.declaration.compacts == (getattr(adapter, "compaction", None) is not None)
    assert DECLARATION.compacts
