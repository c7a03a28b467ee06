"""A change of the user's own files while a run lives: an event, void trust, and a question before the next run."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from jackline.app import trust
from tests.cli.place import EFFECT_RULE, SAY, SEND, Ended, Place, is_one_line
from tests.cli.test_terminal import Terminal
from tests.conftest import SLOW_BACKENDS
from tests.support.slow_cases import keep_every_other

QUESTION = r"is it right\? \[y/N\] "
LOOSE = '[agents.claude]\nbinary = "/opt/theirs"\n'


@pytest.fixture(params=SLOW_BACKENDS)
def any_place(place: Place, request: pytest.FixtureRequest) -> Place:
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    (place.repository / ".git").mkdir()
    return place


def own(place: Place, name: str = "config.toml") -> Path:
    path = place.folder / ".config" / "jackline" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def play_shell(place: Place, command: str, **more: Any) -> Ended:
    """A run whose agent's program runs the command."""
    return place.play({"call": {"tool": "try", "input": {}, "run": command}}, SAY, **more)


def events(place: Place, kind: str) -> list[dict[str, Any]]:
    rows = place.type("events", "search", f"jackline.{kind}", "--json").rows
    return [row["payload"] for row in reversed(rows)]


def is_refused(ended: Ended, *names: str) -> bool:
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    return "jackline trust" in ended.err and all(name in ended.err for name in names)


def run_at_terminal(place: Place, answer: str) -> tuple[int, str]:
    terminal = Terminal(place, "run", "--agent", "scripted", "--script", place.script(SAY))
    terminal.until(QUESTION)
    os.write(terminal.ours, f"{answer}\n".encode())
    seen = terminal.end()
    return terminal.process.returncode, seen


CHANGES = {
    "settings": ("config.toml", "echo 'max_usd = 99' > {}"),
    "policy": ("policy.toml", "echo '# loose' >> {}"),
    "task": ("tasks/mend.md", "mkdir -p $(dirname {}) && echo x > {}"),
    "removed": ("policy.toml", "rm {}"),
    "without end": ("tasks/mend.md", "mkdir -p $(dirname {}) && ln -s /dev/zero {}"),
    "huge": ("tasks/mend.md", "mkdir -p $(dirname {}) && truncate -s 1T {}"),
}


@pytest.mark.timeout(60)  # a file is never read without end
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_while_a_run_lives_is_confirmed_before_the_next_one(place: Place, change: str) -> None:
    name, command = CHANGES[change]
    path = own(place, name)
    own(place, "policy.toml").write_text("# mine\n")
    ended = play_shell(place, command.format(path, path), words=("--run-id", "first"))
    assert (ended.code, str(path) in ended.err, "jackline trust" in ended.err) == (0, True, True), ended
    assert events(place, "settings_changed") == [{"files": [str(path)], "runs": ["first"]}]
    refused = place.play(SAY, words=("--run-id", "second"))
    assert is_refused(refused, str(path))
    assert is_refused(place.type("fork", "first"), str(path))
    assert f"not confirmed: {path}" in place.type("trust", "--show").out
    findings = place.type("doctor", "--json").json["findings"]
    assert [one["state"] for one in findings if str(path) in one["found"] and one["part"] == "settings"] == ["fail"]
    assert [row["id"] for row in place.type("list", "--json").rows] == ["first"]
    code, seen = run_at_terminal(place, "n")
    assert (code, "review this" in seen) == (2, True)
    code, seen = run_at_terminal(place, "y")
    assert code == 0, seen
    assert place.play(SAY).code == 0  # asked once
    assert len(events(place, "settings_changed")) == 1
    kinds = [row["kind"] for row in place.type("notices", "--json").rows]
    assert kinds.count("settings.changed") == 1
    assert events(place, "settings_confirmed") == [{"files": [str(path)], "projects": []}]


