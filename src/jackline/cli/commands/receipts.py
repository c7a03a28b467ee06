"""`jackline receipts`: lists the effects of a run, with the evidence for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.call_view import find_suffix_length
from jackline.cli.output import parse_columns
from jackline.cli.parser import RUN_HELP
from jackline.clock import wall_ms
from jackline.domain.call_text import describe_ledger_call, format_target
from jackline.exports.receipts import (
    STATUS_MEANINGS,
    Effect,
    RunLedger,
    build_receipts,
    format_effect,
    format_left_out,
    receipts_to_json,
    render_receipts,
)
from jackline.formatting import format_elapsed, format_local

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.records import Run
    from jackline.exports.receipts import Receipts

_COLUMNS = parse_columns("CALL STATUS* TIME TOOK> TARGET WHAT~")
_UNKNOWN = "unknown"
_UNKNOWN_MEANING = "it was interrupted, and no rule says what it touches: check"
INSIDE_RUN = ("*",)


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--format", choices=("md", "json"), help="Markdown or JSON (default: a table)")


def execute(args: Namespace, home: Home, out: Output) -> int:
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
    elif args.format == "md":
        out.print_line(render_receipts(receipts).rstrip("\n"))
    else:
        _print_tables(receipts, run, out)
    return 0


def _print_tables(receipts: Receipts, run: Run, out: Output) -> None:
    """Print one row per effect, then the interrupted calls without a known class; in a pipe each row is complete."""
    unknown = [Effect(call=call, status=_UNKNOWN, external={}) for call in receipts.unknown]
    listed = [*receipts.effects, *unknown]
    if not out.stdout.is_terminal:
        out.print_table((), [format_effect(one) for one in listed])
    elif listed:
        size = find_suffix_length([one.call.id for one in listed])
        now = wall_ms()
        out.print_table(_COLUMNS, [_format_row(one, size, run, now) for one in listed])
    used = dict.fromkeys(one.status for one in listed)
    for status in used if out.stdout.is_terminal else ():
        out.print_note(f"{status}: {STATUS_MEANINGS.get(status, _UNKNOWN_MEANING)}")
    if not receipts.effects:
        out.print_note("this run has no effects")
    if left_out := format_left_out(receipts):
        out.print_note(f"not listed: {left_out}")


def _format_row(one: Effect, size: int, run: Run, now: int) -> list[str]:
    call = one.call
    external = "".join(f", {name}={value}" for name, value in one.external.items())
    return [
        call.id[-size:],
        f"{one.status} {one.original[-size:]}" if one.original else one.status,
        format_local(call.prepared_at, now),
        "" if call.duration_ms is None else format_elapsed(call.duration_ms),
        format_target(call.target),
        describe_ledger_call(call, run.spec.workspace) + external + (f", run {call.run_id}" if one.inherited else ""),
    ]
