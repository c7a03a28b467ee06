"""MCP tools: well-known servers, then the verbs in a tool's name, in the spellings of all CLIs."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.domain.states import CallClass, Decision
from jackline.policy import keys
from jackline.policy.builtin import mcp_tools
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.policy.rules import Rule

HERE = CallContext("/w", "/w")


def judge(tool: str, given: Any = None, where: CallContext = HERE, *rules: Rule) -> tuple[str, str, str]:
    rule = classify_call(rules, tool, given or {}, where).rule
    return rule.name, str(rule.call_class), str(rule.decision)


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("mcp__acme__get_ticket", "read"),
        ("mcp__acme__listTickets", "read"),
        ("mcp__acme__search-tickets", "read"),
        ("mcp__acme__HTTPStatusCheck", "read"),
        ("mcp__acme__create_ticket", "effect"),
        ("mcp__acme__createTicket", "effect"),
        ("mcp__acme__get_or_create_ticket", "effect"),
        ("mcp__acme__list-and-delete", "effect"),
        ("mcp__acme__query", "unknown"),
        ("mcp__acme__execute_sql", "unknown"),
        ("mcp__acme__run", "unknown"),
        ("mcp__acme__run_and_get", "unknown"),
        ("mcp__acme__frobnicate", "unknown"),
        ("mcp__acme__settings", "unknown"),
        ("mcp_acme_get_ticket", "read"),
        ("mcp_acme_create_ticket", "effect"),
        ("acme_create_ticket", "unknown"),
        ("github_create_issue", "effect"),
        ("mcp__github__get_pull_request", "read"),
        ("mcp__github__list_pull_requests", "read"),
        ("mcp__github__merge_pull_request", "effect"),
        ("mcp__github__frobnicate", "effect"),
        ("mcp__plugin_github_github__create_issue", "effect"),
        ("mcp__slack__slack_post_message", "effect"),
        ("mcp__slack__slack_get_channel_history", "read"),
        ("mcp__notion__API-post-search", "read"),
        ("mcp__notion__API-post-page", "effect"),
        ("mcp__brave-search__brave_web_search", "read"),
        ("mcp__sequential-thinking__sequentialthinking", "read"),
        ("mcp__context7__resolve-library-id", "read"),
        ("mcp__time__convert_time", "read"),
        ("mcp__fetch__fetch", "read"),
        ("mcp__memory__create_entities", "local"),
        ("mcp__memory__read_graph", "read"),
        ("mcp__git__git_commit", "local"),
        ("mcp__git__git_diff_staged", "read"),
        ("mcp__playwright__browser_navigate", "read"),
        ("mcp__playwright__browser_click", "unknown"),
        ("mcp__filesystem__read_text_file", "read"),
        ("mcp__filesystem__write_file", "effect"),
        ("mcp__stripe__create_refund", "effect"),
        ("mcp__gmail__send_email", "effect"),
        ("mcp__postgres__query", "effect"),
        ("mcp__jackline__work_enqueue", "local"),
        ("mcp__jackline__work_list", "read"),
    ],
)
def test_the_class_of_a_tool(tool: str, expected: str) -> None:
    _, kind, decision = judge(tool)
    assert (kind, decision) == (expected, "ask" if expected == "effect" else "allow")


def test_a_run_that_began_before_knows_none_of_them() -> None:
    for tool in ("mcp__github__create_issue", "mcp__acme__get_x", "mcp__fetch__fetch"):
        assert judge(tool, where=HERE._replace(version=1)) == ("builtin.mcp", "unknown", "allow")


@pytest.mark.parametrize(
    ("sql", "kind"), [("select 1", "read"), ("delete from users", "effect"), ("select 1; drop table a", "effect")]
)
def test_one_reading_statement_is_a_read(sql: str, kind: str) -> None:
    assert judge("mcp__postgres__query", {"sql": sql})[1] == kind
    assert judge("mcp__postgres__query", {"sql": sql, "query": "drop table a"})[1] == "effect"
    assert judge("mcp__acme__query", {"sql": sql})[1] == "unknown"


def test_what_the_name_does_not_say_is_unmatched() -> None:
    asks = HERE._replace(unmatched=Decision.ASK)
    assert judge("mcp__acme__query", where=asks) == ("builtin.mcp", "unknown", "ask")
    assert judge("mcp__acme__get_x", where=asks)[2] == "allow"


def test_a_configured_rule_comes_first() -> None:
    own = Rule(name="mine", tool="mcp__github__*", call_class=CallClass.READ, layer="user")
    assert judge("mcp__github__create_issue", {}, HERE, own)[0] == "mine"


def test_targets() -> None:
    for tool, given, target in (
        ("mcp__github__create_issue", {"owner": "me", "repo": "tool"}, "github:me/tool"),
        ("mcp__slack__post_message", {"channel_id": "C1", "text": "x"}, "slack:C1"),
        ("mcp__acme__create_x", {}, "mcp:acme:create_x"),
    ):
        judged = classify_call((), tool, given, HERE)
        assert keys.build_target(judged.rule, given, judged.fields) == target


def test_every_server_has_one_rule() -> None:
    names = [rule.name for rule in mcp_tools.MCP_RULES]
    assert len(names) == len(set(names))
    assert {"mcp.github", "mcp.slack", "mcp.linear", "mcp.stripe", "mcp.effect", "mcp.read"} <= set(names)


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("mcp__git__git_push", "mcp.effect"), ("mcp__git__git_commit", "mcp.local"),
        ("mcp__x__describe_and_terminate", "mcp.effect"), ("mcp__x__get_d\u0435lete", ""),
    ],
)  # fmt: skip
def test_a_push_and_letters_of_another_script_do_not_read(tool: str, name: str) -> None:
    rule = mcp_tools.find_mcp_rule(tool)
    assert (rule.name if rule else "") == name
