"""Finds the variables that commands may change, before they are walked: a loop runs again with what it changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.shell.constants import EVERYTHING, FREEZE, POSITIONAL, ShellState
from jackline.shell.model import (
    AndOrList,
    Branches,
    CommandList,
    FunctionDefinition,
    Loop,
    ShellNode,
    SimpleCommand,
    Subshells,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DECLARING = frozenset({"export", "readonly", "declare", "typeset", "local"})
# Builtins whose arguments are names of variables.
_NAMING = DECLARING | {"read", "mapfile", "readarray", "getopts", "unset", "printf", "wait", "let", "float", "integer"}
# They run or define what is not known here, or change how words are read.
UNKNOWABLE = frozenset(
    {"eval", ".", "source", "trap", "alias", "unalias", "enable", "shopt", "setopt", "unsetopt", "emulate", "autoload"}
    | {"zmodload", "complete", "bind", "fc", "vared", "zparseopts", "zstyle", "disable"}
)
_INSIDE = frozenset({"command", "builtin", "noglob", "nocorrect", "-", "time", "!"})  # their command may be a builtin
INTERPRETED = _NAMING | UNKNOWABLE | _INSIDE | {"set", "shift", "test", "[", "exec", "cd", "pushd", "popd", "exit"}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=(?:\[[^]]*\])?\+?=)")
_HARMLESS_OPTIONS = re.compile(r"[-+][efuxvhbmnE]*o?|[-+]")
_HARMLESS_NAMES = frozenset({"pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber", "errtrace"})
_HARMLESS_FLAGS = frozenset({"x", "r"})
_MOST_NODES = 20_000  # that all searches of one text may visit


class ChangeFinder:
    """Searches syntax trees. The functions of the text are searched where they are called."""

    def __init__(self, bodies: Mapping[str, Sequence[ShellNode]]) -> None:
        self.bodies = bodies
        self.visited = 0

    def find_changes(self, nodes: Sequence[ShellNode], state: ShellState) -> frozenset[str]:
        """Return the names of changed variables, or the marks for more than that."""
        names: set[str] = set()
        programs: set[str] = set()  # variables whose values are used as programs
        waiting, called = list(nodes), set[str]()
        while waiting:
            node = waiting.pop()
            self.visited += 1
            if self.visited > _MOST_NODES:
                return frozenset({FREEZE})
            waiting.extend(_list_parts(node))
            if isinstance(node, SimpleCommand):
                program = self._find_program(node, state, programs)
                names.update(find_simple_changes(node, program))
                if program is not None and program in self.bodies and program not in called:
                    called.add(program)
                    waiting.extend(self.bodies[program])
            elif isinstance(node, FunctionDefinition):
                names.add(f"{node.name}()")
            elif isinstance(node, Loop) and node.name:
                names.add(node.name)
        if programs and (programs & names or EVERYTHING in names):
            names.add(FREEZE)
        return frozenset(names)

    def _find_program(self, node: SimpleCommand, state: ShellState, used: set[str]) -> str | None:
        """Return the program that a command runs; None if it is not known."""
        if not node.words:
            return ""
        first = node.words[0]
        if first.exact:
            return first.text
        words = state.expand(first)
        if len(words) != 1 or not words[0].exact:
            return None
        used.update(piece.name for piece in getattr(first, "pieces", ()) if piece.name)
        return words[0].text


def _list_parts(node: ShellNode) -> Sequence[ShellNode]:
    """Return the parts of a node that run in the same shell."""
    match node:
        case SimpleCommand():
            return node.inner
        case CommandList(items) | Loop(items):
            return items
        case AndOrList(first, rest):
            return [first, *(item for _, item in rest)]
        case Subshells(items, pipe):
            return items[-1:] if pipe else ()  # zsh runs the last command of a pipeline in the shell itself
        case Branches(arms):
            return [one for arm in arms for one in arm if one is not None]
        case FunctionDefinition():
            return [node.body]


def _declares_constant(words: Sequence[Word]) -> bool:
    return words[0].text == "readonly" or any(word.text[:1] == "-" and "r" in word.text for word in words[1:])


def find_simple_changes(node: SimpleCommand, program: str | None) -> Iterator[str]:
    """Yield what one command changes besides the variables of its functions; `program` is its first word."""
    if node.changed:
        yield FREEZE  # from then on, the shell may change them at any time
    for word in node.assignments:
        found = _ASSIGNED.match(word.text)
        yield found.group() if found and word.text[found.end()] != "[" and "=([" not in word.text else EVERYTHING
    if any(_NAME.search(text) or text == "*" for text in node.evaluated):
        yield EVERYTHING
    if program is None:
        yield FREEZE
    elif program:
        yield from find_call_changes(tuple(node.words), program)
        if program in DECLARING and _declares_constant(node.words):
            yield FREEZE  # in the next round it cannot be assigned


def find_call_changes(words: tuple[Word, ...], program: str) -> Iterator[str]:
    """Yield what a builtin changes by its arguments."""
    rest = words[1:]
    while program in _INSIDE:
        if not rest or not rest[0].exact or rest[0].text.startswith("-"):
            yield FREEZE if rest else EVERYTHING
            return
        program, rest = rest[0].text, rest[1:]
    if program in UNKNOWABLE:
        yield FREEZE
    elif program == "set":
        yield from find_set_changes(rest)
    elif program == "shift":
        yield POSITIONAL
    elif program in _NAMING:
        yield from _find_named_changes(rest, program)
    elif program in {"test", "["} and any("[" in word.text[1:] or word.text == "-v" for word in rest):
        yield EVERYTHING


def _find_named_changes(words: Sequence[Word], program: str) -> Iterator[str]:
    """Yield the variables that are named by the arguments of a builtin."""
    inexact = any(not word.exact and not _ASSIGNED.match(word.text) for word in words)
    if inexact or program == "let" or any("[" in word.text for word in words):
        yield EVERYTHING
    if program in DECLARING and has_odd_flags(words):
        yield FREEZE
    for word in words:
        found = _NAME.match(word.text)
        if found is not None:
            yield found.group()
            if program == "unset":
                yield f"{word.text}()"
        elif word.text[:2] in {"-v", "-p", "-a", "-u"} and len(word.text) > len("-v"):
            yield EVERYTHING


def has_odd_flags(words: Sequence[Word]) -> bool:
    """Check for flags of `declare` that give a variable another type, scope or meaning."""
    flags = [word.text for word in words if word.text[:1] in {"-", "+"}]
    return any(flag[:1] == "+" or not _HARMLESS_FLAGS.issuperset(flag[1:]) for flag in flags)


def find_set_changes(words: Sequence[Word]) -> Iterator[str]:
    """Yield what `set` changes: the parameters, or how words are read."""
    for place, word in enumerate(words):
        if word.text == "--" and word.exact:
            yield POSITIONAL
            return
        if not word.exact:
            yield FREEZE
            return
        if not word.text.startswith(("-", "+")):
            if place and words[place - 1].text[:1] in {"-", "+"} and words[place - 1].text.endswith("o"):
                if word.text not in _HARMLESS_NAMES:
                    yield FREEZE
                continue
            yield POSITIONAL
            return
        if not _HARMLESS_OPTIONS.fullmatch(word.text):
            yield FREEZE
        elif word.text in {"-", "+"}:
            yield POSITIONAL
