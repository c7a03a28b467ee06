"""Which worktree and which repository a folder belongs to, in repositories that git itself has made."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jackline.worktrees import find_repository, find_worktree

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")


def git(folder: Path, *words: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run([*GIT, *words], cwd=folder, env=environ, check=True, capture_output=True)


def make_repository(path: Path, *flags: str) -> Path:
    path.mkdir()
    git(path, "init", "-q", *flags)
    if "--bare" not in flags:
        git(path, "commit", "-q", "--allow-empty", "-m", "first")
    return path


def roots(folder: Path) -> tuple[str, str]:
    return find_worktree(str(folder)), find_repository(str(folder))


def test_a_repository_and_its_linked_worktrees_are_one(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "beside"))
    git(main, "worktree", "add", "-q", "--detach", str(main / "inside"))
    for root in (main, tmp_path / "beside", main / "inside"):
        below = root / "a" / "b"
        below.mkdir(parents=True)
        assert roots(root) == roots(below) == (str(root), str(main))


def test_a_folder_without_git_is_itself(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert roots(tmp_path / "a") == (str(tmp_path / "a"), str(tmp_path / "a"))


def test_a_submodule_is_a_repository_with_worktrees_of_its_own(tmp_path: Path) -> None:
    make_repository(tmp_path / "library")
    main = make_repository(tmp_path / "main")
    git(main, "submodule", "add", "-q", str(tmp_path / "library"), "sub")
    assert roots(main / "sub") == (str(main / "sub"), str(main / "sub"))
    git(main / "sub", "worktree", "add", "-q", str(tmp_path / "beside"))
    assert roots(tmp_path / "beside") == (str(tmp_path / "beside"), str(main / "sub"))


def test_worktrees_of_a_bare_repository(tmp_path: Path) -> None:
    make_repository(tmp_path / "source")
    git(tmp_path, "clone", "-q", "--bare", "source", "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "one"))
    git(tmp_path / "bare.git", "worktree", "add", "-q", "--detach", str(tmp_path / "two"))
    assert roots(tmp_path / "one") == (str(tmp_path / "one"), str(tmp_path / "bare.git"))
    assert find_repository(str(tmp_path / "two")) == find_repository(str(tmp_path / "bare.git"))


def test_a_git_folder_elsewhere_does_not_move_the_repository(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main", "--separate-git-dir", str(tmp_path / "elsewhere"))
    assert roots(main) == (str(main), str(main))


@pytest.mark.parametrize("text", ["", "nonsense", "gitdir: /nowhere", "gitdir: \udcff", "gitdir:" + "x" * 10_000])
def test_a_broken_link_to_git_is_a_repository_of_its_own(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text, errors="surrogateescape")
    assert roots(tmp_path) == (str(tmp_path), str(tmp_path))


def test_a_worktree_whose_repository_is_gone_is_itself(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "beside"))
    main.rename(tmp_path / "moved")
    assert roots(tmp_path / "beside") == (str(tmp_path / "beside"), str(tmp_path / "beside"))


def test_a_link_to_a_worktree_is_the_worktree(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main")
    (tmp_path / "link").symlink_to(main)
    assert roots(tmp_path / "link") == (str(main), str(main))
