"""Normal forms and keys: two spellings of one call are one, and two calls are never one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jackline.domain import keys
from jackline.domain.events import canonical
from jackline.domain.rule import Rule
from jackline.domain.states import CallClass

UNHURRIED = settings(deadline=None)  # a busy machine is no reason to fail

WORKSPACE = "/home/dev/project"
SECRET = b"instance"
RULE = Rule("mail", "mail", CallClass.EFFECT)

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text()
NAMES = st.sampled_from(["path", "file_path", "paths", "command", "cmd", "body", "to"]) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
# Pieces that together make nearly everything that can go wrong around a path in a command.
PIECES = st.sampled_from(
    [WORKSPACE, f"{WORKSPACE}/", "/", " ", "a", "-", "./", "..", "'", '"', "=", "$X", ";", "&&", "cd ", "é"]
)
COMMANDS = st.lists(PIECES, max_size=10).map("".join)


def normal(value: object) -> Any:
    return keys.normalise(value, WORKSPACE)


def key(value: object, rule: Rule = RULE, tool: str = "mail", lineage: str = "run") -> str:
    return keys.key(SECRET, lineage, rule, tool, normal(value))


def shuffled(value: Any) -> Any:
    """The same JSON with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {name: shuffled(value[name]) for name in reversed(list(value))}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@UNHURRIED
@given(JSON)
def test_the_order_of_keys_does_not_matter(value: Any) -> None:
    assert key(shuffled(value)) == key(value)


@UNHURRIED
@given(JSON)
def test_the_white_space_of_json_does_not_matter(value: Any) -> None:
    wide = keys.parse_input(json.dumps(value, indent=3, separators=(" ,  ", " : ")))
    narrow = keys.parse_input(json.dumps(value, separators=(",", ":")))
    assert key(wide) == key(narrow) == key(value)


@UNHURRIED
@given(JSON, st.sampled_from([WORKSPACE, "/", WORKSPACE + "/", "/a//b/./c"]))
def test_a_normal_form_is_its_own_normal_form(value: Any, workspace: str) -> None:
    once = keys.normalise(value, workspace)
    assert keys.normalise(once, workspace) == once


@UNHURRIED
@given(COMMANDS)
def test_a_normal_command_is_its_own_normal_form(command: str) -> None:
    once = normal({"command": command})
    assert normal(once) == once


def has_no_path(value: Any) -> bool:
    """No text in it that could be read as a path or a command of the workspace."""
    if isinstance(value, dict):
        return all(name not in keys._PATH_NAMES and has_no_path(item) for name, item in value.items())
    if isinstance(value, list):
        return all(has_no_path(item) for item in value)
    return WORKSPACE not in value if isinstance(value, str) else True


@UNHURRIED
@given(JSON, JSON)
def test_different_inputs_have_different_keys(one: Any, other: Any) -> None:
    assume(has_no_path(one) and has_no_path(other))
    assert (key(one) == key(other)) == (canonical(one) == canonical(other))


@pytest.mark.parametrize("name", ["path", "file_path", "notebook_path", "cwd"])
@pytest.mark.parametrize(
    "spelling",
    [
        "src/a.py",
        "./src/a.py",
        "src//a.py",
        "src/x/../a.py",
        "../project/src/a.py",
        f"{WORKSPACE}/src/a.py",
        f"{WORKSPACE}//src/./a.py",
        f"/{WORKSPACE}/src/a.py",
    ],
)
def test_a_path_of_the_workspace_has_one_spelling(name: str, spelling: str) -> None:
    assert normal({name: spelling}) == {name: "src/a.py"}


@pytest.mark.parametrize("spelling", ["", ".", "./", WORKSPACE, f"{WORKSPACE}/", "src/.."])
def test_the_workspace_itself_is_a_dot(spelling: str) -> None:
    assert normal({"path": spelling}) == {"path": "."}


def test_paths_in_lists_and_inside_other_objects_are_paths_too() -> None:
    given_ = {"edits": [{"file_path": f"{WORKSPACE}/a"}], "paths": [f"{WORKSPACE}/b", "c"]}
    assert normal(given_) == {"edits": [{"file_path": "a"}], "paths": ["b", "c"]}


@pytest.mark.parametrize("path", ["/etc/passwd", "/home/dev/project2/a", "/home/dev"])
def test_a_path_outside_the_workspace_stays_absolute(path: str) -> None:
    assert normal({"path": path}) == {"path": path}


def test_an_address_is_not_a_path() -> None:
    assert normal({"path": "https://host//a/../b"}) == {"path": "https://host//a/../b"}


def test_text_that_is_no_path_is_left_alone() -> None:
    given_ = {"body": f"see {WORKSPACE}/a", "to": "./x/../y"}
    assert normal(given_) == given_


