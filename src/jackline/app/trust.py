"""Records which projects the user trusts. Files of a trusted project may do more than tighten, until they change.

Trust prevents a project from choosing programs. It does not protect against a program that already runs as this user.
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
FOLDER = ".agents"  # the project's tasks and policy
_LEFT_OUT = "runs"  # output of runs, not instructions
_CHUNK = 1 << 20


@stored_as("folder files trusted changed at")
class Standing(NamedTuple):
    """The trust status of a project."""

    folder: str
    files: tuple[str, ...]
    trusted: bool
    changed: bool  # it was trusted, but its files have changed
    at: int | None = None  # when it was trusted


def is_trusted(home: str, folder: str) -> bool:
    """Check whether the user trusts the current files of the project around a folder."""
    known = notes.read(os.path.join(home, TRUST)).get(project_of(folder))
    if known is None:
        return False
    try:
        return known.get("digest") == _hash_files(project_of(folder))
    except (OSError, Refused):
        return False


def covers(home: str, path: str) -> bool:
    """Check whether trust covers this file in .agents; only files of the trusted project itself are covered."""
    folder = folder_of(path)
    return project_of(folder) == folder and is_trusted(home, folder)


def folder_of(path: str) -> str:
    """Return the parent folder of the `.agents` folder that contains a file."""
    while os.path.basename(path) != FOLDER and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return os.path.dirname(path)


def standing(home: str, folder: str) -> Standing:
    """Return the trust status of the project around a folder."""
    project = project_of(folder)
    known = notes.read(os.path.join(home, TRUST)).get(project)
    trusted = is_trusted(home, project)
    at = known.get("at") if known else None
    files = tuple(os.path.relpath(path, project) for path in _list_files(project))
    return Standing(project, files, trusted, known is not None and not trusted, at if isinstance(at, int) else None)


def trust(home: str, folder: str) -> None:
    """Record that the user trusts the current files."""
    project = project_of(folder)
    if next(_list_files(project), None) is None:
        raise UsageError(f"nothing to trust: {project} has no jackline.toml and no files in {FOLDER}/")
    try:
        entry: dict[str, object] = {"digest": _hash_files(project), "at": clock.wall_ms()}
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from None
    notes.update(os.path.join(home, TRUST), lambda known: {**known, project: entry})


def revoke(home: str, folder: str) -> bool:
    """Revoke trust; return False if the project was not trusted."""
    project, path = project_of(folder), os.path.join(home, TRUST)
    if project not in notes.read(path):
        return False
    notes.update(path, lambda known: {name: entry for name, entry in known.items() if name != project})
    return True


def project_of(folder: str) -> str:
    """Return the project folder: that of jackline.toml, else the root of the repository, else this folder."""
    settings = project_file(os.path.realpath(folder))
    return os.path.dirname(settings) if os.path.exists(settings) else places.repository_of(folder)


def _list_files(project: str) -> Iterator[str]:
    """Yield the files that trust covers, in a fixed order."""
    settings = os.path.join(project, PROJECT_FILE)
    if os.path.lexists(settings):
        yield settings
    root = os.path.join(project, FOLDER)
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        if links:
            raise Refused(f"{os.path.join(folder, links[0])} is a link to a folder; trust does not follow links")
        folders[:] = sorted(name for name in folders if (folder, name) != (root, _LEFT_OUT))
        yield from (os.path.join(folder, name) for name in sorted(names))


def _hash_files(project: str) -> str:
    """Hash names and contents with their lengths, so that different sets of files never collide."""
    whole = hashlib.sha256()
    for path in _list_files(project):
        name = os.fsencode(os.path.relpath(path, project))
        whole.update(b"%d:%s" % (len(name), name) + _hash_content(path))
    return whole.hexdigest()


def _hash_content(path: str) -> bytes:
    if not os.path.isfile(path) and os.path.exists(path):  # reading a pipe would block
        raise Refused(f"{path} is not a regular file")
    one = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            one.update(chunk)
    return one.digest()
