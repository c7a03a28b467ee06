"""`jackline agents`: every agent, found or not, and nobody is sent a prompt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jackline.agents import registry
from tests.cli.place import Place


def install(place: Place, name: str, says: str) -> Path:
    folder = place.folder / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" >> {place.folder}/asked\n{says}\n')
    path.chmod(0o700)
    place.environ["PATH"] = f"{folder}:/usr/bin:/bin"
    return path


@pytest.fixture
def real() -> str:
    """A built-in agent that is a program to be found and asked."""
    found = (registry.load(name).declaration for name in registry.names())
    return next(one.name for one in found if one.version_arguments and one.minimum)


def of(place: Place, name: str) -> dict[str, object]:
    listed: list[dict[str, object]] = place.type("agents", "--json").json["agents"]
    return next(one for one in listed if one["name"] == name)


def test_all_are_listed_and_scripted_is_ready(place: Place) -> None:
    listed = place.type("agents", "--json").json["agents"]
    assert [one["name"] for one in listed] == list(registry.names())
    scripted = of(place, "scripted")
    assert (scripted["usable"], scripted["health"], scripted["why"]) == (True, "ready", None)
    assert not place.home.exists()


def test_one_that_is_there_has_its_version(place: Place, real: str) -> None:
    declaration = registry.load(real).declaration
    path = install(place, declaration.binary, "echo 999.0.0")
    seen = of(place, real)
    assert (seen["health"], seen["version"], seen["binary"]) == ("ready", "999.0.0", str(path))
    assert (place.folder / "asked").read_text().split() == list(declaration.version_arguments)
    rows = [line.split("\t") for line in place.type("agents").out.splitlines()]
    assert {len(row) for row in rows} == {9}
    assert next(row for row in rows if row[0] == real)[-1] == str(path)


def test_an_old_one_and_a_missing_one_say_why(place: Place, real: str) -> None:
    declaration = registry.load(real).declaration
    install(place, declaration.binary, "echo 0.0.1")
    old = of(place, real)
    assert (old["usable"], old["health"]) == (False, "unusable")
    assert "is 0.0.1, needs" in str(old["why"])
    os.unlink(place.folder / "bin" / declaration.binary)
    gone = of(place, real)
    assert (gone["health"], gone["binary"]) == ("missing", None)
    assert declaration.install in str(gone["why"])


def test_a_damaged_database_does_not_hide_them(place: Place) -> None:
    place.home.mkdir()
    (place.home / "state.sqlite").write_bytes(b"no database")
    ended = place.type("agents")
    assert ended.code == 0
    assert "scripted\tready" in ended.out
    assert "damaged" in ended.err
