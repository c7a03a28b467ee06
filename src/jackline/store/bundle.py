"""Checks that all migration files of this jackline are installed. It opens no database and applies nothing.

The folder cannot say which file is missing from it, hence the list here; a test compares it with the folder.
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
    "0009_everyday.sql",
    "0010_service.sql",
    "0011_loop.sql",
)


def refuse_broken() -> None:
    """PackageBroken, with the first bad file, unless every migration is here and not empty."""
    for path, why in _find_flaws():
        raise PackageBroken(path, why=why)


def _find_flaws() -> Iterator[tuple[str, str]]:
    for name in FILES:
        path = os.path.join(schema.FOLDER, name)
        if why := _describe_flaw(path):
            yield path, why
    # A file that is here and not in the list counts, too: no number may be missing between it and the others.
    here = [name for name in os.listdir(schema.FOLDER) if name.endswith(".sql")]
    numbers = {int(name[:4]) for name in (*FILES, *here) if name[:4].isdigit()}
    for number in range(1, max(numbers)):
        if number not in numbers:
            yield os.path.join(schema.FOLDER, f"{number:04d}_*.sql"), "is missing"


def _describe_flaw(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file]
    except FileNotFoundError:
        return "is missing"
    except (OSError, UnicodeDecodeError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or 'it is not text'})"
    return "" if any(line and not line.startswith("--") for line in lines) else "is empty"
