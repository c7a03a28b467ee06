"""Where the commands of a page are typed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.place import Place
from tests.docs.pages import ROOT


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A repository with what a fresh clone has: the examples, and .venv/ as `make setup` leaves it."""
    made = Place(tmp_path)
    made.repository.mkdir()
    shutil.copytree(ROOT / "examples", made.repository / "examples")
    (made.repository / ".venv").symlink_to(sys.prefix)
    made.environ["PATH"] = os.pathsep.join((os.path.join(sys.prefix, "bin"), os.environ["PATH"]))
    made.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    subprocess.run(["git", "init", "-q"], cwd=made.repository, check=True)
    yield made
    made.close()
