"""The agent's git: its commits carry the run's mark, and `git checkout -` still finds its way back."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from jackline.domain.changes import reflog_action
from jackline.engine import git

RUN = "01run"


class Agent:
    """Somebody who works in a repository with the environment of a run."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree"
        self.tree.mkdir()
        identity = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b.c"}
        identity |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in identity.items()}
        plain = {"PATH": os.environ["PATH"], "HOME": str(folder), **identity}
        self.env = {**plain, **git.build_commit_env(str(folder / "run it's"), RUN, plain)}
        self.git("init", "-q", "-b", "main")
        self.git("commit", "-q", "--allow-empty", "-m", "begin")

    def git(self, *words: str, code: int = 0) -> str:
        ended = subprocess.run(
            ["git", *words], cwd=self.tree, env=self.env, capture_output=True, text=True, check=False
        )
        assert ended.returncode == code, ended
        return ended.stdout.strip()

    def branch(self) -> str:
        return self.git("branch", "--show-current")

    def last_entry(self) -> str:
        return self.git("log", "-g", "-1", "--format=%gs")


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


@pytest.mark.parametrize("words", [("checkout",), ("switch",), ("-C", ".", "checkout"), ("-c", "a.b=commit", "switch")])
def test_a_dash_leads_back_to_the_branch_before(agent: Agent, words: tuple[str, ...]) -> None:
    agent.git("checkout", "-q", "-b", "other")
    agent.git(*words, "-q", "-")
    assert agent.branch() == "main"


@pytest.mark.parametrize("subject", ["plain", "fix checkout and switch", "checkout", "-C checkout"])
def test_a_commit_carries_the_mark_whatever_its_words(agent: Agent, subject: str) -> None:
    agent.git("commit", "-q", "--allow-empty", f"-m{subject}")
    assert agent.last_entry() == f"{reflog_action(RUN)}: {subject}"


def test_it_ends_as_git_ends(agent: Agent) -> None:
    agent.git("rev-parse", "--verify", "nothing", code=128)


def test_nobody_else_may_change_it(agent: Agent) -> None:
    shim = Path(agent.env["PATH"].split(os.pathsep)[0]) / "git"
    assert stat.S_IMODE(shim.stat().st_mode) == 0o700


def test_without_git_there_is_nothing_to_mark(tmp_path: Path) -> None:
    assert git.build_commit_env(str(tmp_path), RUN, {"PATH": str(tmp_path)}) == {}
