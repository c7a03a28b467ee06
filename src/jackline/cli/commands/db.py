"""`jackline db`: migrates, checks, backs up and archives the database; `app.maintenance` does the work."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from jackline.app import maintenance
from jackline.cli.run_json import to_json_values
from jackline.errors import UsageError
from jackline.formatting import make_printable, parse_duration, pluralize

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

_ACTIONS = {
    "migrate": "upgrade the database to the schema of this version",
    "status": "show the schema version, the size and the row counts",
    "check": "look for damage, broken hash chains and inconsistencies; exit 1 if there are any",
    "backup": "copy the database to a new file",
    "archive": "move the events of old runs into compressed files",
}
INSIDE_RUN = ("status", "check")


def configure(parser: CommandParser) -> None:
    actions = parser.add_actions(_ACTIONS)
    actions["backup"].add_argument("path", metavar="PATH")
    actions["archive"].add_argument(
        "--older-than", metavar="AGE", default="30d", help="how long ago the run ended (default 30d)"
    )
    actions["archive"].add_argument("--to", metavar="DIR", help="the target directory (default: archive/ in the home)")


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
    applied = maintenance.migrate_database(home)
    if out.json:
        out.print_json({"applied": applied})
    else:
        out.print_line(f"applied: {', '.join(applied)}" if applied else "the schema is up to date")
    return 0


def _status(home: Home, out: Output) -> int:
    status = maintenance.read_status(home)
    if out.json:
        out.print_json(to_json_values(status))
        return 0
    pending = f", pending {', '.join(status.pending)}: jackline db migrate" if status.pending else ""
    out.print_line(f"{status.backend}: {status.place}")
    out.print_line(f"schema {status.schema} of {status.known_schema}{pending}")
    if status.size is not None:
        out.print_line(f"size {status.size} bytes")
    for name, count in status.counts.items():
        out.print_line(f"{name} {count}")
    return 0


def _check(home: Home, out: Output) -> int:
    from jackline.app.maintenance import ArchiveFolder

    archives = ArchiveFolder(home)
    found = home.store().verify.check_all(archives)
    if out.json:
        out.print_json({"ok": not found, "problems": found})
    else:
        out.print_line("\n".join(map(make_printable, found)) or "no problems found")
    if archives.missing:
        missing = f"{pluralize(archives.missing, 'run')} with archived events that are not in {archives.folder}"
        out.print_note(f"jackline: not checked: {missing}; use `jackline verify RUN --archive DIR`")
    return 1 if found else 0


def _backup(path: str, home: Home, out: Output) -> int:
    written = maintenance.backup_database(home, path)
    if out.json:
        out.print_json({"path": written})
    else:
        out.print_line(written)
    return 0


def _archive(args: Namespace, home: Home, out: Output) -> int:
    age = parse_duration(args.older_than)
    if age is None:
        raise UsageError(f"--older-than '{args.older_than}' is not a valid age; use 12h, 30d or 8w")
    done = maintenance.archive_runs(home, age, args.to)
    if out.json:
        out.print_json(asdict(done))
    else:
        amount = f"{pluralize(done.runs, 'run')} with {pluralize(done.events, 'event')}"
        out.print_line(f"archived {amount} to {done.folder}")
        for problem in done.problems:
            out.print_note(f"jackline: {problem}")
    return 1 if done.problems else 0
