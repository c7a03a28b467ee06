"""Which files git tracks: committed and staged ones, and nothing else; with the real git."""

from __future__ import annotations

from pathlib import Path

import pytest

from jackline.engine.git import find_tracked_files
from tests.support.repositories import Work


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def write(work: Work, *names: str) -> None:
    for name in names:
        path = work.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("words\n")


def seen(work: Work, *paths: str, **env: str) -> set[str]:
    found = find_tracked_files(str(work.tree), paths, {**work.env, **env})
    assert found is not None
    return set(found)


def test_committed_and_staged_files_are_tracked(work: Work) -> None:
    write(work, "committed.md", "staged.md", "loose.md")
    work.git("add", "committed.md")
    work.commit("one")
    work.git("add", "staged.md")
    assert seen(work, "committed.md", "staged.md", "loose.md", "missing.md") == {"committed.md", "staged.md"}


def test_a_file_that_is_staged_for_removal_is_not(work: Work) -> None:
    write(work, "a.md")
    work.git("add", "a.md")
    work.commit("one")
    work.git("rm", "-q", "--cached", "a.md")
    assert seen(work, "a.md") == set()


def test_a_file_that_was_deleted_is_not_but_for_the_commit_that_holds_it(work: Work) -> None:
    write(work, "a.md", "b.md")
    work.git("add", ".")
    work.commit("one")
    (work.tree / "a.md").unlink()
    assert seen(work, "a.md", "b.md") == {"b.md"}
    assert seen(work, "a.md", GIT_INDEX_FILE=str(work.tree / ".git" / "index")) == {"a.md"}
    work.git("update-index", "--skip-worktree", "a.md")  # as in a sparse checkout
    assert seen(work, "a.md") == {"a.md"}


def test_where_git_cannot_say_nothing_is_claimed(work: Work) -> None:
    write(work, "a.md")
    work.git("add", ".")
    (work.tree / ".git" / "index").write_bytes(b"half an index")
    assert find_tracked_files(str(work.tree), ["a.md"], work.env) is None
    assert find_tracked_files(str(work.tree), [], work.env) == frozenset()
    assert find_tracked_files(str(work.tree), ["a.md"], {"PATH": ""}) is None


def test_a_folder_is_no_file_and_a_star_is_only_a_star(work: Work) -> None:
    write(work, "docs/a.md")
    work.git("add", ".")
    assert seen(work, "docs", "docs/*.md", "*", ":/", "docs/a.md") == {"docs/a.md"}


def test_names_are_taken_as_they_are(work: Work) -> None:
    strange = ("with space.md", "-n", "ünïcode.md", "a'b\"c.md")
    write(work, *strange)
    work.git("add", "--", *strange)
    assert seen(work, *strange) == set(strange)


def test_a_path_is_found_however_it_is_written(work: Work) -> None:
    write(work, "docs/a.md")
    work.git("add", ".")
    assert seen(work, "./docs/a.md", "docs//a.md", "docs/../docs/a.md") == {
        "./docs/a.md", "docs//a.md", "docs/../docs/a.md",
    }  # fmt: skip


def test_what_lies_outside_is_not_tracked_and_hides_nothing_else(work: Work) -> None:
    write(work, "a.md")
    work.git("add", ".")
    assert seen(work, "../remote.git/HEAD", str(work.tree / "a.md"), "/etc/passwd", "", "a.md") == {"a.md"}


def test_the_index_that_git_names_is_the_one_that_counts(work: Work, tmp_path: Path) -> None:
    """As in a hook of `git commit -a`."""
    write(work, "a.md")
    other = str(tmp_path / "other-index")
    work.env["GIT_INDEX_FILE"] = other
    work.git("add", "a.md")
    del work.env["GIT_INDEX_FILE"]
    assert seen(work, "a.md") == set()
    assert seen(work, "a.md", GIT_INDEX_FILE=other) == {"a.md"}


def test_without_a_repository_or_a_folder_nothing_is_tracked(tmp_path: Path) -> None:
    work_env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    (tmp_path / "a.md").write_text("words\n")
    assert find_tracked_files(str(tmp_path), ["a.md"], work_env) == frozenset()
    assert find_tracked_files(str(tmp_path / "gone"), ["a.md"], work_env) == frozenset()
    assert find_tracked_files(str(tmp_path), ["a.md"], {"PATH": ""}) == frozenset()
