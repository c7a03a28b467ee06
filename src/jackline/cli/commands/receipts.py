"""`jackline receipts`: lists the effects of a run, with the evidence for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.parser import RUN_HELP

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--format", choices=("md", "json"), help="a Markdown table (the default) or JSON")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.exports.receipts import RunLedger, build_receipts, receipts_to_json, render_receipts

    store, run = home.store(), home.find(args.run)
    own = RunLedger(run_id=run.id, calls=store.calls.list_all(run.id), receipts=store.calls.list_receipts(run.id))
    ancestors = store.runs.list_ancestors(run.id)
    receipts = build_receipts(
        own,
        [
            RunLedger(run_id=one, calls=store.calls.list_all(one), receipts=store.calls.list_receipts(one), upto=upto)
            for one, upto in ancestors
        ],
    )
    if args.format == "json" or (out.json and args.format is None):
        out.print_json(receipts_to_json(receipts))
    else:
        out.print_line(render_receipts(receipts).rstrip("\n"))
    return 0
