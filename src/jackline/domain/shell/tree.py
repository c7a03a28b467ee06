"""The shape of a shell's text: what runs after what, and what runs apart. Pure data, without wrappers or folders."""

from __future__ import annotations

from typing import TypeAlias

from jackline.domain.shell.model import Redirect, Word
from jackline.named import NamedTuple


class Simple:
    """A simple command while it is read: its here-document is found only after its line has ended."""

    __slots__ = ("assignments", "depth", "inner", "redirects", "stdin", "words")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.assignments: list[Word] = []
        self.inner: list[Node] = []  # what its substitutions run before it
        self.stdin: Word | None = None


class Series(NamedTuple):
    """One after the other."""

    items: tuple[Node, ...]


class Chain(NamedTuple):
    """What `&&` and `||` join."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


class Apart(NamedTuple):
    """Each item in a shell of its own; `pipe`: some shells keep the last one for themselves."""

    items: tuple[Node, ...]
    pipe: bool = False


class Arm(NamedTuple):
    """One way through an `if` or a `case`."""

    condition: Node | None
    body: Node


class Branches(NamedTuple):
    """At most one of the arms runs."""

    arms: tuple[Arm, ...]


class Loop(NamedTuple):
    """Its items run any number of times."""

    items: tuple[Node, ...]


class Function(NamedTuple):
    """A body that runs wherever its name is called."""

    name: str
    body: Node


Node: TypeAlias = Simple | Series | Chain | Apart | Branches | Loop | Function
