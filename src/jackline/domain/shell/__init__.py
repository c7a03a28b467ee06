"""Lists the commands that a shell script would run. Parses bash and zsh; never runs or classifies a command."""

from __future__ import annotations

from jackline.domain.shell.compound import parse
from jackline.domain.shell.model import Command, NotParsed, Redirect, Word
from jackline.domain.shell.walker import Around, Walker

__all__ = ["Command", "NotParsed", "Redirect", "Word", "commands"]


def commands(text: str) -> tuple[Command, ...]:
    """Return every simple command that bash or zsh may run for this text, in order.

    A lone assignment is not a command. A wrapper that wraps nothing (`command -v x`, `env`) is a command itself.
    Raises NotParsed if the commands cannot be determined with certainty.
    """
    walker = Walker(".")
    walker.lost = "CDPATH" in text  # with CDPATH set, `cd` may go anywhere
    walker.walk(parse(text), Around(0))
    return tuple(walker.found)
