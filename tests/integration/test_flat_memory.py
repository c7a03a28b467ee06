"""Whatever an agent prints, the supervisor's memory stays flat and the raw transcript has every byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MB = 1_000_000
ALLOWED_KB = 80_000  # a line of up to 16 MiB is held, and copied once when it is handed on

KINDS: list[Any] = [
    pytest.param({"kind": "lines", "bytes": 100 * MB}, id="short lines"),
    pytest.param({"kind": "long_line", "bytes": 100 * MB}, id="a line of 100 MB"),
    pytest.param({"kind": "binary", "bytes": 30 * MB}, id="binary bytes", marks=pytest.mark.full),
    pytest.param(
        {"kind": "long_line", "bytes": 60 * MB, "newline": False}, id="no newline at all", marks=pytest.mark.full
    ),
    pytest.param({"kind": "lines", "bytes": 60 * MB, "stream": "stderr"}, id="standard error", marks=pytest.mark.full),
    pytest.param({"kind": "lines", "bytes": 1000 * MB}, id="1 GB", marks=pytest.mark.full),
]


def peak_kb(folder: Path, steps: list[dict[str, Any]]) -> int:
    """The largest resident size of the supervisor of a run that plays these steps."""
    folder.mkdir()
    script = folder / "script.json"
    script.write_text(json.dumps({"version": 1, "steps": steps}))
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "JACKLINE_HOME": str(folder / "home")}
    words = ["run", "--agent", "scripted", "--script", str(script), "--run-id", "r", "--json"]
    # One process of ours, which asks for its own peak at the end: no child's memory is counted with it.
    program = (
        "import resource, sys; from jackline.cli.main import main; code = main(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    return int(ended.stderr.split()[-1])


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a run needs that says next to nothing."""
    return peak_kb(tmp_path_factory.mktemp("quiet") / "place", [{"say": "hello"}])


@pytest.mark.full
@pytest.mark.parametrize("garbage", KINDS)
def test_memory_stays_flat(tmp_path: Path, garbage: dict[str, Any], quiet: int) -> None:
    loud = peak_kb(tmp_path / "loud", [{"garbage": garbage}, {"say": "hello"}])
    assert loud - quiet < ALLOWED_KB
    turns = tmp_path / "loud" / "home" / "runs" / "r" / "turns"
    raw = turns / f"0001-work.{garbage.get('stream', 'stdout')}"
    assert raw.stat().st_size >= garbage["bytes"]
