"""The input of --each: lines of text and JSON objects."""

from __future__ import annotations

import pytest

from jackline.app.each_file import parse_items
from jackline.errors import UsageError


def test_lines_and_objects_keep_their_numbers() -> None:
    items = parse_items('\ufeffone\n\n  two \r\n{\n "a": 1,\n "b": "x\\ny"\n}\nthree\n{"a": false}', "f")
    assert [(item.number, item.text, dict(item.variables)) for item in items] == [
        (1, "one", {}),
        (3, "two", {}),
        (4, "", {"a": "1", "b": "x\ny"}),
        (8, "three", {}),
        (9, "", {"a": "false"}),
    ]


def test_fields_of_an_object_are_no_variables() -> None:
    (item,) = parse_items('{"prompt": "p", "workspace": "w", "agent": "a", "other": 1.10}', "f")
    assert (item.prompt, item.workspace, item.agent, item.variables) == ("p", "w", "a", {"other": "1.10"})


def test_a_digest_follows_from_the_content_and_its_repetition() -> None:
    first = [item.digest for item in parse_items("a\nb\na\n", "f")]
    assert len(set(first)) == 3
    assert [item.digest for item in parse_items("new\nb\na\na\n", "f")][1:] == [first[1], first[0], first[2]]
    assert parse_items('{"x": 1, "y": 2}', "f")[0].digest == parse_items('{"y": 2,\n"x": 1}', "f")[0].digest


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('a\n{"line": \nb\n', "f, line 2: it begins with a brace and is not a JSON object"),
        ('{"a": 1} {"a": 2}\n', "f, line 1: it begins with a brace"),
        ('{"a": 1}\n{"a": [1]}\n{"a": null}', "f, line 2: a must be text.*; f, line 3: a must be text"),
        ('{"agent": " "}\n', "f, line 1: agent is empty"),
        ('{"a": 1, "b": 2, "a": 3}', "f, line 1: a appears more than once"),
        ('{"a": NaN}', "f, line 1: NaN is not allowed in JSON"),
        ('a\n{"a": ' + "[" * 100_000 + "\n", "f, line 2: it is nested too deeply"),
        (" \n\n", "f has no lines"),
        ("a\n" * 10_001, "f has 10001 lines, more than 10000: split it"),
    ],
)
def test_bad_input_names_its_lines(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as raised:
        parse_items(text, "f")
    assert "nothing was created" in str(raised.value)