@pytest.mark.full
def test_while_no_run_starts_the_inbox_and_the_queue_say_why(any_place: Place) -> None:
    """They said that nothing needs a person, and that the run is ready, while each service held it."""
    place = any_place
    queued = place.type("enqueue", "--agent", "scripted", "--script", place.script(SAY, name="q.json"), "--run-id", "q")
    assert queued.code == 0, queued
    assert play_shell(place, f"echo 'max_usd = 99' > {own(place)}").code == 0
    (entry,) = place.type("inbox", "--json").rows
    assert (entry["kind"], entry["commands"]) == ("settings", ["jackline trust"])
    assert str(own(place)) in entry["text"]
    waits = "your own files changed: `jackline trust`"
    assert place.type("list", "--queue", "--json").json["queue"]["waits"] == waits
    assert f"queue      {waits}" in place.type("show", "q").out
    terminal = Terminal(place, "inbox")
    terminal.until(QUESTION)
    os.write(terminal.ours, b"y\n")
    terminal.end()
    assert terminal.process.returncode == 0
    assert place.type("inbox").out == "nothing needs you\n"
    assert place.type("list", "--queue", "--json").json["queue"]["waits"] == ""


def test_a_waiting_run_is_not_resumed_before(any_place: Place) -> None:
    waiting = any_place.play({"limit": {"resets_in": 3600}}, words=("--run-id", "waits"))
    assert waiting.code == 10
    assert play_shell(any_place, f"mkdir -p {own(any_place).parent}; echo '# x' > {own(any_place)}").code == 0
    assert is_refused(any_place.type("resume", "waits", "go on"), "config.toml")
    assert any_place.type("show", "waits", "--json").json["state"] == "waiting"
    confirmed = any_place.trust()
    assert (confirmed.code, "config.toml" in confirmed.out) == (0, True), confirmed
    assert any_place.type("resume", "waits", "go on").code == 10
    assert any_place.type("db", "check").code == 0


def test_a_run_that_waits_in_its_process_continues(place: Place) -> None:
    rule = place.policy(EFFECT_RULE.replace('decision = "allow"', 'decision = "ask"'))
    change = f"mkdir -p {own(place).parent}; echo '# x' > {own(place)}"
    steps = ({"call": {"tool": "try", "input": {}, "run": change}}, SEND, SAY)
    words = ("--policy", rule, "--run-id", "r", "--on-ask", "wait")
    playing = place.start_playing(*steps, words=words)
    while place.type("show", "r", "--json").json.get("state") != "waiting":  # it may not exist yet
        assert playing.poll() is None
    assert place.type("answer", "r", "allow").code == 0
    ended = place.end_of(playing)
    assert (ended.code, "config.toml" in ended.err) == (0, True), ended
    assert is_refused(place.play(SAY), "config.toml")


def test_a_change_while_no_run_lives_is_the_user_s_own(place: Place) -> None:
    assert place.play(SAY).code == 0
    for text in ("max_usd = 7\n", "max_usd = 8\n"):
        own(place).write_text(text)
        assert place.play(SAY).code == 0
    own(place).unlink()
    assert place.play(SAY).code == 0
    assert events(place, "settings_changed") == []


def test_a_change_that_is_undone_needs_no_answer(place: Place) -> None:
    own(place).write_text("max_usd = 7\n")
    assert play_shell(place, f"echo 'max_usd = 9' > {own(place)}").code == 0
    assert place.play(SAY).code == 2
    own(place).write_text("max_usd = 7\n")
    assert place.play(SAY).code == 0


def test_what_changes_after_it_was_shown_is_asked_again(place: Place) -> None:
    assert play_shell(place, f"mkdir -p {own(place).parent}; echo '# x' > {own(place)}").code == 0
    terminal = Terminal(place, "trust")
    terminal.until(QUESTION)
    own(place).write_text("# y\n")
    os.write(terminal.ours, b"y\n")
    terminal.end()
    # No run lived between: the second change is the user's own, and the first one is confirmed.
    assert place.play(SAY).code == 0


