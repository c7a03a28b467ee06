"""The layers of the policy: their order, what an untrusted project may say, and every mistake with its line."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline import open_home
from jackline.app import own_files, policy_files, trust
from jackline.app.policy_files import FILE, PolicyLayers
from jackline.domain.states import CallClass, Decision, Replay
from jackline.errors import PolicyError, UsageError
from jackline.policy.agreements import AskedPart, apply_agreements
from jackline.policy.rules import Rule
from jackline.policy.toml_rules import ParsedPolicy, find_lines, parse_policy, render_toml

SEND = '[[rule]]\ntool = "send"\nclass = "effect"\n'
FULL = """\
[[rule]]
name = "mail"
tool = "send"
class = "effect"
decision = "allow"
replay = "idempotent"
probe = "true"
nothing_happened = [3]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project without trust, and an empty configuration."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "project" / ".agents").mkdir()
    (tmp_path / "config" / "jackline").mkdir(parents=True)
    return tmp_path


def found(place: Path) -> PolicyLayers:
    environ = {"XDG_CONFIG_HOME": str(place / "config"), "HOME": str(place)}
    return policy_files.load_layers(environ, str(place / "home"), "", str(place / "project"))


def write(place: Path, layer: str, text: str) -> Path:
    folder = {"user": place / "config" / "jackline", "project": place / "project" / ".agents"}[layer]
    (folder / FILE).write_text(text)
    return folder / FILE


def told(text: str) -> list[str]:
    return [mistake.format_error("F") for mistake in parse_policy(text, "run").mistakes]


# --- layers --------------------------------------------------------------------------------------------------


def test_without_files_there_are_no_rules(place: Path) -> None:
    assert found(place) == PolicyLayers()


def test_the_run_comes_before_the_project_before_the_user(place: Path) -> None:
    write(place, "user", SEND.replace("send", "user_tool"))
    write(place, "project", SEND.replace("send", "project_tool"))
    own = parse_policy(SEND.replace("send", "run_tool"), "run").rules
    rules = policy_files.merge_layers(own, found(place))
    assert [(rule.name, rule.layer) for rule in rules] == [
        ("run_tool", "run"),
        ("project_tool", "project"),
        ("user_tool", "user"),
    ]


def test_an_untrusted_project_only_tightens_and_runs_no_program(place: Path) -> None:
    path = write(place, "project", FULL)
    layers = found(place)
    (rule,) = layers.project
    assert rule.tightens
    assert (rule.probe, rule.nothing_happened, rule.replay) == ("", (), Replay.ASK)
    assert len(layers.notes) == 1
    assert str(path) in layers.notes[0]
    assert "jackline trust" in layers.notes[0]


def test_a_trusted_project_may_do_what_it_says_until_its_file_changes(place: Path) -> None:
    path = write(place, "project", FULL)
    (place / "home").mkdir()
    with open_home(str(place / "home"), {"HOME": str(place)}) as home:
        own_files.trust_project(home, str(place / "project"), trust.hash_project(str(place / "project")))
    layers = found(place)
    (rule,) = layers.project
    assert (rule.tightens, rule.probe, rule.replay, layers.notes) == (False, "true", Replay.IDEMPOTENT, ())
    path.write_text(FULL + "# more\n")
    assert found(place).project[0].tightens


def test_a_users_rule_stands_when_an_untrusted_project_takes_its_name(place: Path) -> None:
    write(place, "user", FULL)
    write(place, "project", FULL.replace('"allow"', '"deny"'))
    rules = policy_files.merge_layers((), found(place))
    assert [(rule.name, rule.layer, rule.tightens) for rule in rules] == [
        ("mail (project)", "project", True),
        ("mail", "user", False),
    ]


def test_a_nearer_rule_takes_the_place_of_a_farther_one_of_its_name(place: Path) -> None:
    write(place, "user", FULL)
    own = parse_policy(FULL.replace('"allow"', '"deny"'), "run").rules
    (rule,) = policy_files.merge_layers(own, found(place))
    assert (rule.layer, rule.decision) == ("run", Decision.DENY)


