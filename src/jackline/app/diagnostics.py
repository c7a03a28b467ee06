"""jackline's own diagnostics: a rotating log in the home, for the day something goes wrong. Never a person's output."""

from __future__ import annotations

import logging
import os
from functools import cached_property
from typing import TYPE_CHECKING

from jackline.app.places import LOG

if TYPE_CHECKING:
    from jackline.domain.secrets import Redactor

_BYTES, _FILES = 2_000_000, 3  # of each log, and how many old ones are kept


class _Redacted(logging.Formatter):
    """A line of the log, with its traceback, freed of secrets before it is written."""

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.redact(super().format(record))

    @cached_property
    def _redactor(self) -> Redactor:
        from jackline.domain.secrets import Redactor
        from jackline.domain.secrets.variables import secret_values

        return Redactor(secret_values(os.environ))


def note_unexpected(home: str, error: Exception) -> str:
    """Write down a mistake of jackline itself, with where it happened; gives back the log's path."""
    start(home)
    logging.getLogger("jackline").error("unexpected", exc_info=error)
    return os.path.join(home, LOG)


def start(home: str) -> None:
    """Write the log of this process to the home; calling it again changes nothing."""
    logger = logging.getLogger("jackline")
    if logger.handlers:
        return
    path = os.path.join(home, LOG)
    _rotate(path)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(_Redacted("%(asctime)s %(process)d %(name)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logging.raiseExceptions = False  # a log that cannot be written must not print a traceback at a person
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _rotate(path: str) -> None:
    """Once for each process: it is a few lines a run, and the standard library's own rotation costs ten modules."""
    try:
        if os.path.getsize(path) < _BYTES:
            return
        for number in range(_FILES, 0, -1):
            older = f"{path}.{number - 1}" if number > 1 else path
            if os.path.exists(older):
                os.replace(older, f"{path}.{number}")
    except OSError:  # there is none yet, or another process was quicker
        return
