"""Verify one run: its archive is read, its store compares. It repairs nothing, and believes no file unread."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

from jackline.domain.events import Event
from jackline.errors import JacklineError
from jackline.store.contract import Verified

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.domain.records import Run


class _Unreadable(JacklineError):
    """the archive {detail} cannot be read ({why})"""  # noqa: D400 - the message


def verify(home: Home, run: Run, kept_head: str | None = None, folder: str | None = None) -> Verified:
    """What was found. A run that was archived is whole only together with its archive."""
    path = os.path.join(os.path.abspath(folder or os.path.join(home.path, "archive")), f"{run.id}.jsonl.gz")
    archived = _events(path) if os.path.exists(path) else None
    try:
        return home.store().verify(run.id, archived, kept_head)
    except _Unreadable as error:
        return Verified(problems=(f"run {run.id}: {error}",))


def _events(path: str) -> Iterator[Event]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield Event(**json.loads(line))
    except (OSError, EOFError, ValueError, TypeError) as error:
        raise _Unreadable(path, why=error) from None
