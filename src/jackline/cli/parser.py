"""The argument parser of one command: argparse with one-line errors and the global options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from jackline.app.setting_keys import KEYS, format_setting, suggest_nearest
from jackline.cli.output import Output
from jackline.errors import UsageError

_MAX_HELP_WIDTH = 110
_MAX_NUMBER = 1_000_000
SHARE_HELP = "start even if another run is active in the same git worktree"
RUN_HELP = "a run: its number, such as #12, its id, or the beginning or end of its id"
NEWEST_HELP = f"{RUN_HELP} (default: the newest run of this repository)"
RUN_ID_HELP = "choose the run's id; repeating the command does not repeat it"
QUIET_HELP = "print only the figures at the end, not what the agent says and does"


class HelpPrinted(Exception):
    """Raised after printing help: the command ends without doing anything."""


class CommandParser(argparse.ArgumentParser):
    """Raises errors of jackline's error tree instead of ending the process."""

    def __init__(self, *, out: Output, **options: Any) -> None:  # noqa: ANN401 - argparse's own
        # An explicit width: argparse would import shutil to find one.
        options["formatter_class"] = partial(argparse.HelpFormatter, width=min(out.terminal_width(), _MAX_HELP_WIDTH))
        super().__init__(allow_abbrev=False, **options)
        self.out = out
        self.takes_arguments = False  # whether the words after `--` are passed on to another program
        self.takes_flags_between = False  # whether flags may come between the positional arguments
        # No defaults here: those of a subcommand's parser would overwrite flags given before its name.
        unset = argparse.SUPPRESS
        group = self.add_argument_group("global options")
        group.add_argument("--home", metavar="DIR", default=unset, help="the home directory of jackline")
        group.add_argument("--json", action="store_true", default=unset, help="print JSON")
        group.add_argument("--no-color", action="store_true", default=unset, help="print no colors, as with NO_COLOR")

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the words of a command; the result always has the global options."""
        arguments: Sequence[str] = []
        if self.takes_arguments and "--" in words:
            end = words.index("--")
            words, arguments = words[:end], words[end + 1 :]
        return self.parse_args(words, argparse.Namespace(home=None, json=False, no_color=False, arguments=arguments))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401 - as argparse
        """As argparse's, which also parses subcommands; `takes_flags_between` lets flags come between arguments."""
        if not self.takes_flags_between:
            return super().parse_known_args(args, namespace)
        self.takes_flags_between = False  # argparse's own method calls this one, twice
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.takes_flags_between = True

    def add_setting(self, name: str, metavar: str = "N", help: str = "") -> None:  # noqa: A002 - as in argparse
        """Add a flag for a setting, with its own help or another. Loading the settings checks the value."""
        key = next(key for key in KEYS if key.name == name)
        choices = key.choices or None
        self.add_argument(
            f"--{name.replace('_', '-')}",
            dest=name,
            metavar=None if choices else metavar,
            help=help or (key.help if key.default == "" else f"{key.help} (default {format_setting(key.default)})"),
            choices=choices,
        )

    def add_actions(self, summaries: Mapping[str, str], dest: str = "action") -> dict[str, CommandParser]:
        """Add the actions of a command, each with a summary for its help; the parser of each."""
        actions = self.add_subparsers(dest=dest, metavar="ACTION", required=True)
        return {
            name: actions.add_parser(name, out=self.out, help=summary, description=summary)
            for name, summary in summaries.items()
        }

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message};{self._suggest_fix(message)} see `{self.prog} --help`")

    def _suggest_fix(self, message: str) -> str:
        """Return similar flags or choices, or how to write a value that starts with a dash."""
        flag = message.partition(":")[0].rpartition("/")[2].removeprefix("argument ")
        if message.endswith(("expected one argument", "expected at least one argument")):
            return f" a value that starts with a dash is written {flag}=-…;"
        unknown = message.partition("unrecognized arguments: ")[2].split()
        if flags := [word.partition("=")[0] for word in unknown if word.startswith("-")]:
            # The flags of subcommands too: argparse reports their unknown flags here.
            known = {flag for action in iterate_actions(self) for flag in action.option_strings}
            passed_on = " flags of another program go after --;" if self.takes_arguments else ""
            return suggest_nearest(flags[0], known) + passed_on
        wrong, _, choices = message.partition("invalid choice: ")[2].partition(" (choose from ")
        if " " in wrong and any(flag in one.option_strings and one.nargs == "?" for one in iterate_actions(self)):
            return f" a prompt goes before {flag};"
        return (
            suggest_nearest(wrong.strip("'"), [word.strip("'") for word in choices.rstrip(")").split(", ")])
            if wrong
            else ""
        )

    def exit(self, _status: int = 0, _message: str | None = None) -> NoReturn:
        raise HelpPrinted

    def print_help(self, _file: object = None) -> None:
        self.out.print_line(self.format_help().rstrip("\n"))


def iterate_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of the parsers of its subcommands."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public way to list them; shtab reads the same
        yield action
        if isinstance(action.choices, dict):
            for subparser in action.choices.values():
                yield from iterate_actions(subparser)


def parse_count(text: str) -> int:
    """Parse a whole number from 1 to a million: a `type` for argparse."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MAX_NUMBER:
        message = f"'{text}' is not a whole number from 1 to {_MAX_NUMBER}"
        raise argparse.ArgumentTypeError(message)
    return int(text)
