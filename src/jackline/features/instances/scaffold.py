"""Creates an agent's instance. Missing files are written; existing files stay unchanged, so that it can run again.

Only the database is changed, by missing migrations. Files that a person edits are never opened.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import config as config_module
from jackline.app import paths
from jackline.app.home import Home
from jackline.app.paths import DATABASE_FILE
from jackline.app.text_files import shorten_name
from jackline.domain import ids
from jackline.errors import Refused, StoreCorrupt, UsageError
from jackline.files import create_file
from jackline.named import NamedTuple, stored_as
from jackline.store import open as store_open

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


DASHBOARD = "dashboard.md"
FOLDERS = ("runs", "retros", "context")
# Files that a person edits; the template has the base name.
PERSONA = ("CLAUDE.md", "persona.md", os.path.join("context", "repos.md"), os.path.join("context", "channels.md"))
_TEXTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "persona")
_FILE_MODE, _FOLDER_MODE = 0o600, 0o700


class InstanceNames(NamedTuple):
    """The agent of an instance, and the host that starts it."""

    host: str
    agent: str


def check_names(host: str, agent: str) -> InstanceNames:
    """Check the names; UsageError unless both can be folder names."""
    for name, what in ((host, "a host"), (agent, "an agent")):
        if not ids.is_chosen(name):
            allowed = "use up to 64 letters, digits, '.', '_' and '-'"
            raise UsageError(f"'{shorten_name(name)}' cannot be the name of {what}: {allowed}")
    return InstanceNames(host, agent)


def get_default_folder(environ: Mapping[str, str], names: InstanceNames) -> str:
    """The default folder of an instance: beside the settings of its host."""
    settings = os.path.dirname(paths.find_config_folder(environ))
    return os.path.join(settings, names.host, "agents", names.agent)


def read_template(name: str, folder: str, names: InstanceNames) -> str:
    """The initial text of a file."""
    with open(os.path.join(_TEXTS, os.path.basename(name)), encoding="utf-8") as file:
        text = file.read()
    for key, value in (("AGENT", names.agent), ("HOST", names.host), ("FOLDER", folder)):
        text = text.replace(f"<{key}>", value)
    return text


@stored_as("name path wrote applied")
class InstancePart(NamedTuple):
    """One part of an instance; `wrote` is false if it already existed."""

    name: str
    path: str
    wrote: bool
    applied: tuple[str, ...] = ()  # migrations


class ScaffoldResult(NamedTuple):
    """The parts of an instance, and warnings."""

    parts: list[InstancePart]
    warnings: list[str]


def create_instance(
    folder: str, names: InstanceNames, environ: Mapping[str, str], *, strict: bool = False
) -> ScaffoldResult:
    """Write everything that is missing; with `strict`, only if the package is complete."""
    if strict:
        from jackline.store import bundle

        bundle.refuse_broken()
    everything = (DATABASE_FILE, DASHBOARD, *FOLDERS, *PERSONA)
    for name in everything:
        paths.refuse_links(folder, os.path.join(folder, name))
    made = _make_folder(folder)
    with Home(config_module.load_config(environ, folder, {"home": folder}, project=False)) as home:
        parts = [
            InstancePart(name="", path=folder, wrote=made),
            _create_database(folder, names),
            *_create_files(folder, names),
        ]
        if os.path.abspath(home.database) != os.path.join(home.path, DATABASE_FILE):
            source = home.config.sources["database"]
            warning = (
                f"commands of this instance will use the database that {source} names, not its own {DATABASE_FILE}"
            )
            return ScaffoldResult(parts, [warning])
        home.notify_change()
        return ScaffoldResult(parts, home.warnings)


def _make_folder(folder: str) -> bool:
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"{folder} is not a folder: choose another one for the instance")
    there = os.path.isdir(folder)
    try:
        os.makedirs(folder, _FOLDER_MODE, exist_ok=True)
    except OSError as error:
        raise _build_not_written(folder, error) from None
    return not there


def _create_database(folder: str, names: InstanceNames) -> InstancePart:
    """First of all: a database of a newer jackline or of another agent stops the command."""
    path = os.path.join(folder, DATABASE_FILE)
    try:
        applied = store_open.migrate(path)
    except StoreCorrupt:
        hint = "move it away and scaffold again; `jackline import` reads data of other systems"
        raise Refused(f"{path} is damaged or not a database of jackline, and was left unchanged: {hint}") from None
    store = store_open.open_store(path, create=False)
    try:
        host, agent = store.admin.name_instance(*names)
    finally:
        store.close()
    if (host, agent) != names:
        raise Refused(f"{folder} is the instance of agent {agent} on host {host}: choose another folder")
    return InstancePart(
        name=DATABASE_FILE, path=path, wrote=any(one.startswith("0001") for one in applied), applied=tuple(applied)
    )


def _create_files(folder: str, names: InstanceNames) -> Iterator[InstancePart]:
    for name in FOLDERS:
        yield InstancePart(
            name=f"{name}/", path=os.path.join(folder, name), wrote=_make_folder(os.path.join(folder, name))
        )
    for name in (*PERSONA, DASHBOARD):
        path = os.path.join(folder, name)
        try:
            yield InstancePart(
                name=name, path=path, wrote=create_file(path, read_template(name, folder, names), _FILE_MODE)
            )
        except OSError as error:
            raise _build_not_written(path, error) from None


def _build_not_written(path: str, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written ({error.strerror}): fix that, or choose another folder")
