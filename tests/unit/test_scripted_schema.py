"""Scripts: the light validator and the JSON schema say the same, and the examples and the page are true."""

from __future__ import annotations

import copy
import glob
import json
import os.path
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline import errors
from jackline.agents.scripted import script_format
from jackline.agents.scripted.script_format import validate
from jackline.agents.scripted.scripted_adapter import PLAYER
from jackline.domain.states import Failure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = sorted(glob.glob(os.path.join(ROOT, "examples", "scripts", "*.json")))
PAGE = os.path.join(ROOT, "docs", "scripted.md")


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


SCHEMA = json.loads(read(os.path.join(os.path.dirname(PLAYER), "scripted.schema.json")))
JUDGE = jsonschema.Draft202012Validator(SCHEMA)

GOOD_STEPS: list[dict[str, Any]] = [
    {"say": "hello"},
    {"say": ""},
    {"think": "hm"},
    {"call": {"tool": "send"}},
    {"call": {"tool": "send", "input": {"to": "a"}, "run": ["echo", "{to}", ""], "external_id": "{stdout}"}},
    {"call": {"tool": "send", "run": "echo hello", "on_denied": "stop", "ungated": True}},
    {"edit": {"path": "a", "content": ""}},
    {"edit": {"path": "a", "find": "x", "replace": ""}},
    {"edit": {"path": "a", "append": "x"}},
    {"commit": "a message"},
    {"sleep": 0},
    {"sleep": 0.25},
    {"hang": True},
    {"ignore": ["SIGTERM", "SIGINT"]},
    {"daemon": {"seconds": 5, "touch": "late"}},
    {"garbage": {"kind": "binary", "bytes": 100, "newline": False, "stream": "stderr"}},
    {"usage": {"input": 1, "output": 2, "cached": 3, "usd": 0.5}},
    {"usage": {}},
    {"limit": {"resets_at": 1700000000, "text": "full"}},
    {"limit": {"resets_in": 2.5}},
    {"limit": {}},
    {"error": {"class": "overloaded", "detail": "busy"}},
    {"exit": 3},
    {"exit": 3.0},
    {"crash": "SIGKILL"},
    {"touch": "here"},
    {"wait_for": "here"},
    {"wait_for": {"file": "here", "seconds": 5}},
    {"say": "x", "when": {"attempt": 1}},
    {"say": "x", "when": {"attempt": [1, 2], "attempt_from": 1, "attempt_to": 3}},
    {"say": "x", "when": {}},
]
BAD_STEPS: list[tuple[Any, str]] = [
    ("say", 'must be an object such as {"say": "hello"}'),
    ({}, "must have exactly one action, and has none"),
    ({"when": {"attempt": 1}}, "must have exactly one action, and has none"),
    ({"say": "a", "think": "b"}, "must have exactly one action, and has say and think"),
    ({"dance": 1}, "unknown key 'dance' (known: say, think,"),
    ({"a\nb": 1}, "unknown key 'a\\nb'"),
    ({"say": 1}, "(say): 'say' must be a text"),
    ({"call": "send"}, "(call): 'call' must be an object with tool, input"),
    ({"call": {}}, "(call): 'tool' is missing"),
    ({"call": {"tool": ""}}, "(call): 'tool' must be a text that is not empty"),
    ({"call": {"tool": "a", "inputs": {}}}, "(call): unknown key 'inputs'"),
    ({"call": {"tool": "a", "input": []}}, "(call): 'input' must be an object"),
    (
        {"call": {"tool": "a", "run": []}},
        "(call): 'run' must be a text that is not empty, or a list of texts",
    ),
    ({"call": {"tool": "a", "run": [""]}}, "(call): 'run' must be"),
    ({"call": {"tool": "a", "run": ["a", 1]}}, "(call): 'run' must be"),
    ({"call": {"tool": "a", "on_denied": "cry"}}, "(call): 'on_denied' must be one of continue, stop"),
    ({"call": {"tool": "a", "ungated": 1}}, "(call): 'ungated' must be true or false"),
    ({"edit": {"content": "x"}}, "(edit): 'path' is missing"),
    ({"edit": {"path": "a"}}, "(edit): needs content, or find and replace, or append"),
    ({"edit": {"path": "a", "find": "x"}}, "(edit): needs content"),
    ({"edit": {"path": "a", "content": "x", "append": "y"}}, "(edit): needs content"),
    ({"edit": {"path": "a", "find": "", "replace": "y"}}, "(edit): 'find' must be"),
    ({"commit": ""}, "(commit): 'commit' must be"),
    ({"sleep": -1}, "(sleep): 'sleep' must be a number from 0 to 86400"),
    ({"sleep": True}, "(sleep): 'sleep' must be a number"),
    ({"hang": False}, "(hang): 'hang' must be true"),
    ({"hang": 1}, "(hang): 'hang' must be true"),
    ({"ignore": []}, "(ignore): 'ignore' must be a list of SIGTERM"),
    ({"ignore": ["SIGKILL"]}, "(ignore): 'ignore' must be a list of SIGTERM"),
    ({"daemon": {"touch": "x"}}, "(daemon): 'seconds' is missing"),
    ({"daemon": {"seconds": 3601}}, "(daemon): 'seconds' must be a number from 0 to 3600"),
    ({"garbage": {"kind": "soup", "bytes": 1}}, "(garbage): 'kind' must be one of"),
    ({"garbage": {"kind": "lines", "bytes": 0}}, "(garbage): 'bytes' must be a whole number from 1"),
    ({"garbage": {"kind": "lines", "bytes": 1.5}}, "(garbage): 'bytes' must be a whole number"),
    ({"usage": {"usd": "1"}}, "(usage): 'usd' must be a number"),
    ({"limit": {"resets_at": 1, "resets_in": 1}}, "(limit): needs none, or resets_at, or resets_in"),
    ({"error": {"class": "odd"}}, "(error): 'class' must be one of agent_error"),
    ({"exit": 256}, "(exit): 'exit' must be a whole number from 0 to 255"),
    ({"exit": True}, "(exit): 'exit' must be a whole number"),
    ({"crash": "SIGSTOP"}, "(crash): 'crash' must be one of SIGKILL"),
    ({"touch": 1}, "(touch): 'touch' must be a text"),
    ({"wait_for": {"seconds": 1}}, "(wait_for): 'file' is missing"),
    ({"wait_for": 1}, "(wait_for): 'wait_for' must be a text"),
    ({"say": "x", "when": 1}, "(when): 'when' must be an object with attempt"),
    ({"say": "x", "when": {"attempt": 0}}, "(when): 'attempt' must be a whole number from 1, or a list"),
    ({"say": "x", "when": {"attempt": []}}, "(when): 'attempt' must be"),
    ({"say": "x", "when": {"turn": 1}}, "(when): unknown key 'turn'"),
]
BAD_SCRIPTS = [
    ("", "script: is not JSON: Expecting value at line 1, column 1"),
    ('{"version": 1,\n "steps": [}', "script: is not JSON: Expecting value at line 2, column 12"),
    ('{"version": 1, "steps": [{"sleep": NaN}]}', "script: is not JSON: NaN is not a number"),
    ("[" * 100_000, "script: is not JSON"),
    ("[]", "script: must be an object such as"),
    ('{"steps": [{"say": "a"}]}', "script: 'version' must be 1"),
    ('{"version": 2, "steps": [{"say": "a"}]}', "script: 'version' must be 1"),
    ('{"version": true, "steps": [{"say": "a"}]}', "script: 'version' must be 1"),
    ('{"version": 1}', "script: 'steps' must be a list with at least one step"),
    ('{"version": 1, "steps": []}', "script: 'steps' must be a list with at least one step"),
    ('{"version": 1, "session": "no", "steps": [{"say": "a"}]}', "script: 'session' must be true or false"),
    ('{"version": 1, "step": [], "steps": [{"say": "a"}]}', "script: unknown key 'step'"),
]


