"""A disk that fills up under a run: one clear line, the agent ended, nothing lost, and a resume once there is room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEPS = [
    {"say": "before"},
    {"garbage": {"kind": "lines", "bytes": 3_000_000}},
    {"edit": {"path": "after.txt", "content": "x"}},
]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    folder = tmp_path / "home"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def jackline(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home.parent), "JACKLINE_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-m", "jackline", *words],
        cwd=home.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_full_disk_stops_the_run_and_loses_nothing(small_disk: Path) -> None:
    script = small_disk.parent / "script.json"
    script.write_text(json.dumps({"version": 1, "steps": STEPS}))
    stopped = jackline(small_disk, "run", "--script", str(script), "--run-id", "r")
    assert stopped.returncode == 1
    assert stopped.stderr.splitlines()[-1].startswith("jackline: the disk is full")
    assert "Traceback" not in stopped.stderr
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    assert jackline(small_disk, "db", "check").returncode == 0
    resumed = jackline(small_disk, "resume", "r", "--json")
    assert (resumed.returncode, json.loads(resumed.stdout)["state"]) == (0, "succeeded")
    assert (small_disk.parent / "after.txt").read_text() == "x"
