"""A message is never lost: the supervisor is killed between storing it, storing the turn, and starting the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jackline.store.open import open_store
from tests.conftest import SLOW_BACKENDS
from tests.crash.stage import KILLED, RUN, Stage, build

if TYPE_CHECKING:
    from pathlib import Path

WORDS = "take the other road"


def given(stage: Stage) -> list[bool]:
    """For each turn, whether its prompt has the message."""
    store = open_store(stage.database, create=False)
    try:
        return [WORDS in turn.prompt for turn in store.records.list_turns(RUN)]
    finally:
        store.close()


@pytest.mark.parametrize("database", SLOW_BACKENDS, indirect=True)
@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("run.claimed", [False, True]),  # stored, and no turn yet
        ("advance.committed:3", [False, True, True]),  # the turn is stored, its agent was not started
        ("turn.spawning", [False, True, True]),
        ("turn.exited", [False, True, False]),  # the agent has read it
    ],
)
def test_a_message_survives_a_kill(tmp_path: Path, database: str, point: str, expected: list[bool]) -> None:
    stage = build(tmp_path, database)
    first = stage.start(JACKLINE_CRASH_AT="call.outcome.begun:2")
    first.communicate(timeout=60)
    assert first.returncode == KILLED
    killed = stage.command("resume", RUN, WORDS, "--json", JACKLINE_CRASH_AT=point)
    assert killed.returncode == KILLED, (killed.stdout, killed.stderr)
    resumed = stage.resume()
    assert resumed.returncode == 0, (resumed.stdout, resumed.stderr)
    assert given(stage)[: len(expected)] == expected
    assert stage.processes_left() == []
