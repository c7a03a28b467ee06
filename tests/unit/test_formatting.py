"""Times, amounts and foreign text: for people, for programs, and parsed."""

from __future__ import annotations

import shlex
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.formatting import (
    format_age,
    format_code,
    format_command,
    format_count,
    format_date,
    format_duration,
    format_elapsed,
    format_iso,
    format_line,
    format_local,
    format_rfc3339,
    format_table,
    format_usd,
    format_utc,
    join_some,
    make_printable,
    make_readable,
    parse_duration,
    parse_time,
    quote_code,
    shorten_path,
    shorten_text,
    to_datetime,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = st.integers(-62_135_596_800_000, 253_402_300_799_000)


@given(MOMENTS)
def test_a_moment_is_that_of_the_calendar(at: int) -> None:
    known = EPOCH + timedelta(milliseconds=at)
    assert format_utc(at) == known.isoformat(sep=" ")[:19]
    assert format_date(at) == known.date().isoformat()
    assert format_utc(None) == "-"


@pytest.mark.parametrize(
    ("ms", "said"),
    [(-5, "0s"), (999, "0s"), (59_999, "59s"), (61_000, "1m 01s"), (3_660_000, "1h 01m"), (90_000_000, "1d 01h")],
)
def test_durations(ms: int, said: str) -> None:
    assert format_duration(ms) == said


def test_amounts() -> None:
    assert [format_usd(0), format_usd(12_300), format_usd(1_234_567)] == ["$0.00", "$0.01", "$1.23"]
    assert [format_count(9_999), format_count(12_345), format_count(1_234_567)] == ["9999", "12.3k", "1.2M"]


@given(st.text(max_size=300))
def test_foreign_text_is_one_span_of_code(text: str) -> None:
    shown = format_code(text)
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
    assert quote_code("a`b") == "``a`b``"
    assert quote_code("`") == "`` ` ``"


def test_a_cell_ends_no_column() -> None:
    _, _, row, _ = format_table("a|b", [[format_code("x | <b>y</b>"), format_code("[l](http://evil)\n| z")]])
    assert row == "| `x \\| <b>y</b>` | `[l](http://evil) \\| z` |"


def test_long_text_is_cut() -> None:
    assert format_line("x" * 1000, 10) == "x" * 9 + "…"
    assert len(format_line("a b " * 10_000_000, 10)) == 10


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1), min_size=1))
def test_a_command_is_read_by_a_shell_as_it_was_meant(words: list[str]) -> None:
    assert shlex.split(format_command(*words)) == words


def test_times_are_written_as_go_writes_them() -> None:
    assert format_rfc3339(to_datetime(1_700_000_000_007)) == "2023-11-14T22:13:20.007Z"


def test_a_time_that_was_read_more_precisely_keeps_its_digits_and_its_zone() -> None:
    told = datetime.fromisoformat("2026-02-19T17:50:43.123456789-05:00")
    assert format_rfc3339(told) == "2026-02-19T17:50:43.123456-05:00"


@pytest.mark.parametrize("ms", [-(10**18), 10**18])
def test_an_absurd_time_is_no_error(ms: int) -> None:
    """An agent can claim that its limit resets in a million years."""
    assert to_datetime(ms).year in {1, 9999}


def test_go_s_zero_time_survives() -> None:
    assert format_rfc3339(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000Z"


def test_nothing_readable_steers_a_terminal() -> None:
    assert make_readable("a\x1b[31mb\x00\x9bc\r\nd\te\udcff") == "a\ufffd[31mb\ufffd\ufffdc\nd\te\ufffd"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0s"),
        (9_900, "9.9s"),
        (59_999, "59s"),
        (61_000, "1m 01s"),
        (3_660_000, "1h 01m"),
        (90_000_000, "1d 01h"),
    ],
)
def test_elapsed_times_have_tenths(ms: int, text: str) -> None:
    assert format_elapsed(ms) == text


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("45s", 45_000),
        ("2h", 7_200_000),
        ("1w", 604_800_000),
        ("h", None),
        ("", None),
        ("-1h", None),
        ("²h", None),
    ],
)
def test_durations_are_parsed(text: str, ms: int | None) -> None:
    assert parse_duration(text) == ms


