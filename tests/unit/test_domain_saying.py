"""How reports say things: UTC by hand is UTC by the book, and foreign text stays text."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.domain.saying import amount, code, day, duration, line, moment, span, table, typed, usd

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(-62_135_596_800_000, 253_402_300_799_000)


@given(MOMENTS)
def test_a_moment_is_that_of_the_calendar(at: int) -> None:
    known = EPOCH + timedelta(milliseconds=at)
    assert moment(at) == known.isoformat(sep=" ")[:19]
    assert day(at) == known.date().isoformat()
    assert moment(None) == "-"


@pytest.mark.parametrize(
    ("ms", "said"),
    [(-5, "0s"), (999, "0s"), (59_999, "59s"), (61_000, "1m 01s"), (3_660_000, "1h 01m"), (90_000_000, "1d 01h")],
)
def test_durations(ms: int, said: str) -> None:
    assert duration(ms) == said


def test_amounts() -> None:
    assert [usd(0), usd(12_300), usd(1_234_567)] == ["$0.00", "$0.0123", "$1.23"]
    assert [amount(9_999), amount(12_345), amount(1_234_567)] == ["9999", "12.3k", "1.2M"]


@given(st.text(max_size=300))
def test_foreign_text_is_one_span_of_code(text: str) -> None:
    shown = code(text)
    assert "\n" not in shown
    assert shown.isprintable()
    if text.strip():
        marks = shown[: len(shown) - len(shown.lstrip("`"))]
        inside = shown[len(marks) : -len(marks)]
        assert shown.endswith(marks)
        # No run of backticks inside has the length of the marks, so nothing inside ends the span.
        assert marks not in _runs_of_backticks(inside)


def _runs_of_backticks(text: str) -> list[str]:
    return ["`" * len(one) for one in "".join(one if one == "`" else " " for one in text).split()]


def test_a_backtick_at_the_edge_keeps_its_distance() -> None:
    assert span("a`b") == "``a`b``"
    assert span("`") == "`` ` ``"


def test_a_cell_ends_no_column() -> None:
    _, _, row, _ = table("a|b", [[code("x | <b>y</b>"), code("[l](http://evil)\n| z")]])
    assert row == "| `x \\| <b>y</b>` | `[l](http://evil) \\| z` |"


def test_long_text_is_cut() -> None:
    assert line("x" * 1000, 10) == "x" * 9 + "…"
    assert len(line("a b " * 10_000_000, 10)) == 10


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1), min_size=1))
def test_a_command_is_read_by_a_shell_as_it_was_meant(words: list[str]) -> None:
    assert shlex.split(typed(*words)) == words
