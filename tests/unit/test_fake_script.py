"""The script of the fake model: what loads, what is refused and by which words, which request gets which reply."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from jackline.errors import ScriptError
from jackline.fake_model.script import Reply, Script, load_script
from jackline.fake_model.wire import ModelRequest, OfferedTool

WITH_TOOLS = ModelRequest("anthropic", "m", stream=True, text="hi", tools=(OfferedTool("Bash"),))
WITHOUT = WITH_TOOLS._replace(tools=())


def taken(script: Script, count: int) -> list[str]:
    return [script.next_reply(WITH_TOOLS).say for _ in range(count)]


def test_replies_come_in_their_order_then_the_other_one() -> None:
    script = load_script('{"replies": [{"say": "a"}, {"say": "b", "times": 2}], "otherwise": {"say": "z"}}')
    assert taken(script, 5) == ["a", "b", "b", "z", "z"]


def test_a_script_that_is_used_up_says_ok() -> None:
    assert load_script('{"replies": []}').next_reply(WITH_TOOLS) == Reply(say="ok")


def test_a_request_without_tools_uses_up_nothing() -> None:
    script = load_script('{"replies": [{"status": 500}], "otherwise": {"status": 401}}')
    assert script.next_reply(WITHOUT) == Reply(say="ok")
    assert script.next_reply(WITH_TOOLS).status == 500
    assert script.next_reply(WITHOUT) == Reply(say="ok")


def test_a_reply_for_no_request_is_left_out() -> None:
    assert taken(load_script('{"replies": [{"say": "a", "times": 0}, {"say": "b"}]}'), 1) == ["b"]


def test_no_reply_is_given_twice_to_requests_at_the_same_time() -> None:
    script = Script(tuple(Reply(say=str(number)) for number in range(400)), Reply(say="over"))
    heard: list[str] = []
    threads = [threading.Thread(target=lambda: heard.extend(taken(script, 100))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(heard, key=int) == [str(number) for number in range(400)]


def test_every_field_can_be_set() -> None:
    fields = {
        "say": "s",
        "thinking": "t",
        "shell": "true",
        "write": ["a.txt", "words"],
        "call": {"tool": "Read", "input": {"file_path": "a.txt"}},
        "calls": [{"tool": "Read"}, {"tool": "Glob"}],
        "status": 529,
        "message": "m",
        "kind": "k",
        "headers": {"retry-after": "1"},
        "drop": "before",
        "hang": "middle",
        "pad": 3,
        "tokens_input": 5,
        "tokens_output": 6,
        "tokens_cached": 5,
        "times": 1,
    }
    assert fields.keys() == set(Reply._fields)
    reply = load_script(json.dumps({"replies": [fields]})).next_reply(WITH_TOOLS)
    assert reply._asdict() == {**fields, "write": ("a.txt", "words"), "calls": ({"tool": "Read"}, {"tool": "Glob"})}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", 'list "replies"'),
        ('{"replies": {}}', 'list "replies"'),
        ('{"replies": [], "reply": 1}', "has 'reply'"),
        ('{"replies": ["say"]}', "reply 1 of the model's script must be an object"),
        ('{"replies": [], "otherwise": 1}', "otherwise of the model's script must be an object"),
    ],
)
def test_what_is_no_script_is_refused(text: str, words: str) -> None:
    with pytest.raises(ScriptError, match=words):
        load_script(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("say", 1),
        ("write", ["only a path"]),
        ("write", ["path", 1]),
        ("write", "path"),
        ("call", {"input": {}}),
        ("call", {"tool": "x", "input": []}),
        ("call", {"tool": "x", "inputs": {}}),
        ("calls", {"tool": "x"}),
        ("calls", [{"tool": "x"}, {"input": {}}]),
        ("status", 302),
        ("status", 600),
        ("status", "500"),
        ("headers", {"retry-after": 1}),
        ("drop", "after"),
        ("hang", True),
        ("pad", -1),
        ("times", True),
        ("tokens_input", 1.5),
        ("tokens_cached", 12),
        ("shel", "ls"),
    ],
)
def test_a_wrong_field_is_named_with_its_reply(name: str, value: Any) -> None:
    with pytest.raises(ScriptError, match=rf"^reply 2 of the model's script.*{name}") as raised:
        load_script(json.dumps({"replies": [{}, {name: value}]}))
    assert "\n" not in str(raised.value)
