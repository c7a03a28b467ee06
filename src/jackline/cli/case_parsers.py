"""The words that `jackline case` takes: one parser for each action, and for the actions below it. It does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import case_hook
from jackline.cli.parser import whole_number
from jackline.domain.case import CaseStatus, CommandStatus, HypothesisStatus, LearningKind, RepoAction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.cli.parser import Parser

_ACTIONS = {
    "start": "begin a case and make it the active one",
    "status": "how the active case stands",
    "hypothesis": "what may be the cause: add, resolve, list",
    "evidence": "what speaks for or against it: add",
    "command": "what was run: run, add",
    "learning": "what the repository should know: add, amend, review",
    "handoff": "print what the next agent needs to go on",
    "close": "run the verification, and close the case if everything is met",
    "reopen": "open a closed case again",
    "list": "the cases of this repository, newest first",
    "switch": "make another open case the active one",
    "files": "write the files under .agents/runs again",
    "hook": case_hook.SUMMARY,
}
_HYPOTHESIS = {"add": "write a hypothesis down", "resolve": "say what became of one", "list": "show them all"}
_COMMAND = {"run": "run a command and write down what came of it", "add": "write down one that was run elsewhere"}
_LEARNING = {
    "add": "write down what was learned, and where it is kept",
    "amend": "say anew where one is kept",
    "review": "which are not in the repository",
}
_STATUSES = tuple(str(one) for one in HypothesisStatus)
_RESOLVED = tuple(one for one in _STATUSES if one != HypothesisStatus.OPEN)


def configure(parser: Parser) -> None:
    """All of them."""
    parser.takes_arguments = True  # `command run -- CMD…`
    made = _below(parser, "action", _ACTIONS)
    _start(made["start"])
    _hypothesis(_below(made["hypothesis"], "deed", _HYPOTHESIS))
    _evidence(_below(made["evidence"], "deed", {"add": "write evidence down"})["add"])
    _command(_below(made["command"], "deed", _COMMAND))
    _learning(_below(made["learning"], "deed", _LEARNING))
    _close(made["close"])
    made["reopen"].add_argument("id", metavar="ID", nargs="?", help="else the one of yours that was closed last")
    _list(made["list"])
    case_hook.configure(made["hook"])
    made["switch"].add_argument("id", metavar="ID", help="an id, or the beginning of one")
    for name in ("status", "handoff", "files"):
        _case(made[name])


def _below(parser: Parser, dest: str, actions: Mapping[str, str]) -> dict[str, Parser]:
    made = parser.add_subparsers(dest=dest, metavar="ACTION", required=True)
    return {
        name: made.add_parser(name, out=parser.out, help=summary, description=summary)
        for name, summary in actions.items()
    }


def _case(parser: Parser) -> None:
    parser.add_argument("--case", metavar="ID", help="another case than the active one: its id, or its beginning")


def _text(parser: Parser, metavar: str, what: str) -> None:
    """A text; one that begins with a dash may stand after `--`."""
    parser.add_argument("text", metavar=metavar, nargs="?", help=what)


def _start(parser: Parser) -> None:
    _text(parser, "REQUEST", "what is asked for, in a line")
    parser.add_argument("--intent", metavar="TEXT", default="", help="why it is wanted")
    for flag, what in (
        ("--target", "a property that must hold at the end"),
        ("--non-goal", "what is not to be done"),
        ("--risk", "what may go wrong"),
        ("--verify", "a command that shows that it is done; `close` runs it"),
    ):
        parser.add_argument(flag, metavar="TEXT", action="append", default=[], help=f"{what}; may be repeated")
    parser.add_argument("--skip-intake", action="store_true", help="do not ask the project's own intake command")


def _hypothesis(made: Mapping[str, Parser]) -> None:
    _text(made["add"], "TEXT", "the hypothesis")
    resolve = made["resolve"]
    resolve.add_argument("entry", metavar="H001", help="which one")
    resolve.add_argument("--status", required=True, choices=_RESOLVED, help="what became of it")
    resolve.add_argument("--note", metavar="TEXT", default="", help="why")
    made["list"].add_argument("--status", choices=_STATUSES, help="only these")
    for parser in made.values():
        _case(parser)


def _evidence(parser: Parser) -> None:
    _text(parser, "TEXT", "what was seen")
    parser.add_argument("--hypothesis", metavar="H001", help="which hypothesis it is about")
    _case(parser)


def _command(made: Mapping[str, Parser]) -> None:
    _text(made["add"], "CMD", "the command")
    statuses = tuple(str(one) for one in CommandStatus)
    made["add"].add_argument("--status", required=True, choices=statuses, help="how it came out")
    made["add"].add_argument("--note", metavar="TEXT", default="", help="what it showed")
    run = made["run"]
    run.usage = f"{run.prog} [--case ID] [--case-seconds N] -- CMD ..."
    run.add_setting("case_seconds")
    for parser in made.values():
        _case(parser)


def _learning(made: Mapping[str, Parser]) -> None:
    add = made["add"]
    add.add_argument("--kind", required=True, choices=tuple(str(one) for one in LearningKind), help="what was missing")
    add.add_argument("--summary", metavar="TEXT", required=True, help="what was learned")
    made["amend"].add_argument("entry", metavar="L001", help="which one")
    actions = tuple(str(one) for one in RepoAction)
    for kept in (add, made["amend"]):
        kept.add_argument("--repo-action", required=True, choices=actions, help="what became of it in the repository")
        kept.add_argument("--path", metavar="PATH", default="", help="the file that keeps it")
        kept.add_argument("--reason", metavar="TEXT", default="", help="with none: why no file should")
    made["review"].add_argument(
        "--require-resolved", action="store_true", help="exit 1 if one is not in the repository"
    )
    for parser in made.values():
        _case(parser)


def _close(parser: Parser) -> None:
    parser.add_argument("--summary", metavar="TEXT", required=True, help="what came of it")
    commands = "commands that show it; without: those that it began with"
    parser.add_argument("--verification", metavar="CMD", nargs="+", action="extend", default=[], help=commands)
    risks = "what may still be wrong"
    parser.add_argument("--risk", metavar="TEXT", nargs="+", action="extend", default=[], help=risks)
    parser.add_argument("--force", metavar="REASON", help="close it whatever is not met, and write down why")
    parser.add_setting("case_seconds")
    _case(parser)


def _list(parser: Parser) -> None:
    parser.add_argument("--status", choices=tuple(str(one) for one in CaseStatus), default="", help="only these")
    parser.add_argument("--all-repos", action="store_true", help="of every repository")
    parser.add_argument("--limit", metavar="N", type=whole_number, default=50, help="how many (default 50)")
    parser.add_argument("--after", metavar="ID", help="the page after this case")
