"""Reads the dashboard from the store, and writes dashboard.md in the home after every change.

A burst of changes is written once. The file itself is never read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.app.inbox import ASK_ANSWERS, DOUBT_ANSWERS, INTERRUPTED_ANSWERS, find_open_questions
from jackline.domain.amendment import build_resume_words
from jackline.domain.call_text import describe_effect
from jackline.domain.states import RunState, WaitReason, WorkStatus
from jackline.errors import JacklineError, ReportNotWritten
from jackline.features.reports.dashboard_page import (
    COUNTED,
    FOR_PEOPLE,
    KINDS,
    LIVE,
    PARKED,
    SHOWN,
    CallQuestion,
    Dashboard,
    KindCount,
    LostRun,
    WaitingRun,
)
from jackline.features.reports.report_queries import ReportQueries
from jackline.features.reports.unattended import read_unattended
from jackline.formatting import DAY_MS, format_date

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.features.reports.lines import RunLine
    from jackline.store.store import Store


NAME = "dashboard.md"
LOCK = ".dashboard.md.lock"
_STALE = "the dashboard is not up to date"
_DATABASE = "JACKLINE_DATABASE"
_PROGRAM = ("jackline",)
_MOST = SHOWN + 1  # one more shows that there are more
_EVENTS = 15
_NEWEST = 200  # newest calls, which include those that a run waits for
_DAYS = 7
_SAID = {
    DOUBT_ANSWERS: "may have happened: check, then answer with one of",
    ASK_ANSWERS: "needs approval: answer with one of",
    INTERRUPTED_ANSWERS: "was interrupted, and the agent has not repeated it: resume, or first answer",
}


def update(home: Home) -> None:
    """Write the dashboard after a change; a failure becomes a warning of the home."""
    _try_update(home, home.warnings)


@contextmanager
def update_in_background(home: Home, *, seldom: bool = False) -> Iterator[Callable[[], None]]:
    """For as long as the block lasts, a thread writes changes: at most every half second, and at the end.

    With `seldom`, the first change is written at once: the process may be killed after any of them.
    """
    if home.on_change is not None:
        yield home.on_change
        return
    from jackline.exports.rebuild import delayed_rebuild

    # The thread has its own connection, so that no write waits for its reads.
    own = home.reopen()

    def build() -> None:
        _try_update(own, home.warnings)
        if seldom:
            own.close()

    with own, delayed_rebuild(build, at_once=seldom) as board:
        home.on_change = board.request_build
        try:
            yield board.request_build
        finally:
            home.on_change = None


def read_dashboard(home: Home) -> Dashboard:
    """The dashboard as of now."""
    from jackline.clock import wall_ms

    program, words, note = describe_invocation(home)
    board = collect_dashboard(home.store(), wall_ms())
    lost = home.find_lost([run.id for run in board.running])
    return board._replace(
        unattended=read_unattended(home, [run.id for run in board.queued], board.at),
        worktrees={one.run_id: one.name for one in home.store().worktrees.list_present()} if board.running else {},
        program=program,
        words=words,
        note=note,
        running=[run for run in board.running if run.id not in lost],
        lost=[LostRun(run=run, why=lost[run.id]) for run in board.running if run.id in lost],
    )


def write_dashboard(home: Home) -> tuple[str, Dashboard]:
    """Write the file now, after waiting for other writers; its path and its content."""
    from jackline.exports import rebuild

    shown: list[Dashboard] = []
    home.store()
    home.create()
    with name_failed_command("dashboard"):
        rebuild.rebuild_now(os.path.join(home.path, LOCK), lambda: shown.append(_write_page(home)))
    return os.path.join(home.path, NAME), shown[0]


def show_dashboard(home: Home) -> tuple[str, Dashboard]:
    """The same for a reader: if the file cannot be written, a warning, and the content anyway."""
    from jackline.exports.rebuild import RebuildBlocked

    try:
        return write_dashboard(home)
    except (ReportNotWritten, RebuildBlocked) as error:
        home.warnings.append(f"{_STALE}: {error}")
        return os.path.join(home.path, NAME), read_dashboard(home)


@contextmanager
def name_failed_command(command: str) -> Iterator[None]:
    """Name the command to repeat in the error about a file that could not be written."""
    from jackline.files import NotWritten

    try:
        yield
    except NotWritten as error:
        raise ReportNotWritten(error.detail, command=command, **error.facts) from error


def list_leftovers(home: Home) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The files of the dashboard in a home."""
    for name in (NAME, LOCK, f"{LOCK}.next"):
        path = os.path.join(home.path, name)
        yield path, "home", (path,) if os.path.isfile(path) and not os.path.islink(path) else ()


