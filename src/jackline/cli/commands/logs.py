"""`jackline logs`: prints the output of a run's agent unchanged, or the run's events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.event_text import describe_event, load_event_data
from jackline.cli.parser import RUN_HELP
from jackline.clock import wall_ms
from jackline.domain.states import RunState, WaitReason
from jackline.formatting import format_iso, format_local

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser
    from jackline.domain.events import Event
    from jackline.domain.records import Run

_PAGE = 1000
_POLL_SECONDS = 0.1
_RETRY_GRACE_MS = 5_000


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing until the run stops running")
    stream = parser.add_mutually_exclusive_group()
    stream.add_argument("--stderr", action="store_true", help="print its standard error")
    stream.add_argument("--events", action="store_true", help="print the events of the run")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    if args.events:
        return _print_events(args, home, run, out)
    from jackline.exports import raw

    follow = (lambda: not out.stdout.is_closed and _is_active(home, run)) if args.follow else None
    write = _json_writer(out) if out.json else out.stdout.write_bytes
    for chunk in raw.read_chunks(home.path, run.id, "stderr" if args.stderr else "stdout", follow):
        write(chunk)
        if out.stdout.is_closed:
            break
    return 0


def _json_writer(out: Output) -> Callable[[bytes], None]:
    """Return a function that prints chunks as JSON; it decodes characters that span two chunks."""
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("replace")
    return lambda chunk: out.print_json({"text": decoder.decode(chunk)})


def _is_active(home: Home, run: Run) -> bool:
    """Return whether the run is running, or in the short wait between two attempts of a live supervisor."""
    now = home.store().runs.get(run.id)
    if now is None:
        return False
    retries_soon = now.status.reason is WaitReason.RETRY and (now.status.wake_at or 0) + _RETRY_GRACE_MS > wall_ms()
    return now.status.state is RunState.RUNNING or retries_soon


def _print_events(args: Namespace, home: Home, run: Run, out: Output) -> int:
    import time

    seen = 0
    while True:
        follow = args.follow and _is_active(home, run)  # checked before reading: the last event is not missed
        while not out.stdout.is_closed and (events := home.store().records.list_events(run.id, seen, _PAGE)):
            seen = events[-1].seq
            _print_page(events, out)
        if not follow or out.stdout.is_closed:
            break
        time.sleep(_POLL_SECONDS)
    if not seen:
        out.print_note(f"the events of run {run.id} were archived; see `jackline db archive --help`")
    return 0


def _print_page(events: list[Event], out: Output) -> None:
    if out.json:
        out.print_json_lines(_to_json(event) for event in events)
        return
    shown: Callable[[int], str] = _format_time if out.stdout.is_terminal else lambda at: str(format_iso(at))
    lines = (f"{event.seq}\t{shown(event.at)}\t{event.kind}\t{describe_event(event)}" for event in events)
    out.print_line("\n".join(lines))


def _format_time(at: int) -> str:
    return format_local(at, wall_ms())


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
