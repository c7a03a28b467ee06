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
from jackline.clock import wall_ms
from jackline.errors import JacklineError
from jackline.formatting import shorten_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jackline.app.home import Home
    from jackline.cli.live_view import ViewItem
    from jackline.cli.output import Output
    from jackline.cli.transcript_view import TranscriptView
    from jackline.domain.events import Event
    from jackline.domain.records import Run
    from jackline.store.store import Store

REFRESH_SECONDS = 0.2
_PAGE = 1000
_LEAST_COLUMNS = 20
# The cursor stays at the beginning of the live line, so that all of it can be erased even after the terminal became
# narrower and broke it in two. It is not wrapped: some terminals disagree with us about the width of a character.
# The space: tmux scrolls a live line at the top of the screen into its history if it is erased from its first column.
_ERASE = "\r \x1b[J\r"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class LivePrinter:
    """Prints the news of a run when it is called, with a live line below on a terminal.

    With a `transcript`, its lines are printed instead of what a live view shows, from the beginning of the run.
    """

    def __init__(
        self,
        run: Run,
        out: Output,
        store: Store,
        *,
        is_asked_here: bool = False,
        transcript: TranscriptView | None = None,
    ) -> None:
        from jackline.cli.live_view import LiveView

        self._run, self._out, self._store, self._transcript = run, out, store, transcript
        self._is_live = out.stderr.is_terminal and os.environ.get("TERM") != "dumb"
        self._started = _read_clock()
        self._seq = run.event_seq
        if transcript is not None:  # every event is seen, and counted, from here on
            run = run._replace(status=run.status._replace(spent=type(run.status.spent)()))
            self._started -= max(0, wall_ms() - (run.started_at or run.created_at))
            self._seq = 0
        self.view = LiveView(run, store.redactor.redact, is_asked_here=is_asked_here)

    def print_news(self) -> None:
        """Print what was added since the last call."""
        items: list[ViewItem] = []
        while events := self._store.records.list_events(self._run.id, self._seq, _PAGE):
            for event in events:
                self._seq = event.seq
                missing = self.view.needs_call(event)
                call = self._store.calls.get(self._run.id, missing) if missing else None
                items += self.view.take_event(event, self._read_time(event), call)
        now = _read_clock()
        items += self.view.release(now)
        limit = self._run.spec.limits.usd_micros
        self._print(items, self.view.format_status(now, now - self._started, limit, self._measure_columns()))

    def _read_time(self, event: Event) -> int:
        """When the event happened, on our clock: events of a run that is joined late are older than now."""
        age = wall_ms() - event.at if self._transcript is not None else 0
        return _read_clock() - max(0, age)

    def finish(self) -> None:
        """Print the rest, and remove the live line."""
        self.print_news()
        self._print(self.view.finish(), "")

    def clear(self) -> None:
        """Remove the live line."""
        self._print((), "")

    def _print(self, items: Iterable[ViewItem], status: str) -> None:
        """Print the items, and below them the live line instead of the one that is there."""
        errors, columns = self._out.stderr, self._measure_columns() if self._is_live else None
        text = "".join(f"{make_harmless(line)}\n" for line in self._render(items, columns))
        if columns is None:
            errors.write(text)
            return
        # In an encoding that lacks characters, their escapes and "..." take more columns.
        fitting = status if errors.is_unicode else shorten_text(errors.make_encodable(status), columns - 2)
        live = f"{_NO_WRAP}{fitting}{_WRAP}\r" if fitting else ""
        errors.write(_ERASE + text + live)

    def _render(self, items: Iterable[ViewItem], columns: int | None) -> Iterator[str]:
        from jackline.cli.live_view import render_item

        if self._transcript is None:
            for item in items:
                yield from render_item(item, columns, self._paint)
            return
        while page := self._transcript.read_page():
            yield from map(str, page)

    def _paint(self, text: str, style: str | None) -> str:
        return self._out.colorize(text, style, errors=True)

    def _measure_columns(self) -> int:
        """Return how many columns to use now; the last one stays empty, because some terminals wrap after it."""
        columns = self._out.terminal_width(2)  # COLUMNS may be older than the last change of the window
        with suppress(OSError):
            columns = min(columns, os.get_terminal_size(2).columns or columns)
        return max(columns - 1, _LEAST_COLUMNS)


class Progress:
    """Follows a run in a thread while the `with` block lasts; nothing with --json or --quiet."""

    def __init__(self, home: Home, run: Run, out: Output, *, is_asked_here: bool = False) -> None:
        self._home, self._run, self._out = home, run, out
        self._is_asked_here = is_asked_here
        self._printer: LivePrinter | None = None
        self._ended = threading.Event()
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

        last = self._printer.view.last if self._printer is not None else None
        return last.text if isinstance(last, Words) else ""

    def _follow_run(self) -> None:
        with suppress(JacklineError), self._home.reopen() as home:  # the run meets the same error and reports it
            printer = self._printer = LivePrinter(self._run, self._out, home.store(), is_asked_here=self._is_asked_here)
            try:
                while not self._ended.wait(REFRESH_SECONDS):
                    printer.print_news()
                printer.finish()
            finally:
                printer.clear()


def _read_clock() -> int:
    return round(time.monotonic() * 1000)
