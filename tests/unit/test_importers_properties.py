"""Whatever is done to what the predecessors left: reading never raises, and what is whole is never lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.app.home import Home, open_home
from jackline.features.importers import clean_values, source_files
from jackline.features.importers.import_records import Source, Troubles, build_digest
from jackline.features.importers.importer import ImportRecord, import_paths
from jackline.features.importers.source_files import SourceUnreadable
from tests.support import predecessors as old

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FILES = (
    "manifest.json", "transcript.jsonl", "bridge.jsonl", "metadata.json", "stdout.log", "problem.json", "closeout.json",
    "hypotheses.jsonl", "evidence.jsonl", "commands.jsonl", "learning.jsonl", "state.sqlite", "runtime_state.db",
)  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two of each: one that is damaged, and one that must come through."""
    base = tmp_path_factory.mktemp("old")
    for name in ("damaged", "sound"):
        place = base / name
        (place / "repo" / ".git").mkdir(parents=True)
        old.notebook(place / "repo", f"20260102T030405Z-{name}")
        old.pair(place / "pair", 1, f"/srv/{name}")
        old.runner(place / "tool")
        first = (1767000000000, "agent_started", name, None, "{}")
        items = [(f"{name}-{one[0]}", *one[1:]) for one in old.ITEMS]
        old.agent_state(place / "state.sqlite", items, (first, *old.EVENTS[1:]))
        old.universal(place / "runtime_state.db", f"{name}:succeeded")
    return base


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(folder))
    return open_home(str(folder / "home"), {"HOME": str(folder), "JACKLINE_HOME": str(folder / "home")})


def damaged(data: bytes, kind: str, at: float, piece: bytes) -> bytes:
    place = int(at * len(data))
    match kind:
        case "cut":
            return data[:place]
        case "flip":
            return data[:place] + piece + data[place + len(piece) :]
        case "insert":
            return data[:place] + piece + data[place:]
        case _:
            return piece


WOUNDS = st.lists(
    st.tuples(
        st.sampled_from(FILES),
        st.sampled_from(("cut", "flip", "insert", "replace")),
        st.floats(0, 1),
        st.binary(max_size=40) | JSON.map(lambda one: json.dumps(one).encode()),
    ),
    min_size=1,
    max_size=6,
)
Wounds = list[tuple[str, str, float, bytes]]


def wounded(whole: Path, base: Path, wounds: Wounds) -> None:
    shutil.copytree(whole, base)
    for name, kind, at, piece in wounds:
        path = next((base / "damaged").rglob(name))
        path.write_bytes(damaged(path.read_bytes(), kind, at, piece))


@settings(max_examples=30)
@given(wounds=WOUNDS)
def test_what_is_whole_is_read_beside_any_damage(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, wounds: Wounds
) -> None:
    folder = tmp_path_factory.mktemp("read")
    wounded(whole, folder / "old", wounds)
    with pytest.MonkeyPatch.context() as patch, opened(folder, patch) as home:
        told = list(import_paths(home, [str(folder / "old")], dry_run=True))
    assert_sound(told)
    shutil.rmtree(folder)


def assert_sound(told: list[ImportRecord]) -> None:
    sound = [one for one in told if "/sound/" in one.path]
    assert {one.outcome for one in sound} == {"imported", "noted"}  # a number that was given twice is noted
    assert sorted(one.what for one in sound if one.what) == ["case", "events", *["item"] * 6, *["run"] * 3]


