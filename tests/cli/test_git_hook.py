"""The learning gate as a hook of a real git: what it blocks, what it lets pass, and which hooks it leaves alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jackline.features.cases.git_hook import build_hook_text
from tests.cli.place import Ended, Place, is_one_line

PATH = f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin"
WITHOUT = "/usr/local/bin:/usr/bin:/bin"
LEARN = (
    "case", "learning", "add", "--kind", "doc-gap", "--summary", "caches are cold", "--repo-action", "docs",
    "--path", "docs/cache.md",
)  # fmt: skip


@pytest.fixture
def at(place: Place) -> Place:
    """A repository in which somebody may commit."""
    place.environ["PATH"] = PATH
    place.environ["GIT_CONFIG_NOSYSTEM"] = "1"
    for words in (("init", "-q"), ("config", "user.name", "Ada"), ("config", "user.email", "ada@example.org")):
        assert git(place, *words).code == 0
    (place.repository / ".gitignore").write_text(".agents/\n")
    git(place, "add", ".gitignore")
    assert git(place, "commit", "-qm", "begin").code == 0
    return place


def git(place: Place, *words: str, cwd: Path | None = None, **environ: str) -> Ended:
    done = subprocess.run(
        ["git", *words],
        cwd=cwd or place.repository,
        env=place.environment(**environ),
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def hook(place: Place, action: str, **more: Any) -> Ended:
    return place.type("case", "hook", action, **more)


def hook_file(place: Place) -> Path:
    return place.repository / ".git" / "hooks" / "pre-commit"


def write(place: Place, name: str, text: str = "words\n") -> None:
    path = place.repository / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def learn(place: Place) -> None:
    """An open case with a learning that names a file which is not there yet."""
    for words in (("case", "start", "why is it slow?", "--skip-intake"), LEARN):
        ended = place.type(*words)
        assert ended.code == 0, ended


# --- install, status, remove -----------------------------------------------------------------------------


def test_it_is_installed_once_and_can_be_executed(at: Place) -> None:
    first = hook(at, "install", environ={}).out
    assert first == f"installed: {hook_file(at)}\n"
    assert os.access(hook_file(at), os.X_OK)
    before = hook_file(at).stat()
    assert at.type("case", "hook", "install", "--json").json == {
        "path": str(hook_file(at)), "state": "installed", "changed": False,
    }  # fmt: skip
    assert hook_file(at).stat().st_mtime_ns == before.st_mtime_ns
    assert hook(at, "status").out == first


def test_it_is_removed_and_then_missing(at: Place) -> None:
    hook(at, "install")
    assert at.type("case", "hook", "remove", "--json").json["changed"] is True
    assert not hook_file(at).exists()
    assert at.type("case", "hook", "remove", "--json").json == {
        "path": str(hook_file(at)), "state": "missing", "changed": False,
    }  # fmt: skip


@pytest.mark.parametrize("action", ["install", "remove"])
def test_somebody_elses_hook_is_never_touched(at: Place, action: str) -> None:
    hook_file(at).write_text("#!/bin/sh\nmake lint\n")
    ended = hook(at, action)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "jackline case hook pre-commit" in ended.err
    assert hook_file(at).read_text() == "#!/bin/sh\nmake lint\n"
    assert at.type("case", "hook", "status", "--json").json["state"] == "foreign"


def test_a_link_is_somebody_elses(at: Place) -> None:
    target = at.folder / "shared-hook"
    target.write_text("#!/bin/sh\n")
    hook_file(at).symlink_to(target)
    assert hook(at, "install").code == 2
    assert target.read_text() == "#!/bin/sh\n"


def test_an_older_one_of_ours_is_written_anew(at: Place) -> None:
    hook(at, "install")
    text = hook_file(at).read_text()
    hook_file(at).write_text(build_hook_text("# of another version\n"))
    assert at.type("case", "hook", "status", "--json").json["state"] == "outdated"
    assert at.type("case", "hook", "install", "--json").json["changed"] is True
    assert hook_file(at).read_text() == text


def test_one_of_ours_that_got_lines_of_somebody_else_is_theirs(at: Place) -> None:
    hook(at, "install")
    with hook_file(at).open("a") as file:
        file.write("make lint\n")
    text = hook_file(at).read_text()
    for action in ("install", "remove"):
        ended = hook(at, action)
        assert (ended.code, is_one_line(ended), "is not only jackline's" in ended.err) == (2, True, True), ended
    assert hook_file(at).read_text() == text


def test_the_hooks_folder_of_git_is_used(at: Place) -> None:
    git(at, "config", "core.hooksPath", "tools/hooks")
    hook(at, "install")
    assert (at.repository / "tools" / "hooks" / "pre-commit").exists()
    assert not hook_file(at).exists()


def test_it_is_found_from_a_folder_below(at: Place) -> None:
    (at.repository / "src").mkdir()
    hook(at, "install", cwd=at.repository / "src")
    assert hook_file(at).exists()


@pytest.mark.parametrize("action", ["install", "remove", "status"])
def test_outside_of_a_repository_it_says_so(place: Place, action: str) -> None:
    place.environ["GIT_CEILING_DIRECTORIES"] = str(place.folder)
    ended = hook(place, action)
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "is not in a git repository" in ended.err


def test_a_git_that_cannot_be_asked_is_no_missing_repository(at: Place) -> None:
    ended = hook(at, "install", environ={"PATH": str(at.folder)})
    assert (ended.code, is_one_line(ended)) == (2, True), ended
    assert "git cannot find the hooks" in ended.err


def test_an_unknown_word_is_refused(at: Place) -> None:
    ended = hook(at, "instal")
    assert (ended.code, is_one_line(ended)) == (2, True)
    assert "did you mean install?" in ended.err


# --- what it holds ---------------------------------------------------------------------------------------


def test_a_commit_waits_for_an_unresolved_learning(at: Place) -> None:
    hook(at, "install")
    learn(at)
    write(at, "code.py")
    git(at, "add", "code.py")
    held = git(at, "commit", "-qm", "code")
    assert held.code == 1
    assert "L001 caches are cold: docs/cache.md is not tracked by git" in held.err
    assert "a learning of case" in held.err
    assert git(at, "log", "--oneline").out.count("\n") == 1


def test_a_staged_file_counts_as_tracked(at: Place) -> None:
    hook(at, "install")
    learn(at)
    write(at, "docs/cache.md")
    assert git(at, "commit", "-qm", "nothing", "--allow-empty").code == 1
    git(at, "add", "docs/cache.md")
    done = git(at, "commit", "-qm", "learned")
    assert (done.code, done.err) == (0, "")


def test_what_the_commit_itself_takes_in_counts_too(at: Place) -> None:
    """`git commit FILE` creates a separate index, and `git commit -a` stages every change."""
    hook(at, "install")
    write(at, "docs/cache.md")
    git(at, "add", "docs/cache.md")
    assert git(at, "commit", "-qm", "before").code == 0
    learn(at)
    git(at, "rm", "-q", "--cached", "docs/cache.md")
    write(at, "other.md")
    git(at, "add", "--intent-to-add", "other.md")
    assert git(at, "commit", "-qm", "without", "other.md").code == 0, "of these files only: the rest stays tracked"
    assert git(at, "commit", "-qm", "without it").code == 1


def test_a_linked_worktree_uses_its_own_case(at: Place) -> None:
    hook(at, "install")
    learn(at)
    other = at.folder / "other"
    assert git(at, "worktree", "add", "-q", str(other)).code == 0
    assert git(at, "commit", "-qm", "elsewhere", "--allow-empty", cwd=other).code == 0
    assert at.type("case", "start", "there", "--skip-intake", cwd=other).code == 0
    assert at.type(*LEARN, cwd=other).code == 0
    assert git(at, "commit", "-qm", "elsewhere", "--allow-empty", cwd=other).code == 1


def test_a_person_may_pass_it_by(at: Place) -> None:
    hook(at, "install")
    learn(at)
    assert git(at, "commit", "-qm", "now", "--allow-empty", "--no-verify").code == 0


# --- what it lets through --------------------------------------------------------------------------------


def test_without_a_case_or_a_home_it_says_nothing_and_makes_nothing(at: Place) -> None:
    hook(at, "install")
    done = git(at, "commit", "-qm", "free", "--allow-empty")
    assert (done.code, done.err) == (0, "")
    assert not at.home.exists()


def test_without_jackline_on_the_path_one_line_is_printed(at: Place) -> None:
    hook(at, "install")
    learn(at)
    done = git(at, "commit", "-qm", "free", "--allow-empty", PATH=WITHOUT)
    assert (done.code, len(done.err.splitlines())) == (0, 1)
    assert "jackline is not on the PATH" in done.err


@pytest.mark.parametrize("broken", ["run", "home", "settings"])
def test_trouble_of_jacklines_own_holds_no_commit(at: Place, broken: str) -> None:
    hook(at, "install")
    learn(at)
    if broken == "run":
        at.environ["JACKLINE_RUN"] = "elsewhere"
    elif broken == "home":
        (at.home / "state.sqlite").write_bytes(b"this is no database" * 100)
    else:
        at.environ["JACKLINE_LEASE_SECONDS"] = "soon"
    done = git(at, "commit", "-qm", "free", "--allow-empty")
    assert done.code == 0, done
    assert "jackline: " in done.err
    assert "Traceback" not in done.err


def test_an_older_jackline_that_knows_no_hook_holds_no_commit(at: Place) -> None:
    hook(at, "install")
    old = at.folder / "old"
    old.mkdir()
    (old / "jackline").write_text("#!/bin/sh\necho 'jackline: unknown command' >&2\nexit 2\n")
    (old / "jackline").chmod(0o755)
    assert git(at, "commit", "-qm", "free", "--allow-empty", PATH=f"{old}:{WITHOUT}").code == 0


def test_the_line_for_a_hook_of_ones_own_holds_a_commit_too(at: Place) -> None:
    """The line that a refused install shows."""
    hook_file(at).write_text("#!/bin/sh\n")
    line = hook(at, "install").err.rpartition("by hand: ")[2]
    hook_file(at).write_text(f"#!/bin/sh\n{line}\necho linted >&2\n")
    hook_file(at).chmod(0o755)
    assert git(at, "commit", "-qm", "free", "--allow-empty").err == "linted\n"
    learn(at)
    held = git(at, "commit", "-qm", "held", "--allow-empty")
    assert (held.code, "linted" in held.err) == (1, False)


@pytest.mark.parametrize("path", [WITHOUT, PATH])
def test_the_line_holds_also_in_a_hook_that_ends_at_the_first_failure(at: Place, path: str) -> None:
    """As husky runs them, with `sh -e`: what is not there must not hold a commit."""
    hook_file(at).write_text("#!/bin/sh\n")
    line = hook(at, "install").err.rpartition("by hand: ")[2]
    hook_file(at).write_text(f"#!/bin/sh -e\n{line}\necho linted >&2\n")
    hook_file(at).chmod(0o755)
    learn(at)
    done = git(at, "commit", "-qm", "free", "--allow-empty", PATH=path)
    assert (done.code, "linted" in done.err) == ((0, True) if path == WITHOUT else (1, False))
