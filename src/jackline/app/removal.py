"""What jackline has put on this machine outside of projects, and how it goes again. It never removes a foreign file.

A name proves nothing: a folder that is a home now may have had its own `logs` before. So each file and folder must be
recognised as jackline's by what is in it, or by what the database knows; else it stays, and is told.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline.app import belongings, places
from jackline.app.agents_cache import cache_parts, folder_of_cache
from jackline.app.config import user_file
from jackline.domain.states import RunState
from jackline.errors import JacklineError, Refused, StoreError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.home import Home

_BESIDE_DATABASE = ("-wal", "-shm", "-journal", ".gate")


class Thing(NamedTuple):
    """Something of ours on the disk: a file, or what of a folder is ours."""

    path: str
    what: str
    size: int
    parts: tuple[str, ...]  # what really goes


class NotRemoved(JacklineError):
    """{detail} cannot be removed ({why}): remove it by hand, or mend that and try again"""  # noqa: D400 - it is the message


def things(home: Home, environ: Mapping[str, str]) -> list[Thing]:
    """Everything that would go, as it is now."""
    _refuse_unreadable(home)
    found = [(path, what, tuple(parts)) for path, what, parts in _places(home, environ)]
    home.close()  # with the last connection the database takes away what lay beside it
    still = [(path, what, tuple(filter(os.path.lexists, parts))) for path, what, parts in found]
    return [Thing(path, what, sum(map(_size, parts)), parts) for path, what, parts in still if parts]


def refuse_while_running(home: Home) -> None:
    """Nothing is pulled away from under a run."""
    _refuse_unreadable(home)
    alive = next(_living(os.path.join(home.path, "runs")), None) or _running(home)
    if alive:
        raise Refused(f"run {alive} is running: end it with `jackline cancel {alive}`, then try again")


def remove(home: Home, found: list[Thing], environ: Mapping[str, str]) -> list[str]:
    """Remove them; what is left of the home is somebody else's: it stays, and is given back."""
    for thing in found:
        for part in thing.parts:
            _remove(part)
            _prune(os.path.dirname(part), thing.path)
    made = (os.path.join(home.path, name) for name in belongings.FOLDERS)
    settings = os.path.dirname(user_file(environ))
    for folder in (*made, home.path, settings, folder_of_cache(environ), places.cache_folder(environ)):
        with suppress(OSError):  # not empty, or never made
            os.rmdir(folder)
    return left(home)


def left(home: Home) -> list[str]:
    """What is in the home, and in the folders there that have our names; and a database that is not ours."""
    found = [] if "://" in home.database or not os.path.lexists(home.database) else [home.database]
    for name in sorted(os.listdir(home.path)) if os.path.isdir(home.path) else ():
        path = os.path.join(home.path, name)
        shared = name in belongings.FOLDERS and os.path.isdir(path) and not os.path.islink(path)
        found += [os.path.join(path, one) for one in sorted(os.listdir(path))] if shared else [path]
    return list(dict.fromkeys(found))


def _places(home: Home, environ: Mapping[str, str]) -> Iterator[tuple[str, str, Iterator[str]]]:
    """Each place, what it is, and what of it is ours."""
    if "://" not in home.database:
        yield home.database, "database", _database(home)
    if _is_home(home.path, environ):
        yield from belongings.of(home)
    settings = user_file(environ)
    yield settings, "settings", iter((settings,) if os.path.lexists(settings) else ())
    yield folder_of_cache(environ), "agents", cache_parts(folder_of_cache(environ))


def _database(home: Home) -> Iterator[str]:
    """The database with what lies beside it, if it has our mark; or a file of our name that never became one."""
    path = home.database
    own_place = path == os.path.join(home.path, places.DATABASE)
    if not belongings.has_database(home) and not (own_place and (not os.path.lexists(path) or _size(path) == 0)):
        return
    yield from (path + end for end in ("", *_BESIDE_DATABASE) if os.path.isfile(path + end))


def _is_home(home: str, environ: Mapping[str, str]) -> bool:
    """A folder where somebody else lives, too, keeps everything with a name that could be theirs."""
    shared = {os.path.realpath(path) for path in ("/", environ.get("HOME") or "/", os.getcwd())}
    return os.path.realpath(home) not in shared and not os.path.exists(os.path.join(home, ".git"))


def _refuse_unreadable(home: Home) -> None:
    try:
        os.listdir(home.path)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreError(f"{home.path} cannot be read: {error.strerror}; check its permissions") from None


def _running(home: Home) -> str | None:
    """A run of this home's own database; those of a server may be anybody's."""
    from jackline.store.contract import RunQuery

    if not belongings.has_database(home):
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


def _prune(folder: str, top: str) -> None:
    """Remove the folders that something was in, up to the top, where nothing else is."""
    with suppress(OSError):  # somebody else's is in it
        while len(folder) > len(top):
            os.rmdir(folder)
            folder = os.path.dirname(folder)


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