@pytest.mark.full
@settings(max_examples=20)
@given(wounds=WOUNDS)
def test_damage_never_raises_and_never_costs_what_is_whole(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, wounds: Wounds
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    base = folder / "old"
    wounded(whole, base, wounds)
    with pytest.MonkeyPatch.context() as patch, opened(folder, patch) as home:
        assert_sound(list(import_paths(home, [str(base)])))
        assert home.store().verify.check_all() == []
        again = list(import_paths(home, [str(base)]))
        assert {one.outcome for one in again if one.what} <= {"already", "taken"}
        assert home.store().verify.check_all() == []
    shutil.rmtree(folder)


@given(told=JSON)
@settings(max_examples=60)
def test_any_json_in_any_place_is_read_without_a_word_too_much(
    tmp_path_factory: pytest.TempPathFactory, told: object
) -> None:
    from jackline.features.importers import agent_runner, agentpair, notebook

    folder = tmp_path_factory.mktemp("any")
    text = json.dumps(told)
    every = ("type", "timestamp", "content", "id", "event", "status", "text", "duration", "iteration", "state")
    line = json.dumps(dict.fromkeys(every, told) | {"type": "result"})
    for name in FILES[:11]:
        (folder / name).write_text(line if name.endswith("jsonl") else json.dumps(dict.fromkeys(_FIELDS, told)))
    (folder / "stdout.log").write_text(text)
    for kind, reader in (("agentpair", agentpair), ("agent-runner", agent_runner), ("notebook", notebook)):
        found: list[Any] = list(reader.read(Source(kind, str(folder)), Troubles()))
        assert len(found) == 1
    shutil.rmtree(folder)


_FIELDS = (
    "id", "repo_path", "repo_id", "prompt", "state", "primary_agent", "max_iterations", "current_iteration",
    "created_at", "updated_at", "completed_at", "error", "run_id", "agent", "task", "start_time", "end_time",
    "elapsed_seconds", "exit_code", "token_count", "last_message", "commits", "files_changed", "insertions",
    "deletions", "requires_commit", "dry_run", "classified_error", "request", "intent", "target_properties",
    "intake_plan", "expected_verification", "risks", "non_goals", "dirty_worktree", "closed_at", "residual_risks",
    "summary", "verification",
)  # fmt: skip


@given(JSON)
def test_tame_values_can_always_be_stored(told: object) -> None:
    tame = clean_values.clean_json(told)
    assert json.loads(json.dumps(tame, allow_nan=False)) == tame


@given(st.binary(max_size=200))
def test_bytes_are_an_object_or_unreadable(data: bytes) -> None:
    try:
        found = source_files.parse_object(data)
    except SourceUnreadable:
        return
    assert isinstance(found, dict)


@given(JSON | st.datetimes().map(str))
def test_a_time_is_a_time_or_nothing(told: object) -> None:
    at = clean_values.parse_moment(told)
    assert at is None or 0 <= at <= 253_402_300_799_999


@pytest.mark.parametrize(
    ("told", "at"),
    [
        (1767000000000, 1767000000000),
        (1767000000, 1767000000000),
        (1767000000.5, 1767000000500),
        (1767000000000000, 1767000000000),
        (1767000000000000000, 1767000000000),
        ("1767000000000", 1767000000000),
        ("2025-12-29T09:20:00Z", 1767000000000),
        ("2025-12-29T10:20:00+01:00", 1767000000000),
        ("2025-12-29 09:20:00", 1767000000000),
        ("2025-12-29T09:20:00.123456789Z", 1767000000123),
        ("0001-01-01T00:00:00Z", None),
        ("soon", None),
        (0, None),
        (-5, None),
        (True, None),
        (float("nan"), None),
        (10**30, None),
        ("9" * 5000, None),
    ],
)
def test_times_in_every_spelling(told: object, at: int | None) -> None:
    assert clean_values.parse_moment(told) == at


def test_a_nesting_that_would_end_the_stack_is_refused() -> None:
    with pytest.raises(SourceUnreadable):
        source_files.parse_value(b"[" * 100_000)
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    assert "nested too deeply" in json.dumps(clean_values.clean_json(deep))


def test_names_of_things_are_the_same_every_time() -> None:
    assert build_digest("agentpair", "r/1") == "c190dabf81a8e9ba"  # else the next import would double everything
    assert build_digest("a", "b") != build_digest("ab", "")


@pytest.mark.parametrize("left", [(), ("-wal",), ("-wal", "-shm")])
def test_nothing_is_changed_and_nothing_appears_beside_a_database(scratch: Path, left: tuple[str, ...]) -> None:
    from jackline.features.importers.databases import RowQuery, open_database

    path = old.agent_state(scratch / "live" / "state.sqlite")
    place = scratch / "found"
    place.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        if left:
            connection.execute("INSERT INTO events (ts, type, payload) VALUES (1767000010000, 'in_the_log', '{}')")
            connection.commit()
            _copied(path, place, left)
    if not left:  # the last one to close it has emptied the log and removed it
        _copied(path, place, left)
    before = {one.name: one.read_bytes() for one in place.iterdir() if not one.name.endswith("-shm")}
    with open_database(str(place / "state.sqlite")) as database:
        rows = list(database.rows(RowQuery("events", ("type",)), Troubles()))
        assert ((len(old.EVENTS) + 1, {"type": "in_the_log"}) in rows) == bool(left)
        with pytest.raises(sqlite3.OperationalError):
            database._connection.execute("DELETE FROM events")
    assert {one.name: one.read_bytes() for one in place.iterdir() if not one.name.endswith("-shm")} == before
    assert ("state.sqlite-shm" in {one.name for one in place.iterdir()}) == ("-shm" in left)


def _copied(path: Path, place: Path, left: tuple[str, ...]) -> None:
    for end in ("", *left):
        shutil.copy(f"{path}{end}", place / f"state.sqlite{end}")
