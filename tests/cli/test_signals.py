"""Signals to `jackline run`: it parks once, prints the exact resume command, and leaves no process behind."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from jackline.store.open import open_store
from tests.cli.place import EFFECT_RULE, SAY, SEND_FAILS, Place

WORDS = ("--run-id", "r")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
def test_a_signal_parks_the_run_and_names_the_command_to_go_on(place: Place, number: signal.Signals) -> None:
    steps = ({"touch": place.path("on")}, {"hang": True, "when": {"attempt": 1}}, SAY)
    running = place.start_playing(*steps, words=WORDS)
    place.wait_for("on")
    running.send_signal(number)
    ended = place.end_of(running)
    assert (ended.code, "waiting: paused" in ended.out) == (130, True), ended
    command = re.search(r"continue: jackline (resume r)$", ended.out, re.MULTILINE)
    assert command, ended.out
    assert "Traceback" not in ended.err
    assert "jackline resume r" in (Path(place.home) / "runs" / "r" / "RESUME.md").read_text()
    store = open_store(str(place.home / "state.sqlite"), create=False)
    assert [one.kind for one in store.records.list_checkpoints("r")][-1] == "interrupt"
    store.close()
    assert place.type(*shlex.split(command[1])).code == 0


def test_a_process_in_the_background_that_is_told_to_end_leaves_the_run_due_at_once(place: Place) -> None:
    """A machine that shuts down is no person who pauses the run."""
    steps = ({"touch": place.path("on")}, {"hang": True, "when": {"attempt": 1}}, SAY)
    running = place.start_playing(*steps, words=WORDS, environ={"JACKLINE_DETACHED": "1"})
    place.wait_for("on")
    running.send_signal(signal.SIGTERM)
    ended = place.end_of(running)
    assert (ended.code, "waiting: retry" in ended.out) == (130, True), ended
    shown = place.type("show", "r", "--json").json
    assert shown["detail"] == "its process was shut down"
    assert place.type("resume", "r").code == 0


def test_pressing_again_changes_nothing(place: Place) -> None:
    steps = ({"ignore": ["SIGTERM", "SIGINT"]}, {"touch": place.path("on")}, {"hang": True})
    running = place.start_playing(*steps, words=(*WORDS, "--grace-seconds", "1", "--json"))
    place.wait_for("on")
    for _ in range(5):
        running.send_signal(signal.SIGINT)
    ended = place.end_of(running)
    assert (ended.code, ended.json["reason"]) == (130, "paused")
    events = place.type("logs", "r", "--events", "--json").rows
    assert [event["kind"] for event in events].count("stop.wanted") == 1


def test_interrupted_while_it_waits_for_a_retry(place: Place) -> None:
    step = {"error": {"class": "connectivity", "detail": "no route"}}
    running = place.start_playing(step, words=(*WORDS, "--retry-seconds", "1000"))
    assert running.stderr is not None
    assert any("error: no route" in line for line in running.stderr), "it ended without reporting the failure"
    running.send_signal(signal.SIGTERM)  # at the end of the attempt, or in the wait: both lead out at once
    ended = place.end_of(running)
    assert (ended.code, "jackline resume r" in ended.out) == (130, True)


def test_interrupted_before_anything_started(place: Place) -> None:
    """It waits for the prompt on standard input, which never comes."""
    program = (
        "import os, sys; from jackline.cli.main import main; real = sys.stdin.buffer\n"
        "class Slow:\n"
        "    class buffer:\n"
        "        def read(size):\n"
        "            print('reading', flush=True); return real.read(size)\n"
        "sys.stdin = Slow; sys.exit(main(['run', '-', '--script', sys.argv[1]]))"
    )
    running = place.python(program, place.script(SAY), stdin=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == "reading\n"
    running.send_signal(signal.SIGINT)
    ended = place.end_of(running)
    assert (ended.code, ended.err) == (130, "jackline: interrupted\n")
    assert not place.home.exists()


def test_nohup_is_respected(place: Place) -> None:
    program = (
        "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from jackline.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    script = place.script({"touch": place.path("on")}, {"wait_for": place.path("go")})
    running = place.python(program, "run", "--script", script)
    place.wait_for("on")
    running.send_signal(signal.SIGHUP)
    place.let_go("go")
    assert place.end_of(running).code == 0


def test_a_probe_that_hangs_is_not_waited_for(place: Place) -> None:
    hangs = f"touch '{place.path('probing')}'; sleep 600"
    rule = f"{EFFECT_RULE}probe = {json.dumps(hangs)}\n"
    running = place.start_playing(SEND_FAILS, SAY, words=(*WORDS, "--policy", place.policy(rule)))
    place.wait_for("probing")
    running.send_signal(signal.SIGINT)
    assert place.end_of(running).code == 130
    (place.folder / "probing").unlink()
    resumed = place.start("resume", "r")
    place.wait_for("probing")
    resumed.send_signal(signal.SIGINT)
    ended = place.end_of(resumed)
    assert (ended.code, "waiting: paused" in ended.out) == (130, True), ended
    assert place.type("show", "r", "--json").json["calls"][0]["state"] == "in_doubt"
