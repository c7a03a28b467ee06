"""Records for parsed shell commands and syntax trees. Pure data: no parsing, nothing is run."""

from __future__ import annotations

from jackline.named import NamedTuple


class NotParsed(ValueError):
    """The text is invalid or ambiguous, so the commands that it would run are not known."""


class Word(NamedTuple):
    """A word as the program receives it, without quotes; `exact` is false if its value is only known at run time."""

    text: str
    exact: bool = True


class Redirect(NamedTuple):
    """A file opened for a command. Copies of descriptors (`2>&1`) open no file and are left out."""

    operator: str  # as written, without a default descriptor: ">", ">>", "2>", "&>", ">|", "<", "<>"
    target: Word


class Command(NamedTuple):
    """One simple command without its wrappers.

    `words` is empty if only files are opened (`> file`, `{ …; } > file`). If the first word is not exact, the command
    may run anything, even if it has a name: it may be a wrapper with unknown options.
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    folder: str | None = "."  # absolute, or relative to the start folder; None if unknown
    through: tuple[str, ...] = ()  # the removed wrappers, outermost first
    stdin: str = ""  # text of a here-document or here-string
    assignments: tuple[Word, ...] = ()  # NAME=value before the command, or passed to env or sudo
