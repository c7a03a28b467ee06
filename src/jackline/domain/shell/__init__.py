"""The commands that a shell's text would run: read, never run. Nothing here knows what a command means."""

from __future__ import annotations

from jackline.domain.shell.compound import parse
from jackline.domain.shell.model import Command, NotParsed, Redirect, Word
from jackline.domain.shell.walk import Around, Walker

__all__ = ["Command", "NotParsed", "Redirect", "Word", "commands"]


def commands(text: str) -> tuple[Command, ...]:
    """Every simple command that running the text in bash or zsh may run, in order; NotParsed where that is unsure.

    Assignments alone run nothing. A wrapper that runs nothing else (`command -v x`, `env`) is a command itself.
    """
    walker = Walker(".")
    walker.lost = "CDPATH" in text  # a `cd` that is looked up elsewhere goes nobody knows where
    walker.walk(parse(text), Around(0))
    return tuple(walker.found)
