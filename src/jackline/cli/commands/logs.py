"""`jackline logs`: prints the transcript of a run, the output of its agent unchanged, or its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.event_text import describe_event, load_event_data
from jackline.cli.log_stream import POLL_SECONDS, build_follow, print_output, print_transcript
from jackline.cli.parser import NEWEST_HELP, parse_count
from jackline.cli.run_choice import find_run
from jackline.cli.status_text import format_loss
from jackline.clock import wall_ms
from jackline.errors import UsageError
from jackline.formatting import format_iso, format_local

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.log_stream import Follow
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.events import Event
    from jackline.domain.records import Run

_PAGE = 1000
INSIDE_RUN = ("*",)


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", nargs="?", help=NEWEST_HELP)
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing until the run stops running")
    parser.add_argument("--turn", metavar="N", type=parse_count, help="only this turn")
    stream = parser.add_mutually_exclusive_group()
    stream.add_argument("--raw", action="store_true", help="print the agent's standard output unchanged")
    stream.add_argument("--stderr", action="store_true", help="print the agent's standard error unchanged")
    stream.add_argument("--events", action="store_true", help="print the events of the run")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = find_run(home, args.run)
    if args.events and args.turn is not None:
        raise UsageError("--turn selects a part of the transcript or the output; leave it out with --events")
    follow = build_follow(home, run, out, out.print_note) if args.follow else None
    if args.events:
        _print_events(home, run, out, follow)
    elif args.raw or args.stderr or run.spec.imported:  # other programs kept the output only
        print_output(home, run, out, "stderr" if args.stderr else "stdout", args.turn, follow=follow)
    else:
        print_transcript(home, run, out, args.turn, follow=follow)
    if args.follow and (loss := home.explain_loss(home.store().runs.get(run.id) or run)):
        out.print_note(format_loss(run.id, loss, out))
    return 0


def _print_events(home: Home, run: Run, out: Output, follow: Follow | None) -> None:
    import time

    seen = 0
    while True:
        goes_on = follow is not None and follow()  # checked before reading: the last event is not missed
        while not out.stdout.is_closed and (events := home.store().records.list_events(run.id, seen, _PAGE)):
            seen = events[-1].seq
            _print_page(events, out)
        if not goes_on or out.stdout.is_closed:
            break
        time.sleep(POLL_SECONDS)
    if not seen:
        out.print_note(f"the events of run {run.id} were archived; see `jackline db archive --help`")


def _print_page(events: list[Event], out: Output) -> None:
    if out.json:
        out.print_json_lines(_to_json(event) for event in events)
        return
    times = (format_local(one.at, wall_ms()) if out.stdout.is_terminal else format_iso(one.at) for one in events)
    lines = (f"{one.seq}\t{at}\t{one.kind}\t{describe_event(one)}" for one, at in zip(events, times, strict=True))
    out.print_line("\n".join(lines))


def _to_json(event: Event) -> dict[str, object]:
    return {
        "run": event.stream,
        "seq": event.seq,
        "at": format_iso(event.at),
        "kind": event.kind,
        "actor": event.actor,
        "data": load_event_data(event),
        "hash": event.hash,
    }
