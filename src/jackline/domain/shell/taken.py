"""What is left when a wrapper is taken off. Pure data."""

from __future__ import annotations

from jackline.domain.shell.model import Redirect, Word
from jackline.named import NamedTuple


class Text(NamedTuple):
    """A text that a shell inside the wrapper reads."""

    text: str
    posix: bool = True  # the shell may be one that does not know bash's syntax
    same: bool = False  # it runs in the very shell: its `cd` moves the commands after it
    read: bool = False  # it was its standard input, which is spent then
    later: bool = False  # it runs at some other time: nobody knows in which folder
    guess: bool = False  # it holds what only a shell knows: what is found in it may run, and more besides


class Taken(NamedTuple):
    """What a wrapper runs."""

    kept: tuple[Word, ...] | None = None  # the wrapper as a command of its own, where it is one or was not understood
    calls: tuple[tuple[Word, ...], ...] = ()
    text: Text | None = None
    through: str = ""
    assignments: tuple[Word, ...] = ()
    folder: Word | None = None  # None: where the wrapper itself runs
    redirects: tuple[Redirect, ...] = ()  # files that the wrapper itself writes
