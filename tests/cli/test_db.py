"""`jackline db`: status, check, backup, migrate and the archive of old events."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import SAY, Place, is_one_line


def archived(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def test_status_check_and_migrate(place: Place) -> None:
    assert place.type("db", "migrate", "--json").json["applied"]
    assert place.type("db", "migrate", "--json").json == {"applied": []}
    assert place.play(SAY).code == 0
    status = place.type("db", "status", "--json").json
    assert (status["backend"], status["schema"], status["pending"]) == ("sqlite", status["known_schema"], [])
    assert status["counts"]["runs"] == 1
    assert "runs 1" in place.type("db", "status").out
    assert place.type("db", "check").out == "no problems found\n"


def test_check_finds_an_altered_event(place: Place) -> None:
    run = place.play(SAY, words=("--json",)).json
    with sqlite3.connect(place.home / "state.sqlite") as connection:
        triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'events'"
        for (name,) in connection.execute(triggers).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE events SET data = '{}' WHERE seq = 2")
    connection.close()
    found = place.type("db", "check", "--json")
    assert (found.code, found.json["ok"]) == (1, False)
    assert run["id"] in found.json["problems"][0]
    kept = place.type("db", "archive", "--older-than", "0s")
    assert (kept.code, "broken at event 2" in kept.err) == (1, True)
    assert place.type("logs", run["id"], "--events").out  # nothing was removed


def test_a_backup_is_a_whole_database(place: Place) -> None:
    run = place.play(SAY, words=("--json",)).json
    backup = place.folder / "other" / "state.sqlite"
    backup.parent.mkdir()
    assert place.type("db", "backup", str(backup)).out.strip() == str(backup)
    assert place.type("--home", str(backup.parent), "list", "--json").rows[0]["id"] == run["id"]
    again = place.type("db", "backup", str(backup))
    assert (again.code, is_one_line(again)) == (2, True)


def test_a_newer_schema_is_refused(place: Place) -> None:
    assert place.play(SAY).code == 0
    with sqlite3.connect(place.home / "state.sqlite") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    for words in (("list",), ("db", "migrate"), ("db", "check")):
        ended = place.type(*words)
        assert (ended.code, is_one_line(ended)) == (1, True)
    assert place.type("db", "status", "--json").json["schema"] == 999


def test_archive_moves_the_events_and_keeps_the_chain(place: Place) -> None:
    run = place.play({"exit": 1, "when": {"attempt": 1}}, SAY, words=("--json", "--run-id", "r")).json
    waiting = place.play({"limit": {}}, words=("--json", "--run-id", "w")).json
    before = place.type("logs", "r", "--events", "--json").rows
    assert place.type("db", "archive", "--json").json["runs"] == 0  # nothing is 30 days old
    done = place.type("db", "archive", "--older-than", "0s", "--json").json
    assert (done["runs"], done["events"], done["problems"]) == (1, len(before), [])
    path = place.home / "archive" / f"{run['id']}.jsonl.gz"
    assert [event["hash"] for event in archived(path)] == [event["hash"] for event in before]
    assert path.stat().st_mode & 0o077 == 0
    assert "archived" in place.type("logs", "r", "--events").err
    assert place.type("logs", waiting["id"], "--events").out
    assert place.type("export", "r").code == 2
    assert place.type("db", "check").code == 0
    # Resumed, ended and archived once more: the same file now has the whole chain.
    assert place.type("resume", "r").code == 0
    assert place.type("db", "archive", "--older-than", "0s").code == 0
    events = archived(path)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert events[-1]["kind"] == "run.succeeded"
    assert place.type("db", "check").code == 0


def test_a_crash_between_writing_and_dropping_is_repaired(place: Place) -> None:
    """The archive and the events both exist: archiving again leaves the file alone and drops the events."""
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    copy = place.folder / "copy.sqlite"
    assert place.type("db", "backup", str(copy)).code == 0
    assert place.type("db", "archive", "--older-than", "0s").code == 0
    path = place.home / "archive" / "r.jsonl.gz"
    before = archived(path)
    for name in ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm"):
        (place.home / name).unlink(missing_ok=True)
    copy.rename(place.home / "state.sqlite")
    assert place.type("db", "archive", "--older-than", "0s").code == 0
    assert archived(path) == before
    assert place.type("logs", "r", "--events").out == ""


@pytest.mark.parametrize("damage", [b"", b"nonsense"])
def test_a_damaged_archive_is_never_built_upon(place: Place, damage: bytes) -> None:
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    folder = place.folder / "elsewhere"
    folder.mkdir()
    (folder / "r.jsonl.gz").write_bytes(damage)
    ended = place.type("db", "archive", "--older-than", "0s", "--to", str(folder))
    assert (ended.code, "r.jsonl.gz" in ended.err) == (1, True)
    assert (folder / "r.jsonl.gz").read_bytes() == damage
    assert place.type("logs", "r", "--events").out
