"""`jackline drill --agent claude`: the real CLI is killed in every known way, with the packaged fake model behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jackline.scenarios.drill_cases import CASES
from tests.cli.place import Ended, Place
from tests.real_agents import binary

SECONDS = 600.0
SECRET = "a-key-of-the-user"


@pytest.mark.full
def test_every_case_passes_with_the_real_claude(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = Place(tmp_path_factory.mktemp("drill"))
    place.repository.mkdir()
    place.environ.update({"JACKLINE_CLAUDE_BINARY": binary("claude"), "ANTHROPIC_API_KEY": SECRET})
    process = place.start("drill", "--agent", "claude", "--json", "--keep", place.path("kept"))
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        place.close()
    played = Ended(process.returncode, out, err)
    *rows, total = played.rows
    assert [(row["case"], row["result"], row["reasons"]) for row in rows] == [(one.name, "pass", []) for one in CASES]
    assert (played.code, total["passed"]) == (0, len(CASES))
    for row in rows:
        _is_the_clis_doing(Path(row["evidence"]))
    assert not _holds(Path(place.path("kept")), SECRET)


def _is_the_clis_doing(folder: Path) -> None:
    """Every call came through the CLI's own door, and its model was asked."""
    calls = json.loads((folder / "show.json").read_text())["calls"]
    assert calls
    assert {call["door"] for call in calls} == {"http"}, folder
    assert (folder / "asked.jsonl").stat().st_size


def _holds(folder: Path, word: str) -> bool:
    paths = (Path(root) / name for root, _, names in os.walk(folder) for name in names)
    return any(word.encode() in path.read_bytes() for path in paths if path.is_file())
