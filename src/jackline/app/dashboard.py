"""Writes dashboard.md in the home after every change, once for a burst of changes. It never reads the file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackline.errors import JacklineError, ReportNotWritten

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.dashboard import Dashboard

NAME = "dashboard.md"
LOCK = ".dashboard.md.lock"
_STALE = "the dashboard is not up to date"
_DATABASE = "JACKLINE_DATABASE"
_PROGRAM = ("jackline",)


def update(home: Home) -> None:
    """Write the dashboard after a change; a failure becomes a warning of the home."""
    _try_update(home, home.warnings)


@contextmanager
def update_in_background(home: Home, *, seldom: bool = False) -> Iterator[Callable[[], None]]:
    """For as long as the block lasts, a thread writes changes: at most every half second, and at the end.

    With `seldom`, the first change is written at once: the process may be killed after any of them.
    """
    if home.board is not None:
        yield home.board
        return
    from jackline.views.coalesce import trailing

    # The thread has its own connection, so that no write waits for its reads.
    own = home.again()

    def build() -> None:
        _try_update(own, home.warnings)
        if seldom:
            own.close()

    with own, trailing(build, at_once=seldom) as board:
        home.board = board.want
        try:
            yield board.want
        finally:
            home.board = None


def read_dashboard(home: Home) -> Dashboard:
    """The dashboard as of now."""
    from jackline.clock import wall_ms
    from jackline.views.dashboard import collect_dashboard

    program, words, note = describe_invocation(home)
    return collect_dashboard(home.store(), wall_ms())._replace(program=program, words=words, note=note)


def write_dashboard(home: Home) -> tuple[str, Dashboard]:
    """Write the file now, after waiting for other writers; its path and its content."""
    from jackline.views import coalesce

    shown: list[Dashboard] = []
    home.store()
    home.make()
    with name_failed_command("dashboard"):
        coalesce.alone(os.path.join(home.path, LOCK), lambda: shown.append(_build(home)))
    return os.path.join(home.path, NAME), shown[0]


def show_dashboard(home: Home) -> tuple[str, Dashboard]:
    """The same for a reader: if the file cannot be written, a warning, and the content all the same."""
    from jackline.views.coalesce import Held

    try:
        return write_dashboard(home)
    except (ReportNotWritten, Held) as error:
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
    if home.config.text("database"):
        from jackline.app.handing import handed_over

        if address := handed_over(home.config):
            program = ("env", f"{_DATABASE}={address}", *_PROGRAM)
        elif home.config.sources["database"] == _DATABASE:
            note = f"The commands here need {_DATABASE}: its address has a password, which is not written down."
    named = home.config.sources["home"].startswith(("--", "JACKLINE_"))
    return program, ("--home", home.path) if named else (), note


def _try_update(home: Home, warnings: list[str]) -> None:
    from jackline.views import coalesce

    try:
        home.make()
        with name_failed_command("dashboard"):
            coalesce.once(os.path.join(home.path, LOCK), lambda: _build(home))
    except JacklineError as error:  # the change itself is stored
        warning = f"{_STALE}: {error}"
        if warning not in warnings:
            warnings.append(warning)


def _build(home: Home) -> Dashboard:
    from jackline.domain.dashboard import to_markdown
    from jackline.files import sweep_folder, write_volatile

    shown = read_dashboard(home)
    sweep_folder(home.path)
    write_volatile(os.path.join(home.path, NAME), to_markdown(shown).encode("utf-8", "replace"))
    return shown
