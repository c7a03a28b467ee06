"""`jackline case`: the notebook of an investigation. `features.cases` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.parser import parse_count
from jackline.clock import wall_ms
from jackline.errors import UsageError
from jackline.features.cases import case_files, case_output, entries, hook_command, location
from jackline.features.cases.case_model import (
    CaseStatus,
    CommandStatus,
    EntryKind,
    HypothesisStatus,
    LearningKind,
    RepoAction,
)
from jackline.features.cases.case_queries import Cases
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.cases.command_runs import CaseCommandResult


_ACTIONS = {
    "start": "start a case and make it the active one",
    "status": "show the status of the active case",
    "hypothesis": "possible causes: add, resolve, list",
    "evidence": "observations: add",
    "command": "commands: run, add",
    "learning": "learnings for the repository: add, amend, review",
    "handoff": "print a handoff for the next agent",
    "close": "run the verification and close the case",
    "reopen": "reopen a closed case",
    "list": "list the cases of this repository, newest first",
    "switch": "make another open case the active one",
    "files": "write the files under .agents/runs again",
    "hook": hook_command.SUMMARY,
}
_HYPOTHESIS = {"add": "add a hypothesis", "resolve": "set the status of a hypothesis", "list": "list hypotheses"}
_COMMAND = {"run": "run a command and record the result", "add": "record a command that was run elsewhere"}
_LEARNING = {
    "add": "add a learning and the file that records it",
    "amend": "change the file or the reason of a learning",
    "review": "list learnings that are not in the repository",
}
_STATUSES = tuple(str(one) for one in HypothesisStatus)
_RESOLVED = tuple(one for one in _STATUSES if one != HypothesisStatus.OPEN)
INSIDE_RUN = (
    "start", "status", "hypothesis", "evidence", "command", "learning", "handoff", "close", "reopen", "list", "switch",
    "files", "hook",
)  # fmt: skip


def configure(parser: CommandParser) -> None:
    """Add the arguments of every action."""
    parser.takes_arguments = True  # `command run -- CMD…`
    actions = parser.add_actions(_ACTIONS)
    _add_start(actions["start"])
    _add_hypothesis(actions["hypothesis"].add_actions(_HYPOTHESIS, "operation"))
    evidence = actions["evidence"].add_actions({"add": "add evidence"}, "operation")["add"]
    _add_text(evidence, "TEXT", "what was observed")
    evidence.add_argument("--hypothesis", metavar="H001", help="the hypothesis that it belongs to")
    _add_case(evidence)
    _add_command(actions["command"].add_actions(_COMMAND, "operation"))
    _add_learning(actions["learning"].add_actions(_LEARNING, "operation"))
    _add_close(actions["close"])
    actions["reopen"].add_argument(
        "id", metavar="ID", nargs="?", help="a case id (default: your case that was closed last)"
    )
    listing = actions["list"]
    listing.add_argument("--status", choices=tuple(str(one) for one in CaseStatus), default="", help="only this status")
    listing.add_argument("--all-repos", action="store_true", help="include every repository")
    listing.add_argument("--limit", metavar="N", type=parse_count, default=50, help="how many cases (default 50)")
    listing.add_argument("--after", metavar="ID", help="show the page after this case")
    hook_command.configure(actions["hook"])
    actions["switch"].add_argument("id", metavar="ID", help="a case id or a unique prefix")
    for name in ("status", "handoff", "files"):
        _add_case(actions[name])


def _add_case(parser: CommandParser) -> None:
    parser.add_argument("--case", metavar="ID", help="a case id or a unique prefix (default: the active case)")


def _add_text(parser: CommandParser, metavar: str, what: str) -> None:
    """A text; one that begins with a dash goes after `--`."""
    parser.add_argument("text", metavar=metavar, nargs="?", help=what)


def _add_start(parser: CommandParser) -> None:
    _add_text(parser, "REQUEST", "the request, in one line")
    parser.add_argument("--intent", metavar="TEXT", default="", help="the purpose")
    for flag, what in (
        ("--target", "a property that must hold at the end"),
        ("--non-goal", "what is out of scope"),
        ("--risk", "a risk"),
        ("--verify", "a command that verifies the result; `close` runs it"),
    ):
        parser.add_argument(flag, metavar="TEXT", action="append", default=[], help=f"{what}; may be repeated")
    parser.add_argument("--skip-intake", action="store_true", help="do not run the project's intake command")


def _add_hypothesis(actions: Mapping[str, CommandParser]) -> None:
    _add_text(actions["add"], "TEXT", "the hypothesis")
    resolve = actions["resolve"]
    resolve.add_argument("entry", metavar="H001", help="the entry id")
    resolve.add_argument("--status", required=True, choices=_RESOLVED, help="the new status")
    resolve.add_argument("--note", metavar="TEXT", default="", help="the reason")
    actions["list"].add_argument("--status", choices=_STATUSES, help="only this status")
    for parser in actions.values():
        _add_case(parser)


def _add_command(actions: Mapping[str, CommandParser]) -> None:
    _add_text(actions["add"], "CMD", "the command")
    statuses = tuple(str(one) for one in CommandStatus)
    actions["add"].add_argument("--status", required=True, choices=statuses, help="the result")
    actions["add"].add_argument("--note", metavar="TEXT", default="", help="a note")
    run = actions["run"]
    run.usage = f"{run.prog} [--case ID] [--case-seconds N] -- CMD ..."
    run.add_setting("case_seconds")
    for parser in actions.values():
        _add_case(parser)


def _add_learning(actions: Mapping[str, CommandParser]) -> None:
    add = actions["add"]
    add.add_argument("--kind", required=True, choices=tuple(str(one) for one in LearningKind), help="what was missing")
    add.add_argument("--summary", metavar="TEXT", required=True, help="what was learned")
    actions["amend"].add_argument("entry", metavar="L001", help="the entry id")
    repo_actions = tuple(str(one) for one in RepoAction)
    for kept in (add, actions["amend"]):
        kept.add_argument("--repo-action", required=True, choices=repo_actions, help="how the repository records it")
        kept.add_argument("--path", metavar="PATH", default="", help="the file that records it")
        kept.add_argument("--reason", metavar="TEXT", default="", help="with none: why no file records it")
    actions["review"].add_argument(
        "--require-resolved", action="store_true", help="exit 1 if a learning is not in the repository"
    )
    for parser in actions.values():
        _add_case(parser)


def _add_close(parser: CommandParser) -> None:
    parser.add_argument("--summary", metavar="TEXT", required=True, help="the result")
    commands = "verification commands (default: the commands given to `case start`)"
    parser.add_argument("--verification", metavar="CMD", nargs="+", action="extend", default=[], help=commands)
    risks = "a remaining risk"
    parser.add_argument("--risk", metavar="TEXT", nargs="+", action="extend", default=[], help=risks)
    parser.add_argument(
        "--force", metavar="REASON", help="close it although conditions are not met, and record the reason"
    )
    parser.add_setting("case_seconds")
    _add_case(parser)


def execute(args: Namespace, home: Home, out: Output) -> int:
    return _HANDLERS[args.action](args, home, out)


def _start(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.cases.lifecycle import Opening, start_case

    request = _get_text(args, "the request")
    opening = Opening(
        request=request,
        intent=args.intent,
        targets=args.target,
        non_goals=args.non_goal,
        risks=args.risk,
        verify=args.verify,
    )
    case_output.print_case(start_case(home, opening, skip_intake=args.skip_intake), home, out)
    return 0


def _status(args: Namespace, home: Home, out: Output) -> int:
    case = location.choose_case(home, args.case)
    case_files.refresh_files(home, case.id)  # edited or removed files are written again
    store = home.store()
    found = [
        one for kind in (EntryKind.HYPOTHESIS, EntryKind.COMMAND) for one in Cases(store).list_entries(case.id, kind)
    ]
    case_output.print_status(case, found, wall_ms(), home, out)
    return 0


def _hypothesis(args: Namespace, home: Home, out: Output) -> int:
    match args.operation:
        case "add":
            text = _get_text(args, "the hypothesis")
            case_output.print_entry(entries.add_hypothesis(home, text, case_id=args.case), home, out)
        case "resolve":
            entry = entries.resolve_hypothesis(home, args.entry, args.status, args.note, case_id=args.case)
            case_output.print_entry(entry, home, out)
        case _:
            case = location.choose_case(home, args.case)
            found = Cases(home.store()).list_entries(case.id, EntryKind.HYPOTHESIS)
            case_output.print_entries([one for one in found if args.status in {None, one.status}], out)
    return 0


def _evidence(args: Namespace, home: Home, out: Output) -> int:
    text = _get_text(args, "the evidence")
    case_output.print_entry(entries.add_evidence(home, text, args.hypothesis, case_id=args.case), home, out)
    return 0


def _command(args: Namespace, home: Home, out: Output) -> int:
    if args.operation == "add":
        text = _get_text(args, "the command")
        case_output.print_entry(entries.add_command(home, text, args.status, args.note, case_id=args.case), home, out)
        return 0
    from jackline.features.cases.command_runs import run_for_case

    if not args.arguments:
        raise UsageError("no command given: use `jackline case command run -- CMD …`")
    streams = {"stdout": out.stdout, "stderr": out.stderr}

    def on_output(source: str, data: bytes) -> None:
        if not out.json:
            streams[source].write_bytes(data)

    entry, ended = run_for_case(home, args.arguments, case_id=args.case, on_output=on_output)
    if out.json:
        case_output.print_entry(entry, home, out)
    else:
        out.print_note(f"{entry.id} {entry.status}")
    return ended.exit_code


def _learning(args: Namespace, home: Home, out: Output) -> int:
    if args.operation == "review":
        from jackline.features.cases import git_hook

        case = location.choose_case(home, args.case)
        learnings = git_hook.list_learnings(home, case)
        lacking = git_hook.find_unresolved(case, learnings)
        case_output.print_review(learnings, lacking, out)
        return 1 if lacking and args.require_resolved else 0
    kept = {"repo_action": args.repo_action, "path": args.path, "reason": args.reason, "case_id": args.case}
    if args.operation == "amend":
        entry = entries.amend_learning(home, args.entry, **kept)
    else:
        entry = entries.add_learning(home, args.summary, kind=args.kind, **kept)
    case_output.print_entry(entry, home, out)
    return 0


def _handoff(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.cases import handoff

    found = handoff.build_handoff(home, case_id=args.case)
    if out.json:
        out.print_json(handoff.build_handoff_values(found))
    else:
        out.print_line(handoff.render_handoff(found).rstrip("\n"))
    return 0


def _close(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.cases.lifecycle import Closeout, close_case

    if args.force is not None and not args.force.strip():
        raise UsageError('--force needs a reason: --force "why it is closed anyway"')

    def on_command(command: str, ended: CaseCommandResult | None) -> None:
        if ended is None:
            out.print_note(f"verifying: {make_printable(command)}")
        elif not ended.passed and not out.json:
            out.print_note(f"exit {ended.exit_code}")
            output = ended.stdout + ended.stderr
            out.stderr.write_bytes(output if output.endswith(b"\n") or not output else output + b"\n")

    wanted = Closeout(
        summary=args.summary, verification=tuple(args.verification), risks=tuple(args.risk), force=args.force or ""
    )
    case = close_case(home, wanted, case_id=args.case, on_command=on_command)
    case_output.print_case(case, home, out, f"{case.id} closed")
    return 0


def _reopen(args: Namespace, home: Home, out: Output) -> int:
    case = entries.reopen_case(home, args.id)
    case_output.print_case(case, home, out, f"{case.id} open")
    return 0


def _switch(args: Namespace, home: Home, out: Output) -> int:
    case = entries.switch_case(home, args.id)
    case_output.print_case(case, home, out, f"{case.id} active")
    return 0


def _list(args: Namespace, home: Home, out: Output) -> int:
    from jackline.cli.commands.list import format_next_page
    from jackline.features.cases.case_model import CaseQuery

    after = location.find_case(home, args.after) if args.after else None
    query = CaseQuery(
        repository=None if args.all_repos else location.get_location(home).repository,
        status=args.status,
        before=None if after is None else (after.created_at, after.id),
        limit=args.limit,
    )
    found = location.list_cases(home, query)
    case_output.print_cases(found, wall_ms(), out, paths=args.all_repos)
    if len(found) == args.limit:
        out.print_note(f"there may be more: {format_next_page(out, found[-1].id)}")
    elif not found:
        out.print_note("no cases here")
    return 0


def _files(args: Namespace, home: Home, out: Output) -> int:
    folder = case_files.rewrite_files(home, location.choose_case(home, args.case).id)
    if out.json:
        out.print_json({"folder": folder})
    else:
        out.print_line(folder)
    return 0


def _get_text(args: Namespace, what: str) -> str:
    """The text argument; one that begins with a dash comes after `--`."""
    given = [*([] if args.text is None else [args.text]), *args.arguments]
    if len(given) != 1:
        raise UsageError(f"{what} must be one argument: quote it" if given else f"{what} is missing: give it in quotes")
    return str(given[0])


_HANDLERS = {
    "start": _start,
    "status": _status,
    "hypothesis": _hypothesis,
    "evidence": _evidence,
    "command": _command,
    "learning": _learning,
    "handoff": _handoff,
    "close": _close,
    "reopen": _reopen,
    "list": _list,
    "switch": _switch,
    "files": _files,
    "hook": hook_command.execute,
}
