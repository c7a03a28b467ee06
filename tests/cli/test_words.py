"""How times, amounts and events are written: small pure functions."""

from __future__ import annotations

import pytest

from jackline.cli import words
from jackline.cli.events import describe
from jackline.cli.progress import Picture
from jackline.domain.events import Event


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
def test_durations(ms: int, text: str) -> None:
    assert words.duration(ms) == text


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
def test_spans(text: str, ms: int | None) -> None:
    assert words.span(text) == ms


def test_moments() -> None:
    assert words.iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert words.iso(None) is None


@pytest.mark.parametrize(
    ("text", "columns", "cut"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 5, "日本…"), ("日本語", 6, "日本語"), ("abc", 0, "")],
)
def test_texts_are_cut_by_columns(text: str, columns: int, cut: str) -> None:
    assert words.shortened(text, columns) == cut


def test_nothing_that_a_terminal_obeys_is_printed() -> None:
    assert words.printable("a\x1b]0;title\x07b\r\nc") == "a ]0;title b  c"


def test_amounts() -> None:
    assert [words.amount(one) for one in (0, 9_999, 10_000, 2_500_000)] == ["0", "9999", "10.0k", "2.5M"]
    assert [words.usd(one) for one in (0, 100, 1_500_000)] == ["$0.00", "$0.0001", "$1.50"]


def event(seq: int, kind: str, data: str = "{}") -> Event:
    return Event("r", seq, 0, kind, "agent", data, "")


def test_the_picture_is_folded_from_events() -> None:
    picture = Picture(0, tokens=10, usd_micros=0)
    for one in (
        event(1, "turn.started", '{"turn": 1}'),
        event(2, "agent.usage", '{"tokens_input": 5, "tokens_output": 1, "usd_micros": 1000000}'),
        event(3, "agent.message", '{"text": "on it"}'),
        event(4, "agent.thinking", '{"text": "hm"}'),
        event(5, "check.started", '{"command": "make"}'),
        event(6, "later.than.this.version"),
    ):
        picture = picture.after(one)
    assert picture == Picture(6, 16, 1_000_000, "proving", "proof: make")
    assert picture.line(1500) == "proving · 1.5s · 16 tokens · $1.00 · proof: make"


def test_an_event_of_a_later_version_is_still_told() -> None:
    assert describe(event(1, "new.kind", '{"a": 1, "b": null}')) == "new.kind a=1"
    assert describe(event(1, "turn.started")) == "turn ? begins"
