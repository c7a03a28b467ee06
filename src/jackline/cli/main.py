"""The entry point: imports only the command that was typed; every outcome becomes one line and an exit code."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, cast

from jackline import crash_points
from jackline.cli.inside_run import refuse_undeclared
from jackline.cli.output import Output, open_output
from jackline.errors import JacklineError, UsageError
from jackline.version import __version__

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Sequence
    from typing import Protocol

    from jackline.app.home import Home
    from jackline.cli.parser import CommandParser

    class CommandModule(Protocol):
        """The interface of a command's module."""

        def configure(self, parser: CommandParser) -> None:
            """Add the command's arguments."""

        def execute(self, args: Namespace, home: Home, out: Output) -> int:
            """Run the command and return the exit code."""


EXIT_UNEXPECTED = 1
EXIT_INTERRUPTED = 130
GLOBAL_FLAGS = ("--home", "--json", "--no-color")
_REPORT_CONFIG_THEMSELVES = ("run", "enqueue", "resume", "doctor")

COMMAND_GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Run agents": {
        "run": ("jackline.cli.commands.run", "start an agent and follow it until the run ends or waits"),
        "enqueue": ("jackline.cli.commands.enqueue", "put a run into the queue, from which a service starts it"),
        "resume": (
            "jackline.cli.commands.resume",
            "continue a run that is queued, waiting, failed, or lost its supervisor",
        ),
        "inbox": (
            "jackline.cli.commands.inbox",
            "answer what needs you, in all repositories: approvals, questions, budgets",
        ),
        "answer": (
            "jackline.cli.commands.answer",
            "approve or deny a call, settle one that is in doubt, or answer a question",
        ),
        "cancel": ("jackline.cli.commands.cancel", "cancel a run"),
        "hold": ("jackline.cli.commands.hold", "keep queued runs from being started, or release them"),
        "fork": ("jackline.cli.commands.fork", "start a new run from a checkpoint of another one"),
        "bridge": (
            "jackline.features.bridge.bridge_command",
            "read the messages between the agents of a run, or send one",
        ),
        "worktree": (
            "jackline.features.worktrees.worktree_command",
            "list, open, merge and salvage the worktrees of runs; remove those that are merged",
        ),
        "tasks": ("jackline.cli.commands.tasks", "list, show and create run templates"),
    },
    "Inspect runs": {
        "list": ("jackline.cli.commands.list", "list runs, newest first"),
        "show": ("jackline.cli.commands.show", "show a run in detail"),
        "logs": ("jackline.cli.commands.logs", "print the transcript of a run, its agent's output, or its events"),
        "attach": ("jackline.cli.commands.attach", "show a run's history, then follow it; Ctrl-C detaches"),
        "compare": (
            "jackline.features.compare.compare_command",
            "compare runs in one table: proof, verdicts, changes, cost",
        ),
        "receipts": ("jackline.cli.commands.receipts", "list the effects of a run, with the evidence for each"),
        "findings": (
            "jackline.cli.commands.findings",
            "list the review findings of a run, or dismiss wrong ones",
        ),
        "verify": ("jackline.cli.commands.verify", "check that a run's records have not been tampered with"),
        "export": ("jackline.cli.commands.export", "write the files of a run's folder again"),
        "notices": (
            "jackline.features.notify.notices_command",
            "list notices and their delivery state on each channel, stuck ones first",
        ),
        "dashboard": (
            "jackline.features.reports.dashboard_command",
            "write dashboard.md again: active runs, failures, spending",
        ),
        "retro": ("jackline.features.reports.retro_command", "report on a week of runs and propose improvements"),
    },
    "Use from inside an agent": {
        "work": ("jackline.features.work.work_commands", "enqueue, claim and resolve items of a durable work queue"),
        "events": ("jackline.features.journal.journal_commands", "append to the journal, and read or follow it"),
        "case": ("jackline.features.cases.case_commands", "keep the notebook of an investigation"),
        "mcp": ("jackline.features.mcp.mcp_command", "serve work, events and cases as an MCP server"),
    },
    "Set up": {
        "init": ("jackline.cli.commands.init", "set up a project"),
        "doctor": ("jackline.cli.commands.doctor", "check the installation"),
        "agents": ("jackline.cli.commands.agents", "list the agents: which are installed, and what each can do"),
        "sessions": (
            "jackline.features.sessions.sessions_command",
            "list the sessions of the CLIs on this machine, for `run --session`",
        ),
        "policy": ("jackline.cli.commands.policy", "show, check, explain and audit the rules of the gate"),
        "config": ("jackline.cli.commands.config", "show each setting and where it comes from"),
        "trust": ("jackline.cli.commands.trust", "let this project's files choose programs, until they change"),
        "scaffold": (
            "jackline.features.instances.scaffold_command",
            "create a home with persona files for a long-lived agent",
        ),
        "import": (
            "jackline.features.importers.import_command",
            "import the data of older tools, such as agent-state and agentpair",
        ),
        "completion": ("jackline.cli.commands.completion", "print a completion script for bash, zsh or fish"),
    },
    "Unattended": {
        "notify": ("jackline.features.notify.notify_command", "send a message over your channels, or test them"),
        "serve": ("jackline.features.service.serve_command", "work on queued, due and lost runs until it is stopped"),
        "service": (
            "jackline.features.service.service_command",
            "install `jackline serve` as a systemd user unit, or remove it",
        ),
        "channel": (
            "jackline.features.replies.channel_commands",
            "set up a phone for notices and answers, and list the channels",
        ),
        "trigger": (
            "jackline.features.triggers.trigger_commands",
            "start a run for each labelled issue, review comment, work item or ended run",
        ),
        "heartbeat": (
            "jackline.features.schedules.heartbeat_command",
            "for cron: start what is due, deliver what is stuck, report what is overdue",
        ),
        "schedule": ("jackline.features.schedules.schedule_commands", "start runs on a cron schedule"),
    },
    "Maintain": {
        "db": ("jackline.cli.commands.db", "migrate, check, back up and archive the database"),
        "uninstall": ("jackline.cli.commands.uninstall", "list the files of jackline on this machine, or remove them"),
    },
    "Try it out": {
        "demo": ("jackline.cli.commands.demo", "watch an agent being killed in the middle of an effect, and resumed"),
        "drill": ("jackline.cli.commands.drill", "kill agents and supervisors in every known way, and check recovery"),
    },
}
COMMANDS = {name: command for group in COMMAND_GROUPS.values() for name, command in group.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    out = open_output(json="--json" in words, colour="--no-color" not in words)
    home: Home | None = None
    try:
        _check_environment()
        name, rest = _split_command(words)
        if name not in COMMANDS:
            return _execute_without_command(name, rest, out)
        args = _parse_args(name, rest, out)
        if args is None:
            return 0
        command = _load_command(name)
        home = _open_home(args, project=getattr(command, "NEEDS_PROJECT", True))
        with home:
            refuse_undeclared(name, command, args, home)
            # A project file that cannot be used stops only the commands that start work.
            if home.config.problem and name not in _REPORT_CONFIG_THEMSELVES:
                out.print_note(f"jackline: {home.config.problem}; this file is ignored")
            code = command.execute(args, home, out)
            if getattr(command, "WORKS_ON_RUNS", False) and not getattr(args, "dry_run", False):
                home.finish_work()
            out.print_warnings(home.warnings)
            return code
    except JacklineError as error:
        return out.print_error(str(error), error.exit_code)
    except KeyboardInterrupt:
        return out.print_error("interrupted", EXIT_INTERRUPTED)
    except Exception as error:  # noqa: BLE001
        # The only broad except: for a bug in jackline the user gets one line that names the log with the traceback.
        return out.print_error(_log_unexpected(error, home), EXIT_UNEXPECTED)


def _check_environment() -> None:
    if os.name == "nt":
        raise UsageError("jackline runs on Linux and macOS, not on Windows: use it inside WSL")
    point = crash_points.unknown()
    if point is not None:
        raise UsageError(f"JACKLINE_CRASH_AT: unknown crash point '{point}'; see docs/crash-points.md")


def _split_command(words: list[str]) -> tuple[str, list[str]]:
    """Return the command's name and all other words; global flags may come before the name."""
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] == "--home" else 1
    return (words[index], words[:index] + words[index + 1 :]) if index < len(words) else ("", words)


