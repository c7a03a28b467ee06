"""The commands in RESUME.md work exactly as written, in a shell that knows nothing of the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.place import EFFECT_RULE, SAY, SEND, Ended, Place

WAITS = 14
ASKS = EFFECT_RULE.replace('"allow"', '"ask"')


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Somewhere with a space and a quote in its name."""
    made = Place(tmp_path / "it's here")
    made.repository.mkdir(parents=True)
    yield made
    made.close()


def page(place: Place) -> str:
    return (place.home / "runs" / "r" / "RESUME.md").read_text()


def typed(place: Place, line: str) -> Ended:
    """The line in a shell in another folder, whose JACKLINE_HOME is not that of the run."""
    program = f'jackline() {{ "{sys.executable}" -m jackline "$@"; }}; {line.strip()}'
    elsewhere = place.path("elsewhere")
    return place.end_of(place.execute(["sh", "-c", program], cwd="/", environ={"JACKLINE_HOME": elsewhere}))


def test_the_answer_command_works_as_written(place: Place) -> None:
    waits = place.play(SEND, SAY, words=("--run-id", "r", "--policy", place.policy(ASKS)))
    assert waits.code == WAITS, waits
    (allow,) = [line for line in page(place).splitlines() if " allow " in line]
    assert typed(place, allow).code == 0
    assert place.type("export", "r").code == 0
    assert not (place.home / "runs" / "r" / "RESUME.md").exists()  # it waits no longer
    assert place.type("resume", "r").code == 0


def test_the_resume_command_works_as_written(place: Place) -> None:
    """With an agent that only the project defines, which cannot be found from another folder."""
    (place.repository / "jackline.toml").write_text("[agents.own]\ncommand = ['sh', '-c', 'test -e ready']\n")
    assert place.trust().code == 0
    failed = place.type("run", "do it", "--agent", "own", "--run-id", "r", "--retries", "0")
    assert failed.code == 1, failed
    (place.repository / "ready").touch()
    ended = typed(place, page(place).splitlines()[-1])
    assert (ended.code, "succeeded" in ended.out) == (0, True), ended


@pytest.mark.postgres
def test_a_database_from_a_variable_is_mentioned(place: Place, postgres_url: str) -> None:
    place.environ["JACKLINE_DATABASE"] = postgres_url
    assert place.type("db", "migrate").code == 0
    waits = place.play(SEND, SAY, words=("--run-id", "r", "--policy", place.policy(ASKS)))
    assert waits.code == WAITS, waits
    assert "- database: the one that `JACKLINE_DATABASE` named" in page(place)
    assert postgres_url not in page(place)
    assert typed(place, page(place).splitlines()[-1]).code == WAITS  # not answered yet
