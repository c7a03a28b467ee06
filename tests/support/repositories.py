"""A repository with a remote on the same disk, and a person who works in it. For tests of what git can tell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class Work:
    """A working tree on `main`, whose `origin` is a bare repository beside it."""

    def __init__(self, folder: Path) -> None:
        self.tree, self.remote, home = folder / "tree", folder / "remote.git", folder / "user"
        home.mkdir()
        (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
        self.tree.mkdir()
        self.git("init", "-q", "--bare", str(self.remote), where=folder)
        self.git("init", "-q")
        self.git("remote", "add", "origin", str(self.remote))
        self.commit("begin")

    def git(self, *words: str, where: Path | None = None, code: int = 0) -> str:
        ended = subprocess.run(
            ["git", *words], cwd=where or self.tree, env=self.env, capture_output=True, text=True, check=False
        )
        assert ended.returncode == code, (words, ended)
        return ended.stdout.strip()

    def commit(self, subject: str, where: Path | None = None) -> str:
        """An empty commit; gives back its id."""
        self.git("commit", "-q", "--allow-empty", "-m", subject, where=where)
        return self.git("rev-parse", "HEAD", where=where)

    def push(self, *words: str) -> None:
        self.git("push", "-q", *words)

    def clone(self, name: str) -> Path:
        """Somebody else's tree of the same remote."""
        there = self.tree.parent / name
        self.git("clone", "-q", str(self.remote), str(there), where=self.tree.parent)
        return there
