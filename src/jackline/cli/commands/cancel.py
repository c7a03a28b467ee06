"""`jackline cancel`: ask for the end of a run, and watch until it has come."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline.cli import report
from jackline.cli.parser import RUN
from jackline.cli.record import run_record
from jackline.domain.states import TERMINAL, RunState

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import Parser
    from jackline.domain.records import Run

_PATIENCE_SECONDS = 10.0
_LOOK_SECONDS = 0.1


def configure(parser: Parser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN)
    parser.add_argument("--no-wait", action="store_true", help="only write the request down")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.cancel(home.find(args.run))
    if run.life.state not in TERMINAL and not args.no_wait:
        out.note(f"run {run.id} is {run.life.state}; waiting for its end")
        run = _watch(home, run)
    return _tell(args, home, run, out)


def _watch(home: Home, run: Run) -> Run:
    until = time.monotonic() + _PATIENCE_SECONDS
    while run.life.state not in TERMINAL and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        run = home.store().run(run.id) or run
    return run


def _tell(args: Namespace, home: Home, run: Run, out: Output) -> int:
    """0 only for what was asked: the run is cancelled, or the request stands and nobody wanted to wait."""
    asked_only = args.no_wait and run.life.state not in TERMINAL
    code = 0 if run.life.state is RunState.CANCELLED or asked_only else 1
    if out.json:
        out.json_line({**run_record(home, run), "cancel_requested": run.life.cancel_requested})
        return code
    out.line(f"run {run.id} (#{run.number}) {report.headline(run, out)}")
    if run.life.state is RunState.RUNNING:
        out.line(f"  it is asked to end; look again: {out.command('show', run.id)}")
    elif code:
        out.line("  it ended before it could be cancelled")
    return code
