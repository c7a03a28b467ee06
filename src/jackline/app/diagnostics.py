"""Starts jackline's own log in the home, without the secrets of this process."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from jackline.app.paths import LOG_FILE
from jackline.diagnostic_log import LOG

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.secrets.redactor import Redactor


def log_unexpected(home: str, error: Exception) -> str:
    """Log an unexpected error of jackline itself with its traceback; returns the path of the log."""
    LOG.start(os.path.join(home, LOG_FILE), _redact)
    LOG.error(error)
    return LOG.path


def start_log(home: Home) -> None:
    """Log to the home from now on; calling it again changes nothing. A log that cannot be written is only a warning."""
    path = os.path.join(home.path, LOG_FILE)
    try:
        LOG.start(path, _redact)
    except OSError as error:
        home.warnings.append(f"{path} cannot be written ({error.strerror}): nothing is logged")


def _redact(text: str) -> str:
    from jackline.app.environment import list_learned

    return _load_redactor(list_learned()).redact(text)


@cache
def _load_redactor(learned: tuple[str, ...]) -> Redactor:
    from jackline.secrets.redactor import Redactor, find_secret_values

    return Redactor((*find_secret_values(os.environ), *learned))
