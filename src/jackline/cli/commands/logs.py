"""`jackline logs`: what an agent printed, byte for byte; or the run's events."""

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
_LOOK_SECONDS = 0.1
_LATE_MS = 5_000


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("-f", "--follow", action="store_true", help="until the run is no longer running")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--stderr", action="store_true", help="what it printed as errors")
    what.add_argument("--events", action="store_true", help="what happened to the run, as jackline saw it")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.find(args.run)
    if args.events:
        return _events(args, home, run, out)
    from jackline.views import raw

    follow = (lambda: not out.out.gone and _goes_on(home, run)) if args.follow else None
    show = _as_json(out) if out.json else out.out.write_bytes
    for chunk in raw.chunks(home.path, run.id, "stderr" if args.stderr else "stdout", follow):
        show(chunk)
        if out.out.gone:
            break
    return 0


def _as_json(out: Output) -> Callable[[bytes], None]:
    """Text in objects; a character may be cut in two by the end of a chunk, so the decoder remembers the half."""
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("replace")
    return lambda chunk: out.json_line({"text": decoder.decode(chunk)})


def _goes_on(home: Home, run: Run) -> bool:
    """Running, or in the short wait between two attempts while somebody is still there to end it."""
    now = home.store().run(run.id)
    if now is None:
        return False
    soon = now.life.reason is WaitReason.RETRY and (now.life.wake_at or 0) + _LATE_MS > wall_ms()
    return now.life.state is RunState.RUNNING or soon


def _events(args: Namespace, home: Home, run: Run, out: Output) -> int:
    import time

    seen = 0
    while True:
        going = args.follow and _goes_on(home, run)  # asked before reading: the last event is not missed
        while not out.out.gone and (events := home.store().events(run.id, seen, _PAGE)):
            seen = events[-1].seq
            _print_events(events, out)
        if not going or out.out.gone:
            break
        time.sleep(_LOOK_SECONDS)
    if not seen:
        out.note(f"the events of run {run.id} were archived: `jackline db archive --help` says where")
    return 0


def _print_events(events: list[Event], out: Output) -> None:
    if out.json:
        out.json_lines(_record(event) for event in events)
        return
    shown: Callable[[int], str] = _moment if out.out.terminal else lambda at: str(format_iso(at))
    lines = (f"{event.seq}\t{shown(event.at)}\t{event.kind}\t{describe(event)}" for event in events)
    out.line("\n".join(lines))


def _moment(at: int) -> str:
    return format_local(at, wall_ms())


def _record(event: Event) -> dict[str, object]:
    return {
        "run": event.stream,
        "seq": event.seq,
        "at": format_iso(event.at),
        "kind": event.kind,
        "actor": event.actor,
        "data": data_of(event),
        "hash": event.hash,
    }
