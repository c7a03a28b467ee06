"""Which words each command takes, read from its parser: for completion in shells. It parses nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.named import NamedTuple

if TYPE_CHECKING:
    from argparse import Action
    from collections.abc import Iterator

    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

WORDS, FILES, FOLDERS, RUNS, TASKS, NOTHING = "words", "files", "folders", "runs", "tasks", "nothing"
_BY_METAVAR = {"FILE": FILES, "PATH": FILES, "DIR": FOLDERS, "RUN": RUNS, "TASK": TASKS}
_AGENTS = ("agent", "of_agent")


class Value(NamedTuple):
    """What may follow a flag, or stand as a word of its own."""

    kind: str
    words: tuple[str, ...] = ()


class Flag(NamedTuple):
    """A flag with all its spellings; `value` is None if it takes none."""

    names: tuple[str, ...]
    help: str
    value: Value | None


class Grammar(NamedTuple):
    """A command, or one of its actions: `words` is what the actions are named and what other words there are."""

    path: tuple[str, ...]
    help: str
    flags: tuple[Flag, ...]
    words: tuple[Value, ...]


def everything(out: Output) -> list[Grammar]:
    """Every command, and after it its actions."""
    from importlib import import_module

    from jackline.cli.main import COMMANDS
    from jackline.cli.parser import Parser

    found: list[Grammar] = []
    for name, (module, summary) in COMMANDS.items():
        parser = Parser(prog=f"jackline {name}", description=summary, out=out)
        import_module(module).configure(parser)
        found += _grammars((name,), parser)
    return found


def _grammars(path: tuple[str, ...], parser: Parser) -> Iterator[Grammar]:
    actions = parser._actions  # noqa: SLF001 - argparse has no other way to ask
    flags = tuple(_flag(one) for one in actions if one.option_strings)
    yield Grammar(path, _plain(parser.description or ""), flags, tuple(_value(one) for one in actions if _is_word(one)))
    for action in actions:
        if isinstance(action.choices, dict):
            for name, below in action.choices.items():
                yield from _grammars((*path, name), below)


def _is_word(action: Action) -> bool:
    return not action.option_strings


def _flag(action: Action) -> Flag:
    value = None if action.nargs == 0 else _value(action)
    return Flag(tuple(action.option_strings), _plain(action.help or ""), value)


def _value(action: Action) -> Value:
    if action.choices is not None:
        return Value(WORDS, tuple(map(str, action.choices)))
    if action.dest in _AGENTS:
        from jackline.agents import registry

        return Value(WORDS, (*registry.names(), *(("auto",) if action.dest == "agent" else ())))
    if action.dest == "task":
        return Value(TASKS)
    return Value(_BY_METAVAR.get(str(action.metavar), NOTHING))


def _plain(text: str) -> str:
    """Help for one line of a shell's menu."""
    return text.partition(" (default")[0].replace("%%", "%")
