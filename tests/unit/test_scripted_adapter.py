"""The scripted agent's adapter: what it launches, what it hears in a line, how it judges an end."""

from __future__ import annotations

import json
import os.path
import signal
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackline.agents import json_fields
from jackline.agents.scripted import scripted_adapter as scripted
from jackline.domain.adapter import TurnRequest
from jackline.domain.outcome import AgentEvent, Exit, Outcome, Usage
from jackline.domain.states import Failure, WaitReason

SCRIPT = '{"version": 1, "steps": [{"say": "hé"}]}'


def request(**changes: Any) -> TurnRequest:
    facts: dict[str, Any] = {
        "run_id": "r1", "attempt": 2, "turn": 3, "role": "work", "prompt": "do it", "workspace": "/w",
        "folder": "/home/runs/r1/agent", "gate": "/g.sock", "token": "t0", "session": "s1",
        "options": {"script": SCRIPT},
    }  # fmt: skip
    return TurnRequest(**{**facts, **changes})


def heard(**fields: object) -> AgentEvent:
    (one,) = scripted.ADAPTER.parse(json.dumps(fields).encode() + b"\n")
    return one


# --- launch ----------------------------------------------------------------------------------------------


def test_launch_starts_the_player_isolated_with_the_script_in_the_agents_folder() -> None:
    launch = scripted.ADAPTER.launch(request(resume=True))
    assert launch.argv == (sys.executable, "-I", scripted.PLAYER)
    assert os.path.isabs(scripted.PLAYER)
    assert os.path.isfile(scripted.PLAYER)
    assert launch.files == {"/home/runs/r1/agent/script.json": SCRIPT.encode()}
    assert launch.stdin == b"do it"
    assert launch.env == {
        "JACKLINE_GATE": "/g.sock",
        "JACKLINE_GATE_TOKEN": "t0",
        "JACKLINE_RUN_ID": "r1",
        "JACKLINE_ATTEMPT": "2",
        "JACKLINE_TURN": "3",
        "JACKLINE_SESSION": "s1",
        "JACKLINE_RESUME": "1",
        "JACKLINE_SCRIPT": "/home/runs/r1/agent/script.json",
        "JACKLINE_AGENT_FOLDER": "/home/runs/r1/agent",
        "JACKLINE_WORKSPACE": "/w",
        "JACKLINE_MODEL": "",
        "JACKLINE_EFFORT": "",
    }


def test_launch_takes_another_python_and_starts_fresh_without_a_session() -> None:
    launch = scripted.ADAPTER.launch(request(binary="/opt/python", session=None, options={}))
    assert launch.argv[0] == "/opt/python"
    assert (launch.env["JACKLINE_SESSION"], launch.env["JACKLINE_RESUME"]) == ("", "0")
    assert launch.files == {"/home/runs/r1/agent/script.json": b""}


def test_declaration() -> None:
    facts = scripted.ADAPTER.declaration
    assert (facts.name, facts.gate, facts.chooses_session, facts.resumes) == (
        "scripted",
        "enforced",
        True,
        True,
    )


# --- parse -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"type": "message", "text": "hello"}, AgentEvent("message", "hello", {"text": "hello"})),
        ({"type": "thinking", "text": "hm"}, AgentEvent("thinking", "hm", {"text": "hm"})),
        ({"type": "session", "id": "s1"}, AgentEvent("session", "s1", {"id": "s1"})),
        ({"type": "end", "reason": "done"}, AgentEvent("end", "done", {"reason": "done"})),
        (
            {"type": "call.started", "call": "c1", "tool": "send", "input": {"to": "a"}},
            AgentEvent("call.started", "", {"call": "c1", "tool": "send", "input": {"to": "a"}}),
        ),
        (
            {"type": "call.finished", "call": "c1", "ok": False, "exit_code": 3},
            AgentEvent("call.finished", "", {"call": "c1", "ok": False, "exit_code": 3}),
        ),
        (
            {"type": "error", "class": "overloaded", "detail": "busy"},
            AgentEvent("error", "busy", {"class": "overloaded", "detail": "busy"}),
        ),
        ({"type": "retry", "text": "in 3 s"}, AgentEvent("retry", "in 3 s", {"text": "in 3 s"})),
    ],
)
def test_each_kind_of_line(line: dict[str, object], expected: AgentEvent) -> None:
    assert heard(**line) == expected


def test_usage_counts_dollars_in_millionths() -> None:
    line = heard(type="usage", input=10, output=2, cached=7, usd=0.0042)
    assert line.usage == Usage(tokens_input=10, tokens_output=2, tokens_cached=7, usd_micros=4200)


