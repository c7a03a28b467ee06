"""Walks a syntax tree: lists the commands in order with their folders, and removes wrappers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.shell.compound import parse
from jackline.domain.shell.expansions import assigned_by
from jackline.domain.shell.model import (
    Apart,
    Branches,
    Chain,
    Command,
    Function,
    Loop,
    Node,
    NotParsed,
    Redirect,
    Series,
    Simple,
    Text,
    Word,
)
from jackline.domain.shell.scanner import DEEPEST, LONGEST
from jackline.domain.shell.wrappers import take_off
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_IN_SHELL = frozenset(["command", "builtin", "eval", "trap"])
_MOST_VARIABLES = 200
_PERHAPS_IN_SHELL = _IN_SHELL | {"time", "noglob", "nocorrect"}

# Builtins that can change what other words run, and the argument text that makes them do it.
_CHANGING = {
    "alias": ("=",),
    "bind": ("x",),
    "compgen": ("C", "F", "W"),
    "enable": ("f",),
    "hash": ("p",),
    "mapfile": ("-C",),
    "readarray": ("-C",),
}


class Around(NamedTuple):
    """The context that a command gets from the wrappers around it."""

    depth: int
    redirects: tuple[Redirect, ...] = ()
    through: tuple[str, ...] = ()
    shell: int = 0  # number of wrappers outside the shell that runs the command
    assignments: tuple[Word, ...] = ()
    stdin: Word | None = None
    posix: bool = False  # the shell may not support bash syntax

    def deeper(self) -> Around:
        if self.depth >= DEEPEST:
            raise NotParsed("the text is nested too deeply")
        return self._replace(depth=self.depth + 1)


class Walker:
    """Visits a syntax tree; `folder` is the folder of the shell, or None if unknown."""

    def __init__(self, folder: str | None) -> None:
        self.found: list[Command] = []
        self.folder = folder
        self.moves = 0  # number of possible folder changes
        self.read = 0  # total length of nested texts: each wrapper may repeat nearly all of the text
        self.lost = False  # a function or a trap may change the folder at any time
        self.named = False  # a function is defined: any word may call it
        self.assigned: dict[str, Word] = {}  # variables of the shell itself: `PATH=.; ls` runs another ls

    def walk(self, node: Node, around: Around) -> None:
        match node:
            case Simple():
                self.simple(node, around)
            case Series(items):
                for item in items:
                    self.walk(item, around)
            case Chain():
                self.chain(node, around)
            case Apart():
                self.apart(node, around)
            case Branches():
                self.branches(node, around)
            case Loop():
                self.loop(node, around)
            case Function():
                self.function(node, around)

    def go(self, folder: str | None) -> None:
        self.moves += 1
        self.folder = None if self.lost else folder

    def chain(self, node: Chain, around: Around) -> None:
        """Visit `a && b || c`. After a conditional `cd`, the folder of later commands is unknown."""
        start, certain, conditional = self.moves, _is_folder_change(node.first), False
        self.walk(node.first, around)
        for operator, item in node.rest:
            before, left = self.moves, self.folder
            otherwise = operator == "||" and before != start
            if otherwise:
                self.folder = None
            self.walk(item, around)
            if otherwise:
                self.folder = left if _is_exit(item) else None
            conditional = conditional or (self.moves != before and not (certain and operator == "&&"))
            certain = certain and _is_folder_change(item)
        if conditional:
            self.folder = None

    def apart(self, node: Apart, around: Around) -> None:
        folder, moves, inside = self.folder, self.moves, False
        fed: Word | None = None
        for item in node.items:
            self.folder, before = folder, self.moves
            self.walk(item, around if fed is None else around._replace(stdin=fed))
            inside, fed = self.moves != before, _find_output(item) if node.pipe and not self.named else None
        self.folder, self.moves = (None if self.lost else folder), moves
        if node.pipe and inside:
            self.go(None)  # zsh runs the last command of a pipeline in the shell itself

    def branches(self, node: Branches, around: Around) -> None:
        ends: list[str | None] = []
        for arm in node.arms:
            before = self.moves
            if arm.condition is not None:
                self.walk(arm.condition, around)
            start = self.folder
            failed = None if self.moves != before else start
            self.walk(arm.body, around)
            ends.append(self.folder)
            self.folder = None if self.lost else failed
        if any(end != self.folder for end in ends):
            self.folder = None

    def loop(self, node: Loop, around: Around) -> None:
        """Visit a loop. If it changes the folder, the folder of all its commands is unknown."""
        before, first = self.moves, len(self.found)
        for item in node.items:
            self.walk(item, around)
        if self.moves != before:
            self.folder = None
            self.found[first:] = [command._replace(folder=None) for command in self.found[first:]]

    def function(self, node: Function, around: Around) -> None:
        self.later(node.body, around)
        self.named = True
        if node.name in MOVING:
            self.lost, self.folder = True, None

    def later(self, node: Node, around: Around) -> None:
        """Visit commands that run later in an unknown folder. If they change it, all later folders are unknown."""
        folder, before = self.folder, self.moves
        self.folder = None
        self.walk(node, around)
        self.lost = self.lost or self.moves != before
        self.folder = None if self.lost else folder

    def simple(self, node: Simple, around: Around) -> None:
        for inner in node.inner:
            self.walk(inner, around)
        own = around._replace(
            depth=max(around.depth, node.depth),
            redirects=around.redirects + tuple(node.redirects),
            assignments=around.assignments + tuple(node.assignments),
            stdin=around.stdin if node.stdin is None and not _opens_input(node) else node.stdin,
        )
        if node.words:
            self.call(tuple(node.words), own)
            return
        self.assign(node.assignments)
        if node.redirects:
            self.emit((), own)

    def assign(self, words: Iterable[Word]) -> None:
        """Record variables of the shell; every later command gets all of them."""
        for word in words:
            self.assigned[word.text.partition("=")[0].removesuffix("+")] = word
        if len(self.assigned) > _MOST_VARIABLES:
            raise NotParsed("too many variables")

    def call(self, words: tuple[Word, ...], around: Around) -> None:
        """Emit one command, or the commands that it wraps."""
        if _changes_meaning(words):
            raise NotParsed(f"{words[0].text} may change the meaning of other commands")
        taken = take_off(words, around.stdin)
        if taken is None:
            self.emit(words, around)
            self.assign(assigned_by(words))
            self.settle(words, around)
            return
        if taken.kept is not None:
            self.emit(taken.kept, around)
        inner = around.deeper()._replace(
            through=(*around.through, taken.through),
            assignments=around.assignments + taken.assignments,
            redirects=around.redirects + taken.redirects,
        )
        here = self.folder
        if taken.folder is not None:
            self.folder = joined(here, taken.folder)
        for call in taken.calls:
            self.call(call, inner)
        if taken.text is not None:
            self.text(taken.text, inner)
        if taken.folder is not None:
            self.folder = None if self.lost else here
        if taken.kept is not None:
            self.settle(taken.kept, around)

    def text(self, text: Text, around: Around) -> None:
        """Visit the shell text of a wrapper; the wrapper's redirections apply to all of it."""
        if around.redirects:
            self.emit((), around)
        self.read += len(text.text)
        if self.read > LONGEST:
            raise NotParsed("too much nested text")
        if not text.guess:
            self.inside(text, around)
            return
        folder, first = self.folder, len(self.found)
        try:
            self.inside(text, around)
        except NotParsed:  # the wrapper is emitted too, as a command that may run anything
            self.folder = None if text.same else folder
        # The text may contain a placeholder of xargs or find.
        self.found[first:] = [
            command._replace(words=tuple(Word(w.text, w.exact and "{}" not in w.text) for w in command.words))
            for command in self.found[first:]
        ]

    def inside(self, text: Text, around: Around) -> None:
        posix = text.posix or (around.posix and (text.same or text.later))
        node = parse(text.text, around.depth, posix=posix)
        inside = around._replace(redirects=(), stdin=None if text.read else around.stdin, posix=posix)
        if text.same:
            self.walk(node, inside)
        elif text.later:
            self.later(node, inside)
        else:
            self.walk(Apart((node,)), inside._replace(shell=len(inside.through)))

    def settle(self, words: tuple[Word, ...], around: Around) -> None:
        """Update the folder after a command that the shell ran itself."""
        wrappers = around.through[around.shell :]
        if not may_move(words) or not _PERHAPS_IN_SHELL.issuperset(wrappers):
            return
        plain = words[0].exact and words[0].text in MOVING and _IN_SHELL.issuperset(wrappers)
        self.go(moved(self.folder, words) if plain else None)

    def emit(self, words: tuple[Word, ...], around: Around) -> None:
        stdin = "" if around.stdin is None else around.stdin.text
        assignments = (*self.assigned.values(), *around.assignments)
        self.found.append(Command(words, around.redirects, self.folder, around.through, stdin, assignments))


