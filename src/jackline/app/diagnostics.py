"""jackline's own diagnostics: a rotating log in the home, for the day something goes wrong. Never a person's output."""

from __future__ import annotations

import logging
import logging.handlers
import os

from jackline.app.places import LOG

_BYTES, _FILES = 2_000_000, 3


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
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=_BYTES, backupCount=_FILES, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(name)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    logging.raiseExceptions = False  # a log that cannot be written must not print a traceback at a person
    logger.setLevel(logging.INFO)
    logger.propagate = False
