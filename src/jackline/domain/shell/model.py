"""What the text of a shell would run, as records. Pure data: nothing here reads a text or runs anything."""

from __future__ import annotations

from jackline.named import NamedTuple


class NotParsed(ValueError):
    """The text cannot be read with certainty: nobody may rely on knowing what it would run."""


class Word(NamedTuple):
    """A word as the program gets it, quotes removed; not exact: it holds what only a shell knows at run time."""

    text: str
    exact: bool = True


class Redirect(NamedTuple):
    """A file that is opened for a command; copies of open descriptors (`2>&1`) touch no file and are left out."""

    operator: str  # as written, without a default descriptor: ">", ">>", "2>", "&>", ">|", "<", "<>"
    target: Word


class Command(NamedTuple):
    """One simple command with its wrappers taken off.

    `words` is empty where only files are opened (`> file`, `{ …; } > file`). A program that is not exact runs
    nobody knows what, also where its name stands there: a wrapper whose options could not be read.
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    folder: str | None = "."  # relative to where the text starts, or absolute; None: nobody knows
    through: tuple[str, ...] = ()  # the wrappers that were taken off, the outermost first
    stdin: str = ""  # text of a here-document or here-string
    assignments: tuple[Word, ...] = ()  # NAME=value in front of it, or given to env or sudo
