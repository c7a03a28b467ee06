"""What jackline has put on this machine outside of projects, and how it goes again. It never removes a foreign file."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from jackline.app import config as config_module
from jackline.app import places, trust, versions
from jackline.domain.states import RunState
from jackline.errors import JacklineError, Refused, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.home import Home

_MARKS = (trust.TRUST, versions.CACHE, places.LOG, f"{places.LOG}.1", f"{places.LOG}.2", f"{places.LOG}.3")
_IN_HOME = ("runs", "logs", "archive", *_MARKS)
_BESIDE_DATABASE = ("", "-wal", "-shm", "-journal", ".gate")
_CACHED = re.compile(r"bin|lock|npm|\.new-\w+|[a-z]+-\d[\d.]*")


class Thing(NamedTuple):
    """Something of ours on the disk."""

    path: str
    what: str
    size: int


class NotRemoved(JacklineError):
    """{detail} cannot be removed ({why}): remove it by hand, or mend that and try again"""  # noqa: D400 - it is the message


def things(home: Home, environ: Mapping[str, str]) -> list[Thing]:
    """Everything that would go, as it is now."""
    home.close()
    found = [Thing(path, what, _size(path)) for path, what in _places(home, environ) if os.path.lexists(path)]
    return list({thing.path: thing for thing in found}.values())


def refuse_while_running(home: Home) -> None:
    """Nothing is pulled away from under a run."""
    alive = next(_living(os.path.join(home.path, "runs")), None) or _running(home)
    if alive:
        raise Refused(f"run {alive} is running: end it with `jackline cancel {alive}`, then try again")


def remove(home: Home, found: list[Thing], environ: Mapping[str, str]) -> list[str]:
    """Remove them; what is left in the home's folder is somebody else's, and stays."""
    for thing in found:
        _remove(thing.path)
    settings = os.path.dirname(config_module.user_file(environ))
    for folder in (home.path, settings, _agents_cache(environ), config_module.cache_folder(environ)):
        with suppress(OSError):  # not empty, or never made
            os.rmdir(folder)
    return sorted(os.listdir(home.path)) if os.path.isdir(home.path) else []


def _places(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "://" not in home.database:
        yield from ((home.database + end, "database") for end in _BESIDE_DATABASE)
    if _is_ours(home.path, environ):
        yield from ((os.path.join(home.path, name), "home") for name in _IN_HOME)
    yield config_module.user_file(environ), "settings"
    cache = _agents_cache(environ)
    names = os.listdir(cache) if os.path.isdir(cache) else []
    if any(name.startswith("node-") for name in names):  # else it is something else of that name
        yield from ((os.path.join(cache, name), "cache") for name in sorted(names) if _CACHED.fullmatch(name))


def _is_ours(home: str, environ: Mapping[str, str]) -> bool:
    """A folder where somebody else lives, too, keeps everything with a name that could be theirs."""
    shared = {os.path.realpath(path) for path in ("/", environ.get("HOME") or "/", os.getcwd())}
    if os.path.realpath(home) in shared or os.path.exists(os.path.join(home, ".git")):
        return False
    return any(os.path.lexists(os.path.join(home, name)) for name in (places.DATABASE, *_MARKS))


def _agents_cache(environ: Mapping[str, str]) -> str:
    """Where `make agents` keeps the CLIs for the tests of jackline itself."""
    named = environ.get("JACKLINE_AGENTS_CACHE") or os.path.join(config_module.cache_folder(environ), "agents")
    return os.path.abspath(named)


def _running(home: Home) -> str | None:
    """A run of this home's own database; those of a server may be anybody's."""
    from jackline.store.contract import RunQuery

    if "://" in home.database:
        return None
    try:
        rows = home.list_runs(RunQuery(states=(str(RunState.RUNNING),), limit=1))
    except StoreError:  # a database that cannot be read is no reason to keep it
        return None
    return rows[0].id if rows else None


def _living(runs: str) -> Iterator[str]:
    """The runs whose supervisor holds its lock."""
    from jackline.engine.locks import is_dead

    for run in os.listdir(runs) if os.path.isdir(runs) else ():
        folder = os.path.join(runs, run)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            owner = name.removeprefix("owner-").removesuffix(".lock")
            if name == f"owner-{owner}.lock" and not is_dead(folder, owner):
                yield run


def _size(path: str) -> int:
    if os.path.islink(path) or not os.path.isdir(path):
        return os.lstat(path).st_size
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # gone meanwhile, or not for us to see
                continue
    return total


def _remove(path: str) -> None:
    from shutil import rmtree

    try:
        if os.path.isdir(path) and not os.path.islink(path):
            rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise NotRemoved(error.filename or path, why=error.strerror) from None
