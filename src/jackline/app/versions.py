"""Which version a program says it is, asked once for each binary: the answer is kept in the home's agents.json."""

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
CANARIES = "canaries.json"  # of which program it is proved that the gate holds it: see canary.py
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_TIMEOUT_S = 20.0
# A launcher may start another program tomorrow without having changed itself.
_FRESH_MS = 24 * 3600 * 1000
# One that hangs is not waited for again and again; any other mistake is quickly asked about, and may be mended by now.
_HANGS_MS = 60 * 1000


class Answer(NamedTuple):
    """What a program said; `why` if that was no version."""

    version: str = ""
    why: str = ""


def version_of(home: str, path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """The version, from the cache if the file is the same one still."""
    note, key = os.path.join(home, CACHE), identity(path)
    known = _known(notes.read(note).get(path, {}), key)
    if known is not None:
        return known
    answer, hangs = _ask(path, arguments, environ)
    if (answer.version or hangs) and os.path.isdir(home):  # looking must not make a home
        said = {"why": answer.why} if hangs else {"version": answer.version}
        entry: dict[str, object] = {"key": key, **said, "at": clock.wall_ms()}
        with suppress(JacklineError):  # a cache that cannot be written only costs time
            notes.update(note, lambda others: {**existing(others), path: entry})
    return answer


def _known(entry: Mapping[str, object], key: str) -> Answer | None:
    at, version, why = entry.get("at"), entry.get("version"), entry.get("why")
    if entry.get("key") != key or not isinstance(at, int):
        return None
    if isinstance(version, str):
        return Answer(version) if _is_younger(at, _FRESH_MS) else None
    return Answer(why=why) if isinstance(why, str) and why and _is_younger(at, _HANGS_MS) else None


def ask(path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> Answer:
    """Start it, away from the current folder and with the environment that an agent would have."""
    return _ask(path, arguments, environ)[0]


def _ask(path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> tuple[Answer, bool]:
    """What it says, and whether it hangs."""
    from jackline.engine.command import run_command
    from jackline.engine.settings import inherited

    said = " ".join((os.path.basename(path), *arguments))
    try:
        ended = run_command([path, *arguments], cwd="/", env=inherited(environ), timeout_s=_TIMEOUT_S)
    except JacklineError as error:
        return Answer(why=str(error)), False
    if ended.timed_out:
        return Answer(why=f"`{said}` did not end within {_TIMEOUT_S:g} s"), True
    text = ended.stdout_tail.decode("utf-8", "replace")
    found = _VERSION.search(text)
    if ended.exit_code == 0 and found:
        return Answer(found[0]), False
    words = (text + ended.stderr_tail.decode("utf-8", "replace")).split()
    return Answer(why=f"`{said}` says no version: {' '.join(words)[-200:] or 'it prints nothing'}"), False


def is_at_least(version: str, minimum: Sequence[int]) -> bool:
    """Compare number by number; what is not there counts as 0."""
    numbers = [int(number) for number in version.split(".")]
    length = max(len(numbers), len(minimum))
    return _padded(numbers, length) >= _padded(minimum, length)


def _padded(numbers: Sequence[int], length: int) -> list[int]:
    return [*numbers, *[0] * (length - len(numbers))]


def identity(path: str) -> str:
    """Tells one file from what may lie in its place tomorrow; empty if there is none."""
    try:
        status = os.stat(path)
    except OSError:  # removed this very moment; starting it will say so
        return ""
    return f"{os.path.realpath(path)}:{status.st_mtime_ns}:{status.st_size}"


def _is_younger(at: int, than_ms: int) -> bool:
    return 0 <= clock.wall_ms() - at < than_ms


def existing(known: notes.Note) -> notes.Note:
    """Versions come and go with folders of their own; what is gone need not be remembered."""
    return {path: entry for path, entry in known.items() if os.path.exists(path)}
