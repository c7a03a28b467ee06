"""`jackline import`: import data of older tools. Exit 1 if some of it could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.importers.import_records import KINDS
from jackline.formatting import make_printable, pluralize

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.importers.importer import ImportRecord

NEEDS_PROJECT = False
INSIDE_RUN = ()
_STYLES = {"imported": "green", "already": "dim", "taken": "red", "unreadable": "red", "noted": "yellow"}
_BAD = ("taken", "unreadable")
_NOUNS = {"run": "run", "case": "case", "item": "work item", "events": "event"}


def configure(parser: CommandParser) -> None:
    shapes = "; ".join(f"{kind}: {shape}" for kind, shape in KINDS.items())
    parser.add_argument(
        "path", nargs="+", metavar="PATH", help=f"a file or a folder, also one that contains several: {shapes}"
    )
    parser.add_argument("--as", dest="kind", choices=tuple(KINDS), help="import only this kind")
    parser.add_argument("--dry-run", action="store_true", help="show what would be imported, and write nothing")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.importers.importer import import_paths

    totals = _Totals()
    for record in import_paths(home, args.path, args.kind, dry_run=args.dry_run):
        totals.add(record)
        if out.json:
            values = {
                "kind": record.kind,
                "path": record.path,
                "what": record.what,
                "id": record.id,
                "count": record.number,
                "place": record.place,
                "reason": record.reason,
            }
            shown = {name: value or None for name, value in values.items()}
            out.print_json({"outcome": record.outcome, **shown, "dry_run": args.dry_run})
        else:
            out.print_line(_format_record(record, out, dry_run=args.dry_run))
    if out.json:
        out.print_json({"outcome": "summary", **totals.counts, "dry_run": args.dry_run})
    else:
        out.print_line(totals.summary(dry_run=args.dry_run))
    return 1 if totals.bad else 0


class _Totals:
    """Counts the records by outcome."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys((*_NOUNS, "already", "taken", "unreadable", "noted"), 0)

    def add(self, record: ImportRecord) -> None:
        name = record.what if record.outcome == "imported" else record.outcome
        self.counts[name] += record.number

    @property
    def bad(self) -> int:
        return sum(self.counts[name] for name in _BAD)

    def summary(self, *, dry_run: bool) -> str:
        made = [pluralize(self.counts[what], noun) for what, noun in _NOUNS.items() if self.counts[what]]
        done = f"{'would import' if dry_run else 'imported'} {', '.join(made) or 'nothing'}"
        others = [
            f"{self.counts['already']} already imported" if self.counts["already"] else "",
            f"{self.counts['taken']} not imported: their ids are in use" if self.counts["taken"] else "",
            f"{pluralize(self.counts['unreadable'], 'place')} could not be read" if self.counts["unreadable"] else "",
        ]
        return "; ".join([done, *(one for one in others if one)])


def _format_record(record: ImportRecord, out: Output, *, dry_run: bool) -> str:
    outcome = "would" if dry_run and record.outcome == "imported" else record.outcome
    shown = out.colorize(f"{outcome:<10}", _STYLES.get(record.outcome))
    place = f", {record.place}" if record.place else ""
    reason = f": {record.reason}" if record.reason else ""
    if record.what:
        many = f" ({pluralize(record.number, 'event')})" if record.what == "events" else ""
        return f"{shown}  {record.what:<6}  {record.id}{many}  from {make_printable(record.path)}{reason}"
    return f"{shown}  {make_printable(record.path)}{place}{make_printable(reason)}"
