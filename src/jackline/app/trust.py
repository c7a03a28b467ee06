"""Records which projects the user trusts. Files of a trusted project may do more than tighten, until they change.

Trust prevents a project from choosing programs. It does not protect against a program that already runs as this user.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import state_files
from jackline.app.paths import PROJECT_FILE, find_project_file
from jackline.digests import sha256
from jackline.errors import Refused, UsageError
from jackline.named import NamedTuple, stored_as
from jackline.worktrees import find_worktree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home

TRUST_FILE = "trust.json"
AGENTS_FOLDER = ".agents"  # the project's tasks and policy
_LEFT_OUT = "runs"  # output of runs, not instructions


@stored_as("folder files trusted changed at")
class TrustStatus(NamedTuple):
    """The trust status of a project."""

    folder: str
    files: tuple[str, ...]
    trusted: bool
    changed: bool  # it was trusted, but its files have changed
    at: int | None = None  # when it was trusted


def is_trusted(home: str, database: str, folder: str) -> bool:
    """Check whether the user trusts the current files of the project around a folder: by `jackline trust` itself.

    An entry of trust.json that is not recorded in the database does not count. `database` is the setting of this name.
    """
    project = find_project(folder)
    known = state_files.read_entries(os.path.join(home, TRUST_FILE)).get(project)
    if known is None:
        return False
    try:
        digest = _hash_files(project)
    except (OSError, Refused):
        return False
    from jackline.app.own_files import is_trust_recorded

    return known.get("digest") == digest and is_trust_recorded(home, database, project, digest)


def is_file_trusted(home: str, database: str, path: str) -> bool:
    """Check whether trust covers this file in .agents; only files of the trusted project itself are covered."""
    folder = find_agents_parent(path)
    return find_project(folder) == folder and is_trusted(home, database, folder)


def find_agents_parent(path: str) -> str:
    """Return the parent folder of the `.agents` folder that contains a file."""
    while os.path.basename(path) != AGENTS_FOLDER and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return os.path.dirname(path)


def read_trust_status(home: str, database: str, folder: str) -> TrustStatus:
    """Return the trust status of the project around a folder."""
    project = find_project(folder)
    known = state_files.read_entries(os.path.join(home, TRUST_FILE)).get(project)
    trusted = is_trusted(home, database, project)
    at = known.get("at") if known else None
    files = tuple(os.path.relpath(path, project) for path in list_files(project))
    return TrustStatus(
        folder=project,
        files=files,
        trusted=trusted,
        changed=known is not None and not trusted,
        at=at if isinstance(at, int) else None,
    )


def hash_project(folder: str) -> str:
    """Return the digest of the files to be trusted, before a person reads them; UsageError if there are none."""
    project = find_project(folder)
    if next(list_files(project), None) is None:
        raise UsageError(f"nothing to trust: {project} has no jackline.toml and no files in {AGENTS_FOLDER}/")
    try:
        return _hash_files(project)
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from None


def trust_project(home: Home, folder: str, digest: str) -> None:
    """Record that the user trusts the files with this digest, which were shown; Refused if they have changed since."""
    from jackline.app.identity import refuse_inside_run
    from jackline.app.own_files import record_trust

    refuse_inside_run(home, "trust")
    project = find_project(folder)
    if hash_project(project) != digest:
        raise Refused(f"the files of {project} changed while you read them: run `jackline trust` again")
    record_trust(home, project, digest)


def revoke_trust(home: Home, folder: str) -> bool:
    """Revoke trust; return False if the project was not trusted."""
    from jackline.app.own_files import record_trust

    project = find_project(folder)
    if project not in state_files.read_entries(os.path.join(home.path, TRUST_FILE)):
        return False
    record_trust(home, project, None)
    return True


def find_project(folder: str) -> str:
    """Return the project folder: that of jackline.toml, else the root of the repository, else this folder."""
    settings = find_project_file(os.path.realpath(folder))
    return os.path.dirname(settings) if os.path.exists(settings) else find_worktree(folder)


def list_files(project: str) -> Iterator[str]:
    """Yield the files that trust covers, in a fixed order."""
    settings = os.path.join(project, PROJECT_FILE)
    if os.path.lexists(settings):
        yield settings
    root = os.path.join(project, AGENTS_FOLDER)
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        if links:
            raise Refused(f"{os.path.join(folder, links[0])} is a link to a folder; trust does not follow links")
        folders[:] = sorted(name for name in folders if (folder, name) != (root, _LEFT_OUT))
        yield from (os.path.join(folder, name) for name in sorted(names))


def _hash_files(project: str) -> str:
    """Hash names and contents with their lengths, so that different sets of files never collide."""
    from hashlib import file_digest

    whole = sha256()
    for path in list_files(project):
        if not os.path.isfile(path) and os.path.exists(path):  # reading a pipe would block
            raise Refused(f"{path} is not a regular file")
        name = os.fsencode(os.path.relpath(path, project))
        with open(path, "rb") as file:
            whole.update(b"%d:%s" % (len(name), name) + file_digest(file, "sha256").digest())
    return whole.hexdigest()
