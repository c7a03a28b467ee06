"""Shows the progress of a run: a live line on a terminal, plain lines in a pipe, nothing with --json.

It only reads, over its own connection; an error here never disturbs the run.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from jackline.cli.event_text import describe_event, is_notable, load_event_data
from jackline.domain.states import Phase
from jackline.errors import JacklineError
from jackline.formatting import format_count, format_elapsed, format_usd, shorten_text
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.events import Event
    from jackline.domain.records import Run
    from jackline.store.store import Store

_REFRESH_SECONDS = 0.2
_PAGE = 1000
_PHASES = {
    "recovery.started": Phase.RECOVERING,
    "turn.started": Phase.WORKING,
    "check.started": Phase.PROVING,
}
_ERASE = "\r\x1b[2K"


class ProgressState(NamedTuple):
    """The contents of the live line, computed from the run's events."""

    seq: int
    tokens: int
    usd_micros: int
    phase: str = "starting"
    last: str = ""

    def apply_event(self, event: Event) -> ProgressState:
        """Return the state after one more event."""
        state = self._replace(seq=event.seq, phase=_PHASES.get(event.kind, self.phase))
        if event.kind == "agent.usage":
            data = load_event_data(event)
            tokens = int(data.get("tokens_input", 0)) + int(data.get("tokens_output", 0))
            cost = int(data.get("usd_micros", 0))
            return state._replace(tokens=self.tokens + tokens, usd_micros=self.usd_micros + cost)
        return state._replace(last=describe_event(event)) if is_notable(event) else state

    def format_progress(self, elapsed_ms: int) -> str:
        """Return the line: phase, elapsed time, tokens, cost, last event."""
        parts = [self.phase, format_elapsed(elapsed_ms)]
        parts += [f"{format_count(self.tokens)} tokens"]
        parts += [format_usd(self.usd_micros)] if self.usd_micros else []  # many agents report none
        return " · ".join((*parts, self.last) if self.last else parts)


class Progress:
    """Follows a run in a thread while the `with` block lasts."""

    def __init__(self, home: Home, run: Run, out: Output) -> None:
        self._home, self._run, self._out = home, run, out
        spent = run.status.spent
        self._state = ProgressState(seq=run.event_seq, tokens=spent.tokens, usd_micros=spent.usd_micros)
        self._ended = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._follow_run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if not self._out.json:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _follow_run(self) -> None:
        try:
            with self._home.reopen() as home:
                store = home.store()
                while not self._ended.wait(_REFRESH_SECONDS):
                    self._show_news(store)
                self._show_news(store)
        except JacklineError:
            pass  # the run meets the same error and reports it
        finally:
            self._draw_line("")

    def _show_news(self, store: Store) -> None:
        while events := store.records.list_events(self._run.id, self._state.seq, _PAGE):
            for event in events:
                self._state = self._state.apply_event(event)
                if is_notable(event) and not self._out.stderr.is_terminal:
                    self._out.print_note(describe_event(event))
        elapsed = round((time.monotonic() - self._started) * 1000)
        self._draw_line(self._state.format_progress(elapsed))

    def _draw_line(self, text: str) -> None:
        if self._out.stderr.is_terminal:
            room = self._out.terminal_width(2) - 1
            self._out.stderr.write(_ERASE + shorten_text(text, room))
