"""The entry: imports the command that was typed and no other; every end becomes a line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

from jackline import faults
from jackline.cli.output import Output, standard
from jackline.errors import JacklineError, UsageError
from jackline.formatting import make_printable
from jackline.version import __version__

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from jackline.app.home import Home
    from jackline.cli.parser import Parser

    class Command(Protocol):
        """What a command's module offers."""

        def configure(self, parser: Parser) -> None:
            """Name the words that it takes."""

        def execute(self, args: Namespace, home: Home, out: Output) -> int:
            """Do it; the exit code."""


EXIT_UNEXPECTED = 1
EXIT_INTERRUPTED = 130
EVERYWHERE = ("--home", "--json", "--no-color")
_SAY_IT_THEMSELVES = ("run", "resume", "doctor")

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("jackline.cli.commands.run", "start a run and stay with it until it ends or waits"),
    "resume": ("jackline.cli.commands.resume", "carry a run on that waits, failed, or lost its supervisor"),
    "fork": ("jackline.cli.commands.fork", "start a run that goes on from a step of another one"),
    "cancel": ("jackline.cli.commands.cancel", "end a run"),
    "answer": ("jackline.cli.commands.answer", "say what became of a call in doubt, or agree to one"),
    "list": ("jackline.cli.commands.list", "show runs, newest first"),
    "show": ("jackline.cli.commands.show", "show everything that is known of a run"),
    "logs": ("jackline.cli.commands.logs", "print what an agent printed"),
    "receipts": ("jackline.cli.commands.receipts", "show every effect of a run, and what shows that it happened"),
    "verify": ("jackline.cli.commands.verify", "look whether what is written of a run was altered since"),
    "export": ("jackline.cli.commands.export", "write the files of a run again"),
    "work": ("jackline.cli.commands.work", "the agent's own queue: put items in, claim them, end them"),
    "events": ("jackline.cli.commands.events", "append to the journal, and follow everything that happened"),
    "case": ("jackline.cli.commands.case", "keep the notebook of an investigation"),
    "dashboard": ("jackline.cli.commands.dashboard", "write dashboard.md again: what runs, waits, failed, was spent"),
    "retro": ("jackline.cli.commands.retro", "look back at a week, and propose what to do about it"),
    "mcp": ("jackline.cli.commands.mcp", "offer an agent its own state as an MCP server"),
    "policy": ("jackline.cli.commands.policy", "show, check and explain the rules of the gate, and what they missed"),
    "tasks": ("jackline.cli.commands.tasks", "list, show and begin the templates of runs"),
    "agents": ("jackline.cli.commands.agents", "list the agents: which can be used, and what each can do"),
    "init": ("jackline.cli.commands.init", "prepare a project"),
    "scaffold": ("jackline.cli.commands.scaffold", "lay down an agent's instance: a home with persona files"),
    "import": ("jackline.cli.commands.import_", "take over what older tools left: agent-state, agentpair and others"),
    "trust": ("jackline.cli.commands.trust", "let this project's files choose programs, until they change"),
    "config": ("jackline.cli.commands.config", "show each setting and where it came from"),
    "doctor": ("jackline.cli.commands.doctor", "look whether all is here that jackline needs"),
    "db": ("jackline.cli.commands.db", "look after the database"),
    "completion": ("jackline.cli.commands.completion", "print what makes a shell complete jackline's words"),
    "uninstall": ("jackline.cli.commands.uninstall", "show what jackline keeps on this machine, or remove it"),
    "demo": ("jackline.cli.demo", "see an agent killed in the middle of an effect, and resumed"),
    "drill": ("jackline.cli.commands.drill", "kill agents and supervisors in every known way, and see what holds"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is the return value."""
    words = list(sys.argv[1:] if argv is None else argv)
    out = standard(json="--json" in words, colour="--no-color" not in words)
    home: Home | None = None
    try:
        _refuse_strange_places()
        name, rest = _choose(words)
        if name not in COMMANDS:
            return _without_command(name, rest, out)
        args = _parse(name, rest, out)
        if args is None:
            return 0
        home = _open(args, project=getattr(_module(name), "NEEDS_PROJECT", True))
        with home:
            _note_problem(home, name, out)
            code = _module(name).execute(args, home, out)
            for warning in home.warnings:
                out.note(f"jackline: {make_printable(warning)}")
            return code
    except JacklineError as error:
        return out.fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return out.fail("interrupted", EXIT_INTERRUPTED)
    except Exception as error:  # noqa: BLE001
        # The one broad except: whatever is wrong with jackline itself, a person gets one line that says where
        # to look, and the traceback goes where it can be found again.
        return out.fail(_unexpected(error, home), EXIT_UNEXPECTED)


def _refuse_strange_places() -> None:
    if os.name == "nt":
        raise UsageError("jackline runs on Linux and macOS, not on Windows: use it inside WSL")
    point = faults.unknown()
    if point is not None:
        raise UsageError(f"JACKLINE_CRASH_AT: there is no crash point '{point}': see docs/crash-points.md")


def _choose(words: list[str]) -> tuple[str, list[str]]:
    """The command's name and all other words; flags for every command may stand before the name."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] == "--home" else 1
    return (words[index], words[:index] + words[index + 1 :]) if index < len(words) else ("", words)


def _without_command(name: str, rest: list[str], out: Output) -> int:
    if "--version" in rest and not name:
        out.line(f"jackline {__version__}")
        return 0
    if not name and {"-h", "--help"} & set(rest):
        out.line(_help())
        return 0
    if name:
        raise UsageError(_unknown(name))
    if rest and rest[0] not in EVERYWHERE:
        near = _nearest(rest[0], (*EVERYWHERE, "--help", "--version"))
        raise UsageError(f"unknown flag {rest[0]}:{near} `jackline --help` lists the commands")
    raise UsageError("which command? `jackline --help` lists them")


def _unknown(name: str) -> str:
    from jackline.app.texts import named

    return f"unknown command '{named(name)}':{_nearest(name, COMMANDS)} `jackline --help` lists them"


def _nearest(name: str, known: Iterable[str]) -> str:
    from jackline.app.keys import nearest

    return nearest(name, known)


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = (f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
    return "\n".join(
        (
            "usage: jackline COMMAND ...",
            "",
            "Runs coding agents so that nothing they did is lost and nothing they did happens twice.",
            "",
            *lines,
            "",
            "everywhere: --home DIR, --json, --no-color; `jackline COMMAND --help` says the rest",
        )
    )


def _parse(name: str, rest: list[str], out: Output) -> Namespace | None:
    """The parsed words; None if only help was wanted, which has been shown."""
    from jackline.cli.parser import Parser, Shown

    parser = Parser(prog=f"jackline {name}", description=COMMANDS[name][1], out=out)
    _module(name).configure(parser)
    try:
        args = parser.read(rest)
    except Shown:
        return None
    out.follow(args, [name, *rest])
    return args


def _module(name: str) -> Command:
    from importlib import import_module

    return cast("Command", import_module(COMMANDS[name][0]))


def _open(args: Namespace, *, project: bool) -> Home:
    """The home with the settings that flags name; a flag's destination is the setting's name."""
    from jackline.app import config
    from jackline.app.home import Home
    from jackline.app.keys import KEYS

    try:
        folder = os.getcwd()
    except OSError as error:
        raise UsageError(f"the current folder cannot be used ({error.strerror}): change to another one") from None
    flags = {key.name: getattr(args, key.name, None) for key in KEYS}
    return Home(config.load(os.environ, folder, flags, project=project))


def _note_problem(home: Home, name: str, out: Output) -> None:
    """A project's file that cannot be used takes no command away but those that start work."""
    if home.config.problem and name not in _SAY_IT_THEMSELVES:
        out.note(f"jackline: {home.config.problem}; going on without this file")


def _unexpected(error: Exception, home: Home | None) -> str:
    what = f"unexpected {type(error).__name__}: {error}"
    if home is None:
        return what
    from jackline.app import diagnostics

    try:
        os.makedirs(home.path, mode=0o700, exist_ok=True)
        return f"{what}; see {diagnostics.note_unexpected(home.path, error)}"
    except OSError as second:
        return f"{what} (and the log cannot be written: {second.strerror})"
