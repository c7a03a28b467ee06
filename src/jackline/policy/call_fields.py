"""Builds the fields of a command that `key` and `target` may use: program, arguments, flags, operands. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.policy import read_only
from jackline.policy.builtin import flag_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.policy.command_line import CommandLine
    from jackline.policy.rules import Rule
    from jackline.shell.model import ShellCommand, Word

VALUE_SEPARATOR = "\n"  # separates the values of a repeated flag
_SENT = re.compile(r"(?:@|=<)(.+)", re.DOTALL)


def build_fields(rule: Rule, line: CommandLine, command: ShellCommand) -> dict[str, Any]:
    """Build all fields of one command."""
    named: dict[str, Any] = {"program": line.program, "arguments": [word.text for word in line.words]}
    depth = len(rule.command) - 1
    after = 0  # the first word after the subcommands
    if depth > 0:
        after = line.operand_indexes[depth - 1] + 1 if len(line.operand_indexes) >= depth else len(line.words)
    valued = _find_valued_flags(rule, line)
    named |= _parse_words(line.words[after:], valued)
    named |= _parse_words(line.words[:after], valued, numbered=False)
    named |= build_stdin_fields(command)
    if (url := read_only.find_url(line.words)) and "url" in rule.target:
        named["url"] = url
    # The files after `@`, as in `-d@name` or `field@name`, or after `=<`, as for curl.
    matches = (_SENT.search(text) for text in named["arguments"] if "://" not in text)
    sent = VALUE_SEPARATOR.join(match[1] for match in matches if match and match[1] != "-")
    return named | {"@": sent} if sent else named


def build_stdin_fields(command: ShellCommand) -> dict[str, str]:
    """Build the fields for standard input: text in the command, or a file."""
    named = {"stdin": command.stdin} if command.stdin else {}
    source = next((redirect.target for redirect in command.redirects if redirect.operator.endswith("<")), None)
    return named if source is None else named | {"<": source.text}


def _find_valued_flags(rule: Rule, line: CommandLine) -> frozenset[str]:
    pieces = (piece for text in (*rule.key, rule.target) for piece in re.split(r"[{}|]", text))
    named = {flag for flag in (piece.removeprefix("file:") for piece in pieces) if flag.startswith("-")}
    spelled = " ".join((line.program, *(word.text for word in line.operands[: len(rule.command) - 1])))
    return (
        flag_tables.VALUED.get(line.program, flag_tables.NO_FLAGS)
        | flag_tables.ARGUMENTS.get(spelled, flag_tables.NO_FLAGS)
        | named
    )


def _parse_words(words: Sequence[Word], valued: frozenset[str], *, numbered: bool = True) -> Mapping[str, str | bool]:
    named: dict[str, str | bool] = {}
    between: list[str] = []
    ended = False
    left = iter(words)
    for word in left:
        text = word.text
        if text == "--" and not ended:
            ended = True
        elif ended or not text.startswith("-") or text == "-":
            between.append(text)
        else:
            for name, value in _parse_flag(text, valued, left).items():
                before = named.get(name)
                # The values of a repeated flag are joined, because `-f a -f b` sends both.
                repeated = isinstance(before, str) and isinstance(value, str)
                named[name] = f"{before}{VALUE_SEPARATOR}{value}" if repeated else value
    if numbered and between:
        named |= {str(number): text for number, text in enumerate(between, 1)}
        named["words"] = VALUE_SEPARATOR.join(between)
    return named


def _parse_flag(text: str, valued: frozenset[str], left: Iterator[Word]) -> Mapping[str, str | bool]:
    """Parse one word with flags, and the value that may follow it: `-uf` is `-u -f`, and `-mtext` is `-m text`."""
    if text.startswith("--") or text in valued:
        name, equals, value = text.partition("=")
        following = next(left, None) if not equals and name in valued else None
        return {name: value if equals else following.text if following else True}
    named: dict[str, str | bool] = {text: True}
    for position, letter in enumerate(text[1:], 2):
        if f"-{letter}" in valued:
            return named | {f"-{letter}": text[position:] or getattr(next(left, None), "text", "")}
        named[f"-{letter}"] = True
    return named
