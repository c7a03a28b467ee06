"""How the real Claude Code plays a case: its program, a HOME of its own, and the packaged fake model behind it."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from jackline.app import agents
from jackline.app.drill.model import Model
from jackline.app.drill.place import probe, write
from jackline.app.drill.playing import Part
from jackline.errors import AgentUnavailable, UsageError
from jackline.fake.pointing import point
from jackline.fake.server import FakeModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.drill.cases import Case
    from jackline.app.drill.place import Place
    from jackline.app.home import Home

NAME = "claude"


class Claude:
    """The user's own CLI; only its model is played."""

    name = NAME

    def __init__(self, binary: str) -> None:
        self._binary = binary

    @contextmanager
    def playing(self, case: Case, place: Place) -> Iterator[Part]:
        """The model answers as long as the case is played; what it was asked is kept as evidence."""
        write(place.at("policy.toml"), policy(place))
        with FakeModel(Model(case, place.repository), log=place.at("asked.jsonl")) as model:
            pointed = point(NAME, model.address, place.user)
            program = {f"JACKLINE_{NAME.upper()}_BINARY": self._binary}
            yield Part(("--policy", place.at("policy.toml")), {**pointed.env, **program})


def claude(name: str, home: Home) -> Claude:
    """The same program that `jackline run` would start; AgentUnavailable says what to do if there is none."""
    if name != NAME:
        raise UsageError(f"the drill cannot be played by '{name}': choose scripted or {NAME}")
    adapter = agents.load(home.config, NAME)
    with TemporaryDirectory(prefix="jackline-") as folder:  # asked for its version, it may leave what it likes
        environ = {"PATH": os.environ.get("PATH", os.defpath), "HOME": folder, "TMPDIR": folder}
        found = agents.find(home.path, home.config, adapter, environ)
    if found.why:
        raise AgentUnavailable(found.name, why=found.why)
    return Claude(found.binary)


def policy(place: Place) -> str:
    """What the gate is told of the commands."""
    return f"""\
[[rule]]
name = "upload"
command = ["upload"]
class = "effect"
decision = "allow"
key = ["1"]
target = "{{1}}"
probe = {json.dumps(probe(place))}

[[rule]]
name = "build"
command = ["build"]
class = "local"

[[rule]]
name = "look"
command = ["look"]
class = "read"

[[rule]]
name = "task"
command = ["task"]
class = "local"
"""
