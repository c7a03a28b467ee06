"""`jackline run --tmux`: a run whose process works in a detached session of tmux; `attach --tmux` shows that session.

The process in the session belongs to no service, even if one is running. The end of the session parks the run.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from jackline.app.background import build_resume_argv, is_claimed
from jackline.cli import status_text
from jackline.cli.answer_input import has_terminal
from jackline.cli.follow_run import run_exit_code
from jackline.cli.run_args import build_request
from jackline.cli.run_json import run_to_json
from jackline.clock import host_name, wall_ms
from jackline.domain.states import TERMINAL, RunState
from jackline.engine.tmux import EnvironmentPipe, TmuxServer
from jackline.errors import JacklineError, UsageError
from jackline.store.models import TmuxSession
from jackline.worktrees import find_settings_folder

if TYPE_CHECKING:
    from argparse import Namespace

    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Run

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_POLL_SECONDS = 0.1
_START_SECONDS = 10.0
_ROWS = 40
_ID_CHARS = 8


def run_in_tmux(args: Namespace, home: Home, out: Output) -> int:
    """Create the run and start it in a session of tmux; at a terminal outside of tmux, show the session."""
    _refuse_bad_name(args)
    server = TmuxServer()
    if args.tmux and server.has_session(args.tmux):
        raise UsageError(f"a tmux session '{args.tmux}' exists: choose another name, or leave it out")
    run = home.start(build_request(args, home), at_once=True)
    out.print_warnings(home.warnings)
    if run.status.state in TERMINAL:  # only with --run-id: the run has ended before, and does not run again
        return status_text.print_outcome(home, run, out, run_exit_code(run))
    if run.status.state is RunState.RUNNING and not home.explain_loss(run):
        raise UsageError(f"run {run.id} is already running: {out.format_command('attach', run.id)}")
    name = args.tmux or f"jackline-{re.sub(r'[^A-Za-z0-9_-]', '-', run.id[-_ID_CHARS:])}"
    flags = (("--on-ask", args.on_ask) if args.on_ask else ()) + (("--quiet",) if args.quiet else ())
    _start_session(home, run, server, name, (*build_resume_argv(home, run), *flags), out)
    run = home.store().runs.get(run.id) or run
    if out.json:
        out.print_json({**run_to_json(home, run), "tmux_session": name})
        return 0
    out.print_line(f"run {run.id} (#{run.number}) started in the tmux session {name}")
    out.print_line(f"  show the session: {out.format_command('attach', '--tmux', run.id)}")
    out.print_line(f"  follow: {out.format_command('attach', run.id)}")
    if os.environ.get("TMUX") or not (has_terminal(out) and out.stdout.is_terminal):
        return 0
    server.show_session(name)
    return _print_left(home, run, server, name, out)


def _refuse_bad_name(args: Namespace) -> None:
    if args.detach:
        raise UsageError("--tmux and --detach contradict each other: leave one out")
    if args.tmux and not _NAME.fullmatch(args.tmux):
        from jackline.app.text_files import shorten_name

        rule = "up to 64 letters, digits, - and _"
        hint = "" if args.prompt else "; put the prompt before --tmux"
        raise UsageError(f"'{shorten_name(args.tmux)}' cannot be the name of a tmux session: {rule}{hint}")


def _start_session(home: Home, run: Run, server: TmuxServer, name: str, argv: tuple[str, ...], out: Output) -> None:
    """Start the run in the session, and wait until it is claimed; else say how to start it."""
    pipe = EnvironmentPipe(home.folder(run.id))
    try:
        size = (out.terminal_width() if out.stdout.is_terminal else 100, _ROWS)
        socket = server.start_session(name, pipe.wrap(argv), find_settings_folder(run.spec), size)
        # Before the command can begin: what it exports names the session.
        session = TmuxSession(session=name, socket=socket, host=host_name(), started_at=wall_ms())
        home.store().runs.put_tmux_session(run.id, session)
        is_started = pipe.send(os.environ)
    finally:
        pipe.close()
    until = time.monotonic() + _START_SECONDS
    while is_started and not is_claimed(home, run):
        if not server.has_session(name) and not is_claimed(home, run):
            is_started = False
        elif time.monotonic() > until:
            return
        else:
            time.sleep(_POLL_SECONDS)
    if not is_started:
        again = out.format_command("resume", run.id)
        raise JacklineError(f"run {run.id} stays queued: its process in tmux ended at once; start it here: {again}")


def _print_left(home: Home, run: Run, server: TmuxServer, name: str, out: Output) -> int:
    """Print what a person sees who comes back from the session: the state of the run, or that it continues."""
    run = home.store().runs.get(run.id) or run
    if server.has_session(name) or (run.status.state is RunState.RUNNING and not home.explain_loss(run)):
        again = out.format_command("attach", "--tmux", run.id)
        out.print_note(f"detached from run {run.id} (#{run.number}), which is {run.status.state}; again: {again}")
        return 0
    return status_text.print_outcome(home, run, out, run_exit_code(run))


def show_run_session(home: Home, run: Run, out: Output) -> int:
    """Show the tmux session of a run at this terminal; UsageError if there is none to show here."""
    follow = out.format_command("attach", run.id)
    known = home.store().records.get_tmux_session(run.id)
    if known is None:
        raise UsageError(f"run {run.id} was not started in tmux: follow it with {follow}")
    if known.host != host_name():
        raise UsageError(f"the tmux session of run {run.id} is on {known.host}: go there, or follow it with {follow}")
    server = TmuxServer(known.socket)
    if not server.has_session(known.session):
        raise UsageError(f"the tmux session {known.session} of run {run.id} has ended: see {follow}")
    if not (has_terminal(out) and out.stdout.is_terminal):
        raise UsageError(f"--tmux needs a terminal: follow the run with {follow}")
    inside = os.environ.get("TMUX", "").partition(",")[0]
    if inside and os.path.realpath(inside) != os.path.realpath(known.socket):
        raise UsageError(f"this terminal is inside another tmux server: leave it, or follow the run with {follow}")
    server.show_session(known.session)
    return 0 if inside else _print_left(home, run, server, known.session, out)
