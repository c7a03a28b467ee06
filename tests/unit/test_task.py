"""Task files: what they may say, what is refused and in which words, and how variables are filled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.domain.task import Task, fill_prompt, parse_task
from jackline.errors import UsageError

SETTINGS = ("timeout_seconds", "max_usd")
KNOWN = {"workspace": "/srv/tree", "task": "mend"}


def read(text: str) -> Task:
    return parse_task("mend", text, "mend.md", SETTINGS)


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    return str(caught.value)


def test_everything_that_a_task_can_say() -> None:
    text = """---
# a comment
description: "Mend \\"it\\": now"
agent: claude
fallback: [codex, "gemini" ]
model: some/model-1.5   # the good one
effort: high
proof: make test && echo 'done: yes'
mode: interactive
requires_commit: true
requires_clean: false

timeout_seconds: 90
max_usd: 0.5
var.what: the flaky test
var.empty:
var.quoted: 'it''s # no comment'
---

Mend {what}.

"""
    assert read(text) == Task(
        "mend", "Mend {what}.", "mend.md", 'Mend "it": now', "claude", ("codex", "gemini"), "some/model-1.5", "high",
        "make test && echo 'done: yes'", "interactive", True, False, {"timeout_seconds": 90, "max_usd": 0.5},
        {"what": "the flaky test", "empty": "", "quoted": "it's # no comment"},
    )  # fmt: skip


def test_agents_is_short_for_an_agent_and_who_follows_it() -> None:
    task = read("---\nagents: [claude, codex, qwen]\n---\nx")
    assert (task.agent, task.fallback) == ("claude", ("codex", "qwen"))
    assert "either 'agents'" in refused("---\nagents: [claude]\nagent: codex\n---\nx")


@pytest.mark.parametrize(
    "text", ["only a prompt", "\ufeff---\nmode: job\n---\r\nonly a prompt\r\n", "only a prompt\n---\n"]
)
def test_front_matter_is_optional(text: str) -> None:
    assert read(text).prompt.startswith("only a prompt")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("colour: red", "mend.md, line 3: unknown key 'colour' (known keys: description, agent"),
        ("max_tokens: 3", "unknown key 'max_tokens'"),
        ("mode: party", "mode must be job or interactive"),
        ("requires_commit: yes", "requires_commit must be true or false, not 'yes'"),
        ("requires_commit:", "requires_commit must be true or false"),
        ("timeout_seconds: soon", "timeout_seconds must be a number, not 'soon'"),
        ("timeout_seconds:", "timeout_seconds must be a number"),
        ("fallback: codex", "fallback must be a list such as [a, b]"),
        ("- codex", "write a list as [a, b]"),
        ("  agent: codex", "not indented"),
        ("agent", "cannot be parsed"),
        ("agent:codex", "cannot be parsed"),
        ("proof: |", "proof starts with |; put it in double quotes"),
        ("proof: [a]", "proof starts with ["),
        ('proof: "a', "proof has an unclosed quote"),
        ("model: *anchor", "starts with *"),
        ("var.2: x", "'2' is not a valid name"),
        ("var.workspace: x", "'workspace' is set by jackline"),
        ("description: twice", "duplicate key 'description'"),
    ],
)
def test_what_is_refused_names_its_line(line: str, said: str) -> None:
    message = refused(f"---\ndescription: x\n{line}\n---\nprompt")
    assert said in message
    assert message.startswith("mend.md")


def test_front_matter_without_an_end() -> None:
    assert "is not closed" in refused("---\nagent: x\n")


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    for whole in (text, f"---\n{text}\n---\nprompt", f"---\nproof: {text}\n---\n"):
        try:
            read(whole)
        except UsageError as error:
            assert "mend.md" in str(error)  # noqa: PT017 - either is fine, but an error names its file


# --- variables -------------------------------------------------------------------------------------------------


def test_variables_are_filled_and_other_braces_stay() -> None:
    prompt = 'In {workspace}: {what}, {{what}}, {"a": {"b": 1}}, {}, { what }, ${{HOME}}, {task}'
    task = Task("mend", prompt, "mend.md", variables={"what": "a"})
    assert fill_prompt(task, {"what": "{task}"}, KNOWN) == (
        'In /srv/tree: {task}, {what}, {"a": {"b": 1}}, {}, { what }, ${HOME}, mend'
    )
    assert fill_prompt(task, {}, KNOWN).startswith("In /srv/tree: a,")


def test_a_missing_variable_and_one_that_nobody_asked_for_are_named() -> None:
    task = Task("mend", "{a} {b} {a} {c}", "mend.md", variables={"c": ""})
    assert task.needs == ("a", "b")
    with pytest.raises(UsageError, match="needs a value for b: add --var b=VALUE"):
        fill_prompt(task, {"a": "1"}, KNOWN)
    with pytest.raises(UsageError, match="has no variable 'd'; its variables: a, b, c"):
        fill_prompt(task, {"d": "1"}, KNOWN)
    with pytest.raises(UsageError, match="has no variable 'workspace'"):
        fill_prompt(task, {"a": "", "b": "", "workspace": "/"}, KNOWN)
