"""`jackline doctor`: each part with its state, how to fix it, and 1 only if something required is wrong."""

from __future__ import annotations

import os

import pytest

from jackline.app import config, doctor
from jackline.app.home import Home
from tests.cli.place import SAY, Place


def findings(place: Place, code: int = 0, **environ: str) -> dict[str, dict[str, str]]:
    ended = place.type("doctor", "--json", environ=environ)
    assert (ended.code, ended.json["ok"]) == (code, code == 0), ended
    return {one["part"]: one for one in ended.json["findings"]}


def test_a_new_place_is_well_and_stays_new(place: Place) -> None:
    found = findings(place)
    assert {"python", "sqlite", "git", "tmux", "home", "disk", "database", "clock", "timezone"} <= found.keys()
    assert {one["state"] for name, one in found.items() if not name.startswith("agent")} == {"ok"}
    assert not place.home.exists()
    rows = [line.split("\t") for line in place.type("doctor").out.splitlines()]
    assert {row[0] for row in rows} <= {"ok", "warn", "fail"}


def test_a_home_with_runs_is_well(place: Place) -> None:
    assert place.play(SAY).code == 0
    found = findings(place)
    assert (found["home"]["state"], found["database"]["state"], found["clock"]["state"]) == ("ok", "ok", "ok")
    assert "schema" in found["database"]["found"]


def test_a_home_that_others_can_read(place: Place) -> None:
    assert place.play(SAY).code == 0
    os.chmod(place.home, 0o750)  # noqa: S103 - that is what is to be found
    home = findings(place)["home"]
    assert (home["state"], home["fix"]) == ("warn", f"chmod 700 {place.home}")


def test_a_damaged_database_fails(place: Place) -> None:
    place.home.mkdir(mode=0o700)
    (place.home / "state.sqlite").write_bytes(b"no database" * 1000)
    found = findings(place, code=1)
    assert found["database"]["state"] == "fail"
    assert "damaged" in found["database"]["found"]


def test_a_home_that_cannot_be(place: Place) -> None:
    assert findings(place, code=1, JACKLINE_HOME="/dev/null/home")["home"]["state"] == "fail"


def test_without_git_and_tmux(place: Place) -> None:
    empty = place.folder / "empty"
    empty.mkdir()
    found = findings(place, PATH=str(empty))
    assert (found["git"]["state"], found["git"]["found"]) == ("warn", "not installed")
    assert (found["tmux"]["state"], found["tmux"]["found"]) == ("ok", "not installed")
    assert found["agents"]["state"] == "warn"


def test_the_agent_that_is_wanted_must_be_there(place: Place) -> None:
    found = findings(place, code=1, JACKLINE_AGENT="scripted", JACKLINE_SCRIPTED_BINARY="/nonexistent")
    assert found["agent scripted"]["state"] == "fail"
    assert "JACKLINE_SCRIPTED_BINARY" in found["agent scripted"]["found"]


def test_an_unknown_zone_and_an_unknown_variable(place: Place) -> None:
    found = findings(place, TZ="Europe/Belin", JACKLINE_TIMEOUT_SECOND="3", JACKLINE_SOMETHING="else")
    assert (found["timezone"]["state"], found["timezone"]["found"]) == (
        "warn",
        "TZ=Europe/Belin is not a known time zone",
    )
    assert found["environment"]["found"] == "JACKLINE_TIMEOUT_SECOND is not a setting of jackline"
    assert found["environment"]["fix"] == "did you mean JACKLINE_TIMEOUT_SECONDS?"


def test_a_clock_that_went_back(place: Place) -> None:
    assert place.play(SAY).code == 0
    program = (
        "import sys; from jackline import clock; real = clock.wall_ms\n"
        "clock.wall_ms = lambda: real() - 7_200_000\n"
        "from jackline.cli.main import main; sys.exit(main(['doctor', '--json']))"
    )
    found = {one["part"]: one for one in place.end_of(place.python(program)).json["findings"]}
    assert found["clock"]["state"] == "warn"
    assert "in the future" in found["clock"]["found"]


def test_a_home_that_cannot_be_created(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = config.load_config(place.environment(JACKLINE_HOME=str(place.folder / "a" / "b")), str(place.repository))
    found = {one.part: one for one in doctor.check_installation(Home(loaded))}
    assert found["home"].state == "ok"
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != str(place.folder) and real(path, mode))
    found = {one.part: one for one in doctor.check_installation(Home(loaded))}
    assert found["home"].state == "fail"
    assert f"{place.folder} cannot be written" in found["home"].found


def test_a_home_that_cannot_be_read_fails(place: Place) -> None:
    place.home.symlink_to("home")
    assert findings(place, code=1)["home"]["state"] == "fail"
