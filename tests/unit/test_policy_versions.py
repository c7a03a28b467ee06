"""A run that began under an older policy keeps its keys and classes.

The fixture is what version 1 (commit 7ac943d) made of a thousand calls: class, decision, rule, target, key, call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from jackline.domain.states import CallClass, Decision
from jackline.policy import keys
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.policy.rule_lookup import parse_rule_tables
from jackline.policy.rules import rank_class, rank_decision

WORKSPACE = "/home/dev/project"
RULES = parse_rule_tables(
    [
        {"name": "sends", "command": "send", "class": "effect"},
        {
            "name": "mails",
            "command": "mailer",
            "class": "effect",
            "decision": "allow",
            "key": ["1"],
            "target": "mail:{1}",
        },
        {"name": "note", "tool": "post_note", "class": "effect"},
    ],
    "rules",
)


class OldCall(NamedTuple):
    call_class: str
    decision: str
    rule: str
    target: str
    key: str
    call: Any  # the text of a shell call, or a tool and its input


def _read_calls() -> list[OldCall]:
    path = Path(__file__).parent.parent / "fixtures" / "policy_version_1.jsonl"
    return [OldCall(*json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


OLD_CALLS = _read_calls()


def classify_now(call: Any) -> tuple[Any, str, str]:
    """The rule, target and key that a run of version 1 gets for a call today."""
    tool, given = ("Bash", {"command": call}) if isinstance(call, str) else call
    classified = classify_call(RULES, tool, given, CallContext(WORKSPACE, WORKSPACE, version=1))
    normal = keys.normalize_input(given, WORKSPACE)
    fields = {**classified.fields, **{name: f"<{name}>" for name in classified.host_inputs}}
    key = keys.build_key(b"secret", "lineage", classified.rule, tool, normal, fields)
    return classified.rule, keys.build_target(classified.rule, normal, fields), key


def test_an_effect_of_a_run_that_has_begun_keeps_its_key() -> None:
    changed = []
    for old in OLD_CALLS:
        if old.call_class != "effect":
            continue
        rule, target, key = classify_now(old.call)
        now = old._replace(call_class=str(rule.call_class), rule=rule.name, target=target, key=key[:16])
        if now != old or rank_decision(rule) < rank_decision(rule._replace(decision=Decision(old.decision))):
            changed.append((old, now, rule.decision))
    assert changed == []


def test_no_class_of_a_run_that_has_begun_becomes_laxer() -> None:
    """It may become stricter, where a hole was closed."""
    laxer = []
    for old in OLD_CALLS:
        rule, _, _ = classify_now(old.call)
        before = rule._replace(call_class=CallClass(old.call_class), decision=Decision(old.decision))
        if rank_class(rule) < rank_class(before) or rank_decision(rule) < rank_decision(before):
            laxer.append((old.call, old.call_class, old.decision, rule.call_class, rule.decision))
    assert laxer == []


def test_an_unknown_call_of_a_run_that_has_begun_is_still_not_asked_about() -> None:
    """Rules for tools and programs that version 1 did not know do not count: the run was started without them."""
    names = {str(one.call): one for one in OLD_CALLS if one.call_class == "unknown"}
    for call in ("make test", "bash build.sh", "./scripts/build.sh", "['mcp__github__create_issue', {'title': 'x'}]"):
        rule, _, _ = classify_now(names[call].call)
        assert (rule.call_class, rule.decision) == (CallClass.UNKNOWN, Decision.ALLOW), call
