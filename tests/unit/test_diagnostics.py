"""The log in the home: private, and never more than a few megabytes."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.app import diagnostics
from jackline.app.paths import LOG_FILE


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logger = logging.getLogger("jackline")
    before = (list(logger.handlers), logger.level, logger.propagate, logging.raiseExceptions)
    logger.handlers = []
    yield
    for handler in logger.handlers:
        handler.close()
    logger.handlers, level, logger.propagate, logging.raiseExceptions = before
    logger.setLevel(level)


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
