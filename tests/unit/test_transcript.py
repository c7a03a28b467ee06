"""The transcript: what each event becomes, and how a damaged file is read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jackline.domain.limits import Spent
from jackline.domain.records import Check, RunStatus, Turn
from jackline.domain.states import RunState
from jackline.errors import UsageError
from jackline.exports.transcript import EntryType, TranscriptEntry, build_entries, read_transcript
from tests.support.view_records import AT, events, run, turn

GO_FIELDS = [
    "type", "timestamp", "run_id", "iteration", "agent", "state", "content", "signal", "error", "duration",
    "metadata",
]  # fmt: skip
STARTED = ("turn.started", {"turn": 1, "role": "work", "iteration": 1})
LAUNCHED = ("turn.launched", {"turn": 1, "argv": ["claude"], "resumes": False})
END = ("agent.end", {"reason": "done", "text": "done", "offset": 9})
CHECKED = ("check.launched", {"command": "make test"})
SUCCEEDED = ("run.succeeded", {"failure": None, "detail": "", "proof": "proved"})


def told(
    *facts: tuple[str, dict[str, Any]], turns: Sequence[Turn] = (turn(),), checks: Sequence[Check] = ()
) -> list[TranscriptEntry]:
    """The entries after `start`."""
    ended = run(RunStatus(RunState.SUCCEEDED), started_at=AT + 10)
    return list(build_entries(ended, {one.number: one for one in turns}, checks, events(*facts)))[1:]


def kinds(entries: list[TranscriptEntry]) -> list[str]:
    return [str(entry.type) for entry in entries]


def check(**more: Any) -> Check:
    values: dict[str, Any] = {"started_at": AT, "ended_at": AT + 1500, "exit_code": 0, "output": "3 passed"}
    return Check("run-1", 3, 1, "make test", **(values | more))


def test_the_record_has_every_field_and_type_of_the_go_transcript() -> None:
    assert list(TranscriptEntry._fields) == GO_FIELDS
    assert " ".join(EntryType) == "start iteration message execute result signal state error end"


def test_a_whole_run_from_start_to_end() -> None:
    facts: tuple[tuple[str, dict[str, Any]], ...] = (
        ("run.created", {"number": 12}),
        ("run.claimed", {"token": 1, "takeover": False}),
        ("recovery.started", {}),
        ("recovery.ended", {"doubts": []}),
        STARTED,
        LAUNCHED,
        ("agent.message", {"text": "looking", "offset": 0}),
        END,
        ("check.started", {"command": "make test"}),
        CHECKED,
        SUCCEEDED,
    )
    entries = list(build_entries(run(started_at=AT + 10), {1: turn()}, [check()], events(*facts)))
    assert kinds(entries) == [
        "start", "state", "message", "message", "iteration", "execute", "message", "result", "signal",
        "execute", "result", "signal", "state", "end",
    ]  # fmt: skip
    assert {entry.run_id for entry in entries} == {12}
    assert [entry.iteration for entry in entries[:5]] == [0, 0, 0, 0, 1]
    assert entries[0].content == "mend it"
    assert entries[0].metadata["primary_agent"] == "claude"
    assert [entry.signal for entry in entries if entry.signal] == ["DONE", "PASS"]
    assert [entry.state for entry in entries if entry.state] == ["working", "completed", "completed"]
    assert (entries[-1].duration, entries[-1].metadata["proof"]) == (100 * 1_000_000, "proved")


def test_the_lines_have_go_s_shape() -> None:
    line = told(LAUNCHED, SUCCEEDED, turns=[turn(spent=Spent(usd_micros=2_000_000))])[1].to_line()
    entry = json.loads(line)
    assert entry.pop("metadata")["cost_usd"] == 2.0
    assert entry == {
        "type": "result",
        "timestamp": "2023-11-14T22:13:22.510Z",
        "run_id": 12,
        "agent": "claude",
        "content": "said in turn 1",
        "duration": 2_500_000_000,
    }


def test_an_execution_tells_the_prompt_of_its_turn() -> None:
    entry = told(LAUNCHED)[0]
    assert (entry.type, entry.agent, entry.content) == ("execute", "claude", "mend it")


def test_a_turn_that_died_with_its_attempt_is_an_error_before_the_next_attempt() -> None:
    entries = told(LAUNCHED, END, ("run.claimed", {"token": 2}), turns=[turn(ended_at=None, exit_code=None)])
    assert kinds(entries) == ["execute", "error", "state"]
    assert entries[1].error == "turn 1 was interrupted"


def test_done_is_no_signal_when_the_turn_failed_nevertheless() -> None:
    entries = told(LAUNCHED, END, ("run.failed", {"failure": "agent_error"}), turns=[turn(failure="agent_error")])
    assert kinds(entries) == ["execute", "result", "error", "state", "end"]


def test_done_in_one_turn_is_not_carried_into_the_next() -> None:
    second = ("turn.launched", {"turn": 2})
    entries = told(LAUNCHED, END, STARTED, second, SUCCEEDED, turns=[turn(1), turn(2)])
    assert [entry.metadata["turn"] for entry in entries if entry.signal] == [1]


def test_an_agent_that_stops_to_wait_for_a_person_is_not_done() -> None:
    waiting = ("run.waiting", {"reason": "approval", "wake_at": None, "detail": "may I?"})
    entries = told(LAUNCHED, ("agent.end", {"reason": "deferred", "text": "deferred"}), waiting)
    assert kinds(entries) == ["execute", "message", "result", "state"]
    assert (entries[-1].state, entries[-1].content) == ("input-required", "may I?")


@pytest.mark.parametrize(
    ("end", "exit_code", "signals"),
    [
        (("run.failed", {"failure": "proof"}), 1, ["FAIL"]),
        (("run.failed", {"failure": "proof"}), None, []),
        (("run.failed", {"failure": "timeout"}), 0, []),
        (("run.cancelled", {"failure": None}), 0, []),
        (("run.succeeded", {"failure": None}), 0, ["PASS"]),
    ],
)
def test_only_a_proof_that_found_something_out_is_a_signal(
    end: tuple[str, dict[str, Any]], exit_code: int | None, signals: list[str]
) -> None:
    entries = told(CHECKED, end, checks=[check(exit_code=exit_code)])
    assert [entry.signal for entry in entries if entry.signal] == signals
    assert [(entry.agent, entry.content) for entry in entries[:2]] == [
        ("host", "make test"),
        ("host", "3 passed"),
    ]


def test_a_proof_that_died_with_its_attempt_is_an_error() -> None:
    entries = told(CHECKED, ("run.claimed", {}), checks=[check(ended_at=None, exit_code=None)])
    assert [entry.error for entry in entries] == ["", "the proof was interrupted", ""]


def test_each_proof_finds_its_own_row_also_when_the_events_of_the_first_were_archived() -> None:
    rows = [check(output="first", started_at=AT), check(output="second", started_at=AT + 15)]
    claimed: tuple[str, dict[str, Any]] = ("run.claimed", {})

    def outputs(*facts: tuple[str, dict[str, Any]]) -> list[str]:
        return [entry.content for entry in told(*facts, checks=rows) if entry.type == "result"]

    assert outputs(CHECKED, claimed, CHECKED, SUCCEEDED) == ["first", "second"]
    assert outputs(claimed, CHECKED, SUCCEEDED) == ["second"]


@pytest.mark.parametrize("kind", ["agent.error", "agent.limit"])
def test_what_the_agent_complains_of_is_an_error(kind: str) -> None:
    entry = told((kind, {"text": "resets 7pm", "resets_at": 5}))[0]
    assert (entry.type, entry.error, entry.agent, entry.metadata["resets_at"]) == (
        "error",
        "resets 7pm",
        "claude",
        5,
    )


@pytest.mark.parametrize(
    ("fact", "content"),
    [
        (("agent.thinking", {"text": "hm"}), "hm"),
        (("agent.call.started", {"tool": "mail", "call": "c"}), "mail"),
        (("agent.usage", {"tokens_input": 3}), ""),
        (("stop.wanted", {"why": "idle", "detail": "too quiet"}), "too quiet"),
        (("call.prepared", {"call": "c", "tool": "mail"}), "mail"),
        (("cancel.requested", {}), ""),
        (("a.kind.of.tomorrow", {"text": 7}), ""),
    ],
)
def test_everything_else_is_a_message_that_keeps_its_data(fact: tuple[str, dict[str, Any]], content: str) -> None:
    entry = told(fact)[0]
    assert (entry.type, entry.content) == ("message", content)
    kept = {name: value for name, value in fact[1].items() if (name, value) != ("text", content)}
    assert entry.metadata == {"seq": 1, "event": fact[0], "actor": entry.metadata["actor"], **kept}


def test_what_happens_during_a_turn_does_not_end_it() -> None:
    stop, request = ("stop.wanted", {"why": "cancel"}), ("cancel.requested", dict[str, Any]())
    assert "result" not in kinds(told(LAUNCHED, stop, request, ("call.done", {"call": "c"})))


def test_a_waiting_run_that_is_answered_and_taken_up_again() -> None:
    facts: list[tuple[str, dict[str, Any]]] = [
        ("run.waiting", {"reason": "limit"}),
        ("run.queued", {"by": "answer"}),
        ("run.claimed", {"token": 2}),
    ]
    assert [entry.state for entry in told(*facts)] == ["submitted", "submitted", "working"]


def test_a_reviewing_turn_moves_the_state_and_each_iteration_is_told_once() -> None:
    turns = [
        ("turn.started", {"turn": number, "role": role, "iteration": iteration})
        for number, role, iteration in [(1, "work", 1), (2, "review", 1), (3, "work", 2)]
    ]
    entries = told(("run.claimed", {}), *turns)
    assert [entry.state for entry in entries if entry.state] == ["working", "reviewing", "working"]
    assert [entry.iteration for entry in entries if entry.type == "iteration"] == [1, 2]


def test_the_fold_asks_for_one_event_at_a_time() -> None:
    pulled = []

    def stream() -> Any:
        for event in events(*[("agent.message", {"text": "x"})] * 5):
            pulled.append(event.seq)
            yield event

    entries = build_entries(run(), {}, [], stream())
    next(entries)
    next(entries)
    assert pulled == [1]


# reading


def lines(count: int) -> list[bytes]:
    return [TranscriptEntry("message", run_id=12, iteration=2, content=f"text {n}").to_line() for n in range(count)]


def test_what_was_written_is_read_back_the_same(tmp_path: Path) -> None:
    entries = told(LAUNCHED, ("agent.message", {"text": "é\ud800\u2028\nx"}), SUCCEEDED)
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"".join(entry.to_line() for entry in entries))
    assert read_transcript(str(path)) == entries


@pytest.mark.parametrize("torn", [b'{"type": "mess', b"\0\0\0\0", b'{"type": "message", "run_id": "x"}'])
def test_a_torn_last_line_is_passed_over(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"".join(lines(2)) + torn)
    assert [entry.content for entry in read_transcript(str(path))] == ["text 0", "text 1"]


def test_a_last_line_that_only_lacks_its_newline_is_read(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"".join(lines(2)).rstrip(b"\n"))
    assert len(read_transcript(str(path))) == 2


@pytest.mark.parametrize("bad", [b"garbage\n", b"[1]\n", b"\xff\xfe\n", b'{"timestamp": "noon"}\n'])
def test_a_bad_line_in_the_middle_is_told_by_its_number_and_the_rest_is_read(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(b"\n".join([lines(1)[0].strip(), b"", bad.strip(), *lines(1)]))
    entries = read_transcript(str(path))
    assert kinds(entries) == ["message", "error", "message"]
    assert entries[1].error.startswith("line 3 of the transcript cannot be read: ")
    assert (entries[1].run_id, entries[1].metadata) == (12, {"line": 3})


def test_an_empty_file_has_no_entries_and_a_missing_one_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    with pytest.raises(UsageError, match="cannot be read"):
        read_transcript(str(path))
    path.write_bytes(b"")
    assert read_transcript(str(path)) == []
