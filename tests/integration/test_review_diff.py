"""The diff for a reviewer, with real git: the work as it was proved, never too long."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jackline.domain.review_prompts import MOST_DIFF
from jackline.engine.git import Git
from jackline.engine.review_copy import ReviewCopies
from jackline.engine.review_seat import read_diff, read_work_diff
from jackline.engine.work_trees import WorkTrees


def git(repo: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    made = tmp_path / "repo"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    git(made, "config", "user.name", "t")
    git(made, "config", "user.email", "t@example.com")
    git(made, "config", "color.ui", "always")
    git(made, "config", "diff.external", "/bin/false")
    return made


def commit(repo: Path, name: str, text: str) -> str:
    (repo / name).write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", name)
    return git(repo, "rev-parse", "HEAD")


def opened(repo: Path) -> Git:
    return Git(workspace=str(repo), env=dict(os.environ))


def test_the_diff_has_what_is_not_committed(repo: Path) -> None:
    before = commit(repo, "a.txt", "one\n")
    commit(repo, "b.txt", "two\n")
    commit(repo, "a.txt", "changed\n")
    (repo / "c.txt").write_text("not committed\n")
    git(repo, "add", "-A")
    tree = git(repo, "write-tree")
    diff = read_diff(opened(repo), before, tree)
    assert diff is not None
    assert diff.length == len(diff.text)
    assert "+two" in diff.text
    assert "-one\n+changed" in diff.text
    assert "+not committed" in diff.text
    assert "\x1b" not in diff.text
    assert diff.command == f"git diff {before} {tree}"


def test_a_long_diff_is_cut_and_begins_with_a_summary(repo: Path) -> None:
    before = commit(repo, "a.txt", "one\n")
    after = commit(repo, "big.txt", "".join(f"line {number}\n" for number in range(20_000)))
    diff = read_diff(opened(repo), before, after)
    assert diff is not None
    assert diff.text.lstrip().startswith("big.txt")
    assert len(diff.text) <= MOST_DIFF < diff.length


def test_the_work_is_the_last_commit_of_a_copy_even_if_it_is_the_first(repo: Path) -> None:
    commit(repo, "a.txt", "one\n")
    whole = read_work_diff(opened(repo))
    assert whole is not None
    assert "+one" in whole.text
    commit(repo, "b.txt", "two\n")
    work = read_work_diff(opened(repo))
    assert work is not None
    assert "+two" in work.text
    assert "+one" not in work.text
    assert work.command == "git diff HEAD~1 HEAD"


def test_no_attribute_hides_a_change_from_a_reviewer(repo: Path, tmp_path: Path) -> None:
    """Such as an agent that calls its code binary."""
    commit(repo, "a.txt", "one\n")
    copies = ReviewCopies(WorkTrees(opened(repo), str(tmp_path / "run")), "r-1", str(tmp_path / "cache"))
    copies.trees.record_start()
    (repo / ".gitattributes").write_text("*.py -diff\n*.txt binary\n")
    (repo / "work.py").write_text("do_evil()\n")
    (repo / "a.txt").write_text("two\n")
    (repo / "image").write_bytes(bytes(range(256)))
    (repo / ".git" / "info" / "attributes").write_text("* -diff\n")
    copy = copies.prepare_review("", 1, 0)
    diff = read_work_diff(opened(Path(copy.path)))
    assert diff is not None
    for text in ("+do_evil()", "-one\n+two", "image differ"):
        assert text in diff.text


def test_git_cannot_tell_outside_of_a_repository(tmp_path: Path) -> None:
    assert read_diff(opened(tmp_path), "HEAD", "HEAD") is None
