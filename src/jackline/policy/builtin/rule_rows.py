"""Parses the compact notation of the built-in rules: one line of text for many commands."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallClass, Decision, Replay
from jackline.policy.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

# The key of effects that send data.
CONTENT_KEY = ("arguments", "folder", "stdin", "<", "file:<", "file:@")


def parse_rows(text: str, kind: CallClass) -> Iterator[Rule]:
    """Parse lines such as `git status|log ! --output`: `!` excludes flags, `?` requires one of them.

    The rules are named after the program alone, because reads and locals are never allowed one by one.
    """
    for line in text.strip().splitlines():
        (programs, *rest), having, lacking = _split_line(line)
        for program in programs.split("|"):
            command = (program, *rest)
            yield Rule(
                name=f"{kind}.{program}",
                tool="",
                call_class=kind,
                replay=Replay.REPORT,
                command=command,
                having=having,
                lacking=lacking,
            )


def _split_line(line: str) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    rest, _, lacking = line.partition(" ! ")
    command, _, having = rest.partition(" ? ")
    return command.split(), tuple(having.split()), tuple(lacking.split())


def build_effect_rules(line: str, name: str = "", **more: object) -> Iterator[Rule]:
    """Build the rules of an effect: one with the given name, or one per spelling of the command, named after it."""
    command, having, lacking = _split_line(line)
    spellings = [tuple(command)] if name else product(*(word.split("|") for word in command))
    given: dict[str, Any] = {"decision": Decision.ASK, "key": CONTENT_KEY, "having": having, "lacking": lacking, **more}
    for words in spellings:
        called = name or ".".join(words).removesuffix(".*")
        yield Rule(name=called, tool="", call_class=CallClass.EFFECT, command=words, **given)
