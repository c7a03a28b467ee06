"""The log in the home: private, and never more than a few megabytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from jackline.app import diagnostics
from jackline.app.home import open_home
from jackline.app.paths import LOG_FILE
from jackline.diagnostic_log import LOG


def test_a_mistake_of_ours_is_written_down_for_its_owner_only(tmp_path: Path) -> None:
    path = diagnostics.log_unexpected(str(tmp_path), ValueError("oops"))
    assert "ValueError: oops" in Path(path).read_text()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_full_log_makes_room_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / LOG_FILE
    for number, text in ((0, "newest"), (1, "newer"), (2, "older"), (3, "oldest")):
        (tmp_path / (f"{LOG_FILE}.{number}" if number else LOG_FILE)).write_text(text + " " * 2_000_000)
    diagnostics.log_unexpected(str(tmp_path), ValueError("oops"))
    assert path.stat().st_size < 10_000
    assert [(tmp_path / f"{LOG_FILE}.{number}").read_text().strip() for number in (1, 2, 3)] == [
        "newest",
        "newer",
        "older",
    ]


def test_a_small_log_goes_on(tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).write_text("before\n")
    diagnostics.log_unexpected(str(tmp_path), ValueError("oops"))
    assert (tmp_path / LOG_FILE).read_text().startswith("before\n")


def test_a_line_is_redacted_and_a_log_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    diagnostics.start_log(open_home(str(tmp_path), {"HOME": str(tmp_path)}))
    LOG.warning("Authorization: Bearer " + "a1" * 20)
    line = (tmp_path / LOG_FILE).read_text()
    assert line.endswith("jackline WARNING Authorization: Bearer [redacted]\n")
    (tmp_path / LOG_FILE).unlink()
    (tmp_path / LOG_FILE).mkdir()
    LOG.info("lost")
