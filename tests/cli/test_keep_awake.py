"""The machine is kept awake while a run is worked on, and no longer: also when jackline is killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jackline.engine.keep_awake import keep_awake
from tests.cli.place import SAY, Place

# Writes what it was called with into a fifo, which its own child inherits: the reader sees the end of both.
INHIBITOR = """#!/bin/sh
exec 3>"{fifo}"
echo "$@" >&3
while [ "$1" != cat ]; do shift; done
"$@"
"""


@pytest.fixture
def inhibitor(tmp_path: Path) -> Path:
    """A folder with a systemd-inhibit that reports to the fifo `held` in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.mkfifo(folder / "held")
    program = folder / "systemd-inhibit"
    program.write_text(INHIBITOR.format(fifo=folder / "held"))
    program.chmod(0o755)
    return folder


def search_path(folder: Path) -> str:
    return f"{folder}:{os.environ['PATH']}"


def test_it_is_held_while_the_block_lasts(inhibitor: Path) -> None:
    reader = os.open(inhibitor / "held", os.O_RDONLY | os.O_NONBLOCK)
    with keep_awake({"PATH": search_path(inhibitor)}):
        assert select.select([reader], [], [], 60)[0]
        assert b"--what=sleep:idle" in os.read(reader, 1000)
        assert not select.select([reader], [], [], 0)[0]  # an end of file would be readable
    assert select.select([reader], [], [], 60)[0]
    assert os.read(reader, 1000) == b""
    os.close(reader)


def test_a_killed_holder_lets_the_machine_sleep(inhibitor: Path) -> None:
    program = (
        "import os, sys; from jackline.engine.keep_awake import keep_awake\n"
        "with keep_awake(os.environ): sys.stdin.read()"
    )
    reader = os.open(inhibitor / "held", os.O_RDONLY | os.O_NONBLOCK)
    argv = [sys.executable, "-c", program]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env={**os.environ, "PATH": search_path(inhibitor)}) as holder:
        assert select.select([reader], [], [], 60)[0]
        os.read(reader, 1000)
        os.kill(holder.pid, signal.SIGKILL)
        assert select.select([reader], [], [], 60)[0]
        assert os.read(reader, 1000) == b""
    os.close(reader)


def test_a_run_holds_it_if_that_is_set(place: Place, inhibitor: Path) -> None:
    reader = os.open(inhibitor / "held", os.O_RDONLY | os.O_NONBLOCK)
    assert place.play(SAY, environ={"PATH": search_path(inhibitor)}).code == 0
    assert not select.select([reader], [], [], 0)[0] or os.read(reader, 1000) == b""
    assert place.play(SAY, environ={"PATH": search_path(inhibitor), "JACKLINE_KEEP_AWAKE": "true"}).code == 0
    assert b"jackline" in os.read(reader, 1000)
    os.close(reader)


def test_without_a_program_the_run_goes_on(place: Place, tmp_path: Path) -> None:
    (tmp_path / "systemd-inhibit").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "systemd-inhibit").chmod(0o755)
    environ = {"PATH": search_path(tmp_path), "JACKLINE_KEEP_AWAKE": "true"}
    assert place.play(SAY, environ=environ).code == 0
    doctor = place.type("doctor", "--json", environ=environ)
    found = {one["part"]: one for one in doctor.json["findings"]}
    assert (found["keep_awake"]["state"], doctor.code) == ("warn", 0)
