"""Threads whose exceptions are raised again in the main loop."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def start_thread(name: str, work: Callable[[], None], post: Callable[[BaseException], None]) -> threading.Thread:
    """Run `work` in a new thread; `post` receives whatever it raises."""

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - not swallowed: the main loop raises it again
            post(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread
