"""`jackline import`: take over what the predecessors left. Exit 1 if some of it could not be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.importing.kinds import KINDS
from jackline.formatting import make_printable, pluralize

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from jackline.app.home import Home
    from jackline.app.importing.taking import Record
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

NEEDS_PROJECT = False
_STYLES = {"imported": "green", "already": "dim", "taken": "red", "unreadable": "red", "noted": "yellow"}
_BAD = ("taken", "unreadable")
_WHATS = ("run", "case", "item", "events")


def configure(parser: Parser) -> None:
    shapes = "; ".join(f"{kind}: {shape}" for kind, shape in KINDS.items())
    parser.add_argument("path", nargs="+", metavar="PATH", help=f"a file, a folder, or one with all of it: {shapes}")
    parser.add_argument("--as", dest="kind", choices=tuple(KINDS), help="look for this kind alone")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and write nothing")


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.app.importing.taking import take

    told = _Told()
    for record in take(home, args.path, args.kind, dry_run=args.dry_run):
        told.add(record)
        if out.json:
            out.json_line({"outcome": record.outcome, **_values(record), "dry_run": args.dry_run})
        else:
            out.line(_line(record, out, dry_run=args.dry_run))
    if out.json:
        out.json_line({"outcome": "summary", **told.counts, "dry_run": args.dry_run})
    else:
        out.line(told.summary(dry_run=args.dry_run))
    return 1 if told.bad else 0


class _Told:
    """How often each thing was said."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys((*_WHATS, "already", "taken", "unreadable", "noted"), 0)

    def add(self, record: Record) -> None:
        name = record.what if record.outcome == "imported" else record.outcome
        self.counts[name] += record.number

    @property
    def bad(self) -> int:
        return sum(self.counts[name] for name in _BAD)

    def summary(self, *, dry_run: bool) -> str:
        made = [pluralize(self.counts[what], _named(what)) for what in _WHATS if self.counts[what]]
        done = f"{'would import' if dry_run else 'imported'} {_joined(made) or 'nothing'}"
        others = [
            f"{self.counts['already']} there already" if self.counts["already"] else "",
            f"{self.counts['taken']} not taken: their ids are taken" if self.counts["taken"] else "",
            f"{pluralize(self.counts['unreadable'], 'place')} could not be read" if self.counts["unreadable"] else "",
        ]
        return "; ".join([done, *(one for one in others if one)])


def _named(what: str) -> str:
    return {"events": "event", "item": "work item"}.get(what, what)


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _values(record: Record) -> dict[str, object]:
    told = {"kind": record.kind, "path": record.path, "what": record.what, "id": record.id, "count": record.number}
    return {
        **{name: value or None for name, value in told.items()},
        "place": record.place or None,
        "reason": record.reason or None,
    }


def _line(record: Record, out: Output, *, dry_run: bool) -> str:
    outcome = "would" if dry_run and record.outcome == "imported" else record.outcome
    shown = out.paint(f"{outcome:<10}", _STYLES.get(record.outcome))
    place = f", {record.place}" if record.place else ""
    reason = f": {record.reason}" if record.reason else ""
    if record.what:
        many = f" ({pluralize(record.number, 'event')})" if record.what == "events" else ""
        return f"{shown}  {record.what:<6}  {record.id}{many}  from {make_printable(record.path)}{reason}"
    return f"{shown}  {make_printable(record.path)}{place}{make_printable(reason)}"
