"""Commands that are run for a case and written down with what came of them. It judges nothing."""

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
_LOST = "\nended: the process of jackline that watched it was killed\n"
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


def _nobody(_source: str, _data: bytes) -> None:
    """Hears nothing."""


def run(
    home: Home, words: Sequence[str], *, case_id: str | None = None, at: Here | None = None, hear: Hear = _nobody
) -> tuple[Entry, Ended]:
    """Run a command here and write it down; `hear` gets what it prints, at once."""
    at = at or place.here(home)
    case = place.chosen(home, case_id, at)
    refuse_closed(case)
    line = _line(words)
    text_of(line, "the command")
    holding.refuse_effects(home, at, (line,), at.folder)
    done = executed(home, case, words, at, hear=hear)
    files.follow(home, case.id)
    return done


def executed(
    home: Home, case: Case, words: Sequence[str], at: Here, purpose: str = "", hear: Hear = _nobody
) -> tuple[Entry, Ended]:
    """Run a command in the place's folder and write down what came of it, also if somebody interrupts it."""
    try:
        ended = _execute(home, words, at.folder, hear)
    except KeyboardInterrupt:
        record(home, case, Ended(_line(words), INTERRUPTED, b"", b"interrupted\n", 0), at, purpose)
        files.follow(home, case.id)
        raise
    return record(home, case, ended, at, purpose), ended


def _line(words: Sequence[str]) -> str:
    """As it would be typed."""
    from shlex import join

    return words[0] if len(words) == 1 else join(words)


def _execute(home: Home, words: Sequence[str], folder: str, hear: Hear) -> Ended:
    """Run it to its end, or until the setting `case_seconds` says that it took too long.

    One word is a line for the shell, several are a program and its words.
    """
    from jackline.engine.command import run_command
    from jackline.engine.process import SpawnFailed, WardenLost

    seconds, line = home.config.number("case_seconds"), _line(words)
    command = words[0] if len(words) == 1 else tuple(words)
    env = dict(os.environ)
    try:
        done = run_command(command, cwd=folder, env=env, timeout_s=seconds, output_limit=_TAIL, hear=hear)
    except SpawnFailed as error:
        return _cut_off(line, NOT_STARTED, f"{error}\n", hear)
    except WardenLost:
        return _cut_off(line, _KILLED, _LOST, hear)
    if done.timed_out:
        late = f"\nended by jackline after {seconds:g} s (case_seconds)\n".encode()
        hear("stderr", late)
        said = done.stderr_tail + late
        return Ended(line, TIMED_OUT, done.stdout_tail, said, done.duration_ms, timed_out=True)
    code = _BY_SIGNAL + (done.signal or 0) if done.exit_code is None else done.exit_code
    return Ended(line, code, done.stdout_tail, done.stderr_tail, done.duration_ms)


def _cut_off(line: str, code: int, why: str, hear: Hear) -> Ended:
    """One that could not be started, or killed the process that watched it: then all that it started has ended."""
    said = why.encode("utf-8", "replace")
    hear("stderr", said)
    return Ended(line, code, b"", said, 0)


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
