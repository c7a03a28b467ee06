"""A home that another process is creating: reading commands find none yet, never half of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.home import open_home
from jackline.store.schema import migrate
from jackline.store.sqlite import SqliteDriver
from tests.cli.place import SAY, Place

if TYPE_CHECKING:
    from pathlib import Path


def begin_database(place: Place) -> tuple[SqliteDriver, Path]:
    """A database before its schema; while it is open, what is written stays in the write-ahead log."""
    place.home.mkdir()
    path = place.home / "state.sqlite"
    return SqliteDriver(str(path), create=True), path


def test_a_database_without_a_schema_is_no_home_yet(place: Place) -> None:
    begun, _ = begin_database(place)
    listed = place.type("list", "--json")
    assert (listed.code, listed.out) == (0, ""), listed
    shown = place.type("show", "r", "--json")
    assert (shown.code, "no run matches" in shown.out) == (2, True), shown
    assert place.play(SAY, words=("--run-id", "r")).code == 0
    begun.close()
    assert place.type("show", "r", "--json").json["state"] == "succeeded"


def test_a_home_whose_schema_is_only_in_the_log_exists(place: Place) -> None:
    begun, path = begin_database(place)
    with open_home(str(place.home), environ={}) as home:
        assert home.is_new
        migrate(begun, at=0)
        assert (path.stat().st_size, home.is_new) == (4096, False)
    begun.close()
