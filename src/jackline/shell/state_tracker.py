"""Keeps track of what a shell knows while its text is walked: variables, functions, aliases. It runs nothing."""

from __future__ import annotations

import re

from jackline.named import NamedTuple
from jackline.shell.changes import DECLARING, ChangeFinder, find_call_changes, has_odd_flags
from jackline.shell.constants import FREEZE, ShellState
from jackline.shell.grammar import KEYWORDS
from jackline.shell.model import NestedText, NotParsed, Redirect, ShellCommand, ShellNode, SimpleCommand, Word
from jackline.shell.scanner import MAX_DEPTH

IN_SHELL = frozenset(["command", "builtin", "eval", "trap"])
PERHAPS_IN_SHELL = IN_SHELL | {"time", "noglob", "nocorrect"}
_PASSING = frozenset(["nohup", "nice", "timeout", "stdbuf", "setsid", "ionice", "command", "time", "eval"])
MOST_FUNCTIONS = 64
_ALIAS = re.compile(r"([A-Za-z0-9_.-]+)=([A-Za-z0-9_./@%+,:-]+(?: +[A-Za-z0-9_./@%+,:=-]+)*)")
_CALLED_BY_SHELL = re.compile(r"command_not_found_handler?$|(?:chpwd|precmd|preexec|periodic|zsh|TRAP)")


class CommandContext(NamedTuple):
    """The context that a command gets from the wrappers around it."""

    depth: int
    redirects: tuple[Redirect, ...] = ()
    through: tuple[str, ...] = ()
    shell: int = 0  # number of wrappers outside the shell that runs the command
    assignments: tuple[Word, ...] = ()
    stdin: Word | None = None
    is_piped: bool = False  # standard input is a pipe whose data is not known
    posix: bool = False  # the shell may not support bash syntax

    def enter_level(self) -> CommandContext:
        if self.depth >= MAX_DEPTH:
            raise NotParsed("the text is nested too deeply")
        return self._replace(depth=self.depth + 1)


class StateTracker:
    """The commands found so far, and the state of the current shell. Without `constants`, nothing is known."""

    def __init__(self, *, constants: bool) -> None:
        self.commands: list[ShellCommand] = []
        self.constants = constants
        self.state = ShellState(frozen=not constants)
        self.bodies: dict[str, list[ShellNode]] = {}  # all functions of the text, by name
        self.definitions: list[tuple[int, str, list[ShellCommand]]] = []  # the commands of a function's definition
        self.aliases: dict[str, list[tuple[Word, ...]]] = {}
        self.active: list[str] = []  # functions and aliases that are being walked
        self.called: set[str] = set()  # functions whose calls were walked with their arguments
        self.calls = 0  # number of function calls around
        self.is_any_callable = False  # code that is not known may call any function
        self.finder = ChangeFinder(self.bodies)
        self.nesting = 0  # number of loops, functions and traps around
        self.defining = 0  # number of function definitions around
        self.repeated = 0  # number of commands that were visited again

    def finish(self) -> tuple[ShellCommand, ...]:
        """Return all commands. The definition of a function is left out if every call of it was walked."""
        for place, name, commands in reversed(self.definitions):
            is_only_called = name in self.called and len(self.bodies[name]) == 1 and not _CALLED_BY_SHELL.match(name)
            if not is_only_called or self.is_any_callable or self.aliases:
                self.commands[place:place] = commands
        return tuple(self.commands)

    def find_changes(self, items: tuple[ShellNode, ...]) -> frozenset[str]:
        return frozenset() if self.state.frozen else self.finder.find_changes(items, self.state)

    def expand_simple(
        self, node: SimpleCommand
    ) -> tuple[tuple[Word, ...], tuple[Word, ...], tuple[Redirect, ...], Word | None]:
        """Return the words, assignments, redirections and standard input of a command, as far as they are known."""
        self.state.forget(node.changed)
        self.state.fixed.update(node.changed)
        for expression in node.evaluated:
            self.state.evaluate(expression)
        if self.state.frozen:
            return tuple(node.words), tuple(node.assignments), tuple(node.redirects), node.stdin
        state, assignments = self.state, tuple(node.assignments)
        if assignments:
            state = self.state.copy()
            state.forget(word.text.partition("=")[0].rstrip("+") for word in assignments)
        words = tuple(made for word in node.words for made in state.expand(word))
        redirects = tuple(
            Redirect(one.operator, made[0]) if len(made := state.expand(one.target)) == 1 else one
            for one in node.redirects
        )
        given = None if node.stdin is None else state.find_value(node.stdin)
        known: list[Word] = []
        for word in assignments:
            value = state.find_value(word)
            known.append(word if value is None else Word(value))
            state.assign(word)
        return words, tuple(known), redirects, node.stdin if given is None else Word(given)

    def add_aliases(self, words: tuple[Word, ...]) -> None:
        """Record aliases of plain words. A shell may or may not expand them: the text and the alias both count."""
        for word in words:
            found = _ALIAS.fullmatch(word.text)
            if not word.exact or found is None or self.nesting or {found[1], found[2].split()[0]} & KEYWORDS:
                raise NotParsed("alias may change the meaning of other commands")
            value = tuple(Word(text) for text in found[2].split())
            values = self.aliases.setdefault(found[1], [])
            values.extend([value] if value not in values else ())
        if len(self.aliases) > MOST_FUNCTIONS:
            raise NotParsed("too many aliases")

    def freeze_state(self) -> None:
        """Forget all values: code that is not known runs in the shell."""
        self.state.freeze()
        self.is_any_callable = self.is_any_callable or not self.defining

    def track_state(self, words: tuple[Word, ...], around: CommandContext) -> None:
        """Update the variables after a command that the shell ran itself."""
        program, given = words[0].text, words[1:]
        in_shell = PERHAPS_IN_SHELL.issuperset(around.through[around.shell :])
        if not self.constants or not in_shell or program in {"alias", "unalias"}:
            return
        changed = frozenset(find_call_changes(words, program) if words[0].exact else (FREEZE,))
        if FREEZE in changed:
            self.freeze_state()
        positional = self.state.positional
        if program in {"export", "readonly"} and not has_odd_flags(given):
            changed -= {word.text for word in given}  # `export name` keeps its value
        self.state.forget(changed)
        if program == "set" and given and given[0] == Word("--"):
            self.state.positional = None if self.state.frozen else given[1:]
        elif program == "shift" and positional and not given and positional[0].exact:
            self.state.positional = positional[1:]
        elif program in DECLARING and not has_odd_flags(given) and (program != "local" or self.calls):
            self.track_declaration(program, given)

    def track_declaration(self, program: str, given: tuple[Word, ...]) -> None:
        for word in given:
            if word.exact and "=" in word.text and not word.text.startswith("-"):
                self.state.assign(word)
        names = frozenset(word.text.partition("=")[0] for word in given)
        if program == "export":
            self.state.exported |= names & self.state.values.keys()
        if program == "readonly" or any("r" in word.text for word in given if word.text[:1] == "-"):
            self.state.fixed |= names

    def start_shell(self, text: NestedText, around: CommandContext, *, posix: bool) -> ShellState:
        """Return the state of a new shell: its parameters, and the variables that it gets from this one."""
        made = ShellState(frozen=self.state.frozen or text.guess, braces=not posix)
        if made.frozen:
            return made
        made.spent, made.positional = self.state.spent, text.arguments
        if _PASSING.issuperset(around.through[around.shell : -1]):
            made.values = {name: self.state.values[name] for name in self.state.exported & self.state.values.keys()}
            made.exported = frozenset(made.values)
            for word in around.assignments:
                made.assign(word)
        return made
