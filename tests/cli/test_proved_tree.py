"""A run succeeds only with the files that were proved; the host commits if it is asked to."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.cli.place import SAY, Ended, Place
from tests.cli.test_compare import make_git


@pytest.fixture
def repository(place: Place) -> Place:
    make_git(place)
    (place.repository / "a.txt").write_text("one\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "files")
    return place


def git(place: Place, *words: str) -> str:
    environ = place.environment()
    done = subprocess.run(
        ["git", *words], cwd=place.repository, env=environ, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def write(text: str, name: str = "a.txt") -> dict[str, Any]:
    return {
        "call": {"tool": "Bash", "input": {"command": f"echo {text} > {name}"}, "run": f"printf '{text}\\n' > {name}"}
    }


def play(place: Place, *steps: dict[str, Any], proof: str, words: tuple[str, ...] = ()) -> Ended:
    return place.play(*steps, words=("mend it", "--run-id", "r", "--proof", proof, "--json", *words))


def test_a_proof_that_changes_tracked_files_never_ends_as_succeeded(repository: Place) -> None:
    """Such as an agent that lets the tests repair the work, or break it after they have passed."""
    ended = play(repository, SAY, proof="date +%N > a.txt", words=("--max-iterations", "1"))
    assert (ended.code, ended.json["state"], ended.json["proof"]) == (16, "failed", "unverified")
    assert "files changed while the proof ran: a.txt" in ended.json["detail"]


def test_a_proof_that_changes_new_files_of_the_work_never_ends_as_succeeded(repository: Place) -> None:
    """An agent that lets its own script destroy the work after it has passed."""
    step = write("good", "work.txt")
    script = "grep -q good work.txt && echo EVIL > work.txt"
    lie = {"call": {"tool": "Bash", "input": {"command": "./lie.sh"}, "run": f"echo '{script}' > check.sh"}}
    ended = play(repository, step, lie, SAY, proof="sh check.sh", words=("--max-iterations", "1"))
    assert (ended.code, ended.json["state"], ended.json["proof"]) == (16, "failed", "refuted")


def test_a_database_that_was_there_before_costs_one_more_proof_and_is_named(repository: Place) -> None:
    (repository.repository / "old.db").write_text("old\n")
    proof = "date +%N >> old.db"
    assert play(repository, write("two"), SAY, proof=proof).json["proof"] == "proved"
    assert len(repository.type("show", "r", "--json").json["checks"]) == 2
    named = "left out   there before, but rewritten by each proof and ignored: old.db\n"
    assert named in repository.type("show", "r").out


def test_an_agent_that_removes_the_repository_never_ends_as_succeeded(repository: Place) -> None:
    gone = {"call": {"tool": "Bash", "input": {"command": "./tidy.sh"}, "run": "mv .git .old"}}
    ended = play(repository, gone, SAY, proof="true", words=("--max-iterations", "1"))
    assert (ended.code, ended.json["state"]) == (16, "failed")
    assert "was in a git repository when the run began" in ended.json["detail"]


def test_the_proved_tree_is_stored_and_new_files_are_ignored(repository: Place) -> None:
    ended = play(repository, write("two"), SAY, proof="grep two a.txt && echo x > report")
    assert (ended.code, ended.json["proof"]) == (0, "proved")
    shown = repository.type("show", "r", "--json").json
    text = repository.type("show", "r").out
    assert f"proved, tree {shown['checks'][-1]['tree'][:12]}: grep two" in text
    assert "left out   written by the proof and ignored: report\n" in text
    assert "written by the proof and ignored: report" in repository.type("logs", "r").out
    (repository.repository / "report").unlink()
    git(repository, "add", "-A")
    assert shown["checks"][-1]["tree"] == git(repository, "write-tree")


@pytest.mark.full
def test_a_proof_that_takes_too_long_is_named(repository: Place) -> None:
    ended = play(repository, SAY, proof="sleep 60", words=("--timeout-seconds", "1"))
    assert (ended.code, ended.json["detail"]) == (11, "the proof exceeded its timeout")


def test_a_proof_that_passes_before_any_work_ends_the_run(repository: Place) -> None:
    words = ("--proof-must-fail-first",)
    ended = play(repository, write("two"), SAY, proof="grep one a.txt", words=words)
    assert ended.code == 16
    assert "passes before any work" in ended.json["detail"]
    shown = repository.type("show", "r").out
    assert "start another run with another proof, or without --proof-must-fail-first\n" in shown
    assert "jackline resume" not in shown
    assert (repository.repository / "a.txt").read_text() == "one\n"


def test_a_proof_that_fails_before_the_work_and_passes_after_it(repository: Place) -> None:
    ended = play(repository, write("two"), SAY, proof="grep two a.txt", words=("--proof-must-fail-first",))
    assert (ended.code, ended.json["proof"]) == (0, "proved")


def test_a_proof_that_cannot_be_run_has_not_failed_first(repository: Place) -> None:
    ended = play(repository, write("two"), SAY, proof="no-such-program", words=("--proof-must-fail-first",))
    assert (ended.code, "cannot be run before the work (exit 127)" in ended.json["detail"]) == (16, True)
    assert "or, if the proof can be run now: jackline resume r\n" in repository.type("show", "r").out
    assert (repository.repository / "a.txt").read_text() == "one\n"


def test_the_host_commits_what_the_agent_left(repository: Place) -> None:
    (repository.repository / ".gitignore").write_text("*.log\n")
    steps = (write("two"), write("new", "new.txt"), write("log", "x.log"), SAY)
    ended = play(repository, *steps, proof='test -z "$(git status --porcelain)"', words=("--commit",))
    assert (ended.code, ended.json["proof"]) == (0, "proved")
    assert git(repository, "log", "-1", "--format=%s|%b|%an") == "mend it|Committed by jackline in run r.\n|a"
    assert git(repository, "show", "--name-only", "--format=").split() == [".gitignore", "a.txt", "new.txt"]
    metadata = json.loads((repository.home / "runs" / "r" / "metadata.json").read_text())
    assert git(repository, "rev-parse", "HEAD") in str(metadata["commits"])


def test_what_the_proof_changes_is_committed_and_proved_again(repository: Place) -> None:
    ended = play(repository, write("two"), SAY, proof="echo locked > lock && git add -N lock", words=("--commit",))
    assert (ended.code, ended.json["proof"]) == (0, "proved"), ended
    assert (git(repository, "show", "HEAD:lock"), git(repository, "status", "--porcelain")) == ("locked", "")


def test_what_an_interrupted_proof_wrote_is_not_committed(repository: Place) -> None:
    proof = "test -f out || date > out; grep two a.txt"
    words = ("mend it", "--run-id", "r", "--proof", proof, "--commit")
    crashed = repository.play(write("two"), SAY, words=words, environ={"JACKLINE_CRASH_AT": "check.finished:2"})
    assert crashed.code < 0
    ended = repository.type("resume", "r", "--json")
    assert (ended.code, ended.json["proof"]) == (0, "proved"), ended
    assert git(repository, "status", "--porcelain") == "?? out"


def test_a_hook_that_changes_files_is_proved_and_one_that_refuses_is_told(repository: Place) -> None:
    hook = repository.repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nsed -i s/two/three/ a.txt && git add a.txt\n")
    hook.chmod(0o755)
    assert play(repository, write("two"), SAY, proof="grep three a.txt", words=("--commit",)).code == 0
    hook.write_text("#!/bin/sh\necho no such style >&2; exit 128\n")  # git makes it 1, its own fatal errors are 128
    words = ("mend it", "--run-id", "s", "--proof", "true", "--json", "--commit", "--max-iterations", "1")
    ended = repository.play(write("four"), SAY, words=words)
    assert (ended.code, ended.json["state"]) == (16, "failed")
    assert "the host's commit failed (exit 1): no such style" in ended.json["detail"]


def test_a_commit_that_git_cannot_make_ends_the_run_and_a_resume_makes_it(repository: Place) -> None:
    git(repository, "config", "commit.gpgsign", "true")
    git(repository, "config", "gpg.program", "/bin/false")
    ended = repository.play(write("two"), SAY, words=("mend it", "--run-id", "r", "--commit", "--json"))
    assert (ended.code, ended.json["failure"], ended.json["iteration"]) == (1, "no_commit", 1), ended
    reason = "git commit ended with exit code 128: gpg failed to sign the data; failed to write commit object"
    assert ended.json["detail"] == f"the host cannot commit the work: {reason}; correct that, then resume the run"
    assert "try again: jackline resume r\n" in repository.type("show", "r").out
    git(repository, "config", "commit.gpgsign", "false")
    (repository.repository / ".git" / "index.lock").touch()
    locked = repository.type("resume", "r", "--json").json
    assert (locked["failure"], "index.lock': File exists" in locked["detail"]) == ("no_commit", True), locked
    (repository.repository / ".git" / "index.lock").unlink()
    assert repository.type("resume", "r", "--json").json["state"] == "succeeded"
    assert git(repository, "show", "HEAD:a.txt") == "two"


def test_work_that_git_does_not_take_is_told(repository: Place) -> None:
    """The agent can repair it: line endings, or an encoding. A hook may give its own reason."""
    git(repository, "config", "core.safecrlf", "true")
    git(repository, "config", "core.autocrlf", "input")
    hook = repository.repository / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\n[ "$1" = prepared ] && [ -f closed ] && echo no releases >&2 && exit 1; exit 0\n')
    hook.chmod(0o755)
    turns = (
        "printf 'a\\r\\n' > permission.lock",
        "printf 'b\\r\\n' > a.txt; echo a > permission.lock",
        "echo b > a.txt; touch closed",
        "rm closed",
    )
    script = " ".join(f"{number}) {words};;" for number, words in enumerate(turns, 1))
    words = ("--agent", "command", "--commit", "--run-id", "r", "--json", "--", "sh", "-c")
    ended = repository.type("run", "mend it", *words, f"case $JACKLINE_TURN in {script} esac")
    assert (ended.code, ended.json["iteration"]) == (0, 4), ended
    assert git(repository, "show", "--name-only", "--format=").split() == ["a.txt", "permission.lock"]
    logs = repository.type("logs", "r").out
    for name in ("permission.lock", "a.txt"):
        assert f"the host cannot commit the work: git add failed: CRLF would be replaced by LF in {name}" in logs
    assert "the host's commit failed (exit 128): no releases; " in logs


def test_work_that_the_host_cannot_add_is_named(repository: Place) -> None:
    """Files below a submodule that is not checked out are part of what is proved."""
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{git(repository, 'rev-parse', 'HEAD')},sub")
    git(repository, "commit", "-qm", "submodule")
    (repository.repository / "sub").mkdir()
    (repository.repository / ".gitignore").write_text("*.log\n")
    (repository.repository / "sub" / "a.log").write_text("ignored\n")
    ended = play(repository, write("v2", "sub/impl"), SAY, proof="true", words=("--commit", "--max-iterations", "1"))
    assert (ended.code, ended.json["state"]) == (16, "failed")
    assert "below a submodule that is not checked out: sub/impl;" in ended.json["detail"]
    (repository.repository / "sub" / "impl").unlink()
    assert repository.type("resume", "r", "--max-iterations", "2", "--json").json["state"] == "succeeded"
    assert (repository.repository / "sub" / "a.log").exists()


def test_the_host_does_not_commit_to_the_repository_around(repository: Place) -> None:
    """Such as that of a home folder, in which the workspace is once its own repository is gone."""
    git(repository, "init", "-q", "..")
    gone = {"call": {"tool": "Bash", "input": {"command": "./tidy.sh"}, "run": "rm -rf .git"}}
    ended = repository.play(gone, SAY, words=("mend it", "--commit", "--json", "--max-iterations", "1"))
    assert (ended.code, "its own is gone" in ended.json["detail"]) == (16, True), ended
    assert git(repository, "ls-files", "--full-name", "..") == ""


@pytest.mark.full
def test_work_that_changes_moves_although_a_hook_always_prints_the_same(repository: Place) -> None:
    hook = repository.repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no such style >&2; exit 1\n")
    hook.chmod(0o755)
    script = json.dumps(
        {"version": 1, "session": False, "steps": [{"edit": {"path": "a.txt", "append": "more\n"}}, SAY]}
    )
    same = json.dumps({"version": 1, "session": False, "steps": [write("four"), SAY]})
    for name, text, failure in (("moves", script, "proof"), ("stays", same, "no_progress")):
        (repository.folder / name).write_text(text)
        words = ("--agent", "scripted", "--script", str(repository.folder / name), "--proof", "true", "--json")
        ended = repository.type("run", "mend it", *words, "--commit", "--max-iterations", "3")
        assert (ended.code, ended.json["failure"]) == (16, failure), ended


def test_the_host_commits_only_to_the_branch_of_the_run(repository: Place) -> None:
    turns = ("echo hi > b; git checkout -q --detach", "git switch -qc other", "git switch -q jackline/w")
    script = " ".join(f"{number}) {words};;" for number, words in enumerate(turns, 1))
    script = f"case $JACKLINE_TURN in {script} esac"
    words = ("--agent", "command", "--worktree", "w", "--commit", "--run-id", "r", "--json", "--", "sh", "-c", script)
    ended = repository.type("run", "mend it", *words)
    assert (ended.code, ended.json["iteration"]) == (0, 3), ended
    assert git(repository, "show", "jackline/w:b") == "hi"
    assert git(repository, "rev-list", "--count", "--all", "^HEAD") == "1"
    logs = repository.type("logs", "r").out
    for where in ("HEAD is detached", "the worktree is on other"):
        assert f"{where}: switch back to the branch jackline/w" in logs


def test_only_the_author_that_git_does_not_know_is_jackline(repository: Place) -> None:
    git(repository, "config", "--rename-section", "user", "committer")
    git(repository, "config", "user.useConfigOnly", "true")
    assert play(repository, write("two"), SAY, proof="true", words=("--commit",)).code == 0
    assert git(repository, "log", "-1", "--format=%an %cn") == "jackline a"


def test_nothing_to_commit_makes_no_commit(repository: Place) -> None:
    before = git(repository, "rev-parse", "HEAD")
    assert play(repository, SAY, proof="true", words=("--commit",)).code == 0
    assert git(repository, "rev-parse", "HEAD") == before


def test_without_git_a_proof_is_not_bound_to_a_tree(place: Place) -> None:
    assert play(place, SAY, proof="true").code == 0
    assert "proved, not bound to a tree: true" in place.type("show", "r").out
    refused = place.play(SAY, words=("mend it", "--run-id", "s", "--commit"))
    assert (refused.code, "--commit needs a git repository" in refused.err) == (2, True), refused


def test_a_broken_repository_ends_a_run_with_reviewers_before_any_work(repository: Place) -> None:
    (repository.repository / ".git" / "HEAD").write_text("broken")
    ended = play(repository, write("two"), SAY, proof="true", words=("--review", "scripted"))
    assert (ended.code, ended.json["failure"]) == (1, "worktree")
    assert "git rev-parse failed" in ended.json["detail"]
    assert "Traceback" not in ended.err
    assert (repository.repository / "a.txt").read_text() == "one\n"
