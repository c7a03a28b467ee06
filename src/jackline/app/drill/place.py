"""Where one case is played: a home, a HOME, a repository and a world outside of its own. It starts only git.

The environment is made from nothing, so that no key, no proxy and no setting of the user's can be in it.
"""

from __future__ import annotations

import os
import shlex
import site
import sys
from typing import TYPE_CHECKING

from jackline.app.drill import world
from jackline.app.drill.failing import DrillFailed
from jackline.engine.command import run_command
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.app.drill.cases import Case

TOOLS = ("upload", "build", "look", "task")
_GIT_TIMEOUT_S = 30.0
_GIT = (
    ("init", "--quiet", "--template="),
    # In the repository itself: it wins over what the machine's own git settings say of signing and hooks.
    ("config", "user.name", "Drill"),
    ("config", "user.email", "drill@example.org"),
    ("config", "commit.gpgSign", "false"),
    ("config", "core.hooksPath", os.devnull),
    ("commit", "--quiet", "--allow-empty", "--message", "Begin"),
)


class Place(NamedTuple):
    """The folders of one case; all of it is evidence but the temporary one."""

    folder: str
    temporary: str  # where the agent may leave what nobody needs; a short path, for the sockets in it

    def at(self, *names: str) -> str:
        """A path in the folder."""
        return os.path.join(self.folder, *names)

    @property
    def home(self) -> str:
        """Jackline's."""
        return self.at("home")

    @property
    def user(self) -> str:
        """The HOME of everything that runs here: by it every process of the case is found again."""
        return self.at("user")

    @property
    def repository(self) -> str:
        """Where the agent works."""
        return self.at("repository")

    @property
    def world(self) -> str:
        """Outside: what really happened is written here by the tools themselves."""
        return self.at("world")

    @property
    def environment(self) -> dict[str, str]:
        """All that jackline gets, and so the most that an agent can get."""
        # Who installed jackline below their own HOME could not start it with another one.
        ours = {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}
        return {
            "PATH": f"{self.at('tools')}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "LANG": "C.UTF-8",
            "HOME": self.user,
            "TMPDIR": self.temporary,
            "JACKLINE_HOME": self.home,
            **ours,
        }

    def tool(self, name: str) -> str:
        """The program that is the tool."""
        return self.at("tools", name)

    def arrived(self, name: str) -> bool:
        """Whether the tool that works on `name` has come to where it waits for the kill."""
        return os.path.exists(os.path.join(self.world, f"here.{name}"))


def build(place: Place, case: Case) -> None:
    """The folders, the tools, where they halt, and a repository with one commit."""
    for folder in (place.user, place.repository, place.world, place.at("tools"), place.at("said")):
        os.makedirs(folder, mode=0o700)
    for name in TOOLS:
        write(place.tool(name), f'#!/bin/sh\nexec {outside(place, name)} "$@"\n')
        os.chmod(place.tool(name), 0o700)
    for moment, name in case.halts:
        write(os.path.join(place.world, f"halt.{moment}.{name}"), "")
    for words in _GIT:
        _git(place, *words)


def outside(place: Place, *words: str) -> str:
    """A command line of the world outside."""
    program = os.path.abspath(world.__file__)
    return shlex.join((sys.executable, "-I", "-S", program, place.world, *words))


def probe(place: Place) -> str:
    """What finds out whether an upload has arrived."""
    return outside(place, "probe")


def write(path: str, text: str) -> None:
    """A file of the drill's own."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _git(place: Place, *words: str) -> None:
    ended = run_command(
        ("git", *words), cwd=place.repository, env=place.environment, timeout_s=_GIT_TIMEOUT_S, output_limit=4096
    )
    if ended.exit_code != 0:
        raise DrillFailed(
            f"`git {words[0]}` ended with {ended.exit_code}: {ended.stderr_tail.decode(errors='replace')}"
        )
