"""Lists the commands that a shell script would run. Parses bash and zsh; never runs or classifies a command."""

from __future__ import annotations

from jackline.shell.compound import parse_script
from jackline.shell.model import NotParsed, Redirect, ShellCommand, Word
from jackline.shell.state_tracker import CommandContext
from jackline.shell.walker import Walker

__all__ = ["NotParsed", "Redirect", "ShellCommand", "Word", "list_commands"]


def list_commands(text: str, *, constants: bool = False) -> tuple[ShellCommand, ...]:
    """Return every simple command that bash or zsh may run for this text, in order.

    A lone assignment is not a command. A wrapper that wraps nothing (`command -v x`, `env`) is a command itself.
    With `constants`, words are expanded as far as the text itself gives the values: `a=E1; send $a` runs `send E1`. A
    loop over known words is listed once for each of them, and a function with the arguments of each call.
    Raises NotParsed if the commands cannot be determined with certainty.
    """
    walker = Walker(".", constants=constants)
    walker.is_folder_lost = "CDPATH" in text  # with CDPATH set, `cd` may go anywhere
    walker.walk(parse_script(text), CommandContext(0))
    return walker.finish()
