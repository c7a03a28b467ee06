"""`jackline findings`: lists the verdicts and findings of a run, and dismisses findings for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli import review_text, status_text
from jackline.cli.parser import NEWEST_HELP
from jackline.cli.run_choice import find_run
from jackline.cli.run_json import run_to_json, to_json_values
from jackline.domain.states import RunState
from jackline.errors import UsageError
from jackline.formatting import make_printable

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run

INSIDE_RUN = ("*",)  # reading; --dismiss and --accept are refused by the home


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help=NEWEST_HELP)
    parser.add_argument(
        "--dismiss", metavar="FINDING", nargs="+", help="drop open findings, such as F2: they no longer block the run"
    )
    parser.add_argument(
        "--accept", metavar="REASON", help="accept the work of a run whose reviewer gives no clear verdict"
    )
    parser.add_argument("--reason", metavar="TEXT", help="with --dismiss: the reason, which reviewers see")


def execute(args: Namespace, home: Home, out: Output) -> int:
    _check_decision(args)
    run = find_run(home, args.run)
    if args.accept is not None:
        return _accept(args, home, run, out)
    return _dismiss(args, home, run, out) if args.dismiss else _list(home, run, out)


def _check_decision(args: Namespace) -> None:
    if args.reason is not None and not args.dismiss:
        raise UsageError("--reason is for --dismiss")
    if args.dismiss and not (args.reason or "").strip():
        raise UsageError("--dismiss needs a reason: add --reason TEXT")
    if args.accept is not None and args.dismiss:
        raise UsageError("--accept and --dismiss are two decisions: dismiss first, then accept if that is still needed")
    if args.accept is not None and not args.accept.strip():
        raise UsageError("--accept needs a reason: write why the work is good")


def _list(home: Home, run: Run, out: Output) -> int:
    reviews = home.store().reviews
    verdicts, findings = reviews.list_verdicts(run.id), reviews.list_findings(run.id)
    accepted = reviews.find_acceptance(run.id)
    if out.json:
        lists = {"verdicts": to_json_values(verdicts), "findings": _to_json(findings)}
        out.print_json({"run": run.id, "accepted": review_text.acceptance_to_json(accepted), **lists})
        return 0
    for verdict in verdicts:
        out.print_line(review_text.format_verdict(verdict))
    if accepted:
        out.print_line(review_text.format_acceptance(accepted))
    for finding in findings:
        for line in review_text.format_finding(finding, out):
            out.print_line(line)
    if not (verdicts or findings or accepted):
        out.print_note(f"run {run.id} has {'no verdict yet' if run.spec.review else 'no reviews'}")
        if run.spec.review and run.status.state is RunState.WAITING:  # such as for a decision about an unclear answer
            out.print_note(f"  {make_printable(run.status.detail)}")
    for line in review_text.list_review_steps(home, run, out)[1:]:
        out.print_note(line)
    return 0


def _dismiss(args: Namespace, home: Home, run: Run, out: Output) -> int:
    ids = [word for words in args.dismiss for word in words.split(",") if word]
    if not ids:
        raise UsageError(f"name a finding after --dismiss, such as F1; see `jackline findings {run.id}`")
    dismissed, run = home.dismiss_findings(run, ids, args.reason.strip())
    if out.json:
        out.print_json({"run": run_to_json(home, run), "findings": _to_json(dismissed)})
        return 0
    out.print_line(f"dismissed: {', '.join(finding.id for finding in dismissed)}")
    for line in status_text.list_next_steps(home, run, out):
        out.print_line(f"  {line}")
    return 0


def _accept(args: Namespace, home: Home, run: Run, out: Output) -> int:
    run = home.accept_work(run, args.accept.strip())
    if out.json:
        out.print_json({"run": run_to_json(home, run), "accepted_round": run.status.review_round})
        return 0
    out.print_line(f"accepted: the work in review round {run.status.review_round}")
    for line in status_text.list_next_steps(home, run, out):
        out.print_line(f"  {line}")
    return 0


def _to_json(findings: object) -> list[dict[str, object]]:
    """Convert findings, each with its id."""
    return [{"id": f"F{one['number']}", **one} for one in to_json_values(findings)]
