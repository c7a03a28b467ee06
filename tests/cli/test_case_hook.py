"""`jackline case hook claude`: prints the case, bounded, or nothing; the exit code is always 0."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.cli.place import SAY, Ended, Place

COMPACTED = {"hook_event_name": "SessionStart", "source": "compact"}
FULL = {"hook_event_name": "PreCompact", "trigger": "auto"}
MOST_BYTES = 8_000
SILENT = (0, "", "")


@pytest.fixture
def noted(place: Place) -> Place:
    """A case with an open hypothesis."""
    assert place.type("case", "start", "why is it slow?", "--skip-intake").code == 0
    assert place.type("case", "hypothesis", "add", "the cache is cold").code == 0
    return place


def remind(place: Place, fields: object, **environ: str) -> Ended:
    words = fields if isinstance(fields, str) else json.dumps(fields)
    return place.type("case", "hook", "claude", stdin=words, environ=environ)


def context(ended: Ended) -> str:
    said: dict[str, Any] = json.loads(ended.out)["hookSpecificOutput"]
    assert said["hookEventName"] == "SessionStart"
    return str(said["additionalContext"])


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_the_case_is_given_back(noted: Place, source: str) -> None:
    ended = remind(noted, {**COMPACTED, "source": source})
    assert (ended.code, ended.err) == (0, "")
    assert "H001 the cache is cold" in context(ended)
    assert "why is it slow?" in context(ended)


def test_before_a_compaction_the_hook_names_what_need_not_be_kept(noted: Place) -> None:
    ended = remind(noted, FULL)
    case = noted.type("case", "status", "--json").json["id"]
    assert (ended.code, ended.err) == (0, "")
    assert f"jackline keeps the case {case}" in ended.out


@pytest.mark.parametrize("fields", [COMPACTED, FULL])
def test_without_a_case_nothing_is_printed_or_created(place: Place, fields: dict[str, str]) -> None:
    ended = remind(place, fields)
    assert (ended.code, ended.out, ended.err) == SILENT
    assert not place.home.exists()


@pytest.mark.parametrize(
    "words",
    ["", "nonsense", "[]", "null", '{"hook_event_name": "SessionStart", "source": "startup"}', "[" * 100_000, "\x00"],
)
def test_invalid_input_gets_no_answer(noted: Place, words: str) -> None:
    ended = remind(noted, words)
    assert (ended.code, ended.out, ended.err) == SILENT


def test_unreadable_data_prints_nothing(noted: Place) -> None:
    ended = noted.end_of(noted.execute(["/bin/sh", "-c", '"$0" -m jackline case hook claude <&-', sys.executable]))
    assert (ended.code, ended.out, ended.err) == SILENT


def test_a_closed_case_is_not_given_back(noted: Place) -> None:
    assert noted.type("case", "close", "--summary", "x", "--force", "enough").code == 0
    assert remind(noted, COMPACTED).out == ""


def test_it_is_bounded_and_the_open_hypothesis_is_in_it_all_the_same(place: Place) -> None:
    assert place.type("case", "start", "wörds " * 2_000, "--skip-intake").code == 0
    for number in range(30):
        assert place.type("case", "hypothesis", "add", f"reason {number}: {'ä' * 300}").code == 0
    told = context(remind(place, COMPACTED))
    assert MOST_BYTES / 2 < len(told.encode()) <= MOST_BYTES
    assert "H030 reason 29" in told
    assert told.count("(`jackline case handoff` prints the rest)") == 1, "of the request"
    assert "jackline case close" in told, "the end of the page is there, too"


def test_inside_a_run_it_is_the_case_of_the_run(noted: Place) -> None:
    """Another one is active for the person in the same repository."""
    assert noted.play(SAY, words=("--run-id", "r1")).code == 0
    assert remind(noted, COMPACTED, JACKLINE_RUN="r1").out == ""
    inside = {"JACKLINE_RUN": "r1"}
    assert noted.type("case", "start", "its own", "--skip-intake", environ=inside).code == 0
    told = context(remind(noted, COMPACTED, **inside))
    assert ("its own" in told, "cache" in told) == (True, False)


def test_a_run_that_is_not_known_is_no_error_to_the_session(noted: Place) -> None:
    ended = remind(noted, COMPACTED, JACKLINE_RUN="elsewhere")
    assert (ended.code, ended.out) == (0, "")
