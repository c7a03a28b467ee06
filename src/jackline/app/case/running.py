"""Runs commands for a case and records their results. It applies no policy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app.case import files, holding, place
from jackline.app.case.writing import text_of
from jackline.clock import wall_ms
from jackline.domain.case import CommandStatus, Entry, EntryKind
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.case.place import Here
    from jackline.app.home import Home
    from jackline.domain.case import Case
    from jackline.engine.command import Hear

TIMED_OUT = 11
NOT_STARTED = 127
INTERRUPTED = 130
_BY_SIGNAL = 128
_KILLED = _BY_SIGNAL + 9
_LOST = "\nended: the jackline process that watched it was killed\n"
_TAIL = 65_536
_KEPT = 4_000  # characters of output


class Ended(NamedTuple):
    """A finished command, with an exit code as a shell reports it."""

    command: str
    exit_code: int
    stdout: bytes
    stderr: bytes
    duration_ms: int
    timed_out: bool = False

    @property
    def passed(self) -> bool:
        """Whether it succeeded."""
        return self.exit_code == 0


def _ignore_output(_source: str, _data: bytes) -> None:
    """Discard the output."""


def run(
    home: Home, words: Sequence[str], *, case_id: str | None = None, at: Here | None = None, hear: Hear = _ignore_output
) -> tuple[Entry, Ended]:
    """Run a command here and record it; `hear` gets its output as it is printed."""
    at = at or place.here(home)
    case = place.chosen(home, case_id, at)
    refuse_closed(case)
    line = _join_words(words)
    text_of(line, "the command")
    holding.refuse_effects(home, at, (line,), at.folder)
    done = execute_and_record(home, case, words, at, hear=hear)
    files.follow(home, case.id)
    return done


def execute_and_record(
    home: Home, case: Case, words: Sequence[str], at: Here, purpose: str = "", hear: Hear = _ignore_output
) -> tuple[Entry, Ended]:
    """Run a command in the folder of `at` and record the result, also if it is interrupted."""
    try:
        ended = _execute(home, words, at.folder, hear)
    except KeyboardInterrupt:
        record(home, case, Ended(_join_words(words), INTERRUPTED, b"", b"interrupted\n", 0), at, purpose)
        files.follow(home, case.id)
        raise
    return record(home, case, ended, at, purpose), ended


def _join_words(words: Sequence[str]) -> str:
    """The words as a command line."""
    from shlex import join

    return words[0] if len(words) == 1 else join(words)


def _execute(home: Home, words: Sequence[str], folder: str, hear: Hear) -> Ended:
    """Run a command until it ends or the setting `case_seconds` is exceeded.

    One word is a line for the shell; several words are a program and its arguments.
    """
    from jackline.engine.command import run_command
    from jackline.engine.process import SpawnFailed, WardenLost

    seconds, line = home.config.number("case_seconds"), _join_words(words)
    command = words[0] if len(words) == 1 else tuple(words)
    env = dict(os.environ)
    try:
        done = run_command(command, cwd=folder, env=env, timeout_s=seconds, output_limit=_TAIL, hear=hear)
    except SpawnFailed as error:
        return _report_lost(line, NOT_STARTED, f"{error}\n", hear)
    except WardenLost:
        return _report_lost(line, _KILLED, _LOST, hear)
    if done.timed_out:
        late = f"\nended by jackline after {seconds:g} s (case_seconds)\n".encode()
        hear("stderr", late)
        return Ended(line, TIMED_OUT, done.stdout_tail, done.stderr_tail + late, done.duration_ms, timed_out=True)
    code = _BY_SIGNAL + (done.signal or 0) if done.exit_code is None else done.exit_code
    return Ended(line, code, done.stdout_tail, done.stderr_tail, done.duration_ms)


def _report_lost(line: str, code: int, why: str, hear: Hear) -> Ended:
    """The result of a command that could not start, or that killed its watcher and so ended all its processes."""
    stderr = why.encode("utf-8", "replace")
    hear("stderr", stderr)
    return Ended(line, code, b"", stderr, 0)


def record(home: Home, case: Case, ended: Ended, at: Here, purpose: str = "") -> Entry:
    """Record a finished command in the case."""
    store = home.store(create=True)
    status = CommandStatus.PASS if ended.passed else CommandStatus.FAIL
    output = (ended.stdout + ended.stderr).decode("utf-8", "replace")
    # Redacted before it is cut: the second half of a secret would not be recognized.
    data = {
        "exit_code": ended.exit_code,
        "duration_ms": ended.duration_ms,
        "output": store.redactor.redact(output)[-_KEPT:],
        **({"timed_out": True} if ended.timed_out else {}),
        **({"purpose": purpose} if purpose else {}),
    }
    entry = Entry(case.id, EntryKind.COMMAND, 0, 0, 0, ended.command, str(status), data)
    return store.add_entry(case.id, entry, wall_ms(), at.actor)


def refuse_closed(case: Case) -> None:
    """Checked before anything runs; the store checks it again."""
    from jackline.domain.case import CaseStatus
    from jackline.errors import CaseRefused

    if case.status is CaseStatus.CLOSED:
        raise CaseRefused(f"case {case.id} is closed: `jackline case reopen {case.id}` opens it again")
