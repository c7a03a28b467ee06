"""Rules: good ones load, each mistake names its rule, layers come in their order, and joined names are found again."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from jackline.domain.states import CallClass, Decision, Replay
from jackline.engine import probes
from jackline.errors import PolicyError
from jackline.policy import rule_lookup
from jackline.policy.rules import PROBE_PREFIX, Rule

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

[[rule]]
command = "acme deploy"
class = "effect"
having = ["--live"]
lacking = ["--dry-run"]
external = { url = 'https://\\S+', id = 'id=(\\d+)' }
hint = "deploy to staging"

[[rule]]
name = "acme.other"
tool = "Bash"
command = ["acme", "plan|show"]
class = "read"
"""


def test_a_policy_file_becomes_rules() -> None:
    rules = rule_lookup.parse_rule_tables(tomllib.loads(FULL)["rule"], "policy.toml")
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
        layer="run",
    )
    deploy = Rule(
        "acme deploy",
        "",
        CallClass.EFFECT,
        Replay.ASK,
        Decision.ASK,
        command=("acme", "deploy"),
        having=("--live",),
        lacking=("--dry-run",),
        external=(("url", r"https://\S+"), ("id", r"id=(\d+)")),
        hint="deploy to staging",
        layer="run",
    )
    assert rules == (
        mail,
        Rule("post", "post", CallClass.EFFECT, Replay.ASK, Decision.ASK, layer="run"),
        Rule("look_*", "look_*", CallClass.READ, Replay.REPORT, Decision.ALLOW, layer="run"),
        Rule("sh", "sh", CallClass.UNKNOWN, Replay.ASK, Decision.DENY, layer="run"),
        deploy,
        Rule("acme.other", "Bash", CallClass.READ, Replay.REPORT, command=("acme", "plan|show"), layer="run"),
    )
    assert {rule.layer for rule in rule_lookup.parse_rule_tables(tomllib.loads(FULL)["rule"], "p", layer="user")} == {
        "user"
    }


def test_rules_that_were_frozen_with_a_run_come_back_equal() -> None:
    rules = rule_lookup.parse_rule_tables(tomllib.loads(FULL)["rule"], "policy.toml")
    for rule in (*rules, *rule_lookup.BUILT_IN_RULES, rule_lookup.UNMATCHED):
        stored = json.loads(json.dumps(rule._asdict()))
        assert Rule.from_dict({**stored, "word of tomorrow": 1}) == rule


