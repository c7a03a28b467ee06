"""The result of removing a wrapper from a command. Pure data."""

from __future__ import annotations

from jackline.domain.shell.model import Redirect, Word
from jackline.named import NamedTuple


class Text(NamedTuple):
    """Shell text that a wrapper runs."""

    text: str
    posix: bool = True  # the shell may not support bash syntax
    same: bool = False  # it runs in the current shell, so its `cd` affects later commands
    read: bool = False  # it came from standard input, which is consumed
    later: bool = False  # it runs at another time, in an unknown folder
    guess: bool = False  # it is not exact: the commands found in it may run, and others too


class Taken(NamedTuple):
    """The commands that a wrapper runs."""

    kept: tuple[Word, ...] | None = None  # the wrapper itself, if it counts as a command or was not understood
    calls: tuple[tuple[Word, ...], ...] = ()
    text: Text | None = None
    through: str = ""
    assignments: tuple[Word, ...] = ()
    folder: Word | None = None  # None: the folder of the wrapper
    redirects: tuple[Redirect, ...] = ()  # files that the wrapper writes
