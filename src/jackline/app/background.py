"""Continues runs in the background: one detached `jackline resume` per run, which outlives this process's terminal."""

from __future__ import annotations

import os
import shlex
import sys
import time
from typing import TYPE_CHECKING

from jackline.domain.states import RunState
from jackline.engine.detached import DetachedProcess
from jackline.engine.owner_lock import has_waiter
from jackline.errors import StoreError
from jackline.named import NamedTuple
from jackline.worktrees import find_run_worktree, find_settings_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
    if run.status.state is RunState.QUEUED and home.has_service():
        return False
    return run.status.state in {RunState.QUEUED, RunState.WAITING, RunState.FAILED} and not has_waiter(
        home.folder(run.id)
    )


def resume_in_background(home: Home, runs: Sequence[Run]) -> BackgroundStart:
    """Resume runs of one worktree one after the other, and wait until the first is claimed, or has failed to start."""
    first = runs[0]
    log = _build_log_path(home, first)
    commands = [
        f"cd {shlex.quote(find_settings_folder(run.spec))} && {shlex.join(build_resume_argv(home, run))}"
        f" >{shlex.quote(_build_log_path(home, run))} 2>&1"
        for run in runs
    ]
    argv = ("/bin/sh", "-c", "; ".join(["umask 077", *commands])) if len(runs) > 1 else build_resume_argv(home, first)
    try:
        # From the workspace: settings of the project, such as its own agents, are found there.
        process = DetachedProcess(argv, os.environ, find_settings_folder(first.spec), log)
    except StoreError as error:  # of the log; the other runs can start anyway
        return BackgroundStart(first.id, log=log, problem=str(error))
    except OSError as error:
        problem = f"{error.filename or first.spec.workspace}: {error.strerror}"
        return BackgroundStart(first.id, log=log, problem=problem)
    until = time.monotonic() + _START_SECONDS
    code = process.wait(_POLL_SECONDS)
    while code is None and not is_claimed(home, first) and time.monotonic() < until:
        code = process.wait(_POLL_SECONDS)
    # A run that was claimed reports its own end; a command that ended without a claim has failed.
    printed = "" if is_claimed(home, first) else process.read_end()
    failed = printed.startswith("jackline: ") or (code is not None and not is_claimed(home, first))
    problem = (printed or f"exit code {code}") if failed else ""
    process.leave()
    return BackgroundStart(first.id, pid=process.pid, log=log, problem=problem)


def group_by_worktree(runs: Iterable[Run]) -> list[list[Run]]:
    """The runs of each worktree together: two of them must not work in it at once."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(find_run_worktree(run.spec), []).append(run)
    return list(groups.values())


def build_resume_argv(home: Home, run: Run) -> tuple[str, ...]:
    """The command that continues the run in another process, with the settings that only flags have given here."""
    own = home.config.sources["env_file"].startswith("--")
    flags = ("--env-file", home.config.get_text("env_file")) if own else ()
    return (sys.executable, "-P", "-m", "jackline", "resume", run.id, "--yes", "--home", home.path, *flags)


def _build_log_path(home: Home, run: Run) -> str:
    return os.path.join(home.folder(run.id), LOG)


def is_claimed(home: Home, run: Run) -> bool:
    """Whether a process has taken the run up since it was read."""
    now = home.store().runs.get(run.id)
    return now is not None and now.status.attempt > run.status.attempt