def describe_invocation(home: Home) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """How a command in a file begins and ends, and a note about what else it needs.

    The reader of the file has neither the environment nor the flags of this process.
    """
    program: tuple[str, ...] = _PROGRAM
    note = ""
    if home.config.get_text("database"):
        from jackline.app.agent_env import find_agent_database

        if address := find_agent_database(home.config):
            program = ("env", f"{_DATABASE}={address}", *_PROGRAM)
        elif home.config.sources["database"] == _DATABASE:
            note = f"The commands here need {_DATABASE}: its address has a password, which is not written down."
    named = home.config.sources["home"].startswith(("--", "JACKLINE_"))
    return program, ("--home", home.path) if named else (), note


def _try_update(home: Home, warnings: list[str]) -> None:
    from jackline.exports import rebuild

    try:
        home.create()
        with name_failed_command("dashboard"):
            rebuild.rebuild_once(os.path.join(home.path, LOCK), lambda: _write_page(home))
    except JacklineError as error:  # the change itself is stored
        warning = f"{_STALE}: {error}"
        if warning not in warnings:
            warnings.append(warning)


def _write_page(home: Home) -> Dashboard:
    from jackline.features.reports.dashboard_page import render_dashboard
    from jackline.files import sweep_folder, write_volatile

    shown = read_dashboard(home)
    sweep_folder(home.path)
    write_volatile(os.path.join(home.path, NAME), render_dashboard(shown).encode("utf-8", "replace"))
    return shown


def collect_dashboard(store: Store, now: int) -> Dashboard:
    """Read every part of the dashboard; each is one index lookup, so that the size of the store does not matter."""
    queries = ReportQueries(store)
    waiting = [line for reason in FOR_PEOPLE for line in queries.list_runs_waiting(reason, _MOST)][:_MOST]
    failed = queries.list_runs_failed(now - now % DAY_MS - DAY_MS, _MOST)
    return Dashboard(
        at=now,
        waiting=[_read_waiting(store, line, run) for line in waiting if (run := store.runs.get(line.id)) is not None],
        items_waiting=queries.list_items_in(WorkStatus.WAITING_HUMAN, _MOST),
        running=queries.list_runs_in(RunState.RUNNING, _MOST),
        failed=failed,
        imported=[line.id for line in failed if (run := store.runs.get(line.id)) is not None and run.spec.imported],
        queued=queries.list_runs_in(RunState.QUEUED, _MOST),
        queued_count=queries.count_runs(RunState.QUEUED, COUNTED),
        parked=store.wakeups.adjust_wake_times(
            [run for reason in PARKED for run in queries.list_runs_waiting(reason, _MOST)][:_MOST]
        ),
        kinds=[
            KindCount(kind=kind, status=one, items=count)
            for one in LIVE
            for kind, count in queries.count_kinds(one, COUNTED, KINDS + 1)
        ],
        spending=queries.list_spending(format_date(now - (_DAYS - 1) * DAY_MS), format_date(now)),
        today=format_date(now),
        in_flight=queries.list_items_in(WorkStatus.IN_FLIGHT, _MOST),
        dead=queries.list_dead_items(_MOST),
        events=queries.list_newest_events(_EVENTS),
        learnings=queries.list_newest_learnings(SHOWN),
    )


def _read_waiting(store: Store, line: RunLine, run: Run) -> WaitingRun:
    """A run that waits for a person, with the questions about its calls."""
    asked = find_open_questions(store, run, _NEWEST)
    return WaitingRun(
        run=line,
        questions=tuple(
            CallQuestion(
                call.id, call.tool, call.target, _SAID[answers], answers, describe_effect(call, run.spec.workspace)
            )
            for call, answers in asked[:_MOST]
        ),
        resume=build_resume_words(run),
        older=line.reason in {WaitReason.IN_DOUBT, WaitReason.APPROVAL}
        and not asked
        and run.status.spent.calls > _NEWEST,
    )
