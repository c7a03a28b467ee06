"""What `key` and `target` may name of a command: its program, arguments, flags and the words between them. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jackline.domain.builtin import flags
from jackline.domain.judging import requests

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.domain.judging.arguments import Line
    from jackline.domain.rule import Rule
    from jackline.domain.shell import Command, Word

SEVERAL = "\n"  # between the values of a flag that is given more than once
_SENT = re.compile(r"(?:@|=<)(.+)", re.DOTALL)


def fields(rule: Rule, line: Line, command: Command) -> dict[str, Any]:
    """Everything that can be told of one command by name."""
    told: dict[str, Any] = {"program": line.program, "arguments": [word.text for word in line.words]}
    told |= _flags_and_words(line.words[_after(rule, line) :], _valued(rule, line))
    told |= _flags_and_words(line.words[: _after(rule, line)], _valued(rule, line), numbered=False)
    told |= fed_by(command)
    if (url := requests.address(line.words)) and "url" in rule.target:
        told["url"] = url
    sent = SEVERAL.join(filter(None, map(_sent_file, told["arguments"])))
    return told | {"@": sent} if sent else told


def fed_by(command: Command) -> dict[str, str]:
    """What comes through the standard input: a text that stands in the command, or a file."""
    told = {"stdin": command.stdin} if command.stdin else {}
    source = next((redirect.target for redirect in command.redirects if redirect.operator.endswith("<")), None)
    return told if source is None else told | {"<": source.text}


def _sent_file(text: str) -> str:
    """The file that may stand behind `@`, as in `-d@name` or `field@name`, or behind `=<`, for curl and its like."""
    found = None if "://" in text else _SENT.search(text)
    return found[1] if found and found[1] != "-" else ""


def _after(rule: Rule, line: Line) -> int:
    depth = len(rule.command) - 1
    if depth <= 0:
        return 0
    return line.named[depth - 1] + 1 if len(line.named) >= depth else len(line.words)


def _valued(rule: Rule, line: Line) -> frozenset[str]:
    pieces = (piece for text in (*rule.key, rule.target) for piece in re.split(r"[{}|]", text))
    named = {flag for flag in (piece.removeprefix("file:") for piece in pieces) if flag.startswith("-")}
    spelled = " ".join((line.program, *(word.text for word in line.names[: len(rule.command) - 1])))
    return flags.VALUED.get(line.program, flags.NONE) | flags.ARGUMENTS.get(spelled, flags.NONE) | named


def _flags_and_words(
    words: Sequence[Word], valued: frozenset[str], *, numbered: bool = True
) -> Mapping[str, str | bool]:
    told: dict[str, str | bool] = {}
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
            _add(told, _flag(text, valued, left))
    if numbered and between:
        told |= {str(number): text for number, text in enumerate(between, 1)} | {"words": SEVERAL.join(between)}
    return told


def _add(told: dict[str, str | bool], more: Mapping[str, str | bool]) -> None:
    """What is given to a flag twice counts twice: `-f a -f b` sends both."""
    for name, value in more.items():
        before = told.get(name)
        told[name] = f"{before}{SEVERAL}{value}" if isinstance(before, str) and isinstance(value, str) else value


def _flag(text: str, valued: frozenset[str], left: Iterator[Word]) -> Mapping[str, str | bool]:
    """One word with flags, and the value that may follow it."""
    if text.startswith("--") or text in valued:
        name, equals, value = text.partition("=")
        following = next(left, None) if not equals and name in valued else None
        return {name: value if equals else following.text if following else True}
    told = _cluster(text, valued)
    last = f"-{text[-1]}"
    return {**told, last: getattr(next(left, None), "text", "")} if told.get(last) == "" else told


def _cluster(text: str, valued: frozenset[str]) -> Mapping[str, str | bool]:
    """`-uf` is `-u -f`, and `-mtext` is `-m text`."""
    told: dict[str, str | bool] = {text: True}
    for position, letter in enumerate(text[1:], 1):
        if f"-{letter}" in valued:
            return told | {f"-{letter}": text[position + 1 :]}
        told[f"-{letter}"] = True
    return told
