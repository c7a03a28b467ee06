"""Walks a syntax tree: lists the commands in order with their folders, without wrappers. It runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.shell.changes import INTERPRETED
from jackline.shell.compound import parse_script
from jackline.shell.constants import POSITIONAL, ShellState
from jackline.shell.expansions import find_assignments
from jackline.shell.folders import FOLDER_COMMANDS, find_new_folder, join_folder, may_change_folder
from jackline.shell.grammar import EVALUATING
from jackline.shell.model import (
    AndOrList,
    Branches,
    CommandList,
    FunctionDefinition,
    Loop,
    NestedText,
    NotParsed,
    ShellCommand,
    ShellNode,
    SimpleCommand,
    Subshells,
    Word,
)
from jackline.shell.scanner import MAX_LENGTH, hides_command
from jackline.shell.state_tracker import IN_SHELL, MOST_FUNCTIONS, PERHAPS_IN_SHELL, CommandContext, StateTracker
from jackline.shell.wrappers import is_wrapper, unwrap_command

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_VARIABLES = 200

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
_PRINTING = frozenset(["cat", "echo", "printf"])
_IN_SAME_SHELL = frozenset(["eval", "time"])
_MOST_ROUNDS = 32  # of a loop that are visited
_MOST_REPEATED = 2000  # commands that are visited again
_MOST_ACTIVE = 4  # functions that call each other


class Walker(StateTracker):
    """Visits a syntax tree; `folder` is the folder of the shell, or None if unknown.

    With `constants`, words are expanded as far as the values of variables are known.
    """

    def __init__(self, folder: str | None, *, constants: bool = False) -> None:
        super().__init__(constants=constants)
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
        ends, mixed = self.state.copy(), False
        for operator, item in node.rest:
            mixed = mixed or operator == "||"
            if mixed:  # it runs after one of the earlier commands
                self.state = ends.copy()
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
            ends.join(self.state)
        self.state = ends
        if conditional:
            self.folder = None

    def walk_subshells(self, node: Subshells, around: CommandContext) -> None:
        folder, moves, inside = self.folder, self.moves, False
        fed: Word | None = None
        outside = self.state
        for number, item in enumerate(node.items):
            self.state = outside.copy()
            self.folder, before = folder, self.moves
            is_piped = fed is None and (around.is_piped or (node.pipe and number > 0))
            self.walk(item, around._replace(stdin=fed or around.stdin, is_piped=is_piped))
            inside, fed = self.moves != before, self.find_output(item) if node.pipe else None
        last, self.state = self.state, outside
        self.folder, self.moves = (None if self.is_folder_lost else folder), moves
        if node.pipe:  # zsh runs the last command of a pipeline in the shell itself
            self.state.join(last)
            if inside:
                self.move_to(None)

    def find_output(self, node: ShellNode) -> Word | None:
        """Return the known output of a command in a pipeline, such as `cat <<X | bash`."""
        if self.has_functions and not (self.constants and _PRINTING.isdisjoint((*self.bodies, *self.aliases))):
            return None
        return _find_output(node)

    def walk_branches(self, node: Branches, around: CommandContext) -> None:
        ends: list[str | None] = []
        states: list[ShellState] = []
        for arm in node.arms:
            before = self.moves
            if arm.condition is not None:
                self.walk(arm.condition, around)
            start, otherwise = self.folder, self.state.copy()
            failed = None if self.moves != before else start
            self.walk(arm.body, around)
            ends.append(self.folder)
            states.append(self.state)
            self.folder, self.state = None if self.is_folder_lost else failed, otherwise
        if any(end != self.folder for end in ends):
            self.folder = None
        for state in states:
            self.state.join(state)

    def walk_loop(self, node: Loop, around: CommandContext) -> None:
        """Visit a loop. If it changes the folder, the folder of all its commands is unknown."""
        before, first = self.moves, len(self.commands)
        self.nesting += 1
        self.walk_rounds(node, around)
        self.nesting -= 1
        if self.moves != before:
            self.folder = None
            self.commands[first:] = [command._replace(folder=None) for command in self.commands[first:]]

    def walk_rounds(self, node: Loop, around: CommandContext) -> None:
        """Visit the items of a loop once, or once for each known value of its variable."""
        values = [made for word in node.values for made in self.state.expand(word)] if self.constants else []
        rounds = list(dict.fromkeys(word for word in values if word.exact))[:_MOST_ROUNDS]
        changed = self.find_changes(node.items)
        self.state.forget(changed)
        without = self.state.copy()
        unknown = self.state.frozen or len(rounds) < len(set(values)) or not rounds
        for number, value in enumerate([] if self.state.frozen else rounds):
            if number and self.repeated > _MOST_REPEATED:
                unknown = True
                break
            self.state.assign(Word(f"{node.name}={value.text}"))
            self.walk_repeated(node.items, around, again=number > 0)
            self.state.forget((*changed, node.name))
        if unknown:
            self.walk_repeated(node.items, around, again=bool(rounds))
            self.state.forget(changed)
        self.state.join(without)

    def walk_repeated(self, items: Iterable[ShellNode], around: CommandContext, *, again: bool) -> None:
        first = len(self.commands)
        for item in items:
            self.walk(item, around)
        self.repeated += len(self.commands) - first if again else 0

    def walk_function(self, node: FunctionDefinition, around: CommandContext) -> None:
        self.has_functions = True
        if self.constants:
            self.walk_definition(node, around)
        else:
            self.walk_later(node.body, around)
        if node.name in FOLDER_COMMANDS:
            self.is_folder_lost, self.folder = True, None

    def walk_later(self, node: ShellNode, around: CommandContext) -> None:
        """Visit commands that run later in an unknown folder. If they change it, all later folders are unknown."""
        folder, before = self.folder, self.moves
        self.folder = None
        outside, self.state = self.state, ShellState(frozen=True)
        self.nesting += 1
        self.walk(node, around)
        self.nesting -= 1
        self.state = outside
        self.is_folder_lost = self.is_folder_lost or self.moves != before
        self.folder = None if self.is_folder_lost else folder

    def walk_definition(self, node: FunctionDefinition, around: CommandContext) -> None:
        """Visit a function whose calls are visited, too. Its own commands count only if it may be called otherwise."""
        commands, self.commands = self.commands, []
        self.defining += 1
        self.walk_later(node.body, around)
        self.defining -= 1
        found, self.commands = self.commands, commands
        if self.defining:
            self.commands.extend(found)
        else:
            self.definitions.append((len(self.commands), node.name, found))
        self.bodies.setdefault(node.name, []).append(node.body)
        if not self.state.frozen and len(self.state.functions) < MOST_FUNCTIONS:
            self.state.functions[node.name] = node.body

    def walk_simple(self, node: SimpleCommand, around: CommandContext) -> None:
        for inner in node.inner:
            self.walk(inner, around)
        words, assignments, redirects, stdin = self.expand_simple(node)
        own = around._replace(
            depth=max(around.depth, node.depth),
            redirects=around.redirects + redirects,
            assignments=around.assignments + assignments,
            stdin=around.stdin if node.stdin is None and not _opens_input(node) else stdin,
            is_piped=around.is_piped and node.stdin is None and not _opens_input(node),
        )
        if words:
            # Only the command sees its assignments, but some shells keep them.
            scoped = [word for word in assignments if words[0].text != "read" or not word.text.startswith("IFS=")]
            for word in scoped:
                self.state.assign(word)
            self.walk_call(words, own)
            self.state.forget(word.text.partition("=")[0].rstrip("+") for word in scoped)
            return
        self.add_variables(assignments)
        for word in node.assignments:
            self.state.assign(word)
        if redirects:
            self.emit_command((), own)

    def add_variables(self, words: Iterable[Word]) -> None:
        """Record variables of the shell; every later command gets all of them."""
        for word in words:
            self.variables[word.text.partition("=")[0].removesuffix("+")] = word
        if len(self.variables) > _MOST_VARIABLES:
            raise NotParsed("too many variables")

    def walk_call(self, words: tuple[Word, ...], around: CommandContext) -> None:
        """Emit one command, or the commands that it wraps, or those of the function that it calls."""
        name = words[0].text if words[0].exact else ""
        if self.constants and name == "alias":
            self.add_aliases(words[1:])
        for value in self.aliases.get(name, ()) if name not in self.active else ():
            before = self.state.copy()
            self.repeated += 1
            if self.repeated > _MOST_REPEATED:
                raise NotParsed("too many aliases")
            self.active.append(name)
            self.walk_call((*value, *words[1:]), around)
            self.active.pop()
            self.state.join(before)
        if name in self.bodies and self.walk_function_call(words, around):
            return
        self.walk_program(words, around)

    def walk_function_call(self, words: tuple[Word, ...], around: CommandContext) -> bool:
        """Visit the function that a command calls for certain; return False if the command may be a program."""
        name = words[0].text
        body = self.state.functions.get(name) if _IN_SAME_SHELL.issuperset(around.through[around.shell :]) else None
        deep = name in self.active or len(self.active) >= _MOST_ACTIVE or self.repeated > _MOST_REPEATED
        if body is None or deep or name in INTERPRETED or is_wrapper(name):
            self.freeze_state()
            return False
        changed = self.find_changes((body,))
        if around.redirects:
            self.emit_command((), around)
        self.called.add(name)
        self.calls += 1
        self.active.append(name)
        self.nesting += 1
        given, self.state.positional = self.state.positional, words[1:]
        self.walk_repeated((body,), around._replace(redirects=()), again=True)
        self.state.positional = given
        self.nesting -= 1
        self.calls -= 1
        self.active.pop()
        self.state.forget(changed - {POSITIONAL})
        return True

    def walk_program(self, words: tuple[Word, ...], around: CommandContext) -> None:
        """Emit one command, or the commands that it wraps."""
        program = words[0].text if words[0].exact else ""
        if program in EVALUATING and any(word.exact and hides_command(word.text) for word in words[1:]):
            raise NotParsed("word would run a command as arithmetic")
        marks = () if self.constants and program == "alias" else _CHANGING.get(program, ())
        if any(mark in word.text or not word.exact for mark in marks for word in words[1:]):
            raise NotParsed(f"{words[0].text} may change the meaning of other commands")
        taken = unwrap_command(words, around.stdin)
        if taken is None:
            self.emit_command(words, around)
            self.add_variables(find_assignments(words))
            self.track_folder(words, around)
            self.track_state(words, around)
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
            self.track_state(taken.kept, around)

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
        if (text.same and text.guess) or text.later:
            self.freeze_state()
        node = parse_script(text.text, around.depth, posix=posix)
        inside = around._replace(redirects=(), stdin=None if text.read else around.stdin, posix=posix)
        if text.same:
            self.walk(node, inside)
        elif text.later:
            self.walk_later(node, inside)
        else:
            outside, self.state = self.state, self.start_shell(text, around, posix=posix)
            self.walk(Subshells((node,)), inside._replace(shell=len(inside.through)))
            self.state = outside

    def track_folder(self, words: tuple[Word, ...], around: CommandContext) -> None:
        """Update the folder after a command that the shell ran itself."""
        wrappers = around.through[around.shell :]
        if not may_change_folder(words) or not PERHAPS_IN_SHELL.issuperset(wrappers):
            return
        plain = words[0].exact and words[0].text in FOLDER_COMMANDS and IN_SHELL.issuperset(wrappers)
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
                is_piped=around.is_piped,
            )
        )


def _opens_input(node: SimpleCommand) -> bool:
    return any("<" in redirect.operator for redirect in node.redirects)


def _find_output(node: ShellNode) -> Word | None:
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