def test_a_killed_supervisor_hides_no_change(any_place: Place) -> None:
    halt = f"touch {any_place.path('here')}; until [ -e {any_place.path('go')} ]; do sleep 0.01; done"
    playing = any_place.start_playing({"call": {"tool": "wait", "input": {}, "run": halt}}, words=("--run-id", "r"))
    any_place.wait_for("here")
    own(any_place).write_text("max_usd = 99\n")
    playing.send_signal(signal.SIGKILL)
    playing.wait()
    words = ("--run-id", "next", "--share-workspace")
    assert is_refused(any_place.play(SAY, words=words), "config.toml")
    assert events(any_place, "settings_changed") == [{"files": [str(own(any_place))], "runs": ["r"]}]
    assert any_place.trust().code == 0
    own(any_place).write_text("max_usd = 98\n")  # the dead run no longer counts
    assert any_place.play(SAY, words=words).code == 0


def test_several_runs_at_once_ask_once(any_place: Place) -> None:
    halts = {}
    for name in ("one", "two"):
        folder = any_place.folder / name
        folder.mkdir()
        halt = (
            f"touch {any_place.path(f'here-{name}')}; until [ -e {any_place.path(f'go-{name}')} ]; do sleep 0.01; done"
        )
        step = {"call": {"tool": "wait", "input": {}, "run": halt}}
        words = ("--run-id", name, "--workspace", str(folder))
        script = any_place.script(step, SAY, name=f"{name}.json")
        halts[name] = any_place.start("run", "--agent", "scripted", "--script", script, *words)
        any_place.wait_for(f"here-{name}")
    own(any_place).write_text("max_usd = 99\n")
    any_place.let_go("go-one")
    assert any_place.end_of(halts["one"]).code == 0
    assert is_refused(any_place.play(SAY), "config.toml")
    assert any_place.trust().code == 0
    assert any_place.play(SAY, words=("--workspace", any_place.path("one"))).code == 0
    any_place.let_go("go-two")
    assert any_place.end_of(halts["two"]).code == 0
    assert any_place.play(SAY).code == 0
    assert events(any_place, "settings_changed") == [{"files": [str(own(any_place))], "runs": ["one", "two"]}]


# --- trust


def is_trusted(place: Place) -> bool:
    return bool(place.type("trust", "--show", "--json").json["trusted"])


def forge(place: Place) -> str:
    """The command of an agent that writes a valid entry into trust.json."""
    project = str(place.repository)
    entry = json.dumps({project: {"digest": trust.hash_project(project).project, "at": 1}})
    (place.folder / "forged.json").write_text(entry)
    return f"cp {place.folder}/forged.json {place.home}/trust.json"


def test_trust_that_an_agent_writes_is_void(any_place: Place) -> None:
    (any_place.repository / "jackline.toml").write_text("max_usd = 50\n")
    assert play_shell(any_place, forge(any_place), words=("--run-id", "r")).code == 0
    assert not is_trusted(any_place)
    project = str(any_place.repository)
    assert events(any_place, "settings_changed") == [{"files": ["trust.json"], "projects": [project], "runs": ["r"]}]
    assert is_refused(any_place.play(SAY), "trust.json", project)
    code, seen = run_at_terminal(any_place, "y")
    assert (code, "it is void" in seen) == (0, True), seen
    assert not is_trusted(any_place)
    assert json.loads((any_place.home / "trust.json").read_text()) == {}
    assert any_place.play(SAY).code == 0
    assert any_place.trust().code == 0
    assert is_trusted(any_place)
    assert any_place.play(SAY).code == 0


