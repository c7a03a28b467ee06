"""Which projects a person trusts: their files may then do more than tighten. Any change of the files ends it.

It keeps a project from choosing programs by itself. It does not hold back a program that already runs as this user.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import notes, places
from jackline.app.places import PROJECT_FILE, project_file
from jackline.errors import Refused, UsageError
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator

TRUST = "trust.json"
FOLDER = ".agents"  # of the project: tasks, policy
_LEFT_OUT = "runs"  # what runs leave there is no instruction to anybody
_CHUNK = 1 << 20


@stored_as("folder files trusted changed at")
class Standing(NamedTuple):
    """How far a project is trusted."""

    folder: str
    files: tuple[str, ...]
    trusted: bool
    changed: bool  # it was trusted, and its files are others now
    at: int | None = None  # when somebody said so


def is_trusted(home: str, folder: str) -> bool:
    """Whether a person trusts the project around the folder as its files are now."""
    known = notes.read(os.path.join(home, TRUST)).get(project_of(folder))
    if known is None:
        return False
    try:
        return known.get("digest") == _digest(project_of(folder))
    except (OSError, Refused):
        return False


def covers(home: str, path: str) -> bool:
    """Whether a person's word counts for this file in .agents: it must be one of those that the word was given for."""
    folder = folder_of(path)
    return project_of(folder) == folder and is_trusted(home, folder)


def folder_of(path: str) -> str:
    """The folder that has the `.agents` in which a file lies."""
    while os.path.basename(path) != FOLDER and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return os.path.dirname(path)


def standing(home: str, folder: str) -> Standing:
    """Everything to tell a person about it."""
    project = project_of(folder)
    known = notes.read(os.path.join(home, TRUST)).get(project)
    trusted = is_trusted(home, project)
    at = known.get("at") if known else None
    files = tuple(os.path.relpath(path, project) for path in _files(project))
    return Standing(project, files, trusted, known is not None and not trusted, at if isinstance(at, int) else None)


def trust(home: str, folder: str) -> None:
    """Write down that a person trusts these very files."""
    project = project_of(folder)
    if next(_files(project), None) is None:
        raise UsageError(f"{project} has neither a jackline.toml nor files in {FOLDER}/: there is nothing to trust")
    try:
        entry: dict[str, object] = {"digest": _digest(project), "at": clock.wall_ms()}
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}") from None
    notes.update(os.path.join(home, TRUST), lambda known: {**known, project: entry})


def revoke(home: str, folder: str) -> bool:
    """Take the word back; False if nobody had given it."""
    project, path = project_of(folder), os.path.join(home, TRUST)
    if project not in notes.read(path):
        return False
    notes.update(path, lambda known: {name: entry for name, entry in known.items() if name != project})
    return True


def project_of(folder: str) -> str:
    """The folder of the project around: where its jackline.toml is, else the repository's root, else this folder."""
    settings = project_file(os.path.realpath(folder))
    return os.path.dirname(settings) if os.path.exists(settings) else places.repository_of(folder)


def _files(project: str) -> Iterator[str]:
    """What a project can say, in a fixed order."""
    settings = os.path.join(project, PROJECT_FILE)
    if os.path.lexists(settings):
        yield settings
    root = os.path.join(project, FOLDER)
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        if links:
            raise Refused(f"{os.path.join(folder, links[0])} is a link to a folder: trust needs the files themselves")
        folders[:] = sorted(name for name in folders if (folder, name) != (root, _LEFT_OUT))
        yield from (os.path.join(folder, name) for name in sorted(names))


def _digest(project: str) -> str:
    """Of names and contents, each with its length: no two sets of files look the same."""
    whole = hashlib.sha256()
    for path in _files(project):
        name = os.fsencode(os.path.relpath(path, project))
        whole.update(b"%d:%s" % (len(name), name) + _content(path))
    return whole.hexdigest()


def _content(path: str) -> bytes:
    if not os.path.isfile(path) and os.path.exists(path):  # a pipe would be waited for
        raise Refused(f"{path} is no file: trust needs files")
    one = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            one.update(chunk)
    return one.digest()
