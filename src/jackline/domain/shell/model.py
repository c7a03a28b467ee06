"""Records of the shell parser: commands, syntax tree, unwrapped commands. Pure data: no parsing, nothing is run."""

from __future__ import annotations

from typing import TypeAlias

from jackline.named import NamedTuple


class NotParsed(ValueError):
    """The text is invalid or ambiguous, so the commands that it would run are not known."""


class Word(NamedTuple):
    """A word as the program receives it, without quotes; `exact` is false if its value is only known at run time."""

    text: str
    exact: bool = True


class Redirect(NamedTuple):
    """A file opened for a command. Copies of descriptors (`2>&1`) open no file and are left out."""

    operator: str  # as written, without a default descriptor: ">", ">>", "2>", "&>", ">|", "<", "<>"
    target: Word


class Command(NamedTuple):
    """One simple command without its wrappers.

    `words` is empty if only files are opened (`> file`, `{ …; } > file`). If the first word is not exact, the command
    may run anything, even if it has a name: it may be a wrapper with unknown options.
    """

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    folder: str | None = "."  # absolute, or relative to the start folder; None if unknown
    through: tuple[str, ...] = ()  # the removed wrappers, outermost first
    stdin: str = ""  # text of a here-document or here-string
    assignments: tuple[Word, ...] = ()  # NAME=value before the command, or passed to env or sudo


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


class Text(NamedTuple):
    """Shell text that a wrapper runs."""

    text: str
    posix: bool = True  # the shell may not support bash syntax
    same: bool = False  # it runs in the current shell, so its `cd` affects later commands
    read: bool = False  # it came from standard input, which is consumed
    later: bool = False  # it runs at another time, in an unknown folder
    guess: bool = False  # it is not exact: the commands found in it may run, and others too


class Taken(NamedTuple):
    """The commands that a wrapper runs."""

    kept: tuple[Word, ...] | None = None  # the wrapper itself, if it counts as a command or was not understood
    calls: tuple[tuple[Word, ...], ...] = ()
    text: Text | None = None
    through: str = ""
    assignments: tuple[Word, ...] = ()
    folder: Word | None = None  # None: the folder of the wrapper
    redirects: tuple[Redirect, ...] = ()  # files that the wrapper writes
