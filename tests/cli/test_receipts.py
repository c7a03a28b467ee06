"""`jackline receipts`: every effect of a run, with the evidence that it happened."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.cli.place import EFFECT_RULE, SAY, SEND, SEND_FAILS, Place, is_one_line

TO_EVE = {"call": {"tool": "send", "input": {"to": "eve"}, "run": ["echo", "message-7"], "external_id": "{stdout}"}}
STRANGE = {"call": {"tool": "dance", "input": {}, "run": "true"}}


def _played(place: Place, *steps: dict[str, Any]) -> None:
    place.play(*steps, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "r"))


def test_every_effect_is_a_row_with_what_shows_it(place: Place) -> None:
    _played(place, SEND, SEND, TO_EVE, SAY)
    ended = place.type("receipts", "r", "--format", "md")
    assert ended.code == 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in ended.out.splitlines() if line[0:1] == "|"]
    first = rows[2][-1]
    assert [(row[1], row[2], row[4]) for row in rows[2:]] == [
        ("claimed", "send to=ada", "mail:ada"),
        (f"replayed {first}", "send to=ada", "mail:ada"),
        ("confirmed", "send to=eve", "mail:eve"),
    ]
    assert rows[4][5].endswith("message-7")


def test_in_a_pipe_each_effect_is_a_complete_line(place: Place) -> None:
    _played(place, SEND, SEND, TO_EVE, SAY)
    rows = [line.split("\t") for line in place.type("receipts", "r").out.splitlines()]
    assert [(row[1], row[2], row[4]) for row in rows] == [
        ("claimed", "send to=ada", "mail:ada"),
        (f"replayed {rows[0][-1]}", "send to=ada", "mail:ada"),
        ("confirmed", "send to=eve", "mail:eve"),
    ]
    assert rows[2][5].endswith("message-7")


def test_on_a_terminal_they_are_a_table_that_fits(place: Place) -> None:
    _played(place, SEND, TO_EVE, SAY)
    command = f"stty cols 80; {sys.executable} -m jackline receipts r --no-color"
    lines = place.end_of(place.execute(["script", "-qec", command, "/dev/null"])).out.replace("\r", "").splitlines()
    assert lines[0].split() == ["CALL", "STATUS", "TIME", "TOOK", "TARGET", "WHAT"]
    assert [line.split()[1] for line in lines[1:3]] == ["claimed", "confirmed"]
    assert "claimed: reported by the tool, without other evidence" in lines
    assert max(map(len, lines[:3])) <= 80


def test_json_comes_by_either_flag(place: Place) -> None:
    _played(place, TO_EVE, SAY)
    by_format, by_flag = place.type("receipts", "r", "--format", "json"), place.type("receipts", "r", "--json")
    assert by_format.json == by_flag.json
    (effect,) = by_flag.json["effects"]
    assert (effect["status"], effect["target"], effect["attempt"]) == ("confirmed", "mail:eve", 1)
    assert len(effect["key"]) == 64
    assert place.type("receipts", "r", "--format", "md", "--json").out.startswith("# Receipts of run r")


def test_a_doubt_and_then_a_person_s_word(place: Place) -> None:
    _played(place, SEND_FAILS, SAY)
    (effect,) = place.type("receipts", "r", "--json").json["effects"]
    assert effect["status"] == "in doubt"
    assert place.type("answer", "r", effect["call"], "happened").code == 0
    (effect,) = place.type("receipts", "r", "--json").json["effects"]
    assert (effect["status"], effect["evidence"]) == ("confirmed", "person")


def test_a_run_without_effects_says_so(place: Place) -> None:
    _played(place, STRANGE, SAY)
    ended = place.type("receipts", "r")
    assert (ended.code, ended.out, ended.err) == (0, "", "this run has no effects\n")
    assert "This run has no effects." in place.type("receipts", "r", "--format", "md").out
    assert place.type("receipts", "r", "--json").json["effects"] == []


def test_a_run_that_is_not_there_is_one_line(place: Place) -> None:
    refused = place.type("receipts", "r")
    assert (refused.code, is_one_line(refused)) == (2, True)
    assert place.type("receipts", "r", "--format", "pdf").code == 2


def test_the_end_of_a_run_tells_how_its_calls_came_out(place: Place) -> None:
    ended = place.play(
        SEND, SEND, SEND_FAILS, STRANGE, SAY, words=("--policy", place.policy(EFFECT_RULE), "--run-id", "r")
    )
    assert "2 tool calls, 2 replayed, " in ended.out
    shown = place.type("show", "r", "--json").json["completion"]
    assert (shown["tools"], shown["replayed"], shown["receipts"]) == (2, 2, 1)
    folder = place.home / "runs" / "r"
    assert json.loads((folder / "manifest.json").read_bytes())["metadata"]["completion"] == shown
    assert "2 tool calls, 2 replayed" in (folder / "summary.txt").read_text()


def test_a_call_that_waits_for_a_word_is_not_shown_as_denied(place: Place) -> None:
    rule = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
    place.play(SEND, words=("--policy", place.policy(rule), "--run-id", "r"))
    lines = [line.split("\t") for line in place.type("show", "r").out.splitlines() if "\tsend\t" in line]
    assert [(line[3], line[4]) for line in lines] == [("asked", "ask")]
    (asked,) = place.type("show", "r", "--json").json["calls"]
    place.type("answer", "r", asked["id"], "deny")
    lines = [line.split("\t") for line in place.type("show", "r").out.splitlines() if "\tsend\t" in line]
    assert [(line[3], line[5]) for line in lines] == [("denied", "deny")]


def test_an_approved_call_is_not_shown_as_denied(place: Place) -> None:
    rule = EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"')
    place.play(SEND, words=("--policy", place.policy(rule), "--run-id", "r"))
    (asked,) = place.type("show", "r", "--json").json["calls"]
    assert place.type("answer", "r", asked["id"], "allow", "--resume").code == 0
    lines = [line.split("\t") for line in place.type("show", "r").out.splitlines() if "\tsend\teffect\t" in line]
    assert [line[3] for line in lines] == ["approved", "done"]
    assert "\nstate      approved\n" in place.type("show", "r", "--call", asked["id"]).out


def test_the_page_of_a_stopped_run_has_the_packet(place: Place) -> None:
    _played(place, TO_EVE, SEND_FAILS, SAY)
    text = (place.home / "runs" / "r" / "RESUME.md").read_text()
    assert "## The agent's prompt when it continues" in text
    assert "mail:eve (message-7)" in text
    assert "jackline resume r" in text


def test_a_large_output_is_a_file_in_the_run_s_folder(place: Place) -> None:
    big = {"call": {"tool": "send", "input": {"to": "ada"}, "run": ["sh", "-c", "yes 0123456789 | head -c 40000"]}}
    _played(place, big, SAY)
    (call,) = place.type("show", "r", "--json").json["calls"]
    kept = place.home / "runs" / "r" / "contents" / f"{call['output_ref']}.txt"
    assert len(kept.read_bytes()) >= 39_999
    assert kept.read_text().startswith(call["output"])
    kept.write_text("damaged")
    assert place.type("export", "r").code == 0
    assert len(kept.read_bytes()) >= 39_999
