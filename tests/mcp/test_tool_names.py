"""The words of the tools are those of the domain, the page has every tool, and the gate knows them all."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest

from jackline.app.home import Home
from jackline.domain.states import CallClass, Decision, Replay, WorkStatus
from jackline.features.cases import case_model, case_tools
from jackline.features.mcp.context import ToolContext
from jackline.features.mcp.state_server import StateServer, build_server
from jackline.features.work import work_tools
from jackline.features.work.work_queue import RESOLUTIONS
from jackline.policy import rule_lookup
from jackline.policy.builtin import agent_tools as builtin_tools
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from tests.mcp.test_stdio import LOOKING, TOOLS

PAGE = Path(__file__).parent.parent.parent / "docs" / "mcp.md"
PREFIXES = ("mcp__jackline__", "mcp_jackline_", "jackline_")
HERE = CallContext("/w", "/w")


@pytest.fixture
def server(tmp_path: Path) -> StateServer:
    from jackline.app import config

    return build_server(ToolContext(Home(config.load_config({"HOME": str(tmp_path)}, str(tmp_path))), {}))


@pytest.mark.parametrize(
    ("offered", "words"),
    [
        (case_tools.HypothesisWord, case_model.HypothesisStatus),
        (case_tools.CommandWord, case_model.CommandStatus),
        (case_tools.LearningWord, case_model.LearningKind),
        (case_tools.ActionWord, case_model.RepoAction),
        (work_tools.StatusWord, WorkStatus),
    ],
)
def test_a_schema_has_the_words_of_the_domain(offered: Any, words: type[StrEnum]) -> None:
    assert set(get_args(offered)) == {str(one) for one in words}


def test_an_item_ends_by_the_words_of_the_queue() -> None:
    assert set(get_args(work_tools.ResolutionWord)) == set(RESOLUTIONS)


def test_the_page_has_every_tool_with_what_it_does(server: StateServer) -> None:
    tools = {tool.name: tool for tool in anyio.run(server.list_tools)}
    rows = dict(re.findall(r"^\| `(\w+)` \| (reads|adds|sets|runs) \|", PAGE.read_text(), re.MULTILINE))
    assert set(rows) == set(tools)
    for name, tool in tools.items():
        assert tool.annotations is not None
        kind = {(True, True): "reads", (False, True): "sets", (False, False): "adds"}[
            bool(tool.annotations.read_only_hint), bool(tool.annotations.idempotent_hint)
        ]
        assert rows[name] == ("runs" if tool.annotations.open_world_hint else kind), name


def test_the_page_has_every_resource_and_prompt(server: StateServer) -> None:
    text = PAGE.read_text()
    templates = anyio.run(server.list_resource_templates)
    for uri in ("jackline://dashboard", *(one.uri_template for one in templates)):
        assert f"`{uri}`" in text
    for prompt in anyio.run(server.list_prompts):
        assert f"| `{prompt.name}` |" in text


# --- the gate


@pytest.mark.parametrize("tool", sorted(TOOLS))
@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_gate_knows_each_tool_and_allows_it(prefix: str, tool: str) -> None:
    rule = rule_lookup.find_tool_rule((), f"{prefix}{tool}")
    assert rule.call_class is (CallClass.READ if tool in LOOKING else CallClass.LOCAL)
    assert rule.decision is Decision.ALLOW
    assert rule.replay is not Replay.EXACT, "an interrupted call is reported, never forced a second time"


def test_a_tool_of_another_server_is_unknown() -> None:
    for tool in ("mcp__other__case_start", "mcp__jackline__no_such_tool"):
        assert rule_lookup.find_tool_rule((), tool).call_class is CallClass.UNKNOWN


@pytest.mark.parametrize(
    ("commands", "kind", "rule"),
    [
        (["pytest -q"], CallClass.LOCAL, None),
        (["git push origin main"], CallClass.EFFECT, "git.push"),
        (["true", "rm -rf /etc"], CallClass.EFFECT, "outside.delete"),
        (["pytest -q", "git push"], CallClass.EFFECT, None),
        (["if ("], CallClass.UNKNOWN, None),
        # Each is run by a shell of its own: none hides the one after it.
        (["cat <<E", "git push", "E"], CallClass.EFFECT, "git.push + others"),
        (["true \\", "git push"], CallClass.EFFECT, "git.push + others"),
        (["if (", "git push"], CallClass.EFFECT, "git.push + others"),
        # The SDK reads a list also out of a text.
        ('["git push"]', CallClass.EFFECT, "git.push"),
        ('["ls", "git push"]', CallClass.EFFECT, "git.push"),
    ],
)
@pytest.mark.parametrize("tool", sorted(builtin_tools.VERIFIER_FIELDS))
def test_what_a_case_verifies_by_is_judged_as_a_shells_command_is(
    tool: str, commands: list[str] | str, kind: CallClass, rule: str | None
) -> None:
    field = builtin_tools.VERIFIER_FIELDS[tool]
    judged = classify_call((), tool, {"summary": "done", field: commands}, HERE)
    assert judged.rule.call_class is kind
    assert rule is None or judged.rule.name == rule


@pytest.mark.parametrize(
    "given", [{}, {"verification": []}, {"verification": "x"}, {"verification": '"git push"'}, None, []]
)
def test_without_commands_closing_is_local(given: Any) -> None:
    assert classify_call((), "mcp__jackline__case_close", given, HERE).rule.call_class is CallClass.LOCAL