def test_times_for_programs() -> None:
    assert format_iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert format_iso(None) is None


@pytest.mark.parametrize(
    ("text", "columns", "cut"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("日本語", 6, "日本語"), ("abc", 0, "")],
)
def test_texts_are_cut_by_columns(text: str, columns: int, cut: str) -> None:
    assert shorten_text(text, columns) == cut


def test_nothing_that_a_terminal_obeys_is_printed() -> None:
    assert make_printable("a\x1b]0;title\x07b\r\nc") == "a ]0;title b  c"


def test_amounts_in_few_characters() -> None:
    assert [format_count(one) for one in (0, 9_999, 10_000, 2_500_000)] == ["0", "9999", "10.0k", "2.5M"]
    assert [format_usd(one) for one in (0, 100, 9_999, 10_000, 1_500_000)] == [
        "$0.00",
        "$0.0001",
        "$0.0100",
        "$0.01",
        "$1.50",
    ]


NOON = 1_700_049_600_000  # 2023-11-15 12:00 UTC


@pytest.mark.parametrize(
    ("before_ms", "text"),
    [(60_000, "11:59:00"), (86_400_000, "14 Nov 12:00"), (400 * 86_400_000, "2022-10-11 12:00")],
)
def test_local_times_have_a_date_unless_it_is_today(before_ms: int, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert format_local(NOON - before_ms, NOON) == text
    assert format_local(None, NOON) == "-"


def test_a_time_is_parsed_as_a_duration_before_now_or_a_date() -> None:
    assert parse_time("2h", NOON) == NOON - 7_200_000
    assert parse_time("2023-11-15T12:00:00Z", 0) == NOON
    with pytest.raises(ValueError, match=r"^'soon' is not a valid time; use 2h, 3d or a date such as 2026-11-01$"):
        parse_time("soon", NOON)


def test_a_leading_equals_sign_is_quoted_for_zsh() -> None:
    assert format_command("=ls", "a=b", "it's") == "'=ls' a=b 'it'\"'\"'s'"


def test_seconds_are_enough_where_they_are_asked_for() -> None:
    assert format_iso(NOON + 7, "seconds") == "2023-11-15T12:00:00Z"


@pytest.mark.parametrize(
    ("ago", "shown"),
    [
        (-5_000, "0s ago"), (0, "0s ago"), (59_999, "59s ago"), (180_000, "3m ago"), (7_200_000, "2h ago"),
        (13 * 86_400_000, "13d ago"), (14 * 86_400_000, "2023-10-31"),
    ],
)  # fmt: skip
def test_an_age_has_one_unit(ago: int, shown: str) -> None:
    now = 1_700_000_000_000
    assert format_age(now - ago, now) == shown


@pytest.mark.parametrize(
    ("path", "columns", "shown"),
    [
        ("/home/ada/project", 20, "~/project"),
        ("/home/ada", 20, "~"),
        ("/home/adam/x", 20, "/home/adam/x"),
        ("/srv/a/long/way/to/project", 15, "…/to/project"),
        ("/home/ada/漢字/漢字/p", 8, "…/漢字/p"),
        ("/srv/averyveryverylongname", 10, "…/averyve…"),
        ("/", 1, "/"),
    ],
)
def test_a_path_is_shortened_in_front(path: str, columns: int, shown: str) -> None:
    assert shorten_path(path, "/home/ada", columns) == shown


def test_the_first_names_are_listed_and_the_others_counted() -> None:
    assert join_some([], 2) == ""
    assert join_some(["a", "b"], 2) == "a, b"
    assert join_some(("a", "b", "c", "d"), 2) == "a, b and 2 more"
