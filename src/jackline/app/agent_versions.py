"""The versions of agents' programs, and the folder that `make agents` installs them to. It installs nothing.

A program is asked for its version once: the answer is cached in the home's agents.json until the file changes.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import zip_longest
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import paths, state_files
from jackline.errors import JacklineError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CACHE = "agents.json"
CANARIES = "canaries.json"  # the programs whose gate is proved to hold: see canary.py
MARK = ".jackline-agents"  # tools/agents/install.py writes it: one name per line
_MARK_LIMIT = 100_000
_PACKAGE = re.compile(r"[a-z]+-\d[\d.]*")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_TIMEOUT_S = 20.0
# A launcher may start another program tomorrow without changing itself.
_FRESH_MS = 24 * 3600 * 1000
# A program that hangs is not asked again at once; any other failure is quick to check, and may be fixed by now.
_HANGS_MS = 60 * 1000


class ProgramVersion(NamedTuple):
    """A program's version, or `why` there is none."""

    version: str = ""
    why: str = ""


def find_version(home: str, path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> ProgramVersion:
    """The version, from the cache if the file has not changed."""
    note, key = os.path.join(home, CACHE), identify_file(path)
    cached = _read_entry(state_files.read_entries(note).get(path, {}), key)
    if cached is not None:
        return cached
    answer, hangs = _run_version_command(path, arguments, environ)
    if (answer.version or hangs) and os.path.isdir(home):  # a lookup must not create a home
        result = {"why": answer.why} if hangs else {"version": answer.version}
        entry: dict[str, object] = {"key": key, **result, "at": clock.wall_ms()}
        with suppress(JacklineError):  # without a cache it only takes longer
            state_files.update_entries(note, lambda others: {**drop_missing(others), path: entry})
    return answer


def _read_entry(entry: Mapping[str, object], key: str) -> ProgramVersion | None:
    at, version, why = entry.get("at"), entry.get("version"), entry.get("why")
    if entry.get("key") != key or not isinstance(at, int):
        return None
    if isinstance(version, str):
        return ProgramVersion(version) if _is_younger(at, _FRESH_MS) else None
    return ProgramVersion(why=why) if isinstance(why, str) and why and _is_younger(at, _HANGS_MS) else None


def ask_version(path: str, arguments: Sequence[str], environ: Mapping[str, str]) -> ProgramVersion:
    """Ask the program, outside the current folder and with an agent's environment."""
    return _run_version_command(path, arguments, environ)[0]


def _run_version_command(
    path: str, arguments: Sequence[str], environ: Mapping[str, str]
) -> tuple[ProgramVersion, bool]:
    """Its answer, and whether it hangs."""
    from jackline.engine.command_runner import run_command
    from jackline.engine.settings import select_inherited_variables

    command = " ".join((os.path.basename(path), *arguments))
    try:
        ended = run_command([path, *arguments], cwd="/", env=select_inherited_variables(environ), timeout_s=_TIMEOUT_S)
    except JacklineError as error:
        return ProgramVersion(why=str(error)), False
    if ended.timed_out:
        return ProgramVersion(why=f"`{command}` did not finish within {_TIMEOUT_S:g} s"), True
    text = ended.stdout_tail.decode("utf-8", "replace")
    found = _VERSION.search(text)
    if ended.exit_code == 0 and found:
        return ProgramVersion(found[0]), False
    words = (text + ended.stderr_tail.decode("utf-8", "replace")).split()
    return ProgramVersion(why=f"`{command}` prints no version: {' '.join(words)[-200:] or 'it prints nothing'}"), False


def is_at_least(version: str, minimum: Sequence[int]) -> bool:
    """Compare number by number; a missing one counts as 0."""
    pairs = list(zip_longest(map(int, version.split(".")), minimum, fillvalue=0))
    return [found for found, _ in pairs] >= [needed for _, needed in pairs]


def identify_file(path: str) -> str:
    """Identifies a file, to detect that it was replaced; empty if there is none."""
    try:
        status = os.stat(path)
    except OSError:  # just removed; starting it will report that
        return ""
    return f"{os.path.realpath(path)}:{status.st_mtime_ns}:{status.st_size}"


def _is_younger(at: int, than_ms: int) -> bool:
    return 0 <= clock.wall_ms() - at < than_ms


def drop_missing(known: state_files.Entries) -> state_files.Entries:
    """The entries whose file still exists: versions come and go with their own folders."""
    return {path: entry for path, entry in known.items() if os.path.exists(path)}


def find_cache_folder(environ: Mapping[str, str]) -> str:
    """The folder that `make agents` installs programs to."""
    named = environ.get("JACKLINE_AGENTS_CACHE") or os.path.join(paths.find_cache_folder(environ), "agents")
    return os.path.abspath(named)


def list_cache_files(cache: str) -> Iterator[str]:
    """The package folders on the list, the links to them, the lock, and the list itself."""
    mark = os.path.join(cache, MARK)
    if not os.path.isfile(mark):
        return
    with open(mark, encoding="utf-8", errors="replace") as file:
        listed = sorted({name for name in file.read(_MARK_LIMIT).split() if _PACKAGE.fullmatch(name)})
    for name in (*listed, "lock", MARK):
        path = os.path.join(cache, name)
        if os.path.isdir(path) if name in listed else os.path.isfile(path):
            yield path
    links = os.path.join(cache, "bin")
    for name in sorted(os.listdir(links)) if os.path.isdir(links) and not os.path.islink(links) else ():
        path = os.path.join(links, name)
        target = os.readlink(path).split(os.sep) if os.path.islink(path) else []
        if target[:1] == [".."] and target[1:2] and target[1] in listed:
            yield path
