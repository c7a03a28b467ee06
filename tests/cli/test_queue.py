"""`enqueue`, `run --detach`, `hold` and `list --queue`: runs that this command does not work on."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.cli.test_inbox_walk import wait_for_end, wait_for_state
from tests.cli.test_serve import NEVER, read_event, serve, wait_step
from tests.conftest import SLOW_BACKENDS
from tests.support.helpers import wait_until


@pytest.fixture(params=SLOW_BACKENDS)
def any_place(place: Place, request: pytest.FixtureRequest) -> Place:
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    return place


def put(place: Place, *words: str, **more: Any) -> Ended:
    return place.type("enqueue", "--agent", "scripted", "--script", place.script(SAY), *words, **more)


def queue_of(place: Place) -> list[tuple[str, str]]:
    return [(row["id"], row["queue"]["waits"]) for row in place.type("list", "--queue", "--json").rows]


def test_a_queued_run_waits_for_a_service(any_place: Place) -> None:
    ended = put(any_place, "mend it", "--run-id", "r", "--priority", "3")
    assert ended.code == 0, ended
    assert "run r (#1) is queued" in ended.out
    assert "no service is running here: nothing starts it until jackline serve" in ended.out
    assert "jackline logs -f r" in ended.out
    assert any_place.type("show", "r", "--json").json["attempt"] == 0
    assert "ready, priority 3" in any_place.type("show", "r").out
    assert "start it here now: jackline resume r" in any_place.type("show", "r").out
    newest = any_place.type("resume")  # only a named run of the queue is started here
    assert (newest.code, "no run of this repository can be resumed" in newest.err) == (2, True), newest
    assert any_place.type("resume", "r").code == 0
    assert queue_of(any_place) == []


def test_the_queue_is_shown_in_its_order_with_what_each_run_waits_for(any_place: Place) -> None:
    put(any_place, "a", "--run-id", "first")
    put(any_place, "b", "--run-id", "next", "--after", "first")
    put(any_place, "c", "--run-id", "later", "--not-before", "2999-11-01T03:00")
    put(any_place, "d", "--run-id", "kept", "--hold")
    ended = put(any_place, "e", "--run-id", "urgent", "--priority", "9", "--json")
    assert (ended.json["id"], ended.json["new"], ended.json["waits"], ended.json["service"]) == (
        "urgent",
        True,
        "",
        False,
    )
    not_before = "not before 2999-11-01 03:00"
    assert queue_of(any_place) == [
        ("urgent", ""),
        ("first", ""),
        ("next", "after first"),
        ("later", not_before),
        ("kept", "held"),
    ]
    listed = any_place.type("list").out
    for text in ("queued: after first", f"queued: {not_before}", "queued: held"):
        assert text in listed
    plain = any_place.type("list", "--queue")
    assert [line.split("\t")[:3] for line in plain.out.splitlines()][:2] == [
        ["urgent", "5", "ready"],
        ["first", "1", "ready"],
    ]
    assert "no service is running here" in plain.err
    assert any_place.type("hold", "--release", "kept").code == 0
    assert any_place.type("hold", "first", "urgent").code == 0
    assert dict(queue_of(any_place))["kept"] == ""
    assert dict(queue_of(any_place))["urgent"] == "held"


def test_a_failed_dependency_cancels_the_run_at_once_and_later(any_place: Place) -> None:
    put(any_place, "a", "--run-id", "first")
    put(any_place, "b", "--run-id", "next", "--after", "first")
    put(any_place, "c", "--run-id", "last", "--after", "next")
    assert any_place.type("cancel", "first").code == 0
    for run, earlier in (("next", "first"), ("last", "next")):
        shown = any_place.type("show", run, "--json").json
        assert (shown["state"], shown["detail"]) == (
            "cancelled",
            f"it depends on run {earlier}, which was cancelled",
        )
        assert [notice["kind"] for notice in shown["notices"]] == ["run.cancelled"]
    ended = put(any_place, "d", "--run-id", "too-late", "--after", "first,next")
    assert ended.code == 17, ended
    assert "run too-late (#4) is cancelled" in ended.out
    assert "it depends on run first, which was cancelled" in ended.out
    again = put(any_place, "d", "--run-id", "too-late", "--after", "first,next")
    assert (again.code, "run too-late (#4) is already cancelled" in again.out) == (17, True), again


def test_a_run_that_fails_in_the_foreground_cancels_those_behind_it(place: Place) -> None:
    put(place, "a", "--run-id", "first")
    assert place.play({"exit": 1}, words=("--run-id", "fails")).code == 1
    put(place, "b", "--run-id", "next", "--after", "first")
    place.script({"exit": 1})
    bad = place.type("enqueue", "--agent", "scripted", "--script", place.path("script.json"), "--run-id", "bad")
    assert bad.code == 0, bad
    assert put(place, "c", "--run-id", "behind", "--after", "bad").code == 0
    assert place.type("resume", "bad").code == 1
    assert place.type("show", "behind", "--json").json["state"] == "cancelled"
    assert queue_of(place) == [("first", ""), ("next", "after first")]


def test_a_key_creates_one_run(any_place: Place) -> None:
    assert put(any_place, "a", "--run-id", "one", "--dedupe", "nightly").code == 0
    second = put(any_place, "b", "--run-id", "two", "--dedupe", "nightly")
    assert (second.code, "run one (#1) with the key nightly is already queued" in second.out) == (0, True), second
    assert "no other run was created" in second.out
    assert put(any_place, "b", "--dedupe", "nightly", "--json").json["new"] is False
    assert any_place.type("resume", "one").code == 0
    assert put(any_place, "b", "--run-id", "two", "--dedupe", "nightly", "--json").json["new"] is True


BAD_ARGUMENTS = [
    (("--after", "nobody"), "no run matches 'nobody'"),
    (("--not-before", "soon"), "'soon' is not a valid time"),
    (("--not-before", "999999999d"), "'999999999d' is a hundred years from now, or more"),
    (("--dedupe", ""), "--dedupe is empty"),
    (("--dedupe", "x" * 201), "at most 200 printable characters"),
    (("--priority", "1000001"), "between -1000000 and 1000000"),
    (("-j", "2"), "add --each FILE or --batch NAME"),
    (("--each", "nowhere.txt"), "nowhere.txt cannot be read"),
    (("--each", ""), "--each is empty"),
    (("--on-ask", "wait"), "unrecognized arguments"),
]


def test_bad_arguments_are_one_line_and_nothing_is_created(place: Place) -> None:
    for words, why in BAD_ARGUMENTS:
        ended = put(place, "x", *words)
        assert (ended.code, is_one_line(ended), why in ended.err) == (2, True, True), ended
    assert not place.home.exists()


def test_queue_flags_need_a_queue(place: Place) -> None:
    for flag in (("--hold",), ("--priority", "0"), ("--after", "r")):
        ended = place.play(SAY, words=flag)
        assert (ended.code, is_one_line(ended), "jackline enqueue" in ended.err) == (2, True, True), ended
    for flag in (("--hold",), ("--each", "f")):
        ended = place.play(SAY, words=("--detach", *flag))
        assert (ended.code, is_one_line(ended), "needs a running service" in ended.err) == (2, True, True), ended
    ended = place.play(SAY, words=("--detach", "--dry-run", "--each", "f"))
    assert (ended.code, "--dry-run shows one run" in ended.err) == (2, True), ended
    assert place.play(SAY, words=("--detach", "--dry-run", "--priority", "1")).code == 0
    ended = place.play(SAY, words=("--detach", "--on-ask", "wait"))
    assert (ended.code, "--on-ask is for a run in the foreground" in ended.err) == (2, True), ended
    assert place.type("list", "--json").out == ""


def test_a_started_run_cannot_be_held(place: Place) -> None:
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    ended = place.type("hold", "r")
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "run r has succeeded: only a run that has not started can be held or released" in ended.err


# one run for each line


def test_each_line_is_a_run_and_the_same_command_creates_none_twice(any_place: Place) -> None:
    lines = "src/a.py\n\n  src/b {x}.py  \nsrc/a.py\n"
    words = ("Mend {line}.", "--each", "-", "-j", "2", "--run-id", "mend", "--json")
    first = put(any_place, *words, stdin=lines)
    assert first.code == 0, first
    assert [row["prompt"] for row in first.rows] == ["Mend src/a.py.", "Mend src/b {x}.py.", "Mend src/a.py."]
    second = put(any_place, *words, stdin=f"src/new.py\n{lines}")
    assert [row["new"] for row in second.rows] == [True, False, False, False]
    assert [row["id"] for row in second.rows[1:]] == [row["id"] for row in first.rows]
    queued = any_place.type("list", "--queue", "--json").rows
    assert [row["prompt"] for row in queued][:3] == [row["prompt"] for row in first.rows]
    assert {(row["queue"]["batch"], row["queue"]["batch_slots"]) for row in queued} == {("mend", 2)}
    plain = put(any_place, *words[:-1], stdin=lines)
    assert plain.out.startswith(f"{first.rows[0]['id']}\t#1\tqueued\tMend src/a.py.\n")
    assert "0 runs created; 3 existed" in plain.err


def test_objects_give_variables_and_fields(place: Place) -> None:
    (place.folder / "other").mkdir()
    place.task("review", "---\nvar.by: nobody\n---\nReview {file} by {by}.\n")
    objects = [{"file": "a", "by": True}, {"file": 7, "prompt": "Go {on}."}]
    text = "\n".join(json.dumps(one, indent=2) for one in objects)
    words = ("--task", "review", "--each", "-", "--json", "--dedupe", "k")
    ended = put(place, *words, stdin=text)
    assert ended.code == 0, ended
    assert [row["prompt"] for row in ended.rows] == ["Review a by true.", "Review 7 by nobody.\n\nGo {on}."]
    assert [row["new"] for row in ended.rows] == [True, True]
    again = put(place, *words, stdin=text)
    assert [(row["id"], row["new"]) for row in again.rows] == [(row["id"], False) for row in ended.rows]
    elsewhere = {"prompt": "Go.", "workspace": str(place.folder / "other")}
    ended = put(place, "--each", "-", "--json", stdin=json.dumps(elsewhere))
    assert (ended.json["prompt"], ended.json["repository"]) == ("Go.", elsewhere["workspace"])


def test_a_line_is_the_prompt_and_follows_one_without_a_place(place: Place) -> None:
    path = place.folder / "lines.txt"
    path.write_text("one\r\n$(touch never)\r\n")
    ended = put(place, "--each", str(path), "--json")
    assert [row["prompt"] for row in ended.rows] == ["one", "$(touch never)"]
    ended = put(place, "Do this:", "--each", str(path), "--json")
    assert [row["prompt"] for row in ended.rows] == ["Do this:\n\none", "Do this:\n\n$(touch never)"]


BAD_INPUT = [
    ('{"line": "a"}\n{"line": \n', ("line 2: it begins with a brace",)),
    ('{"nope": 1}\nfine\n', ("line 1: the prompt does not use 'nope'",)),
    ('fine\n{"line": "a", "workspace": "/nowhere"}\n', ("line 2: /nowhere is not a folder",)),
    ('fine\n{"line": "a", "agent": "nobody"}\n', ("line 2: ", "nobody")),
    ("\n \n", ("stdin has no lines",)),
    ("".join(f'{{"x{number}": 1}}\n' for number in range(9)), ("line 5: ", "and 4 more")),
]


def test_bad_input_is_reported_by_line_before_anything_is_created(place: Place) -> None:
    for text, why in BAD_INPUT:
        ended = put(place, "Mend {line}.", "--each", "-", stdin=text)
        assert (ended.code, is_one_line(ended)) == (2, True), ended
        for words in (*why, "nothing was created"):
            assert words in ended.err
    assert not place.home.exists()


def test_the_prompt_and_the_lines_cannot_both_be_stdin(place: Place) -> None:
    ended = put(place, "-", "--each", "-", stdin="x\n")
    assert (ended.code, "cannot both come from stdin" in ended.err) == (2, True), ended


def test_a_crash_after_the_runs_were_created_costs_nothing(place: Place) -> None:
    words = ("--each", "-", "--run-id", "mend", "--json")
    assert put(place, *words, stdin="a\nb\n", environ={"JACKLINE_CRASH_AT": "run.created"}).code == -signal.SIGKILL
    again = put(place, *words, stdin="a\nb\n")
    assert [(row["prompt"], row["new"]) for row in again.rows] == [("a", False), ("b", False)]
    assert len(queue_of(place)) == 2


# with a service, and without


def test_a_running_service_takes_a_detached_run_when_its_turn_comes(any_place: Place) -> None:
    place = any_place
    service = serve(place, environ={"JACKLINE_POLL_SECONDS": NEVER})
    assert "starts it after jackline hold --release first" in put(place, "a", "--run-id", "first", "--hold").out
    detached = place.play(SAY, words=("--detach", "--run-id", "second", "--after", "first"))
    assert (detached.code, "run second (#2) is queued, after first" in detached.out) == (0, True), detached
    assert "a running service starts it" in detached.out
    assert place.type("hold", "--release", "first").code == 0
    assert [read_event(service, "ended")["run"] for _ in range(2)] == ["first", "second"]
    put(place, "b", "--run-id", "third", "--not-before", "2h")
    put(place, "c", "--run-id", "fourth", "--after", "third")
    assert place.type("cancel", "third").code == 0
    shown = place.type("show", "fourth", "--json").json
    assert (shown["state"], shown["attempt"]) == ("cancelled", 0)
    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0


def test_variables_that_a_service_would_not_pass_on_are_refused(place: Place) -> None:
    service = serve(place)
    keys = place.folder / "keys.env"
    keys.write_text("ROSE=1\n")
    keys.chmod(0o600)
    ended = place.play(SAY, words=("--detach", "--env-file", str(keys)))
    assert (ended.code, is_one_line(ended), "`env_file` in your config.toml" in ended.err) == (2, True, True), ended
    assert queue_of(place) == []
    service.send_signal(signal.SIGTERM)
    assert service.wait(60) == 0


def test_a_detached_run_whose_command_dies_is_taken_by_the_next_service(place: Place) -> None:
    ended = place.play(SAY, words=("--detach", "--run-id", "r"), environ={"JACKLINE_CRASH_AT": "run.created"})
    assert ended.code == -signal.SIGKILL
    assert queue_of(place) == [("r", "")]
    assert place.type("serve", "--once").code == 0
    assert place.type("show", "r", "--json").json["state"] == "succeeded"


def test_a_detached_run_survives_the_shell_that_started_it(place: Place) -> None:
    steps = ({"touch": place.path("on")}, {"wait_for": place.path("go")}, SAY)
    words = ["run", "--agent", "scripted", "--script", place.script(*steps), "--detach", "--run-id", "r", "--json"]
    command = " ".join([sys.executable, "-m", "jackline", *words])
    shell = place.execute(["/bin/sh", "-c", f"{command}; echo; kill -9 0"], start_new_session=True)
    ended = place.end_of(shell)
    assert ended.code == -signal.SIGKILL
    said = json.loads(ended.out.splitlines()[0])
    assert (said["service"], said["state"], said["problem"]) == (False, "running", None)
    place.wait_for("on")
    place.let_go("go")
    assert wait_for_state(place, "r", "succeeded")["attempt"] == 1
    wait_for_end(said["pid"])
    assert os.path.exists(said["log"])


def test_a_service_that_ends_before_a_detached_run_exists_does_not_strand_it(place: Place) -> None:
    service, script = serve(place), place.folder / "script.pipe"
    os.mkfifo(script)
    command = place.start("run", "--agent", "scripted", "--script", str(script), "--detach", "--run-id", "r", "hello")
    with open(script, "w", encoding="utf-8") as pipe:  # the command has seen the service
        service.send_signal(signal.SIGTERM)
        assert service.wait() == 0
        pipe.write(Path(place.script(SAY)).read_text(encoding="utf-8"))
    detached = place.end_of(command)
    assert (detached.code, "run r (#1) started in the background" in detached.out) == (0, True), detached
    assert place.type("logs", "-f", "r").code == 0
    assert place.type("show", "r", "--json").json["state"] == "succeeded"


def test_a_detached_run_that_cannot_start_stays_queued(place: Place) -> None:
    (place.home / "runs" / "r" / "background.log").mkdir(parents=True)
    ended = place.play(SAY, words=("--detach", "--run-id", "r"))
    assert (ended.code, is_one_line(ended), "run r stays queued" in ended.err) == (1, True, True), ended
    assert queue_of(place) == [("r", "")]
    (place.home / "runs" / "r" / "background.log").rmdir()
    ended = place.play(SAY, words=("--detach", "--run-id", "r"))  # the same command starts it now
    assert (ended.code, "run r (#1) started in the background" in ended.out) == (0, True), ended
    wait_for_state(place, "r", "succeeded")


def test_a_detached_run_with_the_key_of_a_held_one_starts_nothing(place: Place) -> None:
    put(place, "a", "--run-id", "kept", "--hold", "--dedupe", "k")
    ended = place.play(SAY, words=("--detach", "--dedupe", "k"))
    assert (ended.code, "run kept (#1) with the key k is already queued, held" in ended.out) == (0, True), ended
    assert queue_of(place) == [("kept", "held")]
    assert "all are held: jackline hold --release RUN" in place.type("list", "--queue").err


def test_a_command_names_the_runs_that_an_earlier_one_held(place: Place) -> None:
    words = ("do {line}", "--each", "-", "--run-id", "r")
    assert (
        "them until jackline serve and jackline hold --release RUN" in put(place, *words, "--hold", stdin="a\nb\n").out
    )
    assert "them until jackline serve and jackline hold --release RUN" in put(place, *words, stdin="a\nb\n").out
    more = put(place, *words, stdin="a\nb\nc\n").out
    assert "them until jackline serve, and held ones after jackline hold --release RUN" in more


def test_a_run_whose_folder_is_gone_is_not_spent_by_a_resume(place: Place) -> None:
    (place.folder / "gone").mkdir()
    put(place, "a", "--run-id", "first", "--workspace", str(place.folder / "gone"))
    put(place, "b", "--run-id", "second", "--after", "first")
    (place.folder / "gone").rmdir()
    ended = place.type("resume", "first")
    assert (ended.code, is_one_line(ended), "jackline cancel first" in ended.err) == (2, True, True), ended
    assert queue_of(place) == [("first", ""), ("second", "after first")]


def test_a_queued_run_says_that_its_folder_is_busy_or_gone(place: Place) -> None:
    working = place.start_playing(*wait_step(place), words=("--run-id", "works"))
    place.wait_for("one.begun")
    put(place, "a", "--run-id", "next")
    assert queue_of(place) == [("next", "works works in the same folder")]
    place.let_go("one.go")
    assert place.end_of(working).code == 0
    assert queue_of(place) == [("next", "")]
    assert place.type("cancel", "next").code == 0
    (place.folder / "gone").mkdir()
    put(place, "a", "--run-id", "first", "--workspace", str(place.folder / "gone"))
    (place.folder / "gone").rmdir()
    assert place.type("serve", "--once").code == 0
    ((_, wait),) = queue_of(place)
    assert (wait.startswith("cannot start: "), "does not exist" in wait) == (True, True), wait
    assert wait in place.type("show", "first").out


def test_a_program_that_is_missing_here_is_reported_at_once(place: Place) -> None:
    ended = place.type("enqueue", "a", "--agent", "codex", "--ungated")
    assert (ended.code, "codex" in ended.err, "ignore this if" in ended.err) == (0, True, True), ended


def test_the_dashboard_shows_the_time_of_a_wait_in_utc(place: Place) -> None:
    put(place, "a", "--run-id", "later", "--not-before", "2999-11-01T03:00", environ={"TZ": "America/New_York"})
    assert "not before 2999-11-01 07:00:00" in (place.home / "dashboard.md").read_text()


def test_a_queued_run_whose_agent_rests_shows_the_reset(place: Place) -> None:
    place.play({"limit": {"resets_in": 3600}})
    put(place, "a", "--run-id", "later")
    (wait,) = [why for run_id, why in queue_of(place) if run_id == "later"]
    assert wait.startswith("limit until ")
    assert wait in place.type("list").out
    assert wait in place.type("show", "later").out
    detached = place.play({"limit": {"resets_in": 3600}}, words=("--detach", "--run-id", "now", "--share-workspace"))
    assert "started in the background" in detached.out  # a person wants it now
    wait_until(lambda: place.type("show", "now", "--json").json["reason"] == "limit", 60)
