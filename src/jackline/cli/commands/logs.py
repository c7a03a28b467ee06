"""`jackline logs`: prints the output of a run's agent unchanged, or the run's events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.cli.events import data_of, describe
from jackline.cli.parser import RUN
from jackline.clock import wall_ms
from jackline.domain.states import RunState, WaitReason
from jackline.formatting import format_iso, format_local

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.events import Event
    from jackline.domain.records import Run

_PAGE = 1000
_POLL_SECONDS = 0.1
_RETRY_GRACE_MS = 5_000


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing until the run stops running")
    stream = parser.add_mutually_exclusive_group()
    stream.add_argument("--stderr", action="store_true", help="print its standard error")
    stream.add_argument("--events", action="store_true", help="print the events of the run")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    if args.events:
        return _print_events(args, home, run, out)
    from jackline.views import raw

    follow = (lambda: not out.out.gone and _is_active(home, run)) if args.follow else None
    write = _json_writer(out) if out.json else out.out.write_bytes
    for chunk in raw.chunks(home.path, run.id, "stderr" if args.stderr else "stdout", follow):
        write(chunk)
        if out.out.gone:
            break
    return 0


def _json_writer(out: Output) -> Callable[[bytes], None]:
    """Return a function that prints chunks as JSON; it decodes characters that span two chunks."""
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("replace")
    return lambda chunk: out.json_line({"text": decoder.decode(chunk)})


def _is_active(home: Home, run: Run) -> bool:
    """Return whether the run is running, or in the short wait between two attempts of a live supervisor."""
    now = home.store().run(run.id)
    if now is None:
        return False
    retries_soon = now.life.reason is WaitReason.RETRY and (now.life.wake_at or 0) + _RETRY_GRACE_MS > wall_ms()
    return now.life.state is RunState.RUNNING or retries_soon


def _print_events(args: Namespace, home: Home, run: Run, out: Output) -> int:
    import time

    seen = 0
    while True:
        follow = args.follow and _is_active(home, run)  # checked before reading: the last event is not missed
        while not out.out.gone and (events := home.store().events(run.id, seen, _PAGE)):
            seen = events[-1].seq
            _print_page(events, out)
        if not follow or out.out.gone:
            break
        time.sleep(_POLL_SECONDS)
    if not seen:
        out.note(f"the events of run {run.id} were archived; see `jackline db archive --help`")
    return 0


def _print_page(events: list[Event], out: Output) -> None:
    if out.json:
        out.json_lines(_to_json(event) for event in events)
        return
    shown: Callable[[int], str] = _format_time if out.out.terminal else lambda at: str(format_iso(at))
    lines = (f"{event.seq}\t{shown(event.at)}\t{event.kind}\t{describe(event)}" for event in events)
    out.line("\n".join(lines))


def _format_time(at: int) -> str:
    return format_local(at, wall_ms())


def _to_json(event: Event) -> dict[str, object]:
    return {
        "run": event.stream,
        "seq": event.seq,
        "at": format_iso(event.at),
        "kind": event.kind,
        "actor": event.actor,
        "data": data_of(event),
        "hash": event.hash,
    }
