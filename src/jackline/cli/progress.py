"""Prints what a run does while it works: on a terminal with a live line below, else as plain lines.

It only reads, over its own connection; an error here never disturbs the run.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from jackline.cli.output import make_harmless
from jackline.errors import JacklineError
from jackline.formatting import shorten_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.app.home import Home
    from jackline.cli.live_view import LiveView, ViewItem
    from jackline.cli.output import Output
    from jackline.domain.records import Run
    from jackline.store.store import Store

_REFRESH_SECONDS = 0.2
_PAGE = 1000
_LEAST_COLUMNS = 20
# The cursor stays at the beginning of the live line, so that all of it can be erased even after the terminal became
# narrower and broke it in two. It is not wrapped: some terminals disagree with us about the width of a character.
# The space: tmux scrolls a live line at the top of the screen into its history if it is erased from its first column.
_ERASE = "\r \x1b[J\r"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Progress:
    """Follows a run in a thread while the `with` block lasts; nothing with --json or --quiet."""

    def __init__(self, home: Home, run: Run, out: Output, *, is_asked_here: bool = False) -> None:
        self._home, self._run, self._out = home, run, out
        self._is_asked_here = is_asked_here
        self._is_live = out.stderr.is_terminal and os.environ.get("TERM") != "dumb"
        self._seq = run.event_seq
        self._view: LiveView | None = None
        self._ended = threading.Event()
        self._started = _read_clock()
        self._thread = threading.Thread(target=self._follow_run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if not (self._out.json or self._out.quiet):
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def last_words(self) -> str:
        """The words of the agent if they are the last thing that was printed; else empty."""
        from jackline.cli.live_view import Words

        last = self._view.last if self._view is not None else None
        return last.text if isinstance(last, Words) else ""

    def _follow_run(self) -> None:
        from jackline.cli.live_view import LiveView

        try:
            with self._home.reopen() as home:
                store = home.store()
                view = self._view = LiveView(self._run, store.redactor.redact, is_asked_here=self._is_asked_here)
                while not self._ended.wait(_REFRESH_SECONDS):
                    self._show_news(store, view)
                self._show_news(store, view)
                self._print_items(view.finish(), "")
        except JacklineError:
            pass  # the run meets the same error and reports it
        finally:
            self._print_items((), "")

    def _show_news(self, store: Store, view: LiveView) -> None:
        items: list[ViewItem] = []
        while events := store.records.list_events(self._run.id, self._seq, _PAGE):
            for event in events:
                self._seq = event.seq
                missing = view.needs_call(event)
                call = store.calls.get(self._run.id, missing) if missing else None
                items += view.take_event(event, _read_clock(), call)
        now = _read_clock()
        items += view.release(now)
        limit = self._run.spec.limits.usd_micros
        self._print_items(items, view.format_status(now, now - self._started, limit, self._measure_columns()))

    def _print_items(self, items: Iterable[ViewItem], status: str) -> None:
        """Print the items, and below them the live line instead of the one that is there."""
        from jackline.cli.live_view import render_item

        errors, columns = self._out.stderr, self._measure_columns() if self._is_live else None
        lines = [line for item in items for line in render_item(item, columns, self._paint)]
        text = "".join(f"{make_harmless(line)}\n" for line in lines)
        if columns is None:
            errors.write(text)
            return
        # In an encoding that lacks characters, their escapes and "..." take more columns.
        fitting = status if errors.is_unicode else shorten_text(errors.make_encodable(status), columns - 2)
        live = f"{_NO_WRAP}{fitting}{_WRAP}\r" if fitting else ""
        errors.write(_ERASE + text + live)

    def _paint(self, text: str, style: str | None) -> str:
        return self._out.colorize(text, style, errors=True)

    def _measure_columns(self) -> int:
        """Return how many columns to use now; the last one stays empty, because some terminals wrap after it."""
        columns = self._out.terminal_width(2)  # COLUMNS may be older than the last change of the window
        with suppress(OSError):
            columns = min(columns, os.get_terminal_size(2).columns or columns)
        return max(columns - 1, _LEAST_COLUMNS)


def _read_clock() -> int:
    return round(time.monotonic() * 1000)