@pytest.mark.parametrize("nonsense", ['"7"', "NaN", "-Infinity", "-1", "true", "null", "[1]"])
def test_nonsense_usage_counts_nothing(nonsense: str) -> None:
    line = f'{{"type": "usage", "input": {nonsense}, "usd": {nonsense}}}'.encode()
    assert scripted.ADAPTER.parse(line)[0].usage == Usage()


@pytest.mark.parametrize("huge", ["Infinity", "1e308", "9" * 400])
def test_huge_usage_fits_a_database(huge: str) -> None:
    usage = scripted.ADAPTER.parse(f'{{"type": "usage", "input": {huge}}}'.encode())[0].usage
    assert usage is not None
    assert usage.tokens_input == 10**15


def test_limit_is_heard_in_milliseconds() -> None:
    assert heard(type="limit", resets_at=1700000000.5, text="full").data["resets_at"] == 1700000000500
    assert heard(type="limit", resets_at=None).data["resets_at"] is None
    assert heard(type="limit", resets_at="soon").data["resets_at"] is None


@pytest.mark.parametrize(
    "line",
    [
        b"plain",
        b"\x00\xff\xfe",
        b'{"type": ',
        b'{"type": "dance"}',
        b'{"type": []}',
        b"{}",
        b"[1]",
        b'{"a":' * 99999,
    ],
)
def test_anything_else_is_raw(line: bytes) -> None:
    (one,) = scripted.ADAPTER.parse(line)
    assert one.kind == "raw"
    assert len(one.text) <= 2_000
    assert "\0" not in one.text


def test_empty_line_says_nothing() -> None:
    assert scripted.ADAPTER.parse(b" \r\n") == ()


def test_a_line_that_is_not_json_is_not_parsed_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(json_fields, "json")
    assert scripted.ADAPTER.parse(b"x" * 100)[0].kind == "raw"


def test_text_that_no_database_takes_is_mended() -> None:
    (one,) = scripted.ADAPTER.parse(rb'{"type": "message", "text": "a\u0000\ud800\ud83d\ude00", "x": ["\ud800"]}')
    assert one.text == "a\ufffd?\U0001f600"
    assert one.data["x"] == ["?"]


@given(st.binary() | st.binary().map(lambda tail: b'{"type": "usage",' + tail))
def test_no_line_raises(line: bytes) -> None:
    for one in scripted.ADAPTER.parse(line):
        one.text.encode()


# --- classify --------------------------------------------------------------------------------------------

DONE = AgentEvent("end", "done")
OK = Exit(0)


@pytest.mark.parametrize(
    ("exit_", "lines", "outcome"),
    [
        (OK, (DONE,), Outcome()),
        (OK, (), Outcome(Failure.NO_TERMINAL_EVENT, "it exited with code 0 without reporting that it was done")),
        (Exit(3), (DONE,), Outcome(Failure.AGENT_ERROR, "exit code 3")),
        (Exit(None, signal.SIGKILL), (DONE,), Outcome(Failure.CRASHED, "killed by SIGKILL")),
        (Exit(None, 99), (), Outcome(Failure.CRASHED, "killed by signal 99")),
        (Exit(None), (), Outcome(Failure.CRASHED, "killed by an unknown signal")),
        (Exit(None, lost=True), (), Outcome(Failure.CRASHED, "the process was lost with its warden")),
        (OK, (AgentEvent("end", "deferred"),), Outcome(waits=WaitReason.APPROVAL)),
        (
            Exit(1),
            (AgentEvent("error", "x", {"class": "ungated"}), AgentEvent("limit", "full", {"resets_at": 5000})),
            Outcome(Failure.LIMIT, "full", resets_at=5000),
        ),
        (Exit(1), (AgentEvent("limit", "full"),), Outcome(Failure.LIMIT, "full")),
        (
            Exit(None, signal.SIGTERM),
            (AgentEvent("error", "x", {"class": "ungated"}),),
            Outcome(Failure.UNGATED, "x"),
        ),
        (OK, (AgentEvent("error", "x", {"class": "overloaded"}), DONE), Outcome(Failure.OVERLOADED, "x")),
        (Exit(1), (AgentEvent("error", "x", {"class": "odd"}),), Outcome(Failure.AGENT_ERROR, "x")),
        (Exit(1), (AgentEvent("error", "x", {"class": ["odd"]}),), Outcome(Failure.AGENT_ERROR, "x")),
        (
            Exit(1),
            (AgentEvent("error", "x", {"session_lost": True}),),
            Outcome(Failure.AGENT_ERROR, "x", session_lost=True),
        ),
    ],
)
def test_how_a_turn_ended(exit_: Exit, lines: tuple[AgentEvent, ...], outcome: Outcome) -> None:
    assert scripted.ADAPTER.classify(exit_, lines, "") == outcome
