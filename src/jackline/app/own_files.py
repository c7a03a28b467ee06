"""Watches the files that only the user may change: settings, policy, tasks and trust.json.

An agent runs as the user, so it can write them. Their fingerprints are stored when an attempt begins, and compared when
it ends and before the next run: a change while a run lived is an event, and a person must confirm it. Trust counts only
if `jackline trust` recorded it in the store. A change while no run lived is the user's own, and is simply recorded.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from jackline import clock
from jackline.app import paths, state_files
from jackline.app.config import find_user_file
from jackline.app.environment import list_env_files
from jackline.app.text_files import TEXT_LIMIT
from jackline.app.trust import TRUST_FILE, find_project, fingerprint_entry, hash_project, name_record
from jackline.digests import hash_text
from jackline.domain.events import ENGINE, PERSON, Fact
from jackline.domain.notices import build_settings_notice
from jackline.errors import Refused, StoreError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jackline.app.config import Config
    from jackline.app.home import Home
    from jackline.app.trust import ProjectDigests
    from jackline.domain.records import SubjectNotice

PLACES_FILE = "places.json"  # where the user's settings led, by the folder of the settings
_GIVEN_DATABASES = ("JACKLINE_DATABASE", "--database")
_MOST_FILES = 1000
_SUFFIXES = (".toml", ".md")  # not the copies that an editor makes while a file is open
_CHANGED = "jackline.settings_changed"
_UNREADABLE = "unreadable"


class UnconfirmedChange(NamedTuple):
    """The files that changed while a run was active, and that a person has not confirmed."""

    files: tuple[str, ...] = ()
    digests: Mapping[str, str] = {}  # of the files as they are now; a file that is gone has none
    projects: tuple[str, ...] = ()  # named in trust.json without `jackline trust`: they are not trusted
    moved_to: str = ""  # the home, if the settings name another home or database than before

    def __str__(self) -> str:
        """As the subject of a sentence."""
        named = [*self.files, *(f"{TRUST_FILE} (for {project})" for project in self.projects)]
        return ", ".join([*named, f"the home or the database ({self.moved_to})"] if self.moved_to else named)


def refuse_unconfirmed(home: Home) -> None:
    """Raise Refused if a file of the user changed while a run was active, until a person confirms it."""
    if change := find_unconfirmed(home):
        raise Refused(f"changed since you started a run: {change}; review this, then type `jackline trust`")


def refuse_unconfirmed_settings(home: Home) -> None:
    """Raise Refused if the settings themselves, or a file that they name, have to be confirmed.

    While another file has to be, no run starts, but the channels are those of the user: they can tell about it.
    """
    change = find_unconfirmed(home)
    settings = {find_user_file(os.environ), *list_env_files(home.config)}
    if change is not None and (change.moved_to or not settings.isdisjoint(change.files)):
        raise Refused(f"changed since you started a run: {change}; review this, then type `jackline trust`")


def find_unconfirmed(home: Home) -> UnconfirmedChange | None:
    """Compare the files with the record; what a person must confirm, or None.

    Changed settings may name another home or database, where nothing is recorded: the one that would be used without
    them is asked, too, and it remembers where the settings led before.
    """
    folder = paths.find_config_folder(os.environ)
    with _open_base(home) as base:
        changes = [change for change in (_find_changed(home), _find_changed(base)) if change]
        known = state_files.read_entries(os.path.join(base.path, PLACES_FILE)).get(folder)
    is_named = home.config.sources["database"] in _GIVEN_DATABASES
    moved_to = home.path if known and not is_named and known.get("place") != _hash_place(home) else ""
    if not changes and not moved_to:
        return None
    return UnconfirmedChange(
        files=tuple(dict.fromkeys(path for change in changes for path in change.files)),
        digests={path: digest for change in changes for path, digest in change.digests.items()},
        projects=tuple(dict.fromkeys(project for change in changes for project in change.projects)),
        moved_to=moved_to,
    )


def read_unconfirmed(home: Home) -> UnconfirmedChange | None:
    """The same for a command that only reads: it leaves the record as it is, and does not look for another home."""
    record = home.store().settings.read(name_record(home.path))
    if not record:
        return None
    found = _scan(home)
    list(_compare(record, found))
    return _build_unconfirmed(record, found)


def _find_changed(home: Home) -> UnconfirmedChange | None:
    if home.is_new or not home.store().settings.read(name_record(home.path)):
        return None
    return _update(home, _compare)


def _open_base(home: Home) -> Home:
    """The home as it would be without the user's settings."""
    user_file, config = find_user_file(os.environ), home.config
    values = dict(config.values)
    if config.sources["home"] == user_file:
        values["home"] = os.path.abspath(paths.find_state_folder(os.environ))
    if config.sources["database"] == user_file:
        values["database"] = ""
    return type(home)(config._replace(values=values))


