"""A session that a person or another run started: adopted after its owner has ended, else refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.place import SAY

if TYPE_CHECKING:
    from tests.cli.place import Place

WAITS = {"limit": {"resets_in": 3600}}
TELLS = """echo $0 $1 >> told.txt; echo '{"type":"end"}'"""  # records the arguments that it was started with


def talker() -> str:
    """An agent that has sessions, described in a few lines."""
    command, resume = (json.dumps(["sh", "-c", TELLS, how, "{session}"]) for how in ("new", "again"))
    return f"[agents.talker]\ncommand = {command}\nresume = {resume}\nformat = 'lines'\n"


def test_the_session_of_a_run_that_waits_is_refused(place: Place) -> None:
    first = place.play(WAITS, words=("--json",))
    assert first.code == 10
    session = place.type("show", first.json["id"], "--json").json["sessions"]["scripted"]
    second = place.play(SAY, words=("--session", session))
    assert (second.code, second.err.count("\n")) == (2, 1)
    assert first.json["id"] in second.err
    assert len(place.type("list", "--json").rows) == 1


def test_the_session_of_a_run_that_ended_is_adopted(place: Place) -> None:
    folder = place.folder / ".config" / "jackline"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(talker())
    assert place.type("run", "x", "--agent", "talker").code == 0
    session = (place.repository / "told.txt").read_text().split()[1]
    second = place.type("run", "y", "--agent", "talker", "--session", session, "--json")
    assert second.code == 0
    assert (place.repository / "told.txt").read_text().splitlines() == [f"new {session}", f"again {session}"]
    assert place.type("show", second.json["id"], "--json").json["sessions"] == {"talker": session}


def test_a_session_that_the_agent_does_not_know_is_reported_everywhere(place: Place) -> None:
    unknown = """echo '{"type":"error","class":"agent_error","detail":"gone","session_lost":true}'; exit 1"""
    command, resume = (json.dumps(["sh", "-c", said, "{session}"]) for said in (TELLS, unknown))
    folder = place.folder / ".config" / "jackline"
    folder.mkdir(parents=True)
    table = f"[agents.talker]\ncommand = {command}\nresume = {resume}\nformat = 'lines'\n"
    (folder / "config.toml").write_text(table)
    ended = place.type("run", "x", "--agent", "talker", "--session", "by-hand")
    line = "session by-hand was not known to talker; a fresh one was begun"
    assert ended.code == 0
    assert line in ended.out
    run = place.type("list", "--json").rows[0]
    assert line in place.type("show", run["id"]).out
    assert place.type("show", run["id"], "--json").json["lost_sessions"] == [line]
    assert line in (Path(run["folder"]) / "summary.txt").read_text()


def test_an_agent_without_sessions_cannot_adopt_one(place: Place) -> None:
    ended = place.type("run", "x", "--agent", "command", "--session", "s", "--", "true")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "command cannot continue a session" in ended.err
