"""`jackline import` of malicious data, and of data that a crash left incomplete."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.place import Ended, Place
from tests.support import predecessors as old

# A transaction that is too large for the cache, and a writer that dies in it: its journal is left behind.
DIES = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN")
for number in range(3000):
    row = (f"half-{number}", "y" * 300)
    connection.execute("INSERT INTO work_items VALUES (?, 'x', ?, 'pending', NULL, 1, 1, NULL)", row)
os.kill(os.getpid(), signal.SIGKILL)
"""


def take(place: Place, *words: str) -> Ended:
    return place.type("import", *words, "--json")


def of(ended: Ended, outcome: str) -> list[dict[str, Any]]:
    return [row for row in ended.rows if row["outcome"] == outcome]


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "a/../b", ".", "..", "ACTIVE", "x" * 4000, "a\0b", "a\nb"])
def test_a_case_is_a_plain_folder_for_any_id(place: Place, name: str) -> None:
    old.notebook(place.repository, "plain", closed=False, id=name)
    (row,) = of(take(place, str(place.repository)), "imported")
    assert row["id"] == "plain"
    assert place.type("case", "switch", "plain").code == 0
    assert (place.repository / ".agents" / "runs" / "ACTIVE").read_text() == "plain\n"
    assert place.type("case", "hypothesis", "add", "more").code == 0


@pytest.mark.parametrize("name", ["../../../evil", "/etc/evil", "..", "a\0b", "a\ud800b", "n" * 5000])
def test_no_name_leads_out_of_the_home(place: Place, name: str) -> None:
    base = place.folder / "old"
    told = {"task": name, "agent": name, "run_id": name, "exit_code": 0}
    old.runner(base, metadata=told)
    old.pair(base, repo_path=name, primary_agent=name, worktree_path=name, prompt=name)
    before = {path for path in place.folder.rglob("*") if not path.is_relative_to(place.home)}
    ended = take(place, str(base))
    assert (ended.code, len(of(ended, "imported"))) == (0, 2), ended
    assert {path for path in place.folder.rglob("*") if not path.is_relative_to(place.home)} == before
    for row in of(ended, "imported"):
        for command in ("show", "logs", "receipts", "verify", "export"):
            assert place.type(command, row["id"]).code == 0
    assert place.type("db", "check").code == 0


def test_a_database_whose_writer_died_is_reported_and_left_alone(place: Place) -> None:
    path = old.agent_state(place.folder / "forge" / "state.sqlite")
    died = subprocess.run([sys.executable, "-c", DIES, str(path)], check=False)
    assert died.returncode == -signal.SIGKILL
    left = {name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)}
    assert set(left) == {"state.sqlite", "state.sqlite-journal"}
    ended = take(place, str(path.parent))
    (row,) = of(ended, "unreadable")
    assert (ended.code, "open it once with its own program" in row["reason"]) == (1, True)
    assert {name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)} == left
    with sqlite3.connect(path) as connection:
        connection.execute("SELECT count(*) FROM work_items").fetchone()
    connection.close()
    assert take(place, str(path.parent)).rows[-1]["item"] == len(old.ITEMS)


def test_a_column_that_is_called_as_the_number_of_a_row(place: Place) -> None:
    path = place.folder / "odd.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE events (rowid TEXT, ts INTEGER, type TEXT, payload TEXT)")
        connection.execute("INSERT INTO events VALUES ('first', 1767000000000, 'told', '{}')")
    connection.close()
    ended = take(place, str(path))
    assert (ended.code, len(of(ended, "unreadable"))) == (1, 1), ended


def test_a_schema_that_is_not_text_is_reported(place: Place) -> None:
    """SQLite quotes what is damaged, and Python cannot even read the error."""
    path = old.universal(place.folder / "runtime_state.db")
    data = path.read_bytes()
    at = data.index(b"CREATE TABLE runs (")
    path.write_bytes(data[:at] + b"CREATE TABLE runs \x80" + data[at + 19 :])
    ended = take(place, str(path), "--as", "universal-agent")
    assert (ended.code, len(of(ended, "unreadable"))) == (1, 1), ended


def test_a_spec_that_is_not_json_is_reported_once(place: Place) -> None:
    path = old.universal(place.folder / "runtime_state.db")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET run_spec_json = '{', last_job_prompt = NULL")
    connection.close()
    ended = take(place, str(path))
    (row,) = of(ended, "unreadable")
    assert "run_spec_json" in row["reason"]
    assert len(of(ended, "imported")) == 1


def test_a_turn_without_a_cost_is_not_shown_as_free(place: Place) -> None:
    """The reviewer is another agent than the worker, and its cost is unknown as well."""
    old.pair(place.folder)
    (row,) = of(take(place, str(place.folder / "runs")), "imported")
    shown = place.type("show", row["id"]).out
    assert "$" not in shown
    assert place.type("logs", row["id"]).out == "mended\ngood: PASS\n"


def test_a_run_that_was_cut_off_says_so(place: Place) -> None:
    old.runner(place.folder, metadata={})
    (row,) = of(take(place, str(place.folder / "logs")), "imported")
    assert "detail     imported: it was cut off\n" in place.type("show", row["id"]).out


def test_a_warning_is_printed_once(place: Place) -> None:
    (place.home / "dashboard.md").mkdir(parents=True)  # it cannot be written
    old.runner(place.folder)
    ended = place.type("import", str(place.folder / "logs"))
    assert (ended.code, len(ended.err.splitlines())) == (0, 1), ended
    assert ended.err.startswith("jackline: the dashboard is not up to date")


def test_many_importers_at_once_take_each_thing_once(place: Place) -> None:
    base = place.folder / "old"
    for number in range(1, 6):
        old.pair(base, number)
    old.agent_state(base / "state.sqlite")
    old.notebook(base / "repository")
    started = [place.start("import", str(base), "--json") for _ in range(4)]
    ended = [place.end_of(process) for process in started]
    assert [one.code for one in ended] == [0] * 4, ended
    sums = [json.loads(one.out.splitlines()[-1]) for one in ended]
    assert [sum(one[what] for one in sums) for what in ("run", "item", "case", "events", "taken")] == [5, 6, 1, 3, 0]
    assert place.type("db", "check").code == 0


def test_a_file_that_goes_away_meanwhile_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from jackline.features.importers import agent_runner, source_files
    from jackline.features.importers.import_records import AGENT_RUNNER, Source, Troubles

    monkeypatch.setattr(source_files, "get_size", lambda _path: 5)  # it was there a moment ago
    (found,) = agent_runner.read(Source(AGENT_RUNNER, str(tmp_path)), Troubles())
    assert found.run.created_at == 0
