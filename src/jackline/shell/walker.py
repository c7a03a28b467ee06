"""Walks a syntax tree: lists the commands in order with their folders, without wrappers. It runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple
from jackline.shell.compound import parse_script
from jackline.shell.expansions import find_assignments
from jackline.shell.model import (
    AndOrList,
    Branches,
    CommandList,
    FunctionDefinition,
    Loop,
    NestedText,
    NotParsed,
    Redirect,
    ShellCommand,
    ShellNode,
    SimpleCommand,
    Subshells,
    Word,
)
from jackline.shell.scanner import MAX_DEPTH, MAX_LENGTH
from jackline.shell.wrappers import unwrap_command

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
FOLDER_COMMANDS = frozenset(["cd", "chdir", "pushd", "popd"])
SOURCE_COMMANDS = frozenset([".", "source"])
_LONGEST_PATH = 4096  # PATH_MAX; a text of many `cd a` could build a longer path


class CommandContext(NamedTuple):
    """The context that a command gets from the wrappers around it."""

    depth: int
    redirects: tuple[Redirect, ...] = ()
    through: tuple[str, ...] = ()
    shell: int = 0  # number of wrappers outside the shell that runs the command
    assignments: tuple[Word, ...] = ()
    stdin: Word | None = None
    posix: bool = False  # the shell may not support bash syntax

    def enter_level(self) -> CommandContext:
        if self.depth >= MAX_DEPTH:
            raise NotParsed("the text is nested too deeply")
        return self._replace(depth=self.depth + 1)


class Walker:
    """Visits a syntax tree; `folder` is the folder of the shell, or None if unknown."""

    def __init__(self, folder: str | None) -> None:
        self.commands: list[ShellCommand] = []
        self.folder = folder
        self.moves = 0  # number of possible folder changes
        self.nested_length = 0  # total length of nested texts: each wrapper may repeat nearly all of the text
        self.is_folder_lost = False  # a function or a trap may change the folder at any time
        self.has_functions = False  # a function is defined: any word may call it
        self.variables: dict[str, Word] = {}  # variables of the shell itself: `PATH=.; ls` runs another ls

    def walk(self, node: ShellNode, around: CommandContext) -> None:
        match node:
            case SimpleCommand():
                self.walk_simple(node, around)
            case CommandList(items):
                for item in items:
                    self.walk(item, around)
            case AndOrList():
                self.walk_and_or(node, around)
            case Subshells():
                self.walk_subshells(node, around)
            case Branches():
                self.walk_branches(node, around)
            case Loop():
                self.walk_loop(node, around)
            case FunctionDefinition():
                self.walk_function(node, around)

    def move_to(self, folder: str | None) -> None:
        self.moves += 1
        self.folder = None if self.is_folder_lost else folder

    def walk_and_or(self, node: AndOrList, around: CommandContext) -> None:
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
                # After `cd a || exit` the shell is in a or has ended.
                is_exit = isinstance(item, SimpleCommand) and item.words[:1] == [Word("exit")]
                self.folder = left if is_exit else None
            conditional = conditional or (self.moves != before and not (certain and operator == "&&"))
            certain = certain and _is_folder_change(item)
        if conditional:
            self.folder = None

    def walk_subshells(self, node: Subshells, around: CommandContext) -> None:
        folder, moves, inside = self.folder, self.moves, False
        fed: Word | None = None
        for item in node.items:
            self.folder, before = folder, self.moves
            self.walk(item, around if fed is None else around._replace(stdin=fed))
            inside, fed = self.moves != before, _find_output(item) if node.pipe and not self.has_functions else None
        self.folder, self.moves = (None if self.is_folder_lost else folder), moves
        if node.pipe and inside:
            self.move_to(None)  # zsh runs the last command of a pipeline in the shell itself

    def walk_branches(self, node: Branches, around: CommandContext) -> None:
        ends: list[str | None] = []
        for arm in node.arms:
            before = self.moves
            if arm.condition is not None:
                self.walk(arm.condition, around)
            start = self.folder
            failed = None if self.moves != before else start
            self.walk(arm.body, around)
            ends.append(self.folder)
            self.folder = None if self.is_folder_lost else failed
        if any(end != self.folder for end in ends):
            self.folder = None

    def walk_loop(self, node: Loop, around: CommandContext) -> None:
        """Visit a loop. If it changes the folder, the folder of all its commands is unknown."""
        before, first = self.moves, len(self.commands)
        for item in node.items:
            self.walk(item, around)
        if self.moves != before:
            self.folder = None
            self.commands[first:] = [command._replace(folder=None) for command in self.commands[first:]]

    def walk_function(self, node: FunctionDefinition, around: CommandContext) -> None:
        self.walk_later(node.body, around)
        self.has_functions = True
        if node.name in FOLDER_COMMANDS:
            self.is_folder_lost, self.folder = True, None

    def walk_later(self, node: ShellNode, around: CommandContext) -> None:
        """Visit commands that run later in an unknown folder. If they change it, all later folders are unknown."""
        folder, before = self.folder, self.moves
        self.folder = None
        self.walk(node, around)
        self.is_folder_lost = self.is_folder_lost or self.moves != before
        self.folder = None if self.is_folder_lost else folder

    def walk_simple(self, node: SimpleCommand, around: CommandContext) -> None:
        for inner in node.inner:
            self.walk(inner, around)
        own = around._replace(
            depth=max(around.depth, node.depth),
            redirects=around.redirects + tuple(node.redirects),
            assignments=around.assignments + tuple(node.assignments),
            stdin=around.stdin if node.stdin is None and not _opens_input(node) else node.stdin,
        )
        if node.words:
            self.walk_call(tuple(node.words), own)
            return
        self.add_variables(node.assignments)
        if node.redirects:
            self.emit_command((), own)

    def add_variables(self, words: Iterable[Word]) -> None:
        """Record variables of the shell; every later command gets all of them."""
        for word in words:
            self.variables[word.text.partition("=")[0].removesuffix("+")] = word
        if len(self.variables) > _MOST_VARIABLES:
            raise NotParsed("too many variables")

    def walk_call(self, words: tuple[Word, ...], around: CommandContext) -> None:
        """Emit one command, or the commands that it wraps."""
        marks = _CHANGING.get(words[0].text, ()) if words[0].exact else ()
        if any(mark in word.text or not word.exact for mark in marks for word in words[1:]):
            raise NotParsed(f"{words[0].text} may change the meaning of other commands")
        taken = unwrap_command(words, around.stdin)
        if taken is None:
            self.emit_command(words, around)
            self.add_variables(find_assignments(words))
            self.track_folder(words, around)
            return
        if taken.kept is not None:
            self.emit_command(taken.kept, around)
        inner = around.enter_level()._replace(
            through=(*around.through, taken.through),
            assignments=around.assignments + taken.assignments,
            redirects=around.redirects + taken.redirects,
        )
        here = self.folder
        if taken.folder is not None:
            self.folder = join_folder(here, taken.folder)
        for call in taken.calls:
            self.walk_call(call, inner)
        if taken.text is not None:
            self.walk_nested_text(taken.text, inner)
        if taken.folder is not None:
            self.folder = None if self.is_folder_lost else here
        if taken.kept is not None:
            self.track_folder(taken.kept, around)

    def walk_nested_text(self, text: NestedText, around: CommandContext) -> None:
        """Visit the shell text of a wrapper; the wrapper's redirections apply to all of it."""
        if around.redirects:
            self.emit_command((), around)
        self.nested_length += len(text.text)
        if self.nested_length > MAX_LENGTH:
            raise NotParsed("too much nested text")
        if not text.guess:
            self.walk_inner_script(text, around)
            return
        folder, first = self.folder, len(self.commands)
        try:
            self.walk_inner_script(text, around)
        except NotParsed:  # the wrapper is emitted too, as a command that may run anything
            self.folder = None if text.same else folder
        # The text may contain a placeholder of xargs or find.
        self.commands[first:] = [
            command._replace(words=tuple(Word(w.text, w.exact and "{}" not in w.text) for w in command.words))
            for command in self.commands[first:]
        ]

    def walk_inner_script(self, text: NestedText, around: CommandContext) -> None:
        posix = text.posix or (around.posix and (text.same or text.later))
        node = parse_script(text.text, around.depth, posix=posix)
        inside = around._replace(redirects=(), stdin=None if text.read else around.stdin, posix=posix)
        if text.same:
            self.walk(node, inside)
        elif text.later:
            self.walk_later(node, inside)
        else:
            self.walk(Subshells((node,)), inside._replace(shell=len(inside.through)))

    def track_folder(self, words: tuple[Word, ...], around: CommandContext) -> None:
        """Update the folder after a command that the shell ran itself."""
        wrappers = around.through[around.shell :]
        if not may_change_folder(words) or not _PERHAPS_IN_SHELL.issuperset(wrappers):
            return
        plain = words[0].exact and words[0].text in FOLDER_COMMANDS and _IN_SHELL.issuperset(wrappers)
        self.move_to(find_new_folder(self.folder, words) if plain else None)

    def emit_command(self, words: tuple[Word, ...], around: CommandContext) -> None:
        stdin = "" if around.stdin is None else around.stdin.text
        assignments = (*self.variables.values(), *around.assignments)
        self.commands.append(
            ShellCommand(
                words=words,
                redirects=around.redirects,
                folder=self.folder,
                through=around.through,
                stdin=stdin,
                assignments=assignments,
            )
        )


