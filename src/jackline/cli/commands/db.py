"""`jackline db`: migrate, status, check, backup and archive. The work is done in `app.upkeep`."""

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
    "migrate": "bring the database to the schema of this jackline",
    "status": "schema, size and how much is in it",
    "check": "look for damage, broken chains and contradictions; exit 1 if there are any",
    "backup": "copy the database to a new file",
    "archive": "move the events of old runs into compressed files",
}


def configure(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    made = {
        name: actions.add_parser(name, out=parser.out, help=summary, description=summary)
        for name, summary in _ACTIONS.items()
    }
    made["backup"].add_argument("path", metavar="PATH")
    made["archive"].add_argument("--older-than", metavar="AGE", default="30d", help="since the end (default 30d)")
    made["archive"].add_argument("--to", metavar="DIR", help="where to (default: archive/ in the home)")


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
        out.line(f"applied: {', '.join(applied)}" if applied else "nothing to do: the schema is up to date")
    return 0


def _status(home: Home, out: Output) -> int:
    status = upkeep.status(home)
    if out.json:
        out.json_line(values(status))
        return 0
    pending = f", missing {', '.join(status.pending)}: jackline db migrate" if status.pending else ""
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
        out.line("\n".join(map(make_printable, found)) or "all is well")
    if archives.missing:
        what = f"{pluralize(archives.missing, 'run')} with archived events that are not in {archives.folder}"
        out.note(f"jackline: {what}: `jackline verify RUN --archive DIR` looks at them elsewhere")
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
        raise UsageError(f"--older-than '{args.older_than}' is not an age: say 12h, 30d or 8w")
    done = upkeep.archive(home, age, args.to)
    if out.json:
        out.json_line(asdict(done))
    else:
        amount = f"{pluralize(done.runs, 'run')} with {pluralize(done.events, 'event')}"
        out.line(f"archived {amount} to {done.folder}")
        for problem in done.problems:
            out.note(f"jackline: {problem}")
    return 1 if done.problems else 0
