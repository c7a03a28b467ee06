"""jackline's own log: rotating, redacted, in the home. It never prints."""

from __future__ import annotations

import logging
import os
from functools import cached_property
from typing import TYPE_CHECKING

from jackline.app.paths import LOG_FILE

if TYPE_CHECKING:
    from jackline.secrets.redactor import Redactor

_LOG_BYTES, _OLD_LOGS = 2_000_000, 3


class _RedactingFormatter(logging.Formatter):
    """Removes secrets from every line and traceback before it is written."""

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.redact(super().format(record))

    @cached_property
    def _redactor(self) -> Redactor:
        from jackline.secrets.redactor import Redactor, find_secret_values

        return Redactor(find_secret_values(os.environ))


def log_unexpected(home: str, error: Exception) -> str:
    """Log an unexpected error of jackline itself with its traceback; returns the path of the log."""
    start_log(home)
    logging.getLogger("jackline").error("unexpected", exc_info=error)
    return os.path.join(home, LOG_FILE)


def start_log(home: str) -> None:
    """Log to the home from now on; calling it again changes nothing."""
    logger = logging.getLogger("jackline")
    if logger.handlers:
        return
    path = os.path.join(home, LOG_FILE)
    _rotate(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(_RedactingFormatter("%(asctime)s %(process)d %(name)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logging.raiseExceptions = False  # a log that cannot be written must not print a traceback
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _rotate(path: str) -> None:
    """Rotate once for each process: a run logs a few lines, and the standard library's handler imports ten modules."""
    try:
        if os.path.getsize(path) < _LOG_BYTES:
            return
        for number in range(_OLD_LOGS, 0, -1):
            older = f"{path}.{number - 1}" if number > 1 else path
            if os.path.exists(older):
                os.replace(older, f"{path}.{number}")
    except OSError:  # there is no log yet, or another process was faster
        return
