"""`jackline retro`: write the report of a week. `features.reports.retro` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.run_json import to_json_values
from jackline.formatting import format_iso, pluralize

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.features.reports.retro import WrittenRetro

_ACTIONS = {"weekly": "write the retro of a week, and enqueue its proposals"}
INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.add_actions(_ACTIONS)["weekly"].add_argument(
        "--week", metavar="WEEK", help="an ISO week such as 2026-W46 (default: the last full week)"
    )


def execute(args: Namespace, home: Home, out: Output) -> int:
    from jackline.features.reports import retro

    written = retro.write_retro(home, args.week)
    if out.json:
        out.print_json(_build_record(written))
        return 0
    out.print_line(written.path)
    for line in _build_notes(written, out):
        out.print_note(line)
    return 0


def _build_record(written: WrittenRetro) -> dict[str, object]:
    report = written.report
    return {
        "week": report.week.name,
        "path": written.path,
        "kept": written.kept or None,
        "start_at": format_iso(report.week.start),
        "until_at": format_iso(report.until),
        "over": report.is_over,
        "empty": report.is_empty,
        "ended": report.ended,
        "success": [{**to_json_values(one), "rate": one.rate} for one in report.successes],
        "spending": to_json_values(list(report.spending)),
        "limits": to_json_values(list(report.limits)),
        "failures": to_json_values(list(report.failures)),
        "times": to_json_values(report.times),
        "repeated": [{**to_json_values(one), "cases": list(one.cases)} for one in report.repeated],
        "flaky": to_json_values(list(report.flaky)),
        "proposals": [to_json_values(one) for one in written.asked],
    }


def _build_notes(written: WrittenRetro, out: Output) -> list[str]:
    report = written.report
    week = report.week.name
    ended = f"{week}: {pluralize(report.ended, 'run')} ended"
    notes = [f"nothing happened in {week}" if report.is_empty else ended]
    if not report.is_over:
        notes.append(f"{week} is not over yet: the report is preliminary and proposes nothing")
    if written.kept:
        notes.append(f"{written.kept} was edited and is left unchanged")
    new = sum(one.is_new for one in written.asked)
    if written.asked:
        asked = f"{pluralize(len(written.asked), 'proposal')}, {new} new"
        notes.append(f"{asked}: {out.format_command('work', 'list', '--kind', 'retro.proposal')}")
    return notes
