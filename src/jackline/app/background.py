"""Continues runs in the background: one detached `jackline resume` per run, which outlives this process's terminal."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from jackline.domain.states import RunState
from jackline.engine.detached import DetachedProcess
from jackline.engine.owner_lock import has_waiter
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.records import Run

LOG = "background.log"
_START_SECONDS = 10.0
_POLL_SECONDS = 0.1


class BackgroundStart(NamedTuple):
    """How a start in the background went."""

    run_id: str
    pid: int = 0
    log: str = ""
    problem: str = ""  # why it did not start; empty if it runs, or has ended well


def needs_process(home: Home, run: Run) -> bool:
    """Whether no living process will continue the run; ask after the answer is written.

    A process on another host that waits for the answer is not seen from here: a claim lets only one of them work.
    """
    if run.status.state is RunState.RUNNING:
        return bool(home.find_lost([run.id]))
    return run.status.state in {RunState.QUEUED, RunState.WAITING, RunState.FAILED} and not has_waiter(
        home.folder(run.id)
    )


def resume_in_background(home: Home, run: Run) -> BackgroundStart:
    """Start `jackline resume` and wait until it has claimed the run, or has failed to."""
    argv = (sys.executable, "-P", "-m", "jackline", "resume", run.id, "--yes", "--home", home.path)
    log = os.path.join(home.folder(run.id), LOG)
    try:
        # From the workspace: settings of the project, such as its own agents, are found there.
        process = DetachedProcess(argv, os.environ, run.spec.workspace, log)
    except OSError as error:
        problem = f"{error.filename or run.spec.workspace}: {error.strerror}"
        return BackgroundStart(run.id, log=log, problem=problem)
    until = time.monotonic() + _START_SECONDS
    code = process.wait(_POLL_SECONDS)
    while code is None and not _is_claimed(home, run) and time.monotonic() < until:
        code = process.wait(_POLL_SECONDS)
    # A run that was claimed reports its own end; a command that ended without a claim has failed.
    failed = code is not None and not _is_claimed(home, run)
    problem = (process.read_end() or f"exit code {code}") if failed else ""
    process.leave()
    return BackgroundStart(run.id, pid=process.pid, log=log, problem=problem)


def _is_claimed(home: Home, run: Run) -> bool:
    now = home.store().runs.get(run.id)
    return now is not None and now.status.attempt > run.status.attempt
