"""Creates an agent's instance. Missing files are written; existing files stay unchanged, so that it can run again.

Only the database is changed, by missing migrations. Files that a person edits are never opened.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import config as config_module
from jackline.app import places
from jackline.app.home import Home
from jackline.app.instance import layout
from jackline.app.places import DATABASE
from jackline.errors import Refused, StoreCorrupt, UsageError
from jackline.files import create_file
from jackline.named import NamedTuple, stored_as
from jackline.store import open as store_open

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.instance.layout import Names

_FILE, _FOLDER = 0o600, 0o700


@stored_as("name path wrote applied")
class Part(NamedTuple):
    """One part of an instance; `wrote` is false if it already existed."""

    name: str
    path: str
    wrote: bool
    applied: tuple[str, ...] = ()  # migrations


class Laid(NamedTuple):
    """The parts of an instance, and warnings."""

    parts: list[Part]
    warnings: list[str]


def scaffold(folder: str, names: Names, environ: Mapping[str, str], *, strict: bool = False) -> Laid:
    """Write everything that is missing; with `strict`, only if the package is complete."""
    if strict:
        from jackline.store import bundle

        bundle.refuse_broken()
    everything = (DATABASE, layout.DASHBOARD, *layout.FOLDERS, *layout.PERSONA)
    for name in everything:
        places.refuse_links(folder, os.path.join(folder, name))
    made = _make(folder)
    with Home(config_module.load(environ, folder, {"home": folder}, project=False)) as home:
        parts = [Part("", folder, made), _database(folder, names), *_files(folder, names)]
        if warnings := _other_database(home):
            return Laid(parts, warnings)
        home.notify_change()
        return Laid(parts, home.warnings)


def _make(folder: str) -> bool:
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"{folder} is not a folder: choose another one for the instance")
    there = os.path.isdir(folder)
    try:
        os.makedirs(folder, _FOLDER, exist_ok=True)
    except OSError as error:
        raise _not_written(folder, error) from None
    return not there


def _database(folder: str, names: Names) -> Part:
    """First of all: a database of a newer jackline or of another agent stops the command."""
    path = os.path.join(folder, DATABASE)
    try:
        applied = store_open.migrate(path)
    except StoreCorrupt:
        hint = "move it away and scaffold again; `jackline import` reads data of other systems"
        raise Refused(f"{path} is damaged or not a database of jackline, and was left unchanged: {hint}") from None
    _name(path, folder, names)
    return Part(DATABASE, path, any(one.startswith("0001") for one in applied), tuple(applied))


def _name(path: str, folder: str, names: Names) -> None:
    store = store_open.open_store(path, create=False)
    try:
        host, agent = store.name_instance(*names)
    finally:
        store.close()
    if (host, agent) != names:
        raise Refused(f"{folder} is the instance of agent {agent} on host {host}: choose another folder")


def _files(folder: str, names: Names) -> Iterator[Part]:
    for name in layout.FOLDERS:
        yield Part(f"{name}/", os.path.join(folder, name), _make(os.path.join(folder, name)))
    for name in (*layout.PERSONA, layout.DASHBOARD):
        path = os.path.join(folder, name)
        try:
            yield Part(name, path, create_file(path, layout.text_of(name, folder, names), _FILE))
        except OSError as error:
            raise _not_written(path, error) from None


def _other_database(home: Home) -> list[str]:
    """A warning if a setting names another database than the one in the instance."""
    if os.path.abspath(home.database) == os.path.join(home.path, DATABASE):
        return []
    source = home.config.sources["database"]
    return [f"commands of this instance will use the database that {source} names, not its own {DATABASE}"]


def _not_written(path: str, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written ({error.strerror}): fix that, or choose another folder")
