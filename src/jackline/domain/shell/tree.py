"""Syntax tree of a shell script. Pure data; it knows nothing of wrappers or folders."""

from __future__ import annotations

from typing import TypeAlias

from jackline.domain.shell.model import Redirect, Word
from jackline.named import NamedTuple


class Simple:
    """A simple command. Mutable, because its here-document follows only after the end of its line."""

    __slots__ = ("assignments", "depth", "inner", "redirects", "stdin", "words")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.assignments: list[Word] = []
        self.inner: list[Node] = []  # its substitutions, which run before it
        self.stdin: Word | None = None


class Series(NamedTuple):
    """Commands that run one after the other."""

    items: tuple[Node, ...]


class Chain(NamedTuple):
    """Commands joined by `&&` and `||`."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


class Apart(NamedTuple):
    """Items that each run in a subshell. `pipe`: some shells run the last item of a pipeline in the shell itself."""

    items: tuple[Node, ...]
    pipe: bool = False


class Arm(NamedTuple):
    """One branch of an `if` or a `case`."""

    condition: Node | None
    body: Node


class Branches(NamedTuple):
    """Branches of which at most one runs."""

    arms: tuple[Arm, ...]


class Loop(NamedTuple):
    """Items that run any number of times."""

    items: tuple[Node, ...]


class Function(NamedTuple):
    """A function definition; its body runs wherever the name is called."""

    name: str
    body: Node


Node: TypeAlias = Simple | Series | Chain | Apart | Branches | Loop | Function
