"""Where the tools of one server work: the home, and inside which run. It decides nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from jackline.app import dashboard, who
from jackline.formatting import format_command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.app.home import Home


class Desk:
    """One home, for tools that run in threads beside each other."""

    def __init__(self, home: Home, environ: Mapping[str, str]) -> None:
        self._home = home
        self._environ = environ
        self._making = threading.Lock()
        self._is_made = False

    @property
    def path(self) -> str:
        """Of the home."""
        return self._home.path

    @property
    def run_id(self) -> str | None:
        """The run inside which the server was started."""
        return who.run_id(self._environ)

    def typed(self, *words: str) -> str:
        """A command as it can be typed anywhere: who reads it has not our environment."""
        program, more, _ = dashboard.describe_invocation(self._home)
        return format_command(*program, *words, *more)

    @contextmanager
    def open(self) -> Iterator[Home]:
        """The home for one call, with a connection and warnings of its own.

        Until there is a home, one call waits for the other: a database that is being made cannot be read.
        """
        with nullcontext() if self._is_made else self._making, self._home.again() as home:
            home.board = self._home.board
            yield home
            self._is_made = self._is_made or not home.is_new
