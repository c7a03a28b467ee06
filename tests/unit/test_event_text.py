"""Events in words: what is only for programs is left out."""

from __future__ import annotations

from jackline.cli.event_text import describe_event
from jackline.domain.events import Fact, place


def test_the_digests_of_records_are_not_for_people() -> None:
    fact = Fact("run.succeeded", {"proof": "proved", "detail": "", "records": {"turn 1": "0123456789abcdef"}})
    assert describe_event(place(fact, "run-1", 1, 1, "engine", "")) == "run.succeeded proof=proved"
