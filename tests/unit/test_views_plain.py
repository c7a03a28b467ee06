"""The conversions that every view shares."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from jackline.views import plain
from tests.support.view_records import AT


def test_times_are_written_as_go_writes_them() -> None:
    assert plain.rfc3339(plain.moment(AT + 7)) == "2023-11-14T22:13:20.007Z"


def test_a_time_that_was_read_more_precisely_keeps_its_digits_and_its_zone() -> None:
    time = datetime.fromisoformat("2026-02-19T17:50:43.123456789-05:00")
    assert plain.rfc3339(time) == "2026-02-19T17:50:43.123456-05:00"


@pytest.mark.parametrize("ms", [-(10**18), 10**18])
def test_an_absurd_time_is_no_error(ms: int) -> None:
    """An agent can claim that its limit resets in a million years."""
    assert plain.moment(ms).year in {1970, 9999}


def test_go_s_zero_time_survives() -> None:
    assert plain.rfc3339(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000Z"


def test_nothing_readable_steers_a_terminal() -> None:
    assert plain.readable("a\x1b[31mb\x00\x9bc\r\nd\te\udcff") == "a\ufffd[31mb\ufffd\ufffdc\nd\te\ufffd"


def test_half_a_character_is_still_valid_json_in_utf_8() -> None:
    written = plain.json_bytes({"text": "é\ud800"})
    assert json.loads(written.decode()) == {"text": "é\ud800"}


def test_text_is_written_as_it_is() -> None:
    assert plain.json_bytes({"text": "é→\u2028"}) == '{"text": "é→\u2028"}\n'.encode()


def test_numbers_that_json_does_not_have_become_null() -> None:
    assert plain.json_object('{"a":NaN,"b":[Infinity,-Infinity]}') == {"a": None, "b": [None, None]}


@pytest.mark.parametrize("text", ["[]", "3", "", "{", '{"a":', "[" * 100_000])
def test_what_is_no_object_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"^.+$"):
        plain.json_object(text)
