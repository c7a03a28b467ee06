"""Lists the commands that a shell script would run. Parses bash and zsh; never runs or classifies a command."""

from __future__ import annotations

from jackline.shell.compound import parse_script
from jackline.shell.model import NotParsed, Redirect, ShellCommand, Word
from jackline.shell.walker import CommandContext, Walker

__all__ = ["NotParsed", "Redirect", "ShellCommand", "Word", "list_commands"]


def list_commands(text: str) -> tuple[ShellCommand, ...]:
    """Return every simple command that bash or zsh may run for this text, in order.

    A lone assignment is not a command. A wrapper that wraps nothing (`command -v x`, `env`) is a command itself.
    Raises NotParsed if the commands cannot be determined with certainty.
    """
    walker = Walker(".")
    walker.is_folder_lost = "CDPATH" in text  # with CDPATH set, `cd` may go anywhere
    walker.walk(parse_script(text), CommandContext(0))
    return tuple(walker.commands)