GOOD = {"tool": "post", "class": "effect"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"clas": "read"}, "unknown key 'clas'"),
        ({"class": "write"}, "'class' is 'write'; use read, local, effect or unknown"),
        ({"replay": "never"}, "'replay' is 'never'; use report, exact, idempotent, relaunch or ask"),
        ({"replay": "exact"}, "replay 'exact' is for reads and locals only"),
        ({"class": "unknown", "replay": "exact"}, "replay 'exact' is for reads and locals only"),
        ({"decision": "maybe"}, "'decision' is 'maybe'; use allow, ask or deny"),
        ({"decision": "stored"}, "'decision' is 'stored'; use allow, ask or deny"),
        ({"name": 1}, "'name' must be a string"),
        ({"tool": ["a"]}, "'tool' must be a string"),
        ({"tool": ""}, "'tool' must be a name"),
        ({"tool": "*mail*"}, "'tool' must be a name"),
        ({"target": 1}, "'target' must be a string"),
        ({"probe": ["x"]}, "'probe' must be a string"),
        ({"key": "to"}, "'key' must be a list of strings"),
        ({"key": [1]}, "'key' must be a list of strings"),
        ({"nothing_happened": 1}, "'nothing_happened' must be a list of integers"),
        ({"nothing_happened": ["1"]}, "'nothing_happened' must be a list of integers"),
        ({"nothing_happened": [[1]]}, "'nothing_happened' must be a list of integers"),
        ({"max": "3"}, "'max' must be an integer"),
        ({"max": True}, "'max' must be an integer"),
        ({"max": -1}, "'max' must not be negative"),
        ({"command": ""}, "'command' is empty"),
        ({"command": "  "}, "'command' is empty"),
        ({"command": []}, "'command' is empty"),
        ({"command": 1}, "'command' must be a string or a list of strings"),
        ({"command": ["git push"]}, "'command' must be a program and its subcommands"),
        ({"command": ["git", ""]}, "'command' must be a program and its subcommands"),
        ({"command": "--force git"}, "'command' must start with a program"),
        ({"command": "git push", "replay": "exact"}, "replay 'exact' is for reads and locals only"),
        ({"having": ["-f"]}, "'having' and 'lacking' require a 'command'"),
        ({"command": "git", "having": [""]}, "must not contain empty strings"),
        ({"command": "git", "lacking": "-f"}, "'lacking' must be a list of strings"),
        ({"external": "x"}, "'external' must be a table of names and patterns"),
        ({"external": {"url": 1}}, "'external' must be a table of names and patterns"),
        ({"external": {"url": "("}}, "'external' url: invalid regular expression"),
        ({"external": {"url": "(?P<a>x)(?P<a>y)"}}, "'external' url: invalid regular expression"),
        ({"hint": ["x"]}, "'hint' must be a string"),
        ({"name": "a + b"}, "'name' must not contain ' + '"),
        ({"name": ""}, "'name' must be a single line of printable text"),
        ({"name": " "}, "'name' must be a single line of printable text"),
        ({"name": "a\nb"}, "'name' must be a single line of printable text"),
        ({"target": "mail:{to"}, "'target' has an unmatched brace"),
        ({"target": "mail:{}"}, "'target' has an unmatched brace"),
        ({"key": ["to", ""]}, "must not contain empty strings"),
    ],
)
def test_a_mistake_names_the_file_and_the_rule(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(PolicyError) as raised:
        rule_lookup.parse_rule_tables([{"tool": "a", "class": "read"}, {**GOOD, **wrong}], "project/jackline.toml")
    assert str(raised.value).startswith("project/jackline.toml: rule 2")
    assert said in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_mistake_names_its_line_where_the_lines_are_known() -> None:
    tables = [{"tool": "a", "class": "read"}, {"name": "mail", "tool": "b", "class": "efect"}]
    with pytest.raises(PolicyError, match=r"^policy\.toml:12: rule 2 'mail': 'class' is 'efect'; use read, "):
        rule_lookup.parse_rule_tables(tables, "policy.toml", lines=[3, 12])
    with pytest.raises(PolicyError, match=r"^policy\.toml:12: rule 2 'a': two rules are named 'a'"):
        rule_lookup.parse_rule_tables([tables[0], tables[0]], "policy.toml", lines=[3, 12])
    with pytest.raises(PolicyError, match=r"^policy\.toml: rule 2 'mail': "):
        rule_lookup.parse_rule_tables(tables, "policy.toml", lines=[3])


@pytest.mark.parametrize("missing", ["tool", "class"])
def test_what_a_rule_must_have(missing: str) -> None:
    table = {word: value for word, value in GOOD.items() if word != missing}
    with pytest.raises(PolicyError, match=f"^p: rule 1.*: missing '{missing}'$"):
        rule_lookup.parse_rule_tables([table], "p")


@pytest.mark.parametrize("tables", [None, {"tool": "x"}, "x", [1], [GOOD, "x"]])
def test_what_is_no_list_of_tables_is_refused(tables: object) -> None:
    with pytest.raises(PolicyError, match=r"^p: a policy is a list of \[\[rule\]\] tables$"):
        rule_lookup.parse_rule_tables(tables, "p")


@pytest.mark.parametrize("name", ["mail", "unmatched", "builtin.read", "git.push", "others", "read"])
def test_a_name_belongs_to_one_rule(name: str) -> None:
    """A call remembers its rule by name: two of one name would mix up their probes and counts."""
    tables = [{"name": "mail", "tool": "a", "class": "read"}, {"name": name, "tool": "b", "class": "effect"}]
    with pytest.raises(PolicyError, match=f"two rules are named '{name}'"):
        rule_lookup.parse_rule_tables(tables, "p")


@pytest.mark.parametrize("kind", ["read", "local"])
@pytest.mark.parametrize("replay", [Replay.EXACT, Replay.REPORT])
def test_exact_and_report_are_for_reads_and_locals(kind: str, replay: Replay) -> None:
    (rule,) = rule_lookup.parse_rule_tables([{"tool": "x", "class": kind, "replay": str(replay)}], "p")
    assert rule.replay is replay


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
    assert rule_lookup.find_tool_rule(rules, tool).name == name


def test_a_star_alone_matches_every_tool() -> None:
    every = Rule("every", "*", CallClass.EFFECT)
    assert rule_lookup.find_tool_rule((every,), "read") is every


def test_a_rule_is_found_again_by_its_name() -> None:
    own = Rule("own", "mail", CallClass.EFFECT)
    assert rule_lookup.find_rule((own,), "own") is own
    assert rule_lookup.find_rule((own,), "builtin.read").call_class is CallClass.READ
    assert rule_lookup.find_rule((own,), "gone") is rule_lookup.UNMATCHED


def test_what_matches_nothing_is_unknown_and_never_exact() -> None:
    assert rule_lookup.UNMATCHED.call_class is CallClass.UNKNOWN
    assert rule_lookup.UNMATCHED.replay is Replay.ASK


# --- layers

LAYERED = (
    Rule("users", "mail", CallClass.READ, layer="user"),
    Rule("project.late", "mail", CallClass.LOCAL, layer="project"),
    Rule("runs", "mail", CallClass.EFFECT, layer="run"),
    Rule("project.first", "post", CallClass.LOCAL, layer="project"),
    Rule("project.second", "post", CallClass.EFFECT, layer="project"),
    Rule("users.Read", "Read", CallClass.EFFECT, layer="user"),
)


@pytest.mark.parametrize(
    ("tool", "name"),
    [("mail", "runs"), ("post", "project.first"), ("Read", "users.Read"), ("Grep", "builtin.Grep"), ("x", "unmatched")],
)
def test_the_run_before_the_project_before_the_user_before_the_built_in(tool: str, name: str) -> None:
    assert rule_lookup.find_tool_rule(LAYERED, tool).name == name


def tightening(**words: Any) -> Rule:
    rule = Rule(
        "project.rule",
        "mail",
        CallClass.READ,
        Replay.IDEMPOTENT,
        key=("nothing",),
        probe="true",
        nothing_happened=(1,),
        external=(("url", "x"),),
        layer="project",
        tightens=True,
    )
    return rule._replace(**words)


FIRM = Rule("mine", "mail", CallClass.EFFECT, Replay.ASK, Decision.ASK, key=("to",), target="mail:{to}", probe="p")


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (FIRM, {"call_class": CallClass.READ, "decision": Decision.ALLOW}),
        (FIRM, {"call_class": CallClass.EFFECT, "decision": Decision.ASK}),
        (FIRM._replace(decision=Decision.DENY), {"call_class": CallClass.EFFECT, "decision": Decision.ASK}),
        (FIRM._replace(most=2), {"call_class": CallClass.LOCAL, "most": 3}),
    ],
)
def test_a_rule_that_only_tightens_loosens_nothing(base: Rule, words: dict[str, Any]) -> None:
    for rules in ((base, tightening(**words)), (tightening(**words), base)):
        assert rule_lookup.find_tool_rule(rules, "mail") is base


