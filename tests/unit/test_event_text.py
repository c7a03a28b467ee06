"""Events in words: what is only for programs is left out."""

from __future__ import annotations

import pytest

from jackline.cli.event_text import describe_event, is_notable
from jackline.domain.events import Fact, place


def test_the_digests_of_records_are_not_for_people() -> None:
    fact = Fact("run.succeeded", {"proof": "proved", "detail": "", "records": {"turn 1": "0123456789abcdef"}})
    assert describe_event(place(fact, "run-1", 1, 1, "engine", "")) == "run.succeeded proof=proved"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"tool": "Bash", "ok": False, "exit_code": 3}, "Bash exited with 3"),
        ({"tool": "Bash", "ok": True, "exit_code": 0}, "Bash exited with 0"),
        ({"tool": "Write", "ok": True}, "Write finished"),
        ({"ok": True, "exit_code": 0}, "a call exited with 0"),
        ({"tool": "mcp__t__add", "ok": False}, "mcp__t__add failed"),
    ],
)
def test_the_end_of_a_call_names_its_tool(data: dict[str, object], text: str) -> None:
    fact = Fact("agent.call.finished", {"call": "item_1", "offset": 1, **data})
    assert describe_event(place(fact, "run-1", 1, 1, "agent", "")) == text


def test_an_event_of_a_later_version_is_still_described() -> None:
    assert describe_event(place(Fact("new.kind", {"a": 1, "b": None}), "r", 1, 1, "engine", "")) == "new.kind a=1"
    assert describe_event(place(Fact("turn.started"), "r", 1, 1, "engine", "")) == "turn ? started"


def test_a_lowered_count_of_tokens_is_called_a_correction() -> None:
    usage = Fact("agent.usage", {"tokens_input": 0, "tokens_output": -13})
    assert describe_event(place(usage, "r", 1, 1, "agent", "")) == "corrected its usage by 0 + -13 tokens"


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({"patch": "/r/1-0.patch", "refs": ["refs/jackline/r/1"]}, "/r/1-0.patch refs/jackline/r/1"),
        ({"restored": ["a"], "refs": ["refs/jackline/r/1"]}, "refs/jackline/r/1"),
    ],
)
def test_what_a_reviewer_changed_can_be_found(data: dict[str, object], kept: str) -> None:
    described = describe_event(place(Fact("review.undone", data), "r", 1, 1, "engine", ""))
    assert described == f"undid what the reviewer changed; its changes are kept: {kept}"


def test_a_check_that_is_no_proof_has_its_name() -> None:
    for data, text in (({}, "proof: true"), ({"check": "commit"}, "commit: true")):
        fact = Fact("check.started", {"command": "true", **data})
        assert describe_event(place(fact, "r", 1, 1, "engine", "")) == text


def test_files_that_a_proof_does_not_cover_are_named() -> None:
    data = {"tree": "a" * 40, "untracked": [], "left_out": [f"{number}.bin" for number in range(7)], "absent": 0}
    event = place(Fact("check.tree", data), "r", 1, 1, "engine", "")
    text = "the proof ran on tree aaaaaaaaaaaa; left out, too large or unreadable: 0.bin, 1.bin, 2.bin, 3.bin, 4.bin"
    assert describe_event(event) == f"{text} and 2 more"
    assert is_notable(event)
    kept = place(Fact("check.tree", {**data, "left_out": [], "rewritten": [".coverage"]}), "r", 1, 1, "engine", "")
    assert describe_event(kept).endswith("there before, but rewritten by each proof and ignored: .coverage")
    plain = place(Fact("check.tree", {**data, "left_out": []}), "r", 1, 1, "engine", "")
    assert (describe_event(plain), is_notable(plain)) == ("the proof ran on tree aaaaaaaaaaaa", False)


def test_a_signal_on_the_bridge_is_named() -> None:
    data = {"message": 1, "type": "signal", "signal": "DONE", "from": "helper", "to": "all", "text": "see b"}
    assert (
        describe_event(place(Fact("bridge.sent", data), "r", 1, 1, "helper", ""))
        == "helper to all (signal DONE): see b"
    )
