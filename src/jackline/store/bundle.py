"""Which migration files jackline ships, and whether they are all here. It opens no database and applies nothing.

The folder cannot say what is missing from it, so the list stands here; a test holds it equal to the folder.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.errors import PackageBroken
from jackline.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = (
    "0001_runs.postgres.sql",
    "0001_runs.sql",
    "0001_runs.sqlite.sql",
    "0002_ledger.postgres.sql",
    "0002_ledger.sql",
    "0002_ledger.sqlite.sql",
    "0003_outbox.sql",
    "0004_changes.sql",
    "0005_agents.sql",
    "0006_gate.postgres.sql",
    "0006_gate.sql",
    "0006_gate.sqlite.sql",
    "0007_agent_state.postgres.sql",
    "0007_agent_state.sql",
    "0007_agent_state.sqlite.sql",
    "0008_reason_codes.sql",
)


def refuse_broken() -> None:
    """PackageBroken, with the first file that is wrong, unless every migration is here and says something."""
    for path, why in _flaws():
        raise PackageBroken(path, why=why)


def _flaws() -> Iterator[tuple[str, str]]:
    for name in FILES:
        path = os.path.join(schema.FOLDER, name)
        if why := _flaw(path):
            yield path, why
    numbers = {int(name[:4]) for name in (*FILES, *_found()) if name[:4].isdigit()}
    for number in range(1, max(numbers)):
        if number not in numbers:
            yield os.path.join(schema.FOLDER, f"{number:04d}_*.sql"), "is missing"


def _found() -> list[str]:
    """A file that is here and not in the list counts, too: nothing may lie between it and the others."""
    return [name for name in os.listdir(schema.FOLDER) if name.endswith(".sql")]


def _flaw(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        return "is missing"
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or 'it is not text'})"
    return "" if any(line and not line.startswith("--") for line in lines) else "is empty"