def _remember_place(home: Home, *, always: bool = False) -> None:
    """Remember where the user's settings lead, if they name the home or the database."""
    if always or find_user_file(os.environ) in {home.config.sources["home"], home.config.sources["database"]}:
        base, entry = _open_base(home), {"place": _hash_place(home)}
        base.create()
        path, folder = os.path.join(base.path, PLACES_FILE), paths.find_config_folder(os.environ)
        state_files.update_entries(path, lambda known: {**known, folder: dict(entry)})


def _hash_place(home: Home) -> str:
    return hash_text(f"{os.path.realpath(home.path)}\n{home.database}")


def refuse_fresh_changes(home: Home, since: int) -> None:
    """Raise Refused if an own file was written since this time: what was read of it may not be what was compared."""
    for path in (*list_own_files(os.environ, home.config), paths.find_config_folder(os.environ)):
        with suppress(OSError):
            if os.stat(path).st_ctime_ns // 1_000_000 >= since:
                raise Refused(f"{path} was changed while this command started: review it, then run the command again")


def confirm_changes(home: Home, change: UnconfirmedChange) -> None:
    """Record that a person confirmed this change; what changed after it was shown is still unconfirmed."""

    def confirm(record: dict[str, Any], found: _OwnFiles, home: Home) -> Iterator[Fact]:
        known = record["folders"].get(found.folder, {})
        for path in set(change.files) & set(known.get("changed", ())):
            known["changed"].remove(path)
            known["files"].pop(path, None)
            known["files"] |= {path: change.digests[path]} if path in change.digests else {}
        if change.projects:
            kept = {project: one for project, one in found.entries.items() if project not in record["voided"]}
            state_files.update_entries(os.path.join(home.path, TRUST_FILE), lambda _: kept)
        record["voided"] = [project for project in record["voided"] if project not in change.projects]
        yield Fact("jackline.settings_confirmed", {"files": list(change.files), "projects": list(change.projects)})

    with _open_base(home) as base:
        for one in (home, base) if base.database != home.database else (home,):
            if _find_changed(one):
                _update(one, partial(confirm, home=one), PERSON)
    if change.moved_to:
        _remember_place(home, always=True)
    home.wake_services()  # they have started nothing since the change


@contextmanager
def watch_own_files(home: Home, run_id: str) -> Iterator[None]:
    """Store the fingerprints during an attempt, and compare at its end; after a crash the next process compares."""
    watch = {"run": run_id, "boot": clock.boot_id(), "pid": os.getpid(), "started": _read_start(os.getpid())}

    def begin(record: dict[str, Any], found: _OwnFiles) -> Iterator[Fact]:
        yield from _compare(record, found)
        record["living"].append(watch)

    def end(record: dict[str, Any], found: _OwnFiles) -> Iterator[Fact]:
        yield from _compare(record, found)
        if watch in record["living"]:
            record["living"].remove(watch)

    _update(home, begin)
    _remember_place(home)
    try:
        yield
    finally:
        change = None
        with suppress(StoreError):  # then the watch stays in the record, and the next look compares
            change = _update(home, end)
        if change:
            home.warnings.append(f"changed while a run of this home was active: {change}; `jackline trust` confirms it")


# trust


def trust_project(home: Home, folder: str, digests: ProjectDigests) -> None:
    """Record that the user trusts the files with these digests, which were shown; Refused if they changed since."""
    from jackline.app.identity import refuse_inside_run

    refuse_inside_run(home, "trust")
    project = find_project(folder)
    if hash_project(folder) != digests:
        raise Refused(f"the files of {project} changed while you read them: run `jackline trust` again")
    _record_trust(home, project, {"digest": digests.project, "settings": digests.settings})


def revoke_trust(home: Home, folder: str) -> bool:
    """Revoke trust; return False if the project was not trusted."""
    project = find_project(folder)
    if project not in state_files.read_entries(os.path.join(home.path, TRUST_FILE)):
        return False
    _record_trust(home, project, None)
    return True


def _record_trust(home: Home, project: str, digests: state_files.Entry | None) -> None:
    """Write what a person decided about a project to trust.json and the record; without digests trust is revoked."""

    def change(record: dict[str, Any], found: _OwnFiles) -> Iterator[Fact]:
        others = {name: one for name, one in found.entries.items() if name != project}
        entry = {} if digests is None else {project: {**digests, "at": clock.wall_ms()}}
        # While the record is locked: who compares the two sees both or none.
        state_files.update_entries(os.path.join(home.path, TRUST_FILE), lambda _: others | entry)
        if digests is None:
            record["trusted"].pop(project, None)
            yield Fact("jackline.trust_revoked", {"project": project})
        else:
            record["trusted"][project] = fingerprint_entry(digests)
            yield Fact("jackline.trusted", {"project": project, "digest": fingerprint_entry(digests)})

    _update(home, change, PERSON)


# the record


class _OwnFiles(NamedTuple):
    """The files as they are now."""

    folder: str
    files: dict[str, str]
    entries: state_files.Entries  # of trust.json

    @property
    def trusted(self) -> dict[str, str]:
        """The digests of trust.json, by project."""
        return {project: fingerprint_entry(entry) for project, entry in self.entries.items()}


