"""Rules: good ones load, each mistake names its rule, and the run's own come before the built-in ones."""

from __future__ import annotations

import json
import tomllib

import pytest

from jackline.domain import policy
from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import PolicyError

FULL = """
[[rule]]
name = "mail"
tool = "send_mail"
class = "effect"
replay = "idempotent"
decision = "allow"
key = ["to", "subject"]
target = "mail:{to}"
probe = "grep -q x outbox"
nothing_happened = [3, 4]
max = 2

[[rule]]
tool = "post"
class = "effect"

[[rule]]
tool = "look_*"
class = "read"

[[rule]]
tool = "sh"
class = "unknown"
decision = "deny"
"""


def test_a_policy_file_becomes_rules() -> None:
    rules = policy.from_tables(tomllib.loads(FULL)["rule"], "policy.toml")
    mail = Rule(
        "mail",
        "send_mail",
        CallClass.EFFECT,
        Replay.IDEMPOTENT,
        Decision.ALLOW,
        key=("to", "subject"),
        target="mail:{to}",
        probe="grep -q x outbox",
        nothing_happened=(3, 4),
        most=2,
    )
    assert rules == (
        mail,
        Rule("post", "post", CallClass.EFFECT, Replay.ASK, Decision.ASK),
        Rule("look_*", "look_*", CallClass.READ, Replay.EXACT, Decision.ALLOW),
        Rule("sh", "sh", CallClass.UNKNOWN, Replay.ASK, Decision.DENY),
    )


def test_rules_that_were_frozen_with_a_run_come_back_equal() -> None:
    rules = policy.from_tables(tomllib.loads(FULL)["rule"], "policy.toml")
    for rule in (*rules, *policy.BUILT_IN, policy.UNKNOWN):
        stored = json.loads(json.dumps(rule._asdict()))
        assert Rule.from_dict({**stored, "word of tomorrow": 1}) == rule


GOOD = {"tool": "post", "class": "effect"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"clas": "read"}, "unknown word 'clas'"),
        ({"class": "write"}, "'write' is not a valid CallClass"),
        ({"replay": "never"}, "'never' is not a valid Replay"),
        ({"replay": "exact"}, "replay 'exact' is for reads and locals only"),
        ({"class": "unknown", "replay": "exact"}, "replay 'exact' is for reads and locals only"),
        ({"decision": "maybe"}, "'maybe' is not a valid Decision"),
        ({"decision": "stored"}, "'stored' is the gate's own word"),
        ({"name": 1}, "'name' must be text"),
        ({"tool": ["a"]}, "'tool' must be text"),
        ({"tool": ""}, "'tool' is a name"),
        ({"tool": "*mail*"}, "'tool' is a name"),
        ({"target": 1}, "'target' must be text"),
        ({"probe": ["x"]}, "'probe' must be text"),
        ({"key": "to"}, "'key' must be a list of texts"),
        ({"key": [1]}, "'key' must be a list of texts"),
        ({"nothing_happened": 1}, "'nothing_happened' must be a list of whole numbers"),
        ({"nothing_happened": ["1"]}, "'nothing_happened' must be a list of whole numbers"),
        ({"nothing_happened": [[1]]}, "'nothing_happened' must be a list of whole numbers"),
        ({"max": "3"}, "'max' must be a whole number"),
        ({"max": True}, "'max' must be a whole number"),
        ({"max": -1}, "'max' must not be negative"),
    ],
)
def test_a_mistake_names_the_file_and_the_rule(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(PolicyError) as raised:
        policy.from_tables([{"tool": "a", "class": "read"}, {**GOOD, **wrong}], "project/jackline.toml")
    assert str(raised.value).startswith("project/jackline.toml: rule 2")
    assert said in str(raised.value)
    assert raised.value.exit_code == 2


@pytest.mark.parametrize("missing", ["tool", "class"])
def test_what_a_rule_must_have(missing: str) -> None:
    table = {word: value for word, value in GOOD.items() if word != missing}
    with pytest.raises(PolicyError, match=f"^p: rule 1.*: missing '{missing}'$"):
        policy.from_tables([table], "p")


@pytest.mark.parametrize("tables", [None, {"tool": "x"}, "x", [1], [GOOD, "x"]])
def test_what_is_no_list_of_tables_is_refused(tables: object) -> None:
    with pytest.raises(PolicyError, match=r"^p: a policy is a list of \[\[rule\]\] tables$"):
        policy.from_tables(tables, "p")


@pytest.mark.parametrize("name", ["mail", "unmatched", "builtin.read"])
def test_a_name_belongs_to_one_rule(name: str) -> None:
    """A call remembers its rule by name: two of one name would mix up their probes and counts."""
    tables = [{"name": "mail", "tool": "a", "class": "read"}, {"name": name, "tool": "b", "class": "effect"}]
    with pytest.raises(PolicyError, match=f"two rules are named '{name}'"):
        policy.from_tables(tables, "p")


@pytest.mark.parametrize("kind", ["read", "local"])
def test_exact_is_for_reads_and_locals(kind: str) -> None:
    (rule,) = policy.from_tables([{"tool": "x", "class": kind, "replay": "exact"}], "p")
    assert rule.replay is Replay.EXACT


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("mail", "mail.exact"),
        ("mail_send", "mail.all"),
        ("mai", "unmatched"),
        ("xmail", "unmatched"),
        ("Read", "own.Read"),
        ("read", "builtin.read"),
        ("edit", "builtin.edit"),
        ("readme", "unmatched"),
        ("", "unmatched"),
        ("*", "unmatched"),
    ],
)
def test_the_first_own_rule_then_the_built_in_then_unknown(tool: str, name: str) -> None:
    rules = (
        Rule("mail.exact", "mail", CallClass.EFFECT),
        Rule("mail.all", "mail*", CallClass.EFFECT),
        Rule("mail.late", "mail_send", CallClass.READ),
        Rule("own.Read", "Read", CallClass.EFFECT),
    )
    assert policy.match(rules, tool).name == name


def test_a_star_alone_matches_every_tool() -> None:
    every = Rule("every", "*", CallClass.EFFECT)
    assert policy.match((every,), "read") is every


def test_a_rule_is_found_again_by_its_name() -> None:
    own = Rule("own", "mail", CallClass.EFFECT)
    assert policy.named((own,), "own") is own
    assert policy.named((own,), "builtin.read").call_class is CallClass.READ
    assert policy.named((own,), "gone") is policy.UNKNOWN


def test_what_matches_nothing_is_unknown_and_never_exact() -> None:
    assert policy.UNKNOWN.call_class is CallClass.UNKNOWN
    assert policy.UNKNOWN.replay is Replay.ASK
    assert {rule.call_class for rule in policy.BUILT_IN} == {CallClass.READ, CallClass.LOCAL}
