"""`jackline import` reports everything that it leaves out or changes: nothing is lost silently."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from jackline.features.importers import agent_state, agentpair, universal_agent
from jackline.features.importers.import_records import (
    AGENT_STATE,
    AGENTPAIR,
    UNIVERSAL_AGENT,
    Source,
    Trouble,
    Troubles,
)
from tests.cli.place import Ended, Place
from tests.support import predecessors as old

FUTURE_MS = 4_102_444_800_000  # 2100-01-01
FUTURE = "2100-01-01T00:00:00Z"


def take(place: Place, *words: str) -> Ended:
    return place.type("import", *words, "--json")


def of(ended: Ended, outcome: str) -> list[dict[str, Any]]:
    return [row for row in ended.rows if row["outcome"] == outcome]


def changed(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for sql in statements:
            connection.execute(sql)
    connection.close()


# --- more than is taken


def troubles_of(reader: Any, kind: str, path: Path) -> list[Trouble]:
    troubles = Troubles()
    assert list(reader.read(Source(kind, str(path)), troubles))
    return troubles.take()


def test_events_of_an_item_beyond_the_bound_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_state, "_MOST_EVENTS", 1)
    path = old.agent_state(tmp_path / "state.sqlite")
    found = troubles_of(agent_state, AGENT_STATE, path)
    assert found == [Trouble(str(path), "events of msg-2", "only the first 1 of them were read")]


@pytest.mark.parametrize(
    ("bound", "table", "key"),
    [
        ("_MOST_ATTEMPTS", "run_attempts", "attempt_id"),
        ("_MOST_ROWS", "run_steps", "step_id"),
        ("_MOST_CHECKPOINTS", "checkpoints", "checkpoint_id"),
    ],
)
def test_rows_of_a_run_beyond_the_bound_are_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, table: str, key: str
) -> None:
    path = old.universal(tmp_path / "runtime_state.db", "r-1:succeeded")
    with sqlite3.connect(path) as connection:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    connection.close()
    picked = ", ".join("'second'" if name == key else name for name in names)
    changed(path, f"INSERT INTO {table} SELECT {picked} FROM {table} LIMIT 1")
    monkeypatch.setattr(universal_agent, bound, 1)
    found = troubles_of(universal_agent, UNIVERSAL_AGENT, path)
    assert found == [Trouble(str(path), f"{table} of r-1", "only the first 1 of them were read")]


def test_entries_of_a_transcript_beyond_the_bound_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agentpair, "_MOST_ENTRIES", 3)
    folder = old.pair(tmp_path)
    reason = "only 3 of its 10 events were taken: its files are kept whole"
    assert troubles_of(agentpair, AGENTPAIR, folder) == [Trouble(str(folder), "", reason, is_note=True)]


def test_two_attempts_with_one_number_are_reported(place: Place) -> None:
    path = old.universal(place.folder / "runtime_state.db", "r-1:succeeded")
    changed(path, "UPDATE run_attempts SET attempt_number = 1")
    (row,) = of(take(place, str(path)), "unreadable")
    assert (row["place"], row["reason"]) == ("row 2 of run_attempts", "another attempt of the run has its number")


# --- otherwise than it stood


@pytest.mark.parametrize("payload", ["[" * 60 + "]" * 60, "9" * 30, "1e999", json.dumps(list(range(10_001)))])
def test_a_payload_that_must_be_changed_is_noted(place: Place, payload: str) -> None:
    item = ("msg-1", "reply", payload, "pending", None, 1767000000000, 1767000000000, None)
    event = (1767000000000, "told", "forge", None, payload)
    old.agent_state(place.folder / "state.sqlite", [item], [event])
    ended = take(place, str(place.folder / "state.sqlite"))
    assert [row["place"] for row in of(ended, "noted")] == ["row 1 of work_items", "row 1 of events"]
    assert {row["reason"] for row in of(ended, "noted")} == {
        "its payload was too deep, too long or too large: it was cut"
    }
    assert (ended.code, len(of(ended, "imported"))) == (0, 2)


def test_unreadable_metadata_is_not_an_interrupted_run(place: Place) -> None:
    folder = old.runner(place.folder)
    (folder / "metadata.json").write_bytes("{}".encode("utf-16"))
    ended = take(place, str(place.folder / "logs"))
    (row,) = of(ended, "imported")
    assert "detail     imported: its metadata could not be read\n" in place.type("show", row["id"]).out
    assert "UTF-8" in of(ended, "unreadable")[0]["reason"]


def test_a_run_without_a_time_is_noted(place: Place) -> None:
    path = old.universal(place.folder / "runtime_state.db", "r-1:succeeded")
    changed(path, "UPDATE runs SET created_at = 'soon'")
    (row,) = of(take(place, str(path)), "noted")
    assert (row["place"], row["reason"]) == ("run r-1", "its created_at is not a time: its updated_at was taken")
    changed(path, "UPDATE runs SET updated_at = '', run_id = 'r-2'")
    assert of(take(place, str(path)), "noted")[0]["reason"].endswith("its time is unknown")


# --- times that have not come


def everything_in_the_future(base: Path) -> None:
    item = ("msg-1", "reply", "{}", "failed", None, FUTURE_MS, FUTURE_MS, None)
    old.agent_state(
        base / "state.sqlite", [item], [(FUTURE_MS, "told", "forge", name, "{}") for name in (None, "msg-1")]
    )
    old.notebook(base / "repository", created_at=FUTURE)
    old.pair(base, created_at=FUTURE, updated_at=FUTURE, completed_at=FUTURE)
    old.runner(base, start_time=FUTURE, end_time=FUTURE, exit_code=1)
    path = old.universal(base / "runtime_state.db", "r-1:failed")
    changed(path, *(f"UPDATE {table} SET created_at = '{FUTURE}'" for table in ("runs", "run_steps", "tool_calls")))


def test_a_time_in_the_future_becomes_now_and_is_noted(place: Place) -> None:
    """Otherwise it would stay at the top of every list, and among the recent failures, for ever."""
    base = place.folder / "old"
    everything_in_the_future(base)
    ended = take(place, str(base))
    noted = [row for row in of(ended, "noted") if "given twice" not in row["reason"]]
    assert [row["reason"] for row in noted] == ["it has times in the future: they were set to now"] * 6
    assert len(of(ended, "imported")) == 6, ended
    with sqlite3.connect(place.home / "state.sqlite") as connection:
        tables = {
            "runs": ("created_at", "updated_at", "started_at", "finished_at"), "events": ("at",),
            "work_items": ("created_at", "updated_at", "finished_at"), "turns": ("started_at", "ended_at"),
            "cases": ("created_at", "updated_at", "closed_at"), "case_entries": ("at", "updated_at"),
            "calls": ("prepared_at", "finished_at"), "attempts": ("started_at", "ended_at"), "receipts": ("at",),
        }  # fmt: skip
        newest = {
            (table, column): connection.execute(f"SELECT max({column}) FROM {table}").fetchone()[0]
            for table, columns in tables.items()
            for column in columns
        }
    connection.close()
    now = time.time() * 1000
    assert {name: at for name, at in newest.items() if at is None or at > now} == {}
    assert place.type("db", "check").code == 0
    assert len(of(take(place, str(base)), "already")) == 6


# --- originals


def test_the_files_of_an_incompletely_imported_case_are_kept(place: Place) -> None:
    """The folder holds derived files from now on: the first change would delete what could not be read."""
    folder = old.notebook(place.repository, "damaged", closed=False)
    damaged = (folder / "evidence.jsonl").read_bytes() + b'{"id": "E00'
    (folder / "evidence.jsonl").write_bytes(damaged)
    whole = old.notebook(place.repository, "whole", closed=False)
    old.lines(whole / "hypotheses.jsonl", [{"event": "add", "id": "H001", "status": "open", "text": "a cache"}])
    assert take(place, str(place.repository)).code == 1
    assert place.type("case", "switch", "damaged").code == 0
    assert place.type("case", "evidence", "add", "more").code == 0
    assert (folder / "evidence.jsonl").read_bytes() != damaged
    kept = place.home / "imported" / "damaged"
    assert (kept / "evidence.jsonl").read_bytes() == damaged
    assert {one.name for one in kept.iterdir()} >= {"problem.json", "hypotheses.jsonl", "evidence.jsonl"}
    assert not (place.home / "imported" / whole.name).exists()
    (place.home / "imported" / "mine").mkdir()
    assert place.type("uninstall", "--yes").code == 0
    assert [one.name for one in (place.home / "imported").iterdir()] == ["mine"]