def _scan(home: Home) -> _OwnFiles:
    return _OwnFiles(
        folder=paths.find_config_folder(os.environ),
        files={path: _hash_file(path) for path in list_own_files(os.environ, home.config)},
        entries=state_files.read_entries(os.path.join(home.path, TRUST_FILE)),
    )


def list_own_files(environ: Mapping[str, str], config: Config) -> list[str]:
    """The user's files: their settings, policy and tasks, and the files with variables that the settings name."""
    found = list(list_env_files(config))
    seen: set[str] = set()
    for folder, folders, names in os.walk(paths.find_config_folder(environ), followlinks=True):
        seen.add(os.path.realpath(folder))
        folders[:] = sorted(name for name in folders if os.path.realpath(os.path.join(folder, name)) not in seen)
        paths_here = (os.path.join(folder, name) for name in sorted(names) if name.endswith(_SUFFIXES))
        found += (path for path in paths_here if path not in found)
        if len(found) > _MOST_FILES:
            break
    return found[:_MOST_FILES]


def _hash_file(path: str) -> str:
    """The digest of a file, soon: the record is locked meanwhile, and a device or a huge file takes forever."""
    from hashlib import file_digest

    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return _UNREADABLE
            if status.st_size > TEXT_LIMIT:  # no reader accepts it
                return f"large:{status.st_size}:{status.st_mtime_ns}:{status.st_ino}"
            return file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return _UNREADABLE


def _compare(record: dict[str, Any], found: _OwnFiles) -> Iterator[Fact]:
    """Compare the files with the record, and bring it up to date."""
    runs = sorted({watch["run"] for watch in record["living"]})
    known = record["folders"].setdefault(found.folder, {"files": found.files, "changed": []})
    # Another process may have read settings that name more files than ours do: they are not gone.
    found.files.update({path: _hash_file(path) for path in known["files"].keys() - found.files if os.path.exists(path)})
    differs = [path for path in {**known["files"], **found.files} if known["files"].get(path) != found.files.get(path)]
    new = [path for path in differs if path not in known["changed"]]
    known["changed"] = [path for path in known["changed"] if path in differs]
    if new and runs:
        known["changed"] += new
        yield Fact(_CHANGED, {"files": new, "runs": runs})
    elif new:
        kept = {path: known["files"][path] for path in known["changed"] if path in known["files"]}
        known["files"] = {path: one for path, one in found.files.items() if path not in known["changed"]} | kept
    recorded = record["trusted"]
    forged = [project for project, digest in found.trusted.items() if recorded.get(project) != digest]
    if unseen := [project for project in forged if project not in record["voided"]]:
        yield Fact(_CHANGED, {"files": [TRUST_FILE], "projects": unseen, "runs": runs})
    record["voided"] = forged
    if lost := [project for project in recorded if project not in found.trusted]:
        record["trusted"] = {project: one for project, one in recorded.items() if project not in lost}
        yield Fact(_CHANGED, {"files": [TRUST_FILE], "projects": lost, "runs": runs})
    record["living"] = [watch for watch in record["living"] if _is_alive(watch)]


def _build_unconfirmed(record: Mapping[str, Any], found: _OwnFiles) -> UnconfirmedChange | None:
    files = tuple(record["folders"].get(found.folder, {}).get("changed", ()))
    projects = tuple(record["voided"])
    if not files and not projects:
        return None
    digests = {path: found.files[path] for path in files if path in found.files}
    return UnconfirmedChange(files=files, digests=digests, projects=projects)


def _update(
    home: Home, change: Callable[[dict[str, Any], _OwnFiles], Iterator[Fact]], actor: str = ENGINE
) -> UnconfirmedChange | None:
    """Change the record while it is locked; returns what is unconfirmed then."""
    unconfirmed: UnconfirmedChange | None = None

    def change_filled(record: dict[str, Any]) -> Iterator[Fact]:
        nonlocal unconfirmed
        found = _scan(home)
        if not record:  # the first record adopts what is there
            record |= {"folders": {}, "living": [], "voided": [], "trusted": found.trusted}
        yield from change(record, found)
        unconfirmed = _build_unconfirmed(record, found)

    at = clock.wall_ms()

    def build_notice(facts: list[Fact]) -> SubjectNotice | None:
        changed = [fact.data for fact in facts if fact.kind == _CHANGED]
        files = dict.fromkeys(path for data in changed for path in data["files"])
        runs = dict.fromkeys(run for data in changed for run in data["runs"])
        return build_settings_notice(list(files), list(runs), at) if files else None

    home.store(create=True).settings.update(name_record(home.path), change_filled, at, actor, build_notice)
    return unconfirmed


def _read_start(pid: int) -> int | None:
    from jackline.engine.orphans import read_start_ticks

    return read_start_ticks(pid)


def _is_alive(watch: Mapping[str, Any]) -> bool:
    return bool(
        watch["boot"] == clock.boot_id() and watch["started"] == _read_start(watch["pid"]) and _exists(watch["pid"])
    )


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
