"""The version of a program, asked once per binary: the answer is cached in the home's agents.json."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import notes
from jackline.errors import JacklineError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CACHE = "agents.json"
CANARIES = "canaries.json"  # the programs whose gate is proved to hold: see canary.py
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_TIMEOUT_S = 20.0
# A launcher may start another program tomorrow without changing itself.
_FRESH_MS = 24 * 3600 * 1000
# A program that hangs is not asked again at once; any other failure is quick to check, and may be fixed by now.
_HANGS_MS = 60 * 1000


class Answer(NamedTuple):
    """A program's version, or `why` there is none."""

    version: str = ""
    why: str = ""


def version_of(home: str, path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """The version, from the cache if the file has not changed."""
    note, key = os.path.join(home, CACHE), identity(path)
    cached = _read_entry(notes.read(note).get(path, {}), key)
    if cached is not None:
        return cached
    answer, hangs = _run_version_command(path, arguments, environ)
    if (answer.version or hangs) and os.path.isdir(home):  # a lookup must not create a home
        result = {"why": answer.why} if hangs else {"version": answer.version}
        entry: dict[str, object] = {"key": key, **result, "at": clock.wall_ms()}
        with suppress(JacklineError):  # without a cache it only takes longer
            notes.update(note, lambda others: {**existing(others), path: entry})
    return answer


def _read_entry(entry: Mapping[str, object], key: str) -> Answer | None:
    at, version, why = entry.get("at"), entry.get("version"), entry.get("why")
    if entry.get("key") != key or not isinstance(at, int):
        return None
    if isinstance(version, str):
        return Answer(version) if _is_younger(at, _FRESH_MS) else None
    return Answer(why=why) if isinstance(why, str) and why and _is_younger(at, _HANGS_MS) else None


def ask(path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """Ask the program, outside the current folder and with an agent's environment."""
    return _run_version_command(path, arguments, environ)[0]


def _run_version_command(path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[Answer, bool]:
    """Its answer, and whether it hangs."""
    from jackline.engine.command import run_command
    from jackline.engine.settings import inherited

    command = " ".join((os.path.basename(path), *arguments))
    try:
        ended = run_command([path, *arguments], cwd="/", env=inherited(environ), timeout_s=_TIMEOUT_S)
    except JacklineError as error:
        return Answer(why=str(error)), False
    if ended.timed_out:
        return Answer(why=f"`{command}` did not finish within {_TIMEOUT_S:g} s"), True
    text = ended.stdout_tail.decode("utf-8", "replace")
    found = _VERSION.search(text)
    if ended.exit_code == 0 and found:
        return Answer(found[0]), False
    words = (text + ended.stderr_tail.decode("utf-8", "replace")).split()
    return Answer(why=f"`{command}` prints no version: {' '.join(words)[-200:] or 'it prints nothing'}"), False


def is_at_least(version: str, minimum: Sequence[int]) -> bool:
    """Compare number by number; a missing one counts as 0."""
    numbers = [int(number) for number in version.split(".")]
    length = max(len(numbers), len(minimum))
    return _pad(numbers, length) >= _pad(minimum, length)


def _pad(numbers: Sequence[int], length: int) -> list[int]:
    return [*numbers, *[0] * (length - len(numbers))]


def identity(path: str) -> str:
    """Identifies a file, to detect that it was replaced; empty if there is none."""
    try:
        status = os.stat(path)
    except OSError:  # just removed; starting it will report that
        return ""
    return f"{os.path.realpath(path)}:{status.st_mtime_ns}:{status.st_size}"


def _is_younger(at: int, than_ms: int) -> bool:
    return 0 <= clock.wall_ms() - at < than_ms


def existing(known: notes.Note) -> notes.Note:
    """The entries whose file still exists: versions come and go with their own folders."""
    return {path: entry for path, entry in known.items() if os.path.exists(path)}
