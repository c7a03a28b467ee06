"""Threads whose mistakes surface: a thread has nobody above it, so what it raises is raised again in the main loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def start(name: str, work: Callable[[], None], post: Callable[[BaseException], None]) -> threading.Thread:
    """Run `work` in a thread of its own; whatever it raises is posted, never printed and never lost."""
    thread = threading.Thread(target=_carry, args=(work, post), name=name, daemon=True)
    thread.start()
    return thread


def _carry(work: Callable[[], None], post: Callable[[BaseException], None]) -> None:
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - it is not swallowed: the main loop raises it again
        post(error)
