"""Proves that an agent's door holds, once for each program and settings: the note of it stands in canaries.json.

What a project's settings could do to the hooks is not seen here: the adapter's own settings win over most of them, and
the rest is noticed while a run is under way (`engine.witness`, `engine.hooking`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app import notes, versions
from jackline.app.canary_request import request
from jackline.engine.doors import hooks_of
from jackline.errors import JacklineError, Ungated

if TYPE_CHECKING:
    from jackline.app.agents import Found
    from jackline.domain.adapter import Adapter, Hooks

CACHE = versions.CANARIES


def check(home: str, adapter: Adapter, found: Found) -> None:
    """Ungated if the door of the program does not hold; an agent without hooks has no such door."""
    hooks = hooks_of(adapter)
    if hooks is None:
        return
    note, key = os.path.join(home, CACHE), _key(adapter, hooks, found)
    if notes.read(note).get(found.binary, {}).get("key") == key:
        return
    from jackline.app.canary_trial import prove

    why = prove(adapter, hooks, found.binary)
    if why:
        raise Ungated(found.name, why=f"{found.binary} {why}")
    entry: dict[str, object] = {"key": key, "version": found.version, "at": clock.wall_ms()}
    with suppress(JacklineError):  # a note that cannot be written only costs time
        notes.update(note, lambda others: {**versions.existing(others), found.binary: entry})


def _key(adapter: Adapter, hooks: Hooks, found: Found) -> str:
    """The program, and everything that it would be started with."""
    from hashlib import sha256

    launch = adapter.launch(request("/", found.binary, "", "", hooks.daring))
    settings = sha256(repr((launch.argv, sorted(launch.env.items()), sorted(launch.files.items()))).encode())
    return f"{versions.identity(found.binary)}:{found.version}:{settings.hexdigest()}"
