"""`jackline verify`: checks that a run's records have not been tampered with; exit 1 if they have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jackline.cli.parser import RUN_HELP
from jackline.errors import UsageError
from jackline.formatting import make_printable, pluralize
from jackline.named import stored_dict

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.store.models import VerificationResult

_HASH = re.compile(r"[0-9a-f]{64}")
INSIDE_RUN = ("*",)


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--head",
        metavar="HASH",
        help="compare with a chain head that you kept, from a notice or from an earlier verify",
    )
    parser.add_argument("--archive", metavar="DIR", help="the directory of `db archive --to` with the run's events")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.maintenance import verify_run

    head = args.head.strip().lower() if args.head is not None else None
    if head is not None and not _HASH.fullmatch(head):
        raise UsageError("--head is not a chain head: it must have 64 hexadecimal digits")
    run_id = home.find_id(args.run)
    found = verify_run(home, run_id, head, args.archive)
    is_intact = not found.problems and not found.missing_head
    if out.json:
        out.print_json({"id": run_id, "ok": is_intact, **stored_dict(found), "problems": list(found.problems)})
    else:
        _print_result(run_id, found, out)
    return 0 if is_intact else 1


def _print_result(run_id: str, found: VerificationResult, out: Output) -> None:
    if found.problems:
        out.print_line(out.colorize(f"run {run_id} has been altered", "red"))
        for problem in found.problems:
            out.print_line(f"  {make_printable(problem)}")
        return
    if found.missing_head:
        out.print_line(out.colorize(f"run {run_id} has records missing since the last sync", "red"))
        out.print_line(f"  head {found.missing_head} is not stored; what is stored is consistent")
        out.print_line("  a power cut or a killed database server can lose the newest reads and local calls")
        out.print_line(
            "  if neither happened, or a notice announced this head, records were removed: notices are synced"
        )
        return
    counts = ((found.events, "event"), (found.calls, "call"), (found.receipts, "receipt"), (found.contents, "content"))
    compared = ", ".join(pluralize(count, word) for count, word in counts)
    agree = "agrees" if found.heads == 1 else "agree"
    out.print_line(f"run {run_id} is intact: {compared}; {pluralize(found.heads, 'notice')} {agree}")
    if found.uncovered:
        out.print_line(f"  not covered: {pluralize(found.uncovered, 'row')} of an older jackline, without a digest")
    out.print_line(f"  head {found.chain_head}")
    out.print_line("  keep this head elsewhere: with --head, verify also detects a complete rewrite")