@pytest.mark.parametrize("layer", ["user", "project"])
def test_a_broken_layer_is_named_with_its_line_and_stops_work(place: Path, layer: str) -> None:
    path = write(place, layer, SEND + 'clas = "x"\n')
    layers = found(place)
    assert (layers.user, layers.project) == ((), ())
    with pytest.raises(PolicyError) as raised:
        policy_files.merge_layers((), layers)
    assert str(raised.value).startswith(f"{path}:4: rule 1 'send': unknown key 'clas'")
    assert f"jackline policy check {path}" in str(raised.value)


def test_a_projects_policy_that_leads_out_by_a_link_is_refused(place: Path) -> None:
    (place / "elsewhere.toml").write_text(SEND)
    (place / "project" / ".agents" / FILE).symlink_to(place / "elsewhere.toml")
    (problem,) = found(place).problems
    assert "link" in problem


@pytest.mark.parametrize("kind", ["folder", "pipe", "binary", "dangling"])
def test_what_is_no_text_is_named_and_not_waited_for(place: Path, kind: str) -> None:
    path = place / "config" / "jackline" / FILE
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "binary":
            path.write_bytes(b"\xff\xfe\x00")
        case _:
            path.symlink_to(place / "nowhere")
    (problem,) = found(place).problems
    assert problem.startswith(str(path))


# --- mistakes ------------------------------------------------------------------------------------------------


def test_every_mistake_is_told_in_the_order_of_its_lines() -> None:
    text = '[[rule]]\ntool = 5\nclass = "effect"\nmax = -1\nclas = 1\n\n[[rule]]\nmax = "x"\n\n[other]\nx = 1\n'
    lines = [one.split(": ")[0] for one in told(text)]
    assert lines == ["F:2", "F:4", "F:5", "F:7", "F:7", "F:8", "F:10"]
    assert sum("missing" in one for one in told(text)) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = \n", "F:1: "),
        ("[[rule]]\ntool = 'x'\nclass = effect\n", "F:3: "),
        ("x = [1,\n\n", "F:2: "),
        ("rule = 3\n", "F:1: a policy is a list"),
        ("\n[rule]\ntool = 'x'\n", "F:2: a policy is a list"),
        ("rule = [\n {tool = 'a', class = 'read'},\n {tool = 'b', class = 'read', x = 1}]\n", "F:3: rule 2 'b'"),
        (SEND + SEND, "F:4: rule 2 'send': another rule is also named 'send'"),
        (SEND + SEND.replace('tool = "send"', 'tool = "post"\nname = "send"'), "F:6: rule 2 'send': another"),
        (SEND + 'name = "effects"\n', "F:4: rule 1 'effects'"),
        (SEND + 'name = "a,b"\n', "F:4: rule 1 'a,b'"),
        (SEND + 'name = "a + b"\n', "F:4: rule 1 'a + b'"),
        ("x = " + "[" * 5000 + "]" * 5000, "F: the file is nested too deeply"),
    ],
)
def test_a_mistake_names_its_line(text: str, said: str) -> None:
    assert any(one.startswith(said) for one in told(text)), told(text)


def test_a_byte_order_mark_and_the_line_ends_of_windows_are_no_mistake() -> None:
    assert told("\ufeff" + SEND.replace("\n", "\r\n")) == []
    assert told("\ufeff" + (SEND + "clas = 1\n").replace("\n", "\r\n"))[0].startswith("F:4: ")


