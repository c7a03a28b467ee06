"""A command that is forked from a loaded Python behaves as one in a new Python."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.cli.place import SAY, Place
from tests.support.helpers import is_alive


@pytest.fixture(params=["forked", "new"])
def place(place: Place, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    if request.param == "new":
        monkeypatch.setenv("JACKLINE_NEW_PYTHON", "1")
    return place


def test_it_has_its_own_folder_environment_streams_and_mask(place: Place) -> None:
    previous = os.umask(0o027)
    try:
        at = place.folder / "other"
        at.mkdir()
        assert place.type("init", cwd=at).code == 0
        ended = place.type("run", "-", "--agent", "command", "--", "sh", "-c", "cat; env", stdin="over stdin", cwd=at)
    finally:
        os.umask(previous)
    assert (at / "jackline.toml").stat().st_mode & 0o777 == 0o640
    assert ended.code == 0, ended
    for text in ("over stdin", f"HOME={place.folder}", "LC_CTYPE=C.UTF-8"):  # the last one is from Python itself
        assert text in ended.err
    assert "JACKLINE_NEW_PYTHON" not in ended.err


def test_it_is_a_child_that_dies_of_a_signal(place: Place) -> None:
    steps = ({"touch": place.path("here")}, {"hang": True})
    process = place.start_playing(*steps)
    place.wait_for("here")
    parent = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1]
    assert int(parent) == os.getpid()
    process.send_signal(signal.SIGKILL)
    assert place.end_of(process).code == -signal.SIGKILL
    assert not is_alive(process.pid)


def test_its_exit_code_and_its_mistakes_arrive(place: Place) -> None:
    assert place.play(SAY).code == 0
    ended = place.type("show", "no-such-run")
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (2, "", 1)
