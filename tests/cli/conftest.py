"""Fixtures of the tests of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.repository.mkdir()
    yield made
    made.close()
