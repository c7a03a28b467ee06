"""The arguments of `jackline case`: one parser per action. It runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import case_hook
from jackline.cli.parser import whole_number
from jackline.domain.case import CaseStatus, CommandStatus, HypothesisStatus, LearningKind, RepoAction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.cli.parser import Parser

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
    "hook": case_hook.SUMMARY,
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


def configure(parser: Parser) -> None:
    """Add the arguments of every action."""
    parser.takes_arguments = True  # `command run -- CMD…`
    made = _add_actions(parser, "action", _ACTIONS)
    _add_start(made["start"])
    _add_hypothesis(_add_actions(made["hypothesis"], "deed", _HYPOTHESIS))
    _add_evidence(_add_actions(made["evidence"], "deed", {"add": "add evidence"})["add"])
    _add_command(_add_actions(made["command"], "deed", _COMMAND))
    _add_learning(_add_actions(made["learning"], "deed", _LEARNING))
    _add_close(made["close"])
    made["reopen"].add_argument(
        "id", metavar="ID", nargs="?", help="a case id (default: your case that was closed last)"
    )
    _add_list(made["list"])
    case_hook.configure(made["hook"])
    made["switch"].add_argument("id", metavar="ID", help="a case id or a unique prefix")
    for name in ("status", "handoff", "files"):
        _add_case(made[name])


def _add_actions(parser: Parser, dest: str, actions: Mapping[str, str]) -> dict[str, Parser]:
    made = parser.add_subparsers(dest=dest, metavar="ACTION", required=True)
    return {
        name: made.add_parser(name, out=parser.out, help=summary, description=summary)
        for name, summary in actions.items()
    }


def _add_case(parser: Parser) -> None:
    parser.add_argument("--case", metavar="ID", help="a case id or a unique prefix (default: the active case)")


def _add_text(parser: Parser, metavar: str, what: str) -> None:
    """A text; one that begins with a dash goes after `--`."""
    parser.add_argument("text", metavar=metavar, nargs="?", help=what)


def _add_start(parser: Parser) -> None:
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


def _add_hypothesis(made: Mapping[str, Parser]) -> None:
    _add_text(made["add"], "TEXT", "the hypothesis")
    resolve = made["resolve"]
    resolve.add_argument("entry", metavar="H001", help="the entry id")
    resolve.add_argument("--status", required=True, choices=_RESOLVED, help="the new status")
    resolve.add_argument("--note", metavar="TEXT", default="", help="the reason")
    made["list"].add_argument("--status", choices=_STATUSES, help="only this status")
    for parser in made.values():
        _add_case(parser)


def _add_evidence(parser: Parser) -> None:
    _add_text(parser, "TEXT", "what was observed")
    parser.add_argument("--hypothesis", metavar="H001", help="the hypothesis that it belongs to")
    _add_case(parser)


def _add_command(made: Mapping[str, Parser]) -> None:
    _add_text(made["add"], "CMD", "the command")
    statuses = tuple(str(one) for one in CommandStatus)
    made["add"].add_argument("--status", required=True, choices=statuses, help="the result")
    made["add"].add_argument("--note", metavar="TEXT", default="", help="a note")
    run = made["run"]
    run.usage = f"{run.prog} [--case ID] [--case-seconds N] -- CMD ..."
    run.add_setting("case_seconds")
    for parser in made.values():
        _add_case(parser)


def _add_learning(made: Mapping[str, Parser]) -> None:
    add = made["add"]
    add.add_argument("--kind", required=True, choices=tuple(str(one) for one in LearningKind), help="what was missing")
    add.add_argument("--summary", metavar="TEXT", required=True, help="what was learned")
    made["amend"].add_argument("entry", metavar="L001", help="the entry id")
    actions = tuple(str(one) for one in RepoAction)
    for kept in (add, made["amend"]):
        kept.add_argument("--repo-action", required=True, choices=actions, help="how the repository records it")
        kept.add_argument("--path", metavar="PATH", default="", help="the file that records it")
        kept.add_argument("--reason", metavar="TEXT", default="", help="with none: why no file records it")
    made["review"].add_argument(
        "--require-resolved", action="store_true", help="exit 1 if a learning is not in the repository"
    )
    for parser in made.values():
        _add_case(parser)


def _add_close(parser: Parser) -> None:
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


def _add_list(parser: Parser) -> None:
    parser.add_argument("--status", choices=tuple(str(one) for one in CaseStatus), default="", help="only this status")
    parser.add_argument("--all-repos", action="store_true", help="include every repository")
    parser.add_argument("--limit", metavar="N", type=whole_number, default=50, help="how many cases (default 50)")
    parser.add_argument("--after", metavar="ID", help="show the page after this case")
