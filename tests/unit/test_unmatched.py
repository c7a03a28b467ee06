"""Calls that no rule matches: a setting decides about them, after all rules."""

from __future__ import annotations

import pytest

from jackline.domain.call_gate import can_approve_always
from jackline.domain.states import CallClass, Decision
from jackline.policy import keys
from jackline.policy.call_context import CallContext
from jackline.policy.classify import Classification, classify_call
from jackline.policy.rules import Rule

WORKSPACE = "/home/dev/project"
ASK = CallContext(WORKSPACE, WORKSPACE, unmatched=Decision.ASK)
DENY = ASK._replace(unmatched=Decision.DENY)


def shell(command: str, *rules: Rule, where: CallContext = ASK) -> Classification:
    return classify_call(rules, "Bash", {"command": command}, where)


def target(judged: Classification) -> str:
    return keys.build_target(judged.rule, {}, judged.fields)


@pytest.mark.parametrize(
    "command",
    [
        "acme deploy",
        "./x.sh",
        "ls && acme deploy",
        "acme 'unclosed",
        "$TOOL x",
        "echo hi > $FILE",
        "sed -i s/a/b/ $X",
        "jobs -x ./x",
    ],
)
def test_a_command_without_a_rule_follows_the_setting_and_keeps_its_class(command: str) -> None:
    for decision in (Decision.ASK, Decision.DENY):
        judged = shell(command, where=ASK._replace(unmatched=decision))
        assert (judged.rule.call_class, judged.rule.decision) == (CallClass.UNKNOWN, decision)
    assert shell(command, where=CallContext(WORKSPACE, WORKSPACE)).rule.decision is Decision.ALLOW


@pytest.mark.parametrize("command", ["ls", "pytest -q", "mkdir build && touch build/x", "true"])
def test_a_command_with_a_rule_does_not_follow_the_setting(command: str) -> None:
    assert shell(command, where=DENY).rule.decision is Decision.ALLOW


@pytest.mark.parametrize("tool", ["spin", "acme_frob"])
def test_a_tool_without_a_rule_follows_the_setting(tool: str) -> None:
    for decision in (Decision.ASK, Decision.DENY):
        judged = classify_call((), tool, {}, ASK._replace(unmatched=decision))
        assert (judged.rule.call_class, judged.rule.decision) == (CallClass.UNKNOWN, decision)
    assert classify_call((), "Read", {"file_path": "a"}, DENY).rule.decision is Decision.ALLOW


def test_a_configured_rule_of_class_unknown_decides_for_itself() -> None:
    own = Rule(name="acme", tool="", call_class=CallClass.UNKNOWN, command=("acme",), layer="user")
    assert shell("acme deploy", own, where=DENY).rule.decision is Decision.ALLOW
    tool = Rule(name="spin", tool="spin", call_class=CallClass.UNKNOWN, layer="project")
    assert classify_call((tool,), "spin", {}, DENY).rule.decision is Decision.ALLOW
    everything = Rule(name="all", tool="Bash", call_class=CallClass.UNKNOWN, layer="user")
    assert shell("acme 'unclosed", everything, where=DENY).rule.decision is Decision.ALLOW


@pytest.mark.parametrize("call", ["acme deploy", "acme 'unclosed"])
@pytest.mark.parametrize("kind", [CallClass.UNKNOWN, CallClass.EFFECT, CallClass.READ])
@pytest.mark.parametrize("decision", [Decision.ALLOW, Decision.ASK])
def test_an_untrusted_rule_does_not_loosen_it(call: str, kind: CallClass, decision: Decision) -> None:
    for rule in (
        Rule(name="p", tool="*", call_class=kind, decision=decision, layer="project", tightens=True, most=3),
        Rule(name="p", tool="", call_class=kind, decision=decision, layer="project", tightens=True, command=("acme",)),
    ):
        assert shell(call, rule, where=DENY).rule.decision is Decision.DENY
        assert classify_call((rule._replace(command=(), tool="*"),), "spin", {}, DENY).rule.decision is Decision.DENY


def test_who_agrees_to_one_rule_of_a_call_has_not_agreed_to_the_others() -> None:
    assert shell("git push && acme deploy").rule.name == "git.push + unmatched"
    assert shell("git push && rm -rf .").rule.name == "git.push + workspace.delete"
    assert shell("acme deploy; rm -rf .").rule.name == "unmatched + workspace.delete"
    assert (
        shell("git push && acme deploy", where=ASK._replace(unmatched=Decision.ALLOW)).rule.name == "git.push + others"
    )


def test_a_run_that_began_before_keeps_the_names_of_its_rules() -> None:
    before = CallContext(WORKSPACE, WORKSPACE, version=1)
    assert shell("git push && rm -rf .", where=before).rule.name == "git.push + others"


@pytest.mark.parametrize(
    ("command", "covered"),
    [
        ("acme deploy --fast", "command:acme deploy"),
        ("cd sub && acme deploy", "command:acme deploy"),
        ("./x.sh", "command:./x.sh"),
        ("acme -c 'print(1)'", ""),
        ("acme $WHAT", ""),
        ("acme a; acme b", ""),
        ("acme a; rm -rf .", ""),
        ("acme 'unclosed", ""),
    ],
)
def test_always_covers_the_program_with_its_first_word(command: str, covered: str) -> None:
    judged = shell(command)
    assert target(judged) == covered
    assert can_approve_always(judged.rule.name, target(judged)) == bool(covered)