def test_a_rule_that_only_tightens_brings_no_program_and_no_claim_along() -> None:
    rules = (FIRM, tightening(call_class=CallClass.EFFECT, decision=Decision.DENY, hint="no mail"))
    tight = rule_lookup.find_tool_rule(rules, "mail")
    assert (tight.name, tight.decision, tight.hint) == ("mine + project.rule", Decision.DENY, "no mail")
    assert (tight.key, tight.target, tight.probe) == (FIRM.key, FIRM.target, FIRM.probe)
    assert (tight.nothing_happened, tight.external, tight.tightens) == ((), (), False)
    assert rule_lookup.find_rule(rules, tight.name) == tight


def test_what_was_harmless_is_an_effect_if_a_project_says_so_and_its_key_is_the_whole_input() -> None:
    rules = (tightening(tool="Read", call_class=CallClass.EFFECT, decision=Decision.ASK),)
    tight = rule_lookup.find_tool_rule(rules, "Read")
    assert (tight.call_class, tight.decision, tight.replay) == (CallClass.EFFECT, Decision.ASK, Replay.ASK)
    assert (tight.key, tight.probe, tight.nothing_happened, tight.external) == ((), "", (), ())
    assert rule_lookup.find_rule(rules, tight.name) == tight


def test_a_smaller_limit_tightens() -> None:
    rules = (FIRM._replace(most=5), tightening(most=2))
    assert rule_lookup.find_tool_rule(rules, "mail").most == 2
    assert rule_lookup.find_tool_rule(rules, "mail").decision is Decision.ASK


# --- joined names


def test_rules_that_meet_are_one_that_is_never_laxer() -> None:
    one = Rule(
        "one", "", CallClass.EFFECT, Replay.IDEMPOTENT, Decision.ALLOW, key=("to", "git.commit"), probe="p", most=3
    )
    two = Rule(
        "two", "", CallClass.EFFECT, Replay.ASK, Decision.DENY, key=("file:<|1",), nothing_happened=(1,), hint="no"
    )
    joined = rule_lookup.find_rule((one, two), "one + two")
    assert (joined.call_class, joined.decision, joined.hint, joined.most) == (CallClass.EFFECT, Decision.DENY, "no", 3)
    assert (joined.replay, joined.probe, joined.nothing_happened, joined.target) == (Replay.ASK, "", (), "")
    assert joined.key == ("command", "folder", "git.commit", "file:<")


def test_a_part_that_is_gone_makes_nothing_look_safe() -> None:
    joined = rule_lookup.find_rule((), "git.push + gone")
    assert joined.call_class is CallClass.EFFECT
    assert (joined.probe, joined.replay) == ("", Replay.ASK)
    assert rule_lookup.find_rule((), "gone + others").call_class is CallClass.UNKNOWN


def test_company_takes_away_what_exit_codes_prove() -> None:
    assert rule_lookup.find_rule((), "gh.pr.create").nothing_happened == (4,)
    accompanied = rule_lookup.find_rule((), "gh.pr.create + read")
    assert accompanied.nothing_happened == ()
    assert accompanied.probe == rule_lookup.find_rule((), "gh.pr.create").probe


def test_a_misspelt_built_in_probe_is_found_when_the_file_is_read() -> None:
    table = {"tool": "send", "class": "effect", "probe": "builtin:git-pusch"}
    with pytest.raises(PolicyError, match="unknown built-in probe 'builtin:git-pusch'; known probes: file"):
        rule_lookup.parse_rule_tables([table], "policy.toml")


def test_the_built_in_probes_are_those_that_the_engine_has() -> None:
    assert set(probes.PROBES) == rule_lookup.PROBE_NAMES
    assert PROBE_PREFIX == probes.PREFIX
