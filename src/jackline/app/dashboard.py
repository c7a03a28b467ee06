"""dashboard.md in the home: written again whenever something changed, in bursts only once. It is never read back."""

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


def changed(home: Home) -> None:
    """Something that the dashboard shows has changed: called by everything that writes, after it has written.

    At once in a command; in a process that lives long (`live`) a moment later. What goes wrong is a warning.
    """
    if home.board is not None:
        home.board()
    else:
        _attempt(home, home.warnings)


@contextmanager
def live(home: Home, *, seldom: bool = False) -> Iterator[Callable[[], None]]:
    """For as long as the block lasts, changes are written by a thread, at most every half second, and at the end.

    Where they are `seldom`, the first is written at once: the process may be killed after any of them.
    """
    if home.board is not None:
        yield home.board
        return
    from jackline.views.coalesce import trailing

    # The thread has a connection of its own: nobody's write waits for it to read.
    own = home.again()

    def build() -> None:
        _attempt(own, home.warnings)
        if seldom:
            own.close()

    with own, trailing(build, at_once=seldom) as board:
        home.board = board.want
        try:
            yield board.want
        finally:
            home.board = None


def path_of(home: Home) -> str:
    """Where it is."""
    return os.path.join(home.path, NAME)


def read(home: Home) -> Dashboard:
    """Everything that it shows, as it stands now."""
    from jackline.clock import wall_ms
    from jackline.views import dashboard

    program, words, note = said_of(home)
    return dashboard.read(home.store(), wall_ms())._replace(program=program, words=words, note=note)


def write(home: Home) -> tuple[str, Dashboard]:
    """Write it now, whatever others do; the path and what is shown."""
    from jackline.views import coalesce

    shown: list[Dashboard] = []
    home.store()
    home.make()
    with written_by("dashboard"):
        coalesce.alone(_lock(home), lambda: shown.append(_build(home)))
    return path_of(home), shown[0]


def show(home: Home) -> tuple[str, Dashboard]:
    """The same for somebody who wants to read: a file that cannot be written is no reason to show nothing."""
    from jackline.views.coalesce import Held

    try:
        return write(home)
    except (ReportNotWritten, Held) as error:
        home.warnings.append(f"{_STALE}: {error}")
        return path_of(home), read(home)


@contextmanager
def written_by(command: str) -> Iterator[None]:
    """Tell a person which command writes what could not be written."""
    from jackline.files import NotWritten

    try:
        yield
    except NotWritten as error:
        raise ReportNotWritten(error.detail, command=command, **error.facts) from error


def _attempt(home: Home, warnings: list[str]) -> None:
    """A dashboard that cannot be written takes nothing away from what was."""
    from jackline.views import coalesce

    try:
        home.make()
        with written_by("dashboard"):
            coalesce.once(_lock(home), lambda: _build(home))
    except JacklineError as error:
        warning = f"{_STALE}: {error}"
        if warning not in warnings:
            warnings.append(warning)


def _build(home: Home) -> Dashboard:
    from jackline.domain.dashboard import to_markdown
    from jackline.files import sweep_folder, write_volatile

    shown = read(home)
    sweep_folder(home.path)
    write_volatile(path_of(home), to_markdown(shown).encode("utf-8", "replace"))
    return shown


def _lock(home: Home) -> str:
    return os.path.join(home.path, LOCK)


def said_of(home: Home) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """How a command in a file begins, how it ends, and what else it needs.

    Its reader has neither the environment nor the flags of who wrote it.
    """
    program, note = _with_database(home) if home.config.text("database") else (_PROGRAM, "")
    named = home.config.sources["home"].startswith(("--", "JACKLINE_"))
    return program, ("--home", home.path) if named else (), note


def _with_database(home: Home) -> tuple[tuple[str, ...], str]:
    from jackline.app.handing import handed_over

    if address := handed_over(home.config):
        return ("env", f"{_DATABASE}={address}", *_PROGRAM), ""
    if home.config.sources["database"] != _DATABASE:
        return _PROGRAM, ""
    return _PROGRAM, f"The commands here need {_DATABASE}: its address has a password, which is not written down."