def _changes_meaning(words: tuple[Word, ...]) -> bool:
    """Check for builtins that change the meaning of other words, or run a text argument."""
    marks = _CHANGING.get(words[0].text, ()) if words[0].exact else ()
    return any(mark in word.text or not word.exact for mark in marks for word in words[1:])


def _opens_input(node: Simple) -> bool:
    return any("<" in redirect.operator for redirect in node.redirects)


def _find_output(node: Node) -> Word | None:
    """Return the known output of a command in a pipeline, such as `cat <<X | bash`."""
    if not isinstance(node, Simple) or not node.words or not all(word.exact for word in node.words):
        return None
    if node.assignments or _opens_input(node):
        return None
    program, *rest = (word.text for word in node.words)
    if program == "cat" and rest in ([], ["-"]):
        return node.stdin
    plain = program == "echo" and rest and not rest[0].startswith("-")
    if program == "printf" and len(rest) == 1:
        plain = "%" not in rest[0] and not rest[0].startswith("-")
    return Word(" ".join(rest)) if plain and not any("\\" in text for text in rest) else None


def _is_folder_change(node: Node) -> bool:
    return isinstance(node, Simple) and bool(node.words) and node.words[0].text in MOVING


def _is_exit(node: Node) -> bool:
    """Check for `exit`: after `cd a || exit` the shell is in a or has ended."""
    return isinstance(node, Simple) and bool(node.words) and node.words[0] == Word("exit")