def script(*steps: object) -> str:
    return json.dumps({"version": 1, "steps": list(steps)})


def accepted(text: str) -> bool:
    try:
        validate(text)
    except errors.ScriptError:
        return False
    return True


# --- validator and schema --------------------------------------------------------------------------------


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("step", GOOD_STEPS, ids=json.dumps)
def test_good_step(step: dict[str, Any]) -> None:
    validate(script(step))
    JUDGE.validate(json.loads(script(step)))


@pytest.mark.parametrize(("step", "message"), BAD_STEPS, ids=[json.dumps(step) for step, _ in BAD_STEPS])
def test_bad_step_is_named_in_one_line(step: object, message: str) -> None:
    text = script({"say": "fine"}, step)
    with pytest.raises(errors.ScriptError) as caught:
        validate(text)
    assert str(caught.value).startswith("step 2")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not JUDGE.is_valid(json.loads(text))


@pytest.mark.parametrize(("text", "message"), BAD_SCRIPTS)
def test_bad_script(text: str, message: str) -> None:
    with pytest.raises(errors.ScriptError) as caught:
        validate(text)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2
    if text.startswith("{") and "is not JSON" not in message:
        assert not JUDGE.is_valid(json.loads(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats(-1, 3) | st.sampled_from(["", "x", "SIGTERM"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
WORDS = sorted(
    {
        *script_format.ACTIONS,
        "when",
        "tool",
        "run",
        "path",
        "find",
        "content",
        "attempt",
        "resets_in",
        "odd",
    }
)


def holders(value: Any) -> Iterator[Any]:
    """Every object and list inside, where something can be changed."""
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from holders(inner)


@given(st.data())
def test_validator_and_schema_agree_on_whatever_is_changed(data: st.DataObject) -> None:
    changed: dict[str, Any] = {
        "version": 1,
        "session": True,
        "steps": copy.deepcopy(data.draw(st.lists(st.sampled_from(GOOD_STEPS), min_size=1, max_size=2))),
    }
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(list(holders(changed))))
        names = list(place) if isinstance(place, dict) else list(range(len(place)))
        match data.draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace" if names:
                place[data.draw(st.sampled_from(names))] = data.draw(JSON)
            case "remove" if names:
                del place[data.draw(st.sampled_from(names))]
            case _ if isinstance(place, dict):
                place[data.draw(st.sampled_from(WORDS))] = data.draw(JSON)
            case _:
                place.append(data.draw(JSON))
    assert accepted(json.dumps(changed)) == JUDGE.is_valid(changed), list(JUDGE.iter_errors(changed))


def test_the_three_lists_of_words_agree() -> None:
    """The player cannot import jackline, and a schema cannot import anything: so this test compares them."""
    from jackline.agents.scripted.playback.steps import ACTIONS

    step = SCHEMA["$defs"]["step"]
    assert set(script_format.ACTIONS) == set(ACTIONS)
    assert {*script_format.ACTIONS, "when"} == set(step["properties"])
    assert [one["required"][0] for one in step["oneOf"]] == list(script_format.ACTIONS)
    assert SCHEMA["$defs"]["error"]["properties"]["class"]["enum"] == list(Failure)
    assert tuple(step["properties"]["crash"]["enum"]) == script_format.CRASHES
    assert tuple(step["properties"]["ignore"]["items"]["enum"]) == script_format.IGNORABLE


def test_every_action_and_field_is_described() -> None:
    step = SCHEMA["$defs"]["step"]["properties"]
    for name in script_format.ACTIONS:
        described = step[name] if "description" in step[name] else SCHEMA["$defs"][name]
        assert described["description"], name


# --- examples and documentation --------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=os.path.basename)
def test_example_validates(path: str) -> None:
    validate(read(path))
    JUDGE.validate(json.loads(read(path)))


def test_there_are_examples() -> None:
    names = {os.path.basename(path) for path in EXAMPLES}
    assert names >= {"hello.json", "edit-test-send.json", "limit.json", "crash-once.json"}


def blocks() -> list[str]:
    return re.findall(r"^```json\n(.*?)^```", read(PAGE), re.MULTILINE | re.DOTALL)


def test_every_script_and_step_on_the_page_validates() -> None:
    assert len(blocks()) >= 5
    for block in blocks():
        shown = json.loads(block)
        text = block if "steps" in shown else script(shown)
        validate(text)
        JUDGE.validate(json.loads(text))


def test_the_page_has_every_action() -> None:
    table = re.findall(r"^\| `(\w+)` \|", read(PAGE), re.MULTILINE)
    assert set(script_format.ACTIONS) <= set(table)
