"""What the player remembers of a session: how many steps are finished. One small file, replaced whole."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass

from .lines import Stop, failed


def path_of(folder: str, session: str) -> str:
    """The file of a session; an id from outside must not lead out of the folder."""
    return os.path.join(folder, f"session-{re.sub(r'[^A-Za-z0-9._-]', '_', session)}.json")


def _lost(detail: str) -> Stop:
    """Whoever hears it may begin a new session."""
    return failed("agent_error", detail, session_lost=True)


@dataclass(slots=True)
class Session:
    """An agent that has lost its memory has no path, and starts from the top each time."""

    path: str | None
    finished: int = 0

    def recall(self) -> None:
        if self.path is None:
            return
        try:
            with open(self.path, "rb") as file:
                self.finished = int(json.load(file)["finished"])
        except FileNotFoundError:
            raise _lost("session not found") from None
        except (ValueError, KeyError, TypeError) as error:
            raise _lost(f"session cannot be read: {error}") from None

    def remember(self, finished: int) -> None:
        self.finished = finished
        if self.path is None:
            return
        with open(os.open(self.path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(json.dumps({"version": 1, "finished": finished}).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.path + ".new", self.path)
        folder = os.open(os.path.dirname(self.path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