def _execute_without_command(name: str, rest: list[str], out: Output) -> int:
    if "--version" in rest and not name:
        out.print_line(f"jackline {__version__}")
        return 0
    if not name and {"-h", "--help"} & set(rest):
        out.print_line(_format_help())
        return 0
    if name:
        from jackline.app.text_files import shorten_name

        raise UsageError(f"unknown command '{shorten_name(name)}';{_suggest(name, COMMANDS)} see `jackline --help`")
    if rest and rest[0] not in GLOBAL_FLAGS:
        near = _suggest(rest[0], (*GLOBAL_FLAGS, "--help", "--version"))
        raise UsageError(f"unknown flag {rest[0]};{near} see `jackline --help`")
    raise UsageError("no command given; `jackline --help` lists the commands")


def _suggest(name: str, known: Iterable[str]) -> str:
    from jackline.app.setting_keys import suggest_nearest

    return suggest_nearest(name, known)


def _format_help() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: jackline COMMAND ...", ""]
    lines.append("Runs coding agents durably: no work is lost in a crash, and no effect happens twice.")
    for title, commands in COMMAND_GROUPS.items():
        lines += ["", f"{title}:", *(f"  {name:<{width}}  {summary}" for name, (_, summary) in commands.items())]
    lines += ["", "Global options: --home DIR, --json, --no-color", "See `jackline COMMAND --help` for one command."]
    return "\n".join(lines)


def _parse_args(name: str, rest: list[str], out: Output) -> Namespace | None:
    """Return the parsed arguments, or None if help was printed instead."""
    from jackline.cli.parser import CommandParser, HelpPrinted

    parser = CommandParser(prog=f"jackline {name}", description=COMMANDS[name][1], out=out)
    _load_command(name).configure(parser)
    try:
        args = parser.parse_words(rest)
    except HelpPrinted:
        return None
    out.apply_flags(args, [name, *rest])
    return args


def _load_command(name: str) -> CommandModule:
    from importlib import import_module

    return cast("CommandModule", import_module(COMMANDS[name][0]))


def _open_home(args: Namespace, *, project: bool) -> Home:
    """Open the home, with the settings given by flags: the `dest` of such a flag is the name of the setting."""
    from jackline.app import config
    from jackline.app.home import Home
    from jackline.app.setting_keys import KEYS

    try:
        folder = os.getcwd()
    except OSError as error:
        raise UsageError(f"the current directory cannot be used ({error.strerror}): change to another one") from None
    flags = {key.name: getattr(args, key.name, None) for key in KEYS}
    return Home(config.load_config(os.environ, folder, flags, project=project))


def _log_unexpected(error: Exception, home: Home | None) -> str:
    message = f"unexpected {type(error).__name__}: {error}"
    if home is None:
        return message
    from jackline.app import diagnostics

    try:
        os.makedirs(home.path, mode=0o700, exist_ok=True)
        return f"{message}; see {diagnostics.log_unexpected(home.path, error)}"
    except OSError as second:
        return f"{message} (and the log cannot be written: {second.strerror})"
