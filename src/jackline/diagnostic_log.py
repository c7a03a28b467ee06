"""jackline's own log: a private file with a line for each important moment of a run. It never prints.

Python's `logging` does the same, but takes a megabyte in every run.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG_BYTES, _OLD_LOGS = 2_000_000, 3


class DiagnosticLog:
    """Writes nothing until it is started."""

    def __init__(self) -> None:
        self.path = ""
        self._redact: Callable[[str], str] = str

    def start(self, path: str, redact: Callable[[str], str]) -> None:
        """Write to this file from now on, through `redact`; a log that is started keeps its file."""
        if not self.path:
            _rotate(path)
            os.close(_open(path))
            self.path, self._redact = path, redact

    def info(self, text: str) -> None:
        """Log something that is expected."""
        self._write("INFO", text)

    def warning(self, text: str) -> None:
        """Log something that should not happen."""
        self._write("WARNING", text)

    def error(self, error: BaseException) -> None:
        """Log a mistake of jackline itself, with its traceback."""
        from traceback import format_exception

        self._write("ERROR", "unexpected\n" + "".join(format_exception(error)).rstrip())

    def _write(self, level: str, text: str) -> None:
        if not self.path:
            return
        now = time.time()
        at = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))},{int(now % 1 * 1000):03d}"
        line = self._redact(f"{at} {os.getpid()} jackline {level} {text}\n")
        with suppress(OSError):  # a log that cannot be written stops no run
            descriptor = _open(self.path)
            try:
                os.write(descriptor, line.encode("utf-8", "backslashreplace"))  # at once: others write to it, too
            finally:
                os.close(descriptor)


LOG = DiagnosticLog()


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _rotate(path: str) -> None:
    """Rotate a full log; once for each process is enough, because a run logs a few lines."""
    try:
        if os.path.getsize(path) < _LOG_BYTES:
            return
        for number in range(_OLD_LOGS, 0, -1):
            older = f"{path}.{number - 1}" if number > 1 else path
            if os.path.exists(older):
                os.replace(older, f"{path}.{number}")
    except OSError:  # there is no log yet, or another process was faster
        return
