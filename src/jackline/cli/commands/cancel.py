"""`jackline cancel`: requests the end of a run and waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jackline.cli import status_text
from jackline.cli.parser import RUN_HELP
from jackline.cli.run_json import run_to_json
from jackline.domain.states import TERMINAL, RunState

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.cli.parser import CommandParser

_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.1
WORKS_ON_RUNS = True  # notices are delivered when it is done
INSIDE_RUN = ()


def configure(parser: CommandParser) -> None:
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--no-wait", action="store_true", help="only record the request; do not wait for the end")


def execute(args: Namespace, home: Home, out: Output) -> int:
    run = home.cancel(home.find(args.run))
    if run.status.state not in TERMINAL and not args.no_wait:
        out.print_note(f"run {run.id} is {run.status.state}; waiting until it ends")
        until = time.monotonic() + _TIMEOUT_SECONDS
        while run.status.state not in TERMINAL and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
            run = home.store().runs.get(run.id) or run
    is_requested = args.no_wait and run.status.state not in TERMINAL
    code = 0 if run.status.state is RunState.CANCELLED or is_requested else 1
    if out.json:
        out.print_json({**run_to_json(home, run), "cancel_requested": run.status.cancel_requested})
        return code
    out.print_line(f"run {run.id} (#{run.number}) {status_text.format_state(run, out)}")
    if run.status.state is RunState.RUNNING:
        out.print_line(f"  it has been asked to stop; check again: {out.format_command('show', run.id)}")
    elif code:
        out.print_line("  it ended before the request took effect")
    return code
