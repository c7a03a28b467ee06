"""Commands that are run for a case and written down with what came of them. It judges nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from jackline.app.case import files, holding, place
from jackline.app.case.writing import text_of
from jackline.clock import wall_ms
from jackline.domain.case import CommandStatus, Entry, EntryKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.case.place import Here
    from jackline.app.home import Home
    from jackline.domain.case import Case

TIMED_OUT = 11
NOT_STARTED = 127
_BY_SIGNAL = 128
_TAIL = 65_536
_KEPT = 4_000  # characters of output


class Ended(NamedTuple):
    """A command that was run, as a shell would tell it."""

    command: str
    exit_code: int
    stdout: bytes
    stderr: bytes
    duration_ms: int
    timed_out: bool = False

    @property
    def passed(self) -> bool:
        """Whether it did what it should."""
        return self.exit_code == 0


def run(home: Home, words: Sequence[str], *, case_id: str | None = None, at: Here | None = None) -> tuple[Entry, Ended]:
    """Run a command here and write it down: one word is a line for the shell, several are a program and its words."""
    from shlex import join

    at = at or place.here(home)
    case = place.chosen(home, case_id, at)
    refuse_closed(case)
    line = words[0] if len(words) == 1 else join(words)
    text_of(line, "the command")
    holding.refuse_effects(home, at, (line,), at.folder)
    ended = execute(home, line, words[0] if len(words) == 1 else tuple(words), at.folder)
    entry = record(home, case, ended, at)
    files.follow(home, case.id)
    return entry, ended


def execute(home: Home, line: str, command: str | Sequence[str], folder: str) -> Ended:
    """Run it to its end, or until the setting `case_seconds` says that it took too long."""
    from jackline.engine.command import run_command
    from jackline.engine.process import SpawnFailed

    seconds = home.config.number("case_seconds")
    try:
        done = run_command(command, cwd=folder, env=dict(os.environ), timeout_s=seconds, output_limit=_TAIL)
    except SpawnFailed as error:
        return Ended(line, NOT_STARTED, b"", f"{error}\n".encode(), 0)
    if done.timed_out:
        said = done.stderr_tail + f"\nended by jackline after {seconds:g} s (case_seconds)\n".encode()
        return Ended(line, TIMED_OUT, done.stdout_tail, said, done.duration_ms, timed_out=True)
    code = _BY_SIGNAL + (done.signal or 0) if done.exit_code is None else done.exit_code
    return Ended(line, code, done.stdout_tail, done.stderr_tail, done.duration_ms)


def record(home: Home, case: Case, ended: Ended, at: Here, purpose: str = "") -> Entry:
    """Write a command that was run into the case."""
    store = home.store(create=True)
    status = CommandStatus.PASS if ended.passed else CommandStatus.FAIL
    said = (ended.stdout + ended.stderr).decode("utf-8", "replace")
    # Redacted before it is cut: the second half of a secret would not be known as one.
    data = {
        "exit_code": ended.exit_code,
        "duration_ms": ended.duration_ms,
        "output": store.redactor.redact(said)[-_KEPT:],
        **({"timed_out": True} if ended.timed_out else {}),
        **({"purpose": purpose} if purpose else {}),
    }
    entry = Entry(case.id, EntryKind.COMMAND, 0, 0, 0, ended.command, str(status), data)
    return store.add_entry(case.id, entry, wall_ms(), at.actor)


def refuse_closed(case: Case) -> None:
    """Before anything is run; the store says it again."""
    from jackline.domain.case import CaseStatus
    from jackline.errors import CaseRefused

    if case.status is CaseStatus.CLOSED:
        raise CaseRefused(f"case {case.id} is closed: `jackline case reopen {case.id}` opens it again")
