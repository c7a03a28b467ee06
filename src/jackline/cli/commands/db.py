"""`jackline db`: migrates, checks, backs up and archives the database; `app.upkeep` does the work."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from jackline.app import upkeep
from jackline.cli.record import values
from jackline.errors import UsageError
from jackline.formatting import make_printable, parse_duration, pluralize

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser

_ACTIONS = {
    "migrate": "upgrade the database to the schema of this version",
    "status": "show the schema version, the size and the row counts",
    "check": "look for damage, broken hash chains and inconsistencies; exit 1 if there are any",
    "backup": "copy the database to a new file",
    "archive": "move the events of old runs into compressed files",
}


def configure(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    parsers = {
        name: actions.add_parser(name, out=parser.out, help=summary, description=summary)
        for name, summary in _ACTIONS.items()
    }
    parsers["backup"].add_argument("path", metavar="PATH")
    parsers["archive"].add_argument(
        "--older-than", metavar="AGE", default="30d", help="how long ago the run ended (default 30d)"
    )
    parsers["archive"].add_argument("--to", metavar="DIR", help="the target directory (default: archive/ in the home)")


def execute(args: Namespace, home: Home, out: Output) -> int:
    match args.action:
        case "migrate":
            return _migrate(home, out)
        case "status":
            return _status(home, out)
        case "check":
            return _check(home, out)
        case "backup":
            return _backup(args.path, home, out)
        case _:
            return _archive(args, home, out)


def _migrate(home: Home, out: Output) -> int:
    applied = upkeep.migrate(home)
    if out.json:
        out.json_line({"applied": applied})
    else:
        out.line(f"applied: {', '.join(applied)}" if applied else "the schema is up to date")
    return 0


def _status(home: Home, out: Output) -> int:
    status = upkeep.status(home)
    if out.json:
        out.json_line(values(status))
        return 0
    pending = f", pending {', '.join(status.pending)}: jackline db migrate" if status.pending else ""
    out.line(f"{status.backend}: {status.place}")
    out.line(f"schema {status.schema} of {status.known_schema}{pending}")
    if status.size is not None:
        out.line(f"size {status.size} bytes")
    for name, count in status.counts.items():
        out.line(f"{name} {count}")
    return 0


def _check(home: Home, out: Output) -> int:
    from jackline.app.verifying import Archives

    archives = Archives(home)
    found = home.store().check(archives)
    if out.json:
        out.json_line({"ok": not found, "problems": found})
    else:
        out.line("\n".join(map(make_printable, found)) or "no problems found")
    if archives.missing:
        missing = f"{pluralize(archives.missing, 'run')} with archived events that are not in {archives.folder}"
        out.note(f"jackline: not checked: {missing}; use `jackline verify RUN --archive DIR`")
    return 1 if found else 0


def _backup(path: str, home: Home, out: Output) -> int:
    written = upkeep.backup(home, path)
    if out.json:
        out.json_line({"path": written})
    else:
        out.line(written)
    return 0


def _archive(args: Namespace, home: Home, out: Output) -> int:
    age = parse_duration(args.older_than)
    if age is None:
        raise UsageError(f"--older-than '{args.older_than}' is not a valid age; use 12h, 30d or 8w")
    done = upkeep.archive(home, age, args.to)
    if out.json:
        out.json_line(asdict(done))
    else:
        amount = f"{pluralize(done.runs, 'run')} with {pluralize(done.events, 'event')}"
        out.line(f"archived {amount} to {done.folder}")
        for problem in done.problems:
            out.note(f"jackline: {problem}")
    return 1 if done.problems else 0
