"""`jackline receipts`: lists the effects of a run, with the evidence for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.parser import RUN

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("--format", choices=("md", "json"), help="a Markdown table (the default) or JSON")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.views.receipts import Ledger, fold, to_dict, to_markdown

    store, run = home.store(), home.find(args.run)
    own = Ledger(run.id, store.calls(run.id), store.receipts(run.id))
    ancestors = store.ancestors(run.id)
    receipts = fold(own, [Ledger(one, store.calls(one), store.receipts(one), upto) for one, upto in ancestors])
    if args.format == "json" or (out.json and args.format is None):
        out.json_line(to_dict(receipts))
    else:
        out.line(to_markdown(receipts).rstrip("\n"))
    return 0
