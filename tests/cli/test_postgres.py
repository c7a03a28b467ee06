"""The same commands on PostgreSQL: migrated only by hand; a missing server is one line."""

from __future__ import annotations

import pytest

from tests.cli.place import SAY, Place, is_one_line

pytestmark = pytest.mark.postgres


def test_a_run_on_postgres(place: Place, postgres_url: str) -> None:
    place.environ["JACKLINE_DATABASE"] = postgres_url
    early = place.play(SAY)
    assert (early.code, is_one_line(early), "jackline db migrate" in early.err) == (1, True, True), early
    assert place.type("db", "status", "--json").json["pending"]
    assert place.type("db", "migrate", "--json").json["applied"]
    run = place.play(SAY, words=("--json",))
    assert (run.code, run.json["state"]) == (0, "succeeded")
    assert [row["id"] for row in place.type("list", "--json").rows] == [run.json["id"]]
    assert place.type("show", "1", "--json").json["state"] == "succeeded"
    assert place.type("db", "archive", "--older-than", "0s", "--json").json["runs"] == 1
    assert place.type("db", "check").code == 0
    backup = place.type("db", "backup", place.path("copy"))
    assert (backup.code, is_one_line(backup)) == (2, True)


def test_a_server_that_is_not_there(place: Place) -> None:
    place.environ["JACKLINE_DATABASE"] = "postgresql://somebody:hidden-word@127.0.0.1:1/nothing"
    for words in (("list",), ("run", "--script", place.script(SAY)), ("db", "status"), ("db", "migrate")):
        ended = place.type(*words)
        assert (ended.code, is_one_line(ended)) == (1, True), ended
        assert "hidden-word" not in ended.err
