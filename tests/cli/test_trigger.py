"""`jackline trigger`: what is typed becomes a trigger, and every mistake is found before it is stored."""

from __future__ import annotations

import pytest

from tests.cli.place import SAY, Place, is_one_line


def test_a_trigger_is_added_listed_changed_and_removed(place: Place) -> None:
    words = ("--agent", "scripted", "--script", place.script(SAY))
    added = place.type("trigger", "add", "plants", "--work", "plant", "Plant {what}", *words, "--json")
    assert (added.code, added.json["definition"]["item_kind"]) == (0, "plant"), added
    again = place.type("trigger", "add", "plants", "--run-end", "x", *words)
    assert again.code == 2, again
    assert "--replace" in again.err
    changed = place.type("trigger", "add", "plants", "--run-end", "--on", "failed", "x", *words, "--replace")
    assert changed.code == 0, changed
    assert "ends of runs: failed" in place.type("trigger", "list").out
    assert place.type("trigger", "pause", "plants", "--json").json == {"name": "plants", "state": "paused"}
    shown = place.type("trigger", "show", "plants", "--json").json
    assert all(shown[key].endswith("Z") for key in ("paused_at", "created_at", "updated_at")), shown
    assert "paused" in place.type("trigger", "list").out
    assert place.type("trigger", "resume", "plants").code == 0
    assert place.type("trigger", "history", "plants").code == 0
    assert "prompt: x" in place.type("trigger", "show", "plants").out
    assert place.type("trigger", "remove", "plants").code == 0
    assert place.type("trigger", "list", "--json").out == ""
    gone = place.type("trigger", "show", "plants")
    assert gone.code == 2
    assert is_one_line(gone)
    unknown = place.type("trigger", "history", "plant")
    assert (unknown.code, "no trigger matches 'plant'" in unknown.err) == (2, True), unknown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", "t", "x"), "one of the arguments"),
        (("add", "t", "--work", "k", "--run-end", "x"), "not allowed with"),
        (("add", "../t", "--run-end", "x"), "cannot be a trigger's name"),
        (("add", "t", "--issues", "garden", "--with-label", "l", "x"), "write OWNER/NAME"),
        (("add", "t", "--issues", "octo/garden/..", "--with-label", "l", "x"), "write OWNER/NAME"),
        (("add", "t", "--issues", "octo/garden", "x"), "add --with-label LABEL"),
        (("add", "t", "--issues", "", "--with-label", "l", "x"), "write OWNER/NAME"),
        (("add", "t", "--work", "", "x"), "--work is empty"),
        (("add", "t", "--work", "k", "--with-label", "l", "x"), "--with-label is for --issues"),
        (("add", "t", "--comments", "octo/garden", "--profile", "overnight", "x"), "always has the profile ci"),
        (("add", "t", "--comments", "octo/garden", "--author", "a b", "x"), "not a login"),
        (("add", "t", "--work", "k", "--author", "ada", "x"), "--author is for"),
        (("add", "t", "--work", "k", "--on", "failed", "x"), "are for --run-end"),
        (("add", "t", "--run-end", "--on", "running", "x"), "invalid choice"),
        (("add", "t", "--run-end", "--task", "no_such"), "no_such"),
        (("add", "t", "--run-end", "--workspace", "/no/such/folder", "x"), "not a folder"),
    ],
)
def test_mistakes(place: Place, words: tuple[str, ...], says: str) -> None:
    ended = place.type("trigger", *words, "--agent", "scripted", "--script", place.script(SAY))
    assert ended.code == 2, ended
    assert is_one_line(ended)
    assert says in ended.err
    assert not place.type("trigger", "list", "--json").out


def test_a_secret_is_not_stored(place: Place) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    ended = place.type("trigger", "add", "t", "--run-end", f"use {token}", "--agent", "command", "--", "true")
    assert (ended.code, token in ended.err) == (2, False), ended


def test_the_address_of_a_ping_is_not_shown(place: Place) -> None:
    words = ("--ping", "https://hc.example/a-secret-path", "--agent", "scripted", "--script", place.script(SAY))
    added = place.type("trigger", "add", "t", "--run-end", "x", *words)
    shown = place.type("trigger", "show", "t")
    assert "ping: https://hc.example/***" in shown.out
    assert "a-secret-path" not in added.out + shown.out
