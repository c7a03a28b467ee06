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


class Piece(NamedTuple):
    """A part of a word that is not exact."""

    text: str  # as written; for literal text, without quotes
    name: str | None = None  # None: literal text; empty: only known at run time; else the variable or parameter
    quoted: bool = True
    default: str | None = None  # its value if the variable is empty


class Template(Word):
    """A word that a shell would expand: its text is as written, and its pieces may become known."""

    pieces: tuple[Piece, ...] = ()


def build_template(text: str, pieces: tuple[Piece, ...]) -> Template:
    word = Template(text, exact=False)
    word.pieces = pieces
    return word


def split_pieces(word: Word) -> tuple[Piece, ...]:
    """Return the pieces of any word."""
    if isinstance(word, Template) and word.pieces:
        return word.pieces
    return (Piece(word.text, None if word.exact else ""),)


def join_words(words: list[Word]) -> Word:
    """Join quoted parts into one word."""
    text = "".join(word.text for word in words)
    if all(word.exact for word in words):
        return Word(text)
    return build_template(text, tuple(piece for word in words for piece in split_pieces(word)))


class Redirect(NamedTuple):
    """A file opened for a command. Copies of descriptors (`2>&1`) open no file and are left out."""

    operator: str  # as written, without a default descriptor: ">", ">>", "2>", "&>", ">|", "<", "<>"
    target: Word


class ShellCommand(NamedTuple):
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
    is_piped: bool = False  # a pipe feeds it with data that is only known at run time


class SimpleCommand:
    """A simple command. Mutable, because its here-document follows only after the end of its line."""

    __slots__ = ("assignments", "changed", "depth", "evaluated", "inner", "redirects", "stdin", "words")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.assignments: list[Word] = []
        self.inner: list[ShellNode] = []  # its substitutions, which run before it
        self.stdin: Word | None = None
        self.changed: list[str] = []  # variables that the shell sets by itself, at any time from then on
        self.evaluated: list[str] = []  # arithmetic expressions; "*" is one that is not known


class CommandList(NamedTuple):
    """Commands that run one after the other."""

    items: tuple[ShellNode, ...]


class AndOrList(NamedTuple):
    """Commands joined by `&&` and `||`."""

    first: ShellNode
    rest: tuple[tuple[str, ShellNode], ...]


class Subshells(NamedTuple):
    """Items that each run in a subshell. `pipe`: some shells run the last item of a pipeline in the shell itself."""

    items: tuple[ShellNode, ...]
    pipe: bool = False


class Branch(NamedTuple):
    """One branch of an `if` or a `case`."""

    condition: ShellNode | None
    body: ShellNode


class Branches(NamedTuple):
    """Branches of which at most one runs."""

    arms: tuple[Branch, ...]


class Loop(NamedTuple):
    """Items that run any number of times; a `for` loop over words has a variable and its values."""

    items: tuple[ShellNode, ...]
    name: str = ""
    values: tuple[Word, ...] = ()


class FunctionDefinition(NamedTuple):
    """A function definition; its body runs wherever the name is called."""

    name: str
    body: ShellNode


ShellNode: TypeAlias = SimpleCommand | CommandList | AndOrList | Subshells | Branches | Loop | FunctionDefinition


class NestedText(NamedTuple):
    """Shell text that a wrapper runs."""

    text: str
    posix: bool = True  # the shell may not support bash syntax
    same: bool = False  # it runs in the current shell, so its `cd` affects later commands
    read: bool = False  # it came from standard input, which is consumed
    later: bool = False  # it runs at another time, in an unknown folder
    guess: bool = False  # it is not exact: the commands found in it may run, and others too
    arguments: tuple[Word, ...] | None = None  # its positional parameters, if they are known


class Unwrapped(NamedTuple):
    """The commands that a wrapper runs."""

    kept: tuple[Word, ...] | None = None  # the wrapper itself, if it counts as a command or was not understood
    calls: tuple[tuple[Word, ...], ...] = ()
    text: NestedText | None = None
    through: str = ""
    assignments: tuple[Word, ...] = ()
    folder: Word | None = None  # None: the folder of the wrapper
    redirects: tuple[Redirect, ...] = ()  # files that the wrapper writes
