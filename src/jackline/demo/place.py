"""Where a real CLI plays in the demo: a HOME, a repository and an environment of its own. It starts only git.

The environment is made from nothing, so that no key, no proxy and no setting of the user's can be in it.
"""

from __future__ import annotations

import os
import site
from dataclasses import dataclass

from jackline.demo.expecting import ended_so, expect
from jackline.engine.command import run_command
from jackline.fake.pointing import point

REPOSITORY = "repository"
_GIT_TIMEOUT_S = 30.0
# In the repository itself: it wins over what the machine's own git settings say of signing and hooks.
_SETTINGS = (
    ("user.name", "Demo"),
    ("user.email", "demo@example.org"),
    ("commit.gpgSign", "false"),
    ("core.hooksPath", os.devnull),
)


@dataclass(frozen=True, slots=True)
class Place:
    """One act's; the home of jackline is that of the whole demo."""

    folder: str
    home: str
    temporary: str  # where the CLI may leave what nobody needs; a short path, for the sockets in it
    agent: str
    binary: str
    address: str  # of the fake model

    @property
    def user(self) -> str:
        """The HOME of the CLI."""
        return os.path.join(self.folder, "user")

    @property
    def repository(self) -> str:
        """Where it works."""
        return os.path.join(self.folder, REPOSITORY)

    @property
    def environment(self) -> dict[str, str]:
        """All that jackline gets, and so the most that the CLI can get."""
        # Who installed jackline below their own HOME could not start it with another one.
        ours = {"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TMPDIR": self.temporary,
            "JACKLINE_HOME": self.home,
            f"JACKLINE_{self.agent.upper()}_BINARY": self.binary,
            **ours,
            **point(self.agent, self.address, self.user).env,
        }

    def read(self, name: str) -> str:
        """The text of a file in the repository; empty if it is not there."""
        try:
            with open(os.path.join(self.repository, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""


def build(place: Place) -> None:
    """The folders, the settings that lead the CLI to the fake model, and a repository with one commit."""
    for folder in (place.user, place.repository):
        os.makedirs(folder, mode=0o700)
    for path, content in point(place.agent, place.address, place.user).files.items():
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    _git(place, "init", "--quiet", "--template=")
    for name, value in _SETTINGS:
        _git(place, "config", name, value)
    _git(place, "commit", "--quiet", "--allow-empty", "--message", "Begin")


def _git(place: Place, *words: str) -> None:
    ended = run_command(
        ("git", *words), cwd=place.repository, env=place.environment, timeout_s=_GIT_TIMEOUT_S, output_limit=4096
    )
    said = ended_so(ended.exit_code, ended.stderr_tail, ended.stdout_tail)
    expect(ended.exit_code == 0, f"`git {words[0]}` should have made a repository, but: {said}")
