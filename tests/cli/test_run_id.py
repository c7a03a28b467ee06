"""`--run-id` is idempotent: the same arguments give the same run, others are a conflict."""

from __future__ import annotations

import signal

from tests.cli.place import SAY, Place, is_one_line

WORDS = ("--run-id", "nightly", "--json")


def test_a_run_that_ended_is_reported_and_not_run_again(place: Place) -> None:
    step = {"edit": {"path": "count.txt", "append": "x"}}
    first, second = (place.play(step, {"exit": 4}, words=WORDS) for _ in range(2))
    assert (first.code, second.code) == (1, 1)
    assert first.json == second.json
    assert (place.repository / "count.txt").read_text() == "x"


def test_other_arguments_are_a_conflict(place: Place) -> None:
    assert place.play(SAY, words=WORDS).code == 0
    ended = place.play(SAY, words=(*WORDS, "--proof", "true"))
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert ended.json["exit_code"] == 2
    assert "nightly" in ended.json["error"]


def test_a_run_that_waits_is_continued(place: Place) -> None:
    steps = ({"limit": {"resets_in": 5000}, "when": {"attempt": 1}}, SAY)
    assert place.play(*steps, words=WORDS).code == 10
    ended = place.play(*steps, words=WORDS)
    assert (ended.code, ended.json["attempt"]) == (0, 2)


def test_a_run_whose_supervisor_died_is_continued(place: Place) -> None:
    steps = ({"touch": place.path("on")}, {"hang": True, "when": {"attempt": 1}}, SAY)
    running = place.start_playing(*steps, words=WORDS)
    place.wait_for("on")
    running.send_signal(signal.SIGKILL)
    assert place.end_of(running).code == -signal.SIGKILL
    ended = place.play(*steps, words=WORDS)
    assert (ended.code, ended.json["attempt"]) == (0, 2)


def test_a_run_that_is_worked_on_elsewhere_is_busy(place: Place) -> None:
    steps = ({"touch": place.path("on")}, {"wait_for": place.path("go")})
    running = place.start_playing(*steps, words=WORDS)
    place.wait_for("on")
    for words in (("resume", "nightly"), ("answer", "nightly", "x", "skip")):
        ended = place.type(*words)
        assert (ended.code, is_one_line(ended)) == (2 if words[0] == "answer" else 1, True), ended
    ended = place.play(*steps, words=WORDS)
    assert (ended.code, "being worked on" in ended.err) == (1, True), ended
    place.let_go("go")
    assert place.end_of(running).code == 0


def test_resume_reopens_a_failed_run_and_reports_a_succeeded_one(place: Place) -> None:
    assert place.play({"exit": 1, "when": {"attempt": 1}}, SAY, words=WORDS).code == 1
    again = place.type("resume", "nightly", "--json")
    assert (again.code, again.json["attempt"]) == (0, 2)
    assert place.type("resume", "nightly", "--json") == again


def test_cancel_ends_a_run_without_a_worker(place: Place) -> None:
    assert place.play({"limit": {}}, words=WORDS).code == 10
    assert place.type("cancel", "nightly").out.startswith("run nightly (#1) cancelled")
    for words in (("cancel", "nightly"), ("resume", "nightly")):
        refused = place.type(*words)
        assert (refused.code, is_one_line(refused)) == (2, True)


def test_cancel_ends_a_run_whose_supervisor_died(place: Place) -> None:
    running = place.start_playing({"touch": place.path("on")}, {"hang": True}, words=WORDS)
    place.wait_for("on")
    running.kill()
    running.wait()
    ended = place.type("cancel", "nightly", "--json")
    assert (ended.code, ended.json["state"]) == (0, "cancelled")


def test_cancel_without_waiting_only_asks(place: Place) -> None:
    steps = ({"ignore": ["SIGTERM"]}, {"touch": place.path("on")}, {"hang": True})
    running = place.start_playing(*steps, words=(*WORDS, "--grace-seconds", "1"))
    place.wait_for("on")
    asked = place.type("cancel", "nightly", "--no-wait", "--json")
    assert (asked.code, asked.json["cancel_requested"]) == (0, True)
    assert place.end_of(running).code == 17
