"""Ambiguous values are refused with one line and exit code 2, and nothing is done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.place import Place


@pytest.fixture
def script(place: Place) -> str:
    return place.script({"say": "hello"})


@pytest.mark.parametrize("address", ["postgresql:/u@db/x", "Postgresql://u@db/x", "mysql://x", "sqlite:///x", "foo"])
def test_a_mistyped_database_does_not_become_a_file(place: Place, script: str, address: str) -> None:
    place.environ["JACKLINE_DATABASE"] = address
    ended = place.type("run", "--script", script)
    assert (ended.code, "database must be" in ended.err) == (2, True)
    assert not os.path.exists(os.path.join(place.repository, address.partition("/")[0]))


@pytest.mark.parametrize("flag", ["--run-id", "--proof"])
def test_an_empty_flag_is_a_variable_that_was_not_set(place: Place, script: str, flag: str) -> None:
    ended = place.type("run", "--script", script, flag, "")
    assert (ended.code, f"{flag} is empty" in ended.err) == (2, True)


@pytest.mark.parametrize("flag", ["--review", "--copy", "--label", "--allow"])
def test_a_list_of_nothing_is_empty(place: Place, script: str, flag: str) -> None:
    ended = place.type("run", "--script", script, flag, " , ")
    assert (ended.code, f"{flag} is empty" in ended.err) == (2, True), ended


@pytest.mark.parametrize(
    ("name", "value"), [("LEASE_SECONDS", "0"), ("TIMEOUT_SECONDS", "-1"), ("TIMEOUT_SECONDS", "1e300")]
)
def test_a_setting_that_cannot_work_is_refused(place: Place, script: str, name: str, value: str) -> None:
    place.environ[f"JACKLINE_{name}"] = value
    ended = place.type("run", "--script", script)
    assert (ended.code, f"JACKLINE_{name}" in ended.err) == (2, True)


def test_a_device_is_no_script(place: Place) -> None:
    ended = place.type("run", "--script", "/dev/zero")
    assert (ended.code, "is larger than" in ended.err) == (2, True)


def test_numbers_beyond_the_database_are_no_surprise(place: Place, script: str) -> None:
    assert place.type("run", "--script", script).code == 0
    assert place.type("list", "--limit", "9" * 20).code == 2
    assert place.type("list", "--since", "9" * 20 + "d").code == 0
    assert place.type("db", "archive", "--older-than", "9" * 14 + "d").code == 0


def test_a_crash_point_that_does_not_exist_crashes_nothing(place: Place, script: str) -> None:
    place.environ["JACKLINE_CRASH_AT"] = "call.intended:2"
    ended = place.type("run", "--script", script)
    assert (ended.code, "unknown crash point 'call.intended'" in ended.err) == (2, True)


def test_a_damaged_database_is_not_backed_up(place: Place, script: str) -> None:
    assert place.type("run", "--script", script).code == 0
    with open(os.path.join(place.home, "state.sqlite"), "r+b") as file:
        file.seek(8192)
        file.write(os.urandom(30_000))
    copy = str(place.folder / "copy.sqlite")
    ended = place.type("db", "backup", copy)
    assert (ended.code, os.path.exists(copy)) == (1, False)
    assert "damaged" in ended.err