def test_neither_strings_nor_comments_begin_a_rule() -> None:
    text = (
        '# [[rule]]\n[["rule"]] # [[rule]]\nprobe = """\n[[rule]]\nx = 1 \\""" y\n"""" # z\n'
        "target = '''\n[[rule]]'''\nkey = [\n  'a', # [[rule]]\n]\nhint = '[[rule]]'\n"
        "[[ rule ]]\nbad.x = 1\n[rule.external]\nurl = 'x'\n"
    )
    assert len(tomllib.loads(text)["rule"]) == 2
    first, second = find_lines(text).rules
    assert (first.line, first.words) == (2, {"probe": 3, "target": 7, "key": 9, "hint": 12})
    assert (second.line, second.words) == (13, {"bad": 14, "external": 15})


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
@settings(deadline=None)
def test_what_is_shown_can_be_pasted_whatever_its_words_are(pairs: list[tuple[str, str]]) -> None:
    rules = tuple(
        Rule(f"{number}{name}", "tool", CallClass.EFFECT, target=target, key=(name, target))
        for number, (name, target) in enumerate(pairs)
    )
    tables = tomllib.loads(render_toml(rules)).get("rule", [])
    assert [(one["name"], one["key"]) for one in tables] == [(rule.name, list(rule.key)) for rule in rules]
    assert len(find_lines(render_toml(rules).replace("\r\n", "\n")).rules) == len(rules)


def test_the_built_in_rules_as_they_are_shown_are_these_very_rules() -> None:
    # Their names are taken: whoever pastes one gives it another.
    named = [rule._replace(name=f"my {number}") for number, rule in enumerate(policy_files.load_built_in())]
    pasted = parse_policy(render_toml(named), "built-in")
    assert pasted.mistakes == ()
    assert pasted.rules == tuple(rule for rule in named if rule.tool or rule.command)
    assert len(pasted.rules) > len(named) - 20


# --- what a person agreed to ---------------------------------------------------------------------------------

RULES = (
    Rule("mail", "send", CallClass.EFFECT, decision=Decision.ASK),
    Rule("push", "push", CallClass.EFFECT, decision=Decision.DENY),
)


def test_only_rules_that_ask_can_be_agreed_to() -> None:
    assert policy_files.check_allowed_rules(("mail", "effects", "mail"), RULES) == ("mail", "effects")
    with pytest.raises(UsageError, match=r"there is no rule 'mial'.*did you mean mail"):
        policy_files.check_allowed_rules(("mial",), RULES)
    assert policy_files.check_allowed_rules(("mail=mail:*",), RULES) == ("mail=mail:*",)
    with pytest.raises(UsageError, match=r"there is no rule 'mial'.*did you mean mail"):
        policy_files.check_allowed_rules(("mial=x",), RULES)
    for empty in ("mail=", "mail= ", "effects="):
        with pytest.raises(UsageError, match="has no pattern: use"):
            policy_files.check_allowed_rules((empty,), RULES)
    with pytest.raises(UsageError, match="rule 'push' denies"):
        policy_files.check_allowed_rules(("push",), RULES)


@pytest.mark.parametrize(
    ("name", "decision", "allowed", "expected"),
    [
        ("a", Decision.ASK, (), Decision.ASK),
        ("a", Decision.ASK, ("a",), Decision.ALLOW),
        ("a", Decision.ASK, ("b",), Decision.ASK),
        ("a", Decision.ASK, ("effects",), Decision.ALLOW),
        ("a", Decision.DENY, ("a", "effects"), Decision.DENY),
        ("a + b", Decision.ASK, ("a",), Decision.ASK),
        ("a + b", Decision.ASK, ("a", "b"), Decision.ALLOW),
        ("a + others", Decision.ASK, ("a",), Decision.ALLOW),
        ("a + read", Decision.ASK, ("a",), Decision.ALLOW),
        ("others", Decision.ASK, ("a",), Decision.ASK),
    ],
)
def test_a_permission_answers_what_asks_and_never_what_denies(
    name: str, decision: Decision, allowed: tuple[str, ...], expected: Decision
) -> None:
    rule = Rule(name, "t", CallClass.EFFECT, decision=decision)
    assert apply_agreements(rule, (), allowed, 1) == rule._replace(decision=expected)
    parts = (AskedPart(rule=name, targets=(), is_plain=True),)
    assert apply_agreements(rule, parts, allowed, 2) == rule._replace(decision=expected)


def test_a_file_without_rules_is_no_mistake() -> None:
    assert parse_policy("# nothing yet\n", "user") == ParsedPolicy(())
