"""The parser of one command: argparse, with errors in one line and the flags that every command has."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from jackline.app.keys import KEYS, nearest, shown
from jackline.cli.output import Output
from jackline.errors import UsageError

# jackline speaks one language; argparse would look for a translation on the disk each time it names something.
vars(argparse)["_"] = str

_HELP_WIDTH = 110
_MOST = 1_000_000


class Shown(Exception):
    """Help was asked for and shown; there is nothing more to do."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong by an error of jackline's own tree, never by leaving the process."""

    def __init__(self, *, out: Output, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        # With a width of ours: argparse would import shutil only to ask for it.
        options["formatter_class"] = partial(argparse.HelpFormatter, width=min(out.width(), _HELP_WIDTH))
        super().__init__(allow_abbrev=False, **options)
        self.out = out
        self.takes_arguments = False  # whether the words after `--` are for somebody else
        # Suppressed defaults: a subcommand's parser must not undo what was said before its name.
        unset = argparse.SUPPRESS
        everywhere = self.add_argument_group("everywhere")
        everywhere.add_argument("--home", metavar="DIR", default=unset, help="the folder of the instance")
        everywhere.add_argument("--json", action="store_true", default=unset, help="print JSON")
        everywhere.add_argument("--no-color", action="store_true", default=unset, help="no colours, as with NO_COLOR")

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the words; the flags for every command are always there."""
        words, arguments = _split(words) if self.takes_arguments else (words, [])
        return self.parse_args(words, argparse.Namespace(home=None, json=False, no_color=False, arguments=arguments))

    def add_setting(self, name: str, metavar: str = "N") -> None:
        """A flag for one of the settings; its value is judged where the settings are loaded."""
        key = next(key for key in KEYS if key.name == name)
        described = key.help if key.default == "" else f"{key.help} (default {shown(key.default)})"
        choices = key.choices or None
        self.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            metavar=None if choices else metavar,
            help=described,
            choices=choices,
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message};{self._meant(message)} `{self.prog} --help` says what it takes")

    def _meant(self, message: str) -> str:
        """The words that are near the ones that nobody knows, or how a value is written that looks like a flag."""
        if message.endswith(("expected one argument", "expected at least one argument")):
            flag = message.partition(":")[0].rpartition("/")[2].removeprefix("argument ")
            return f" what begins with a dash is written {flag}=-…;"
        unknown = message.partition("unrecognized arguments: ")[2].split()
        if flags := [word.partition("=")[0] for word in unknown if word.startswith("-")]:
            return nearest(flags[0], self._flags())
        wrong, _, choices = message.partition("invalid choice: ")[2].partition(" (choose from ")
        return nearest(wrong.strip("'"), [word.strip("'") for word in choices.rstrip(")").split(", ")]) if wrong else ""

    def _flags(self) -> set[str]:
        """Of this parser and those below it: a word for an action is refused up here."""
        found = {flag for action in self._actions for flag in action.option_strings}
        below = [one for action in self._actions if isinstance(action.choices, dict) for one in action.choices.values()]
        return found.union(*(one._flags() for one in below if isinstance(one, Parser)))  # noqa: SLF001 - of its own kind

    def exit(self, _status: int = 0, _message: str | None = None) -> NoReturn:
        raise Shown

    def _print_message(self, message: str, _file: object = None) -> None:
        self.out.line(message.rstrip("\n"))


def _split(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """What stands before `--`, and what stands after it."""
    here = words.index("--") if "--" in words else len(words)
    return words[:here], words[here + 1 :]


RUN = "an id, the beginning of one, or a number such as #12"


def whole_number(text: str) -> int:
    """An argparse type: a whole number from 1 to a million."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST:
        message = f"'{text}' is not a whole number from 1 to {_MOST}"
        raise argparse.ArgumentTypeError(message)
    return int(text)
