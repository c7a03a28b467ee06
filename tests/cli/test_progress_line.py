"""Descriptions of events, and the progress line that they update."""

from __future__ import annotations

from jackline.cli.event_text import describe_event
from jackline.cli.progress import ProgressState
from jackline.domain.events import Event


def event(seq: int, kind: str, data: str = "{}") -> Event:
    return Event("r", seq, 0, kind, "agent", data, "")


def test_the_picture_is_folded_from_events() -> None:
    picture = ProgressState(0, tokens=10, usd_micros=0)
    for one in (
        event(1, "turn.started", '{"turn": 1}'),
        event(2, "agent.usage", '{"tokens_input": 5, "tokens_output": 1, "usd_micros": 1000000}'),
        event(3, "agent.message", '{"text": "on it"}'),
        event(4, "agent.thinking", '{"text": "hm"}'),
        event(5, "check.started", '{"command": "make"}'),
        event(6, "later.than.this.version"),
    ):
        picture = picture.apply_event(one)
    assert picture == ProgressState(6, 16, 1_000_000, "proving", "proof: make")
    assert picture.format_progress(1500) == "proving · 1.5s · 16 tokens · $1.00 · proof: make"


def test_an_event_of_a_later_version_is_still_described() -> None:
    assert describe_event(event(1, "new.kind", '{"a": 1, "b": null}')) == "new.kind a=1"
    assert describe_event(event(1, "turn.started")) == "turn ? started"
