"""Checks which projects the user trusts; `own_files` records it. It writes nothing.

Files of a trusted project may do more than tighten, until they change. Trust also covers the settings that a project
makes for the CLIs of agents, with a digest for each folder and agent: trust that was given before these were covered
keeps covering the rest. Trust prevents a project from choosing programs. It does not protect against a program that
already runs as this user.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import project_settings, state_files
from jackline.app.paths import PROJECT_FILE, find_database, find_project_file
from jackline.digests import hash_text, sha256
from jackline.errors import AgentUnavailable, Refused, SchemaMissing, SchemaTooOld, StoreError, UsageError
from jackline.named import NamedTuple, stored_as
from jackline.worktrees import find_repository, find_worktree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jackline.app.state_files import Entry
    from jackline.domain.adapter import Declaration, UntrustedSettings

TRUST_FILE = "trust.json"
AGENTS_FOLDER = ".agents"  # the project's tasks and policy
_LEFT_OUT = "runs"  # output of runs, not instructions


class ProjectDigests(NamedTuple):
    """What trust covers at one moment."""

    project: str  # of jackline.toml and .agents
    settings: Mapping[str, Mapping[str, str]]  # by folder, relative to the project, and agent


@stored_as("folder files trusted changed at settings")
class TrustStatus(NamedTuple):
    """The trust status of a project."""

    folder: str
    files: tuple[str, ...]
    trusted: bool
    changed: bool  # it was trusted, but its files have changed
    at: int | None = None  # when it was trusted
    settings: tuple[str, ...] = ()  # settings for agents that are not trusted


def is_trusted(home: str, database: str, folder: str) -> bool:
    """Check whether the user trusts the current files of the project around a folder: by `jackline trust` itself.

    An entry of trust.json that is not recorded in the database does not count. `database` is the setting of this name.
    """
    project = find_project(folder)
    known = _read_entry(home, database, project)
    if known is None:
        return False
    try:
        return known.get("digest") == _hash_files(project)
    except (OSError, Refused):
        return False


def _read_entry(home: str, database: str, project: str) -> Entry | None:
    """Return the entry that `jackline trust` recorded; that of the main worktree counts for the others."""
    entries = state_files.read_entries(os.path.join(home, TRUST_FILE))
    for folder in dict.fromkeys((project, _find_main_project(project))):
        known = entries.get(folder)
        if known is not None:
            return known if _is_trust_recorded(home, database, folder, fingerprint_entry(known)) else None
    return None


def _find_main_project(project: str) -> str:
    """The same folder in the main worktree of its repository: trust covers the same files in all worktrees."""
    return os.path.normpath(os.path.join(find_repository(project), os.path.relpath(project, find_worktree(project))))


def _is_trust_recorded(home: str, database: str, project: str, digest: str) -> bool:
    """Whether `jackline trust` recorded this; before the first record of a home, its trust.json counts as it is."""
    from jackline.store.open import open_store

    address = find_database(home, database)
    if "://" not in address and not os.path.exists(address):
        return True
    try:
        store = open_store(address, create=False, read_only=True)
    except (SchemaMissing, SchemaTooOld):  # no record yet
        return True
    except StoreError:
        return False
    try:
        record = store.settings.read(name_record(home))
        return not record or record["trusted"].get(project) == digest
    except StoreError:
        return False
    finally:
        store.close()


def name_record(home: str) -> str:
    """Return the name of a home's record of the user's files and of trust, in its database."""
    return f"{clock.host_name()}:{os.path.realpath(home)}"


def fingerprint_entry(entry: Entry) -> str:
    """Return what the record of an entry is compared by; an entry of an older version has only one digest."""
    settings = entry.get("settings")
    if not settings:
        return str(entry.get("digest"))
    return f"{entry.get('digest')}:{hash_text(json.dumps(settings, sort_keys=True))}"


def read_untrusted_settings(
    home: str,
    database: str,
    declaration: Declaration,
    workspace: str,
    environ: Mapping[str, str],
    *,
    for_review: bool = False,
) -> UntrustedSettings | None:
    """Read the settings that the agent is started without; None if there are none, or a person trusts them all.

    AgentUnavailable if the CLI cannot be started without one of them.
    `for_review`: in a copy of the work no settings are trusted, because the worker may have written them.
    """
    files = declaration.project_files
    if not files.settings:
        return None
    folders = project_settings.list_folders(workspace, environ)
    if not folders:
        return None
    found = {folder: project_settings.find_settings(files, folder) for folder in folders}
    nested = project_settings.find_nested(files, folders[0], environ)
    found[folders[0]] += [path for path in nested if path not in found[folders[0]]]
    if not any(found.values()):
        return None
    project = find_project(workspace)
    entry = None if for_review else _read_entry(home, database, project)
    if all(not paths or _covers(entry, project, declaration, folder, paths) for folder, paths in found.items()):
        return None
    paths = [path for folder in folders for path in found[folder]]
    untrusted = project_settings.read_untrusted(files, folders, paths, environ)
    if refused := project_settings.find_refused(files, folders, untrusted.left_out):
        name = os.path.relpath(refused, os.path.realpath(workspace))
        missing = "this project is not trusted: read it, then `jackline trust`"
        if for_review:
            missing = "a reviewer is started without the settings of the work: choose another reviewer"
        raise AgentUnavailable(declaration.name, why=f"it cannot be started without {name}, and {missing}")
    return untrusted


def _covers(entry: Entry | None, project: str, declaration: Declaration, folder: str, paths: list[str]) -> bool:
    """Check whether trust covers the settings of a folder as they are."""
    try:
        digest = project_settings.hash_settings(declaration.project_files, paths, folder)
    except OSError:
        return False
    return _find_digest(entry, os.path.relpath(folder, project), declaration.agent) == digest


def _find_digest(entry: Entry | None, place: str, agent: str) -> object:
    known = (entry or {}).get("settings")
    by_agent = known.get(place) if isinstance(known, dict) else None
    return by_agent.get(agent) if isinstance(by_agent, dict) else None


def list_settings(folder: str, environ: Mapping[str, str]) -> dict[str, dict[str, list[str]]]:
    """List the settings for agents in the folders around this one, by folder and agent."""
    found: dict[str, dict[str, list[str]]] = {}
    for place in project_settings.list_folders(folder, environ):
        for agent, declaration in _list_declarations().items():
            paths = project_settings.find_settings(declaration.project_files, place)
            if place == os.path.realpath(folder):
                nested = project_settings.find_nested(declaration.project_files, place, environ)
                paths += [path for path in nested if path not in paths]
            if paths:
                found.setdefault(place, {})[agent] = paths
    return found


def _list_declarations() -> dict[str, Declaration]:
    """The agents that may take settings from a project; one that cannot be loaded takes none."""
    from jackline.agents import registry

    found = {}
    for name in registry.list_agents():
        try:
            found[name] = registry.load_adapter(name).declaration
        except (AgentUnavailable, UsageError):
            continue
    return found


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
    files = [os.path.relpath(path, project) for path in list_files(project)]
    entry, untrusted = _read_entry(home, database, project), list[str]()
    declarations = _list_declarations()
    for place, by_agent in list_settings(folder, os.environ).items():
        for agent, paths in by_agent.items():
            names = [os.path.relpath(path, project) for path in paths]
            files += [name for name in names if name not in files]
            if not _covers(entry, project, declarations[agent], place, paths):
                untrusted += [name for name in names if name not in untrusted]
    return TrustStatus(
        folder=project,
        files=tuple(files),
        trusted=trusted,
        changed=known is not None and not trusted,
        at=at if isinstance(at, int) else None,
        settings=tuple(untrusted),
    )


def hash_project(folder: str) -> ProjectDigests:
    """Return the digests of the files to be trusted, before a person reads them; UsageError if there are none."""
    project = find_project(folder)
    settings = list_settings(folder, os.environ)
    if next(list_files(project), None) is None and not settings:
        raise UsageError(
            f"nothing to trust: {project} has no jackline.toml, no files in {AGENTS_FOLDER}/ and no settings for agents"
        )
    try:
        return ProjectDigests(
            project=_hash_files(project),
            settings={
                os.path.relpath(place, project): hash_settings_of(place, by_agent)
                for place, by_agent in settings.items()
            },
        )
    except OSError as error:
        raise UsageError(f"cannot read {error.filename}: {error.strerror}") from None


def hash_settings_of(place: str, by_agent: Mapping[str, list[str]]) -> dict[str, str]:
    """Hash the settings in one folder, for each agent."""
    known = _list_declarations()
    return {
        agent: project_settings.hash_settings(known[agent].project_files, paths, place)
        for agent, paths in by_agent.items()
    }


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
