"""Normal forms and keys: two spellings of one call are one, and two calls are never one."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from jackline.domain.events import canonical
from jackline.domain.states import CallClass
from jackline.policy import keys
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call
from jackline.policy.rules import Rule

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
    return keys.normalize_input(value, WORKSPACE)


def key(value: object, rule: Rule = RULE, tool: str = "mail", lineage: str = "run") -> str:
    return keys.build_key(SECRET, lineage, rule, tool, normal(value))


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
    once = keys.normalize_input(value, workspace)
    assert keys.normalize_input(once, workspace) == once


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
    one = keys.build_key(SECRET, "run", RULE, "mail", value)
    others = [
        keys.build_key(b"another", "run", RULE, "mail", value),
        keys.build_key(SECRET, "other run", RULE, "mail", value),
        keys.build_key(SECRET, "run", Rule("post", "mail", CallClass.EFFECT), "mail", value),
        keys.build_key(SECRET, "run", RULE, "mail2", value),
        keys.build_key(SECRET, "run", RULE, "mail", normal({"to": "a@c"})),
        keys.build_key(SECRET, "run", Rule("mail", "mail", CallClass.EFFECT, key=("to",)), "mail", value),
    ]
    assert len({one, *others}) == 7
    assert one == keys.build_key(SECRET, "run", RULE, "mail", normal({"to": "a@b"}))


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
    assert keys.build_target(Rule("r", "t", CallClass.EFFECT, target=pattern), normal(value)) == target


# --- calls as they are judged

WHERE = CallContext(WORKSPACE, WORKSPACE)
HOST = {"git.commit": "c1", "git.branch": "b", "git.remote": "origin", "git.refs": "refs/heads/b", "git.upstream": "b"}
TEXTS = st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), min_size=1, max_size=12)


def call_key(given_: object, tool: str = "Bash", host: dict[str, str] | None = None, folder: str = WORKSPACE) -> str:
    """The key as the ledger makes it, with a host that knows everything that is asked."""
    judged = classify_call((), tool, given_, WHERE._replace(folder=folder))
    known = {name: (HOST | (host or {})).get(name, f"digest of {name}") for name in judged.host_inputs}
    return keys.build_key(SECRET, "run", judged.rule, tool, normal(given_), {**judged.fields, **known})


def command_key(command: str, host: dict[str, str] | None = None, folder: str = WORKSPACE) -> str:
    return call_key({"command": command}, host=host, folder=folder)


@pytest.mark.parametrize("command", ["ls", "pytest -q", "./build.sh", "gh pr create --fill", "git push", "echo 'x"])
def test_a_model_may_word_its_description_anew(command: str) -> None:
    one = call_key({"command": command, "description": "first words", "timeout": 1000})
    assert one == call_key({"command": command, "description": "other words", "run_in_background": True})
    assert one != call_key({"command": command + " more", "description": "first words", "timeout": 1000})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gh pr create --title 'A b' --body c", 'gh pr create  --title "A b"  --body c'),
        ("gh pr create --fill", "(gh pr create --fill)"),
        ("mail -s x bob <<< hi", "mail -s 'x' bob <<< 'hi'"),
        ("git push origin main", "git push origin main 2>&1 | tail -3"),
        ("git push origin main", "git status; git push -u origin main"),
        (f"./tool {WORKSPACE}/a", "./tool a"),
        (f"gh pr create -F {WORKSPACE}/a.md", "gh pr create -F a.md"),
    ],
)
def test_two_spellings_of_one_call_have_one_key(one: str, other: str) -> None:
    assert command_key(one) == command_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("git push", "git commit -am x && git push"),
        ("git push origin a", "git push elsewhere a"),
        ("git push origin main", "git push origin main --tags"),
        ("git push origin main", "git push -o merge_request.create origin main"),
        ("git push -o a -o b origin main", "git push -o c -o b origin main"),
        ("echo a | mail bob", "echo b | mail bob"),
        ("mail bob <<< a", "mail bob <<< b"),
        ("mail bob < a", "mail bob < b"),
        ("gh pr create -t a -b c", "gh pr create -t a -b d"),
        ("gh pr create -t 'a b'", "gh pr create -t a b"),
        ("curl -d a https://h", "curl -d b https://h"),
        ("curl -X POST https://h", "curl -X PUT https://h"),
        ("npm publish", "yarn publish"),
        ("kubectl apply -f a", "kubectl delete -f a"),
        ("ls", "ls -a"),
    ],
)
def test_two_different_commands_have_two_keys(one: str, other: str) -> None:
    assert command_key(one) != command_key(other)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("git push", "git.commit"),
        ("git push", "git.refs"),
        ("git push", "git.remote"),
        ("git commit -am x && git push", "git.commit"),
        ("gh pr create --fill", "git.branch"),
        ("gh pr create -F body.md", "file:-F"),
        ("git push", "git.url"),
        ("curl -d @body.json https://h", "file:@"),
        ("mail bob < body.txt", "file:<"),
        ("kubectl apply -f x.yaml", "file:-f"),
        ("npm publish", "git.tree"),
        ("git push && gh pr create --fill", "git.branch"),
    ],
)
def test_what_the_host_tells_makes_another_effect_of_the_same_words(command: str, name: str) -> None:
    assert command_key(command) != command_key(command, {name: "something else"})


def test_the_folder_belongs_to_the_call() -> None:
    for command in ("ls", "./x", "gh pr create --fill", "npm publish"):
        assert command_key(command) != command_key(command, folder=f"{WORKSPACE}/sub"), command
    assert command_key("cd sub && npm publish") != command_key("npm publish")
    # Elsewhere a relative path is another file.
    sub = f"{WORKSPACE}/sub"
    assert command_key(f"./x {WORKSPACE}/a", folder=sub) != command_key("./x a", folder=sub)


def test_a_subagent_is_the_same_by_what_it_is_told() -> None:
    one = {"subagent_type": "a", "prompt": "p", "description": "x"}
    assert call_key(one, "Task") == call_key({**one, "description": "y"}, "Task")
    assert call_key(one, "Task") != call_key({**one, "prompt": "q"}, "Task")
    assert call_key(one, "Task") != call_key({**one, "subagent_type": "b"}, "Task")


EFFECTS = [
    "gh pr create --title {0} --body {1}",
    "mail -s {0} {1}",
    "curl -d {0} {1}",
    "npm publish {0} {1}",
    "ssh {0} {1}",
]


@UNHURRIED
@given(st.sampled_from(EFFECTS), st.sampled_from(EFFECTS), TEXTS, TEXTS, TEXTS, TEXTS)
def test_effects_share_a_key_only_if_they_are_the_same(
    form: str, other_form: str, a: str, b: str, c: str, d: str
) -> None:
    def spelled(form: str, *words: str) -> str:
        return form.format(*(shlex.quote(word) for word in words))

    same = (form, a, b) == (other_form, c, d)
    assert (command_key(spelled(form, a, b)) == command_key(spelled(other_form, c, d))) == same


@UNHURRIED
@given(st.sampled_from(EFFECTS), TEXTS, TEXTS)
def test_quotes_make_no_other_effect(form: str, a: str, b: str) -> None:
    def double(word: str) -> str:
        return '"' + re.sub(r'(["$`\\\\])', r"\\\1", word) + '"'

    assume("!" not in a + b)
    single = form.format(shlex.quote(a), shlex.quote(b))
    assert command_key(single) == command_key(form.format(double(a), double(b)))


# --- alternatives

FIELDS = {"1": "origin", "2": "", "git.upstream": "main", "--all": True}


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("git:{1|git.remote}/{2|git.upstream}", "git:origin/main"),
        ("{3|2|1}", "origin"),
        ("{3|}", ""),
        ("x:{3|4}", "x:null"),
        ("{to|1}", "bob"),
        ("{--all}", "true"),
        ("{|a}", "{|a}"),
    ],
)
def test_a_target_takes_the_first_that_is_there(pattern: str, target: str) -> None:
    rule = Rule("r", "t", CallClass.EFFECT, target=pattern)
    assert keys.build_target(rule, {"to": "bob"}, FIELDS) == target


def test_a_key_takes_the_first_that_is_there() -> None:
    rule = Rule("r", "t", CallClass.EFFECT, key=("2|git.upstream",))
    one = keys.build_key(SECRET, "run", rule, "t", {}, FIELDS)
    assert one == keys.build_key(SECRET, "run", rule, "t", {"x": 1}, {"2": "main"})
    assert one != keys.build_key(SECRET, "run", rule, "t", {}, {**FIELDS, "2": "next"})