@pytest.mark.parametrize(
    ("absolute", "relative"),
    [
        (f"cat {WORKSPACE}/a.txt", "cat a.txt"),
        (f"cat '{WORKSPACE}/a.txt' > {WORKSPACE}/out/b", "cat 'a.txt' > out/b"),
        (f"tool --file={WORKSPACE}/a;ls {WORKSPACE}", "tool --file=a;ls ."),
        (f"ls {WORKSPACE}/", "ls ."),
        (f"{WORKSPACE}/run.sh && {WORKSPACE}/bin/x", "./run.sh && ./bin/x"),
        (f"cd {WORKSPACE} && cat {WORKSPACE}/a", "cd . && cat a"),
        (f'cd "{WORKSPACE}"; cat {WORKSPACE}//a', 'cd "."; cat a'),
        (f"ls {WORKSPACE}/*.py", "ls *.py"),
    ],
)
def test_a_command_has_one_spelling(absolute: str, relative: str) -> None:
    assert normal({"command": absolute}) == normal({"command": relative}) == {"command": relative}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"cat {WORKSPACE}2/a", "cat 2/a"),
        (f"cat {WORKSPACE}-old", "cat .-old"),
        (f"rm {WORKSPACE}/-rf x", "rm -rf x"),
        (f"cat {WORKSPACE}/$X", "cat $X"),
        (f"cat {WORKSPACE}/~/a", "cat ~/a"),
        (f"rm -r {WORKSPACE}/", "rm -r "),
        (f"{WORKSPACE}/git push", "git push"),
        (f"cd /tmp && send {WORKSPACE}/a", "cd /tmp && send a"),
        (f"cd  sub && send {WORKSPACE}/a", "cd  sub && send a"),
        (f"cd; send {WORKSPACE}/a", "cd; send a"),
        (f"git -C /tmp/b add {WORKSPACE}/a", "git -C /tmp/b add a"),
        ("echo  a", "echo a"),
        ("echo 'a'", "echo a"),
        (f"cat x{WORKSPACE}/a", "cat xa"),
    ],
)
def test_two_commands_are_never_one(one: str, other: str) -> None:
    assert key({"command": one}) != key({"command": other})


def test_input_that_is_no_json_is_text() -> None:
    assert keys.parse_input("git push origin") == "git push origin"
    assert keys.parse_input("[" * 200_000) == "[" * 200_000
    assert keys.parse_input(' {"a" : 1} ') == {"a": 1}


def test_half_a_character_does_not_stop_a_key() -> None:
    assert key({"body": "\ud800"}) != key({"body": "\ud801"})
    assert key({"body": "\ud800é"}) != key({"body": "\\ud800é"})


def test_a_key_depends_on_everything_that_makes_a_call() -> None:
    value = normal({"to": "a@b"})
    one = keys.key(SECRET, "run", RULE, "mail", value)
    others = [
        keys.key(b"another", "run", RULE, "mail", value),
        keys.key(SECRET, "other run", RULE, "mail", value),
        keys.key(SECRET, "run", Rule("post", "mail", CallClass.EFFECT), "mail", value),
        keys.key(SECRET, "run", RULE, "mail2", value),
        keys.key(SECRET, "run", RULE, "mail", normal({"to": "a@c"})),
        keys.key(SECRET, "run", Rule("mail", "mail", CallClass.EFFECT, key=("to",)), "mail", value),
    ]
    assert len({one, *others}) == 7
    assert one == keys.key(SECRET, "run", RULE, "mail", normal({"to": "a@b"}))


def test_a_rule_chooses_what_makes_two_calls_the_same() -> None:
    push = Rule("push", "push", CallClass.EFFECT, key=("commit", "to.branch"))
    same = {"commit": "c1", "to": {"branch": "main"}, "message": "one"}
    assert key(same, push) == key({**same, "message": "two"}, push)
    assert key(same, push) != key({**same, "commit": "c2"}, push)
    assert key(same, push) != key({**same, "to": {"branch": "next"}}, push)
    turned = Rule("push", "push", CallClass.EFFECT, key=("to.branch", "commit"))
    assert key(same, push) == key(same, turned)


@pytest.mark.parametrize(("one", "other"), [("git push a", "git push b"), ({"x": 1}, {"x": 2}), ([1], [2])])
def test_without_the_named_fields_the_whole_input_counts(one: object, other: object) -> None:
    """Else every call that lacks them would get the first one's stored result."""
    push = Rule("push", "push", CallClass.EFFECT, key=("commit",))
    assert key(one, push) != key(other, push)


@pytest.mark.parametrize(
    ("pattern", "value", "target"),
    [
        ("", {"to": "a@b"}, ""),
        ("fixed", {"to": "a@b"}, "fixed"),
        ("mail:{to}", {"to": "a@b"}, "mail:a@b"),
        ("pr:{head.repo}#{head.branch}", {"head": {"repo": "r", "branch": "b"}}, "pr:r#b"),
        ("mail:{to}", {"to": ["b", "a"]}, 'mail:["b","a"]'),
        ("n:{count}", {"count": 3}, "n:3"),
        ("mail:{to}", {}, "mail:null"),
        ("mail:{to}", "plain text", "mail:null"),
        ("{to", {"to": "x"}, "{to"),
        ("file:{path}", {"path": f"{WORKSPACE}/a"}, "file:a"),
        ("mail:{to}", {"to": "{to}\\1"}, "mail:{to}\\1"),
    ],
)
def test_targets(pattern: str, value: object, target: str) -> None:
    assert keys.target(Rule("r", "t", CallClass.EFFECT, target=pattern), normal(value)) == target
