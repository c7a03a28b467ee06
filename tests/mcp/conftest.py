"""What the tests of the MCP server share."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.place import Place
from tests.conftest import SLOW_BACKENDS


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A repository with a commit, and a home that does not exist yet."""
    made = Place(tmp_path)
    made.repository.mkdir()
    (made.repository / "kept.md").write_text("kept\n")
    for words in (
        ("init", "--quiet"),
        ("add", "kept.md"),
        ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--message", "start"),
    ):
        subprocess.run(["git", *words], cwd=made.repository, env=made.environment(), check=True)
    yield made
    made.close()


@pytest.fixture(params=SLOW_BACKENDS)
def any_place(place: Place, request: pytest.FixtureRequest) -> Place:
    """The same with each kind of store."""
    if request.param == "postgres":
        place.environ["JACKLINE_DATABASE"] = request.getfixturevalue("postgres_database")
    return place
