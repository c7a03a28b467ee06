"""Records as JSON objects, and back."""

from __future__ import annotations

import json

import pytest

from jackline.exports import record_json


def test_half_a_character_is_still_valid_json_in_utf_8() -> None:
    written = record_json.encode_json({"text": "é\ud800"})
    assert json.loads(written.decode()) == {"text": "é\ud800"}


def test_text_is_written_as_it_is_and_what_would_steer_a_terminal_is_escaped() -> None:
    assert record_json.encode_json({"text": "é→"}) == '{"text": "é→"}\n'.encode()
    text = "a\u2028b\u202ec\x9bd\x7fe\udcfff\U000e0001"
    line = record_json.encode_json({text: text}).decode()
    assert line.isascii()
    assert "\\u202e" in line
    assert json.loads(line) == {text: text}


def test_numbers_that_json_does_not_have_become_null() -> None:
    assert record_json.decode_object('{"a":NaN,"b":[Infinity,-Infinity]}') == {"a": None, "b": [None, None]}


@pytest.mark.parametrize("text", ["[]", "3", "", "{", '{"a":', "[" * 100_000])
def test_what_is_no_object_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"^.+$"):
        record_json.decode_object(text)
