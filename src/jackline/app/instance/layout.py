"""The layout of an agent's instance. It writes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.app import places
from jackline.app.texts import named
from jackline.domain import ids
from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

DASHBOARD = "dashboard.md"
FOLDERS = ("runs", "retros", "context")
# Files that a person edits; the template has the base name.
PERSONA = ("CLAUDE.md", "persona.md", os.path.join("context", "repos.md"), os.path.join("context", "channels.md"))
_TEXTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "persona")


class Names(NamedTuple):
    """The agent of an instance, and the host that starts it."""

    host: str
    agent: str


def checked(host: str, agent: str) -> Names:
    """Check the names; UsageError unless both can be folder names."""
    for name, what in ((host, "a host"), (agent, "an agent")):
        if not ids.is_chosen(name):
            allowed = "use up to 64 letters, digits, '.', '_' and '-'"
            raise UsageError(f"'{named(name)}' cannot be the name of {what}: {allowed}")
    return Names(host, agent)


def default_folder(environ: Mapping[str, str], names: Names) -> str:
    """The default folder of an instance: beside the settings of its host."""
    settings = os.path.dirname(places.config_folder(environ))
    return os.path.join(settings, names.host, "agents", names.agent)


def text_of(name: str, folder: str, names: Names) -> str:
    """The initial text of a file."""
    with open(os.path.join(_TEXTS, os.path.basename(name)), encoding="utf-8") as file:
        text = file.read()
    for key, value in (("AGENT", names.agent), ("HOST", names.host), ("FOLDER", folder)):
        text = text.replace(f"<{key}>", value)
    return text
