"""Reads the shell commands of a call for a probe: finds the relevant one, and the values of its flags. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline import shell
from jackline.policy import git_push_args

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.engine.probes.findings import ProbeContext
    from jackline.shell.model import ShellCommand, Word

# Wrappers that run a command once, here, unchanged; others add arguments, or run it elsewhere or repeatedly.
_PLAIN = frozenset(
    {"env", "sudo", "time", "timeout", "nice", "nohup", "command", "exec", "builtin", "stdbuf", "setsid", "ionice",
     "bash", "sh", "zsh", "dash"}
)  # fmt: skip


def parse_commands(scene: ProbeContext) -> tuple[ShellCommand, ...] | None:
    """All commands of a shell call; None if it is not one, or cannot be parsed."""
    text = scene.find_shell_text()
    if text is None:
        return None
    try:
        return shell.list_commands(text, constants=True)
    except shell.NotParsed:
        return None


def find_only_command(
    found: Sequence[ShellCommand] | None, is_it: Callable[[ShellCommand], bool]
) -> ShellCommand | None:
    """The only command of its kind; None if there are several, because a probe could not tell which one happened."""
    chosen = [command for command in found or () if is_it(command)]
    alone = len(chosen) == 1 and all(one.partition(" ")[0] in _PLAIN for one in chosen[0].through)
    return chosen[0] if alone else None


def find_program(command: ShellCommand) -> str:
    """The name of the program without its folder; empty if only the shell knows it."""
    first = command.words[0] if command.words else None
    return first.text.rpartition("/")[2] if first is not None and first.exact else ""


def has_subcommands(command: ShellCommand, *words: str) -> bool:
    """Whether the command starts with this program and these subcommands."""
    texts = [word.text for word in command.words[1 : len(words)]]
    return find_program(command) == words[0] and texts == list(words[1:])


def find_git_arguments(command: ShellCommand) -> tuple[Word, ...] | None:
    """The git subcommand and its arguments; None if the program is not git."""
    if find_program(command) != "git":
        return None
    left = len(git_push_args.skip_git_options([word.text for word in command.words[1:]]))
    return command.words[len(command.words) - left :]


def find_flag_values(words: Sequence[Word], *flags: str, others: frozenset[str] = frozenset()) -> list[Word]:
    """The values of a flag in all its spellings (`--to x`, `--to=x`, `-t x`, `-tx`); `others` also take values."""
    found: list[Word] = []
    place = 0
    while place < len(words):
        word = words[place]
        if word.text == "--":
            break
        if word.text in flags:
            found.extend(words[place + 1 : place + 2])
            place += 1
        elif word.text in others:
            place += 1
        else:
            found.extend(
                word._replace(text=value) for flag in flags if (value := _find_attached_value(word.text, flag))
            )
        place += 1
    return found


def _find_attached_value(text: str, flag: str) -> str:
    if flag.startswith("--"):
        return text.removeprefix(f"{flag}=") if text.startswith(f"{flag}=") else ""
    return text[len(flag) :].removeprefix("=") if text.startswith(flag) and not text.startswith("--") else ""
