"""How the built-in rules are written down: one line of text for many commands. It only reads text."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, Replay

if TYPE_CHECKING:
    from collections.abc import Iterator

# What tells two effects apart that send something.
CONTENT = ("arguments", "folder", "stdin", "<", "file:<", "file:@")


def rows(text: str, kind: CallClass) -> Iterator[Rule]:
    """Rules from lines such as `git status|log ! --output`: after `!` without these flags, after `?` with one of them.

    They are named after the program alone: what is read or local needs no permission of its own.
    """
    for line in text.strip().splitlines():
        (programs, *rest), having, lacking = _split(line)
        for program in programs.split("|"):
            name = f"{kind}.{program}"
            yield Rule(
                name, "", kind, Replay.EXACT, command=(program, *rest), having=having, lacking=lacking
            )  # fmt: skip


def _split(line: str) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    rest, _, lacking = line.partition(" ! ")
    command, _, having = rest.partition(" ? ")
    return command.split(), tuple(having.split()), tuple(lacking.split())


def effect(line: str, name: str = "", **more: object) -> Iterator[Rule]:
    """The rules of an effect: one with the given name, or one for each spelling of the command, named after it."""
    command, having, lacking = _split(line)
    spellings = [tuple(command)] if name else product(*(word.split("|") for word in command))
    given: dict[str, Any] = {"decision": Decision.ASK, "key": CONTENT, "having": having, "lacking": lacking, **more}
    for words in spellings:
        called = name or ".".join(words).removesuffix(".*")
        yield Rule(called, "", CallClass.EFFECT, command=words, **given)
