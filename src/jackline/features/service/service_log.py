"""What a service reports while it runs: one line or JSON object for each event. Several threads may report at once."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from jackline import clock
from jackline.diagnostic_log import LOG
from jackline.errors import JacklineError
from jackline.formatting import format_iso, make_readable, to_datetime

if TYPE_CHECKING:
    from jackline.cli.output import Output

_PROBLEMS = frozenset({"problem", "cannot_start", "held", "died"})


class ServiceLog:
    """Prints events; with `quiet`, only problems."""

    def __init__(self, out: Output, *, quiet: bool, times: bool) -> None:
        """`times`: whether each line begins with the time; systemd's journal has its own."""
        self._out, self._quiet, self._times = out, quiet, times
        self._lock = threading.Lock()

    def report(self, event: str, text: str, **facts: object) -> None:
        """Report one event: a word, a line for people, and facts for --json."""
        at = clock.wall_ms()
        LOG.info(f"service: {text}")
        if self._quiet and event not in _PROBLEMS:
            return
        with self._lock, contextlib.suppress(JacklineError):  # a full disk under the output stops no run
            if self._out.json:
                self._out.print_json({"event": event, "at": format_iso(at), **facts})
            else:
                self._out.print_line(
                    f"{to_datetime(at).astimezone():%Y-%m-%d %H:%M:%S} {make_readable(text)}"
                    if self._times
                    else make_readable(text)
                )
