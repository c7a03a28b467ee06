"""The conversation with a model that has no memory of its own: one file of the session, replaced whole."""

from __future__ import annotations

import json
import os
from typing import Any

from .borrowed import Stop, failed, path_of

VERSION = 1
Message = dict[str, Any]


class Memory:
    """Every message of a session, on disk before anything is done because of it."""

    def __init__(self, folder: str, session: str) -> None:
        self._path = path_of(folder, session)
        self.messages: list[Message] = []

    def recall(self) -> None:
        try:
            with open(self._path, "rb") as file:
                kept = json.load(file)
            if kept["version"] != VERSION:
                raise _lost(f"session is of version {kept['version']}")
            self.messages = [dict(message) for message in kept["messages"]]
        except FileNotFoundError:
            raise _lost("session not found") from None
        except (ValueError, KeyError, TypeError) as error:
            raise _lost(f"session cannot be read: {error!r}") from None

    def add(self, *messages: Message) -> None:
        self.messages.extend(messages)
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        data = json.dumps({"version": VERSION, "messages": self.messages}).encode()
        # The conversation holds whatever the model has read: nobody else's business.
        descriptor = os.open(self._path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._path + ".new", self._path)
        _sync(os.path.dirname(self._path))

    def open_calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The tool calls that the model waits for, each with a name of its own: those that have no result yet."""
        number = len(self.messages) - 1
        while number >= 0 and self.messages[number].get("role") == "tool":
            number -= 1
        calls = self.messages[number].get("tool_calls") or [] if number >= 0 else []
        results = len(self.messages) - 1 - number
        return [(f"m{number}.{place}", call) for place, call in enumerate(calls)][results:]


def _lost(detail: str) -> Stop:
    """Whoever hears it may begin a new session."""
    return failed("agent_error", detail, session_lost=True)


def _sync(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