def test_a_person_may_trust_while_a_run_lives(any_place: Place) -> None:
    (any_place.repository / "jackline.toml").write_text("max_usd = 50\n")
    halt = f"touch {any_place.path('here')}; until [ -e {any_place.path('go')} ]; do sleep 0.01; done"
    playing = any_place.start_playing({"call": {"tool": "wait", "input": {}, "run": halt}}, SAY)
    any_place.wait_for("here")
    assert any_place.trust().code == 0
    any_place.let_go("go")
    assert any_place.end_of(playing).code == 0
    assert is_trusted(any_place)
    assert any_place.play(SAY).code == 0
    assert (events(any_place, "settings_changed"), len(events(any_place, "trusted"))) == ([], 1)


def test_trust_that_was_given_before_there_was_a_record_still_counts(any_place: Place) -> None:
    (any_place.repository / "jackline.toml").write_text("max_usd = 50\n")
    any_place.home.mkdir(exist_ok=True)
    forge(any_place)
    shutil.copy(any_place.folder / "forged.json", any_place.home / "trust.json")  # as an older version wrote it
    assert is_trusted(any_place)
    for _ in range(2):
        assert any_place.play(SAY).code == 0
        assert is_trusted(any_place)


def test_trust_that_an_agent_removes_ends(place: Place) -> None:
    (place.repository / ".git").mkdir()
    (place.repository / "jackline.toml").write_text("max_usd = 50\n")
    assert place.trust().code == 0
    assert play_shell(place, f"rm {place.home}/trust.json").code == 0
    assert (is_trusted(place), len(events(place, "settings_changed"))) == (False, 1)
    assert place.play(SAY).code == 0


# --- settings that lead elsewhere


MOVES = {
    "a home": ("", 'home = "{folder}/elsewhere"'),
    "another home": ('home = "{folder}/custom"', 'home = "{folder}/elsewhere"'),
    "the default home": ('home = "{folder}/custom"', ""),
    "a database": ("", 'database = "{folder}/elsewhere.sqlite"'),
    "another database": ('database = "{folder}/custom.sqlite"', 'database = "{folder}/elsewhere.sqlite"'),
}


# JACKLINE_HOME wins over the settings, JACKLINE_DATABASE is not set.
CASES = [(move, {"JACKLINE_HOME": ""}) for move in MOVES] + [(move, {}) for move in MOVES if "home" not in move]


@pytest.mark.parametrize(("move", "environ"), keep_every_other(CASES))
def test_settings_that_name_another_home_hide_no_change(place: Place, move: str, environ: dict[str, str]) -> None:
    before, after = (text.format(folder=place.folder) for text in MOVES[move])
    own(place).write_text(before)
    assert place.play(SAY, environ=environ).code == 0
    (place.folder / "after").write_text(after)
    assert play_shell(place, f"cp {place.folder}/after {own(place)}", environ=environ).code == 0
    assert is_refused(place.play(SAY, environ=environ))
    place.environ |= environ
    assert place.trust().code == 0
    assert place.play(SAY).code == 0
    assert place.play(SAY).code == 0


def test_a_channel_that_an_agent_adds_starts_no_program(place: Place) -> None:
    path, marker = own(place), place.folder / "started"
    seen = place.folder / "seen"
    path.write_text(f'[channels.mine]\ntype = "command"\ncommand = ["touch", "{seen}"]\n')
    (place.folder / "added").write_text(f'[channels.theirs]\ntype = "command"\ncommand = ["touch", "{marker}"]\n')
    ended = play_shell(place, f"cat {place.folder}/added >> {path}")
    assert ended.code == 0, ended
    assert (seen.exists(), marker.exists()) == (True, False)  # the channels that the command started with still work
    place.type("cancel", "1")
    delivered = place.type("notices", "--deliver")
    assert "jackline trust" in delivered.err, delivered
    for words in (("notify", "--test"), ("notices", "--missing")):
        assert is_refused(place.type(*words), str(path))
    assert not marker.exists()
    assert place.trust().code == 0
    assert place.type("notify", "--test").code == 0
    assert marker.exists()
