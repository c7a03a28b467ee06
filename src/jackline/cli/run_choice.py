"""Finds the run that a command means: the named one, or the newest of this repository. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import RunState
from jackline.errors import UsageError
from jackline.formatting import format_line

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.cli.output import Output
    from jackline.domain.records import Call, Run

_RESUMABLE = (RunState.QUEUED, RunState.WAITING, RunState.FAILED, RunState.RUNNING)
_PROMPT_CHARS = 60


def find_run(home: Home, text: str | None) -> Run:
    """Return the run that `text` names; without one the newest run of this repository."""
    if text is not None:
        return home.find(text)
    newest = home.find_newest()
    if newest is None:
        raise UsageError("there is no run in this repository; see `jackline list --all-repos`, or name a run")
    return newest


def find_call(home: Home, run_text: str | None, text: str) -> tuple[Run, Call]:
    """Return a call with its run: the named one; without one the newest run of this repository that has the call."""
    if run_text is not None:
        run = home.find(run_text)
        return run, home.find_call(run, text)
    run = home.find_newest(fits=lambda one: bool(home.match_calls(one, text))) or find_run(home, None)
    return run, home.find_call(run, text)


def find_resumable_run(home: Home, text: str | None, out: Output) -> Run:
    """Return the run that `text` names; without one the newest run here that can be resumed, named on stderr."""
    if text is not None and len(text.split()) > 1:
        raise UsageError("a run is missing before the message: use `jackline resume RUN TEXT`, or --message TEXT alone")
    if text is not None:
        return home.find(text)
    newest = home.find_newest(*_RESUMABLE, fits=lambda run: _is_resumable(home, run))
    if newest is None:
        raise UsageError("no run of this repository can be resumed; see `jackline list --all-repos`, or name a run")
    out.print_note(f"resuming run #{newest.number} ({newest.id}): {format_line(newest.spec.prompt, _PROMPT_CHARS)}")
    return newest


def _is_resumable(home: Home, run: Run) -> bool:
    if run.spec.imported:
        return False
    match run.status.state:
        case RunState.RUNNING:
            return bool(home.explain_loss(run))
        case RunState.QUEUED if not run.status.attempt:  # a service starts those of the queue
            return home.store().queue.get(run.id) is None
        case _:
            return True
