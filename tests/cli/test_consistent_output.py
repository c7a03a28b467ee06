"""`run`, `list`, `show`, `logs` and `export` agree about a run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.cli.place import EFFECT_RULE, SAY, SEND, Place

STEPS = (SAY, {"usage": {"input": 100, "output": 50, "usd": 0.02}}, SEND, {"say": "all done"})


def test_five_commands_agree_about_a_run(place: Place) -> None:
    words = ("--policy", place.policy(EFFECT_RULE), "--proof", "true", "--task", place.task("greet"), "--json")
    run = place.play(*STEPS, words=words).json
    listed = place.type("list", "--json").rows
    shown = place.type("show", run["id"], "--json").json
    assert len(listed) == 1
    shared = set(run) & set(listed[0])
    assert {"id", "number", "state", "exit_code", "tokens", "cost_usd", "folder", "proof"} <= shared
    assert {name: run[name] for name in shared} == {name: listed[0][name] for name in shared}
    assert {name: run[name] for name in run} == {name: shown[name] for name in run}
    assert (run["number"], run["tokens"], run["cost_usd"], run["task"]) == (1, 150, 0.02, "greet")
    assert run["folder"] == str(place.home / "runs" / run["id"])


def test_show_has_the_whole_story(place: Place) -> None:
    run = place.play(*STEPS, words=("--policy", place.policy(EFFECT_RULE), "--proof", "true", "--json")).json
    shown = place.type("show", run["id"], "--json").json
    assert [one["outcome"] for one in shown["attempts"]] == ["succeeded"]
    assert [one["last_message"] for one in shown["turns"]] == ["all done"]
    assert [(one["tool"], one["call_class"], one["state"]) for one in shown["calls"]] == [("send", "effect", "done")]
    assert [one["target"] for one in shown["receipts"]] == ["mail:ada"]
    assert [one["exit_code"] for one in shown["checks"]] == [0]
    assert [one["kind"] for one in shown["notices"]] == ["run.succeeded"]
    assert shown["created_at"].endswith("Z")
    assert shown["life"]["state"] == "succeeded"
    assert json.loads(shown["spec"]["options"]["script"])["steps"] == list(STEPS)
    text = place.type("show", run["id"]).out
    for word in (
        "succeeded, proved",
        "mail:ada",
        "all done",
        "150",
        "$0.02",
        run["folder"],
        "run.succeeded",
    ):
        assert word in text


def test_raw_logs_are_the_bytes_of_the_agent(place: Place) -> None:
    noise = {"garbage": {"kind": "binary", "bytes": 5000, "newline": False}}
    errors = {"garbage": {"kind": "lines", "bytes": 100, "stream": "stderr"}}
    run = place.play(SAY, noise, errors, words=("--json",)).json
    turns = Path(run["folder"]) / "turns"
    for words, name in ((("logs", run["id"], "--raw"), "stdout"), (("logs", run["id"], "--stderr"), "stderr")):
        reader, writer = os.pipe()
        process = place.start(*words, stdout=writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            read = file.read()
        assert process.wait() == 0
        assert read == (turns / f"0001-work.{name}").read_bytes()
        assert read


def test_events_as_text_and_as_json(place: Place) -> None:
    run = place.play(SAY, words=("--json",)).json
    events = place.type("logs", run["id"], "--events", "--json").rows
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[0]["kind"] == "run.created"
    assert events[-1]["kind"] == "run.succeeded"
    assert {"kind": "agent.message", "text": "hello"} in [
        {"kind": event["kind"], "text": event["data"].get("text")} for event in events
    ]
    lines = place.type("logs", run["id"], "--events").out.splitlines()
    assert len(lines) == len(events)


def test_following_ends_with_the_run(place: Place) -> None:
    running = place.start_playing(SAY, {"touch": place.path("on")}, {"wait_for": place.path("go")}, {"say": "late"})
    place.wait_for("on")
    following = place.start("logs", "-f")
    raw = place.start("logs", "-f", "--raw", "1")
    events = place.start("logs", "-f", "--events", "1")
    assert following.stdout is not None
    assert raw.stdout is not None
    assert following.stdout.readline().startswith("-- turn 1")  # they read while the agent still works
    assert "session" in raw.stdout.readline()
    place.let_go("go")
    assert place.end_of(running).code == 0
    followed = place.end_of(following)
    assert (followed.code, followed.out.splitlines()[-2:]) == (0, ["scripted: late", "run: succeeded"])
    assert '"text": "late"' in place.end_of(raw).out
    assert "run.succeeded" in place.end_of(events).out


def test_export_writes_the_files_again(place: Place) -> None:
    run = place.play(SAY, words=("--json",)).json
    manifest = Path(run["folder"]) / "manifest.json"
    before = manifest.read_bytes()
    manifest.unlink()
    assert place.type("export", run["id"]).out.strip() == run["folder"]
    assert manifest.read_bytes() == before
    assert place.type("export", run["id"], "--json").json == {"id": run["id"], "folder": run["folder"]}


def test_the_summary_says_what_to_type_next(place: Place) -> None:
    ended = place.play(SAY, {"exit": 1})
    run = place.type("list", "--json").rows[0]["id"]
    assert f"run {run} (#1) failed: agent_error" in ended.out
    assert f"jackline resume {run}" in ended.out
    assert ended.err.splitlines() == ["turn 1 started", "  hello"]


def test_the_printed_command_keeps_the_home_flag(place: Place) -> None:
    ended = place.play(SAY, words=("--home", place.path("another home")))
    run = place.type("--home", place.path("another home"), "list", "--json").rows[0]["id"]
    assert f"jackline show {run} --home '{place.path('another home')}'" in ended.out
    assert place.type("list", "--json").rows == []
