"""Commands show words of a newer version as text."""

from __future__ import annotations

import sqlite3

from tests.cli.place import Place


def test_commands_show_an_unknown_reason(place: Place) -> None:
    place.play({"say": "hello"}, words=("--run-id", "later"))
    with sqlite3.connect(place.home / "state.sqlite") as connection:
        connection.execute("UPDATE runs SET state = 'waiting', reason = 'weather', phase = NULL, finished_at = NULL")
    assert "weather" in place.type("show", "later").out
    assert "weather" in place.type("list").out
    assert place.type("show", "later", "--json").json["reason"] == "weather"
