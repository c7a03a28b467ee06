"""`jackline receipts`: every effect of a run, and what shows that it happened. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.parser import RUN

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.records import Run
    from jackline.views.receipts import Receipts


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("--format", choices=("md", "json"), help="a table to read (md, the default), or JSON")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.views import receipts

    told = _receipts(home, home.find(args.run))
    if args.format == "json" or (out.json and args.format is None):
        out.json_line(receipts.to_dict(told))
    else:
        out.line(receipts.to_markdown(told).rstrip("\n"))
    return 0


def _receipts(home: Home, run: Run) -> Receipts:
    from jackline.views.receipts import Ledger, fold

    store = home.store()
    own = Ledger(run.id, store.calls(run.id), store.receipts(run.id))
    known = store.ancestors(run.id)
    return fold(own, [Ledger(one, store.calls(one), store.receipts(one), upto) for one, upto in known])