def _opens_input(node: SimpleCommand) -> bool:
    return any("<" in redirect.operator for redirect in node.redirects)


def _find_output(node: ShellNode) -> Word | None:
    """Return the known output of a command in a pipeline, such as `cat <<X | bash`."""
    if not isinstance(node, SimpleCommand) or not node.words or not all(word.exact for word in node.words):
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


def _is_folder_change(node: ShellNode) -> bool:
    return isinstance(node, SimpleCommand) and bool(node.words) and node.words[0].text in FOLDER_COMMANDS


def join_folder(folder: str | None, target: Word) -> str | None:
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


def find_new_folder(folder: str | None, words: tuple[Word, ...]) -> str | None:
    """Return the folder after `cd …`, assuming that it succeeds."""
    if words[0].text == "popd" or not all(word.exact for word in words):
        return None
    given = [word for word in words[1:] if word.text not in ("-L", "--")]
    if len(given) != 1 or given[0].text.startswith(("-", "+")):
        return None  # home, the previous folder, a stack entry, or a physical path
    return join_folder(folder, given[0])


def may_change_folder(words: tuple[Word, ...]) -> bool:
    """Check whether a command runs in the shell itself and may change its folder."""
    program = words[0]
    if not program.exact or program.text in FOLDER_COMMANDS or program.text == "eval":
        return True
    return program.text in SOURCE_COMMANDS and not (len(words) > 1 and words[1].text.endswith("/bin/activate"))