MOVING = frozenset(["cd", "chdir", "pushd", "popd"])
SOURCING = frozenset([".", "source"])
_LONGEST_PATH = 4096  # PATH_MAX; a text of many `cd a` could build a longer path


def joined(folder: str | None, target: Word) -> str | None:
    """Resolve `target` from `folder`; None if unknown."""
    if not target.exact or not target.text or target.text.startswith("~"):
        return None
    if target.text.startswith("/"):
        return _normalize_path(target.text)
    return None if folder is None else _normalize_path(f"{folder}/{target.text}")


def _normalize_path(path: str) -> str | None:
    """Normalize a path such as `a/./b/..` the way `cd` does."""
    absolute = path.startswith("/")
    kept: list[str] = []
    for part in path.split("/"):
        if part == ".." and kept and kept[-1] != "..":
            kept.pop()
        elif part not in ("", ".") and not (part == ".." and absolute):
            kept.append(part)
    tidied = "/" + "/".join(kept) if absolute else "/".join(kept) or "."
    return tidied if len(tidied) <= _LONGEST_PATH else None


def moved(folder: str | None, words: tuple[Word, ...]) -> str | None:
    """Return the folder after `cd …`, assuming that it succeeds."""
    if words[0].text == "popd" or not all(word.exact for word in words):
        return None
    given = [word for word in words[1:] if word.text not in ("-L", "--")]
    if len(given) != 1 or given[0].text.startswith(("-", "+")):
        return None  # home, the previous folder, a stack entry, or a physical path
    return joined(folder, given[0])


def may_move(words: tuple[Word, ...]) -> bool:
    """Check whether a command runs in the shell itself and may change its folder."""
    program = words[0]
    if not program.exact or program.text in MOVING or program.text == "eval":
        return True
    return program.text in SOURCING and not (len(words) > 1 and words[1].text.endswith("/bin/activate"))
