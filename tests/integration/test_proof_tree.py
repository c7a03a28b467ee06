"""A proof is bound to the files that it ran on: a change of them voids it, new files are named and ignored."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jackline.clock import boot_ms
from jackline.domain.records import Check
from jackline.domain.run_inputs import PROOF, CheckEnded
from jackline.engine.attempt import RunInput
from jackline.engine.check import CheckJob
from jackline.engine.git import Git
from jackline.engine.process import Warden
from jackline.engine.review_copy import ReviewCopies
from jackline.engine.tree_id import TreeUnreadable
from jackline.engine.work_trees import UNREADABLE, WorkTrees
from tests.integration.test_tree_id import git, make_repository
from tests.integration.test_tree_id import repo as repo  # noqa: PLC0414 - the fixture


@pytest.fixture(scope="module")
def warden() -> Iterator[Warden]:
    with Warden.start(deadline_ms=boot_ms() + 600_000, marker={}) as started:
        yield started


@pytest.fixture
def trees(repo: Path, tmp_path: Path, warden: Warden) -> WorkTrees:
    return open_trees(repo, tmp_path, warden)


def open_trees(workspace: Path, tmp_path: Path, warden: Warden) -> WorkTrees:
    workspace_git = Git(workspace=str(workspace), env=dict(os.environ), warden=warden)
    return WorkTrees(workspace_git, str(tmp_path / "run"))


def prove(command: str, folder: Path, trees: WorkTrees, warden: Warden) -> RunInput:
    inbox: queue.SimpleQueue[RunInput | BaseException] = queue.SimpleQueue()
    check = Check(run_id="r", step=1, attempt=1, command=command, started_at=0)
    job = CheckJob(PROOF, check, lambda: 1, inbox.put, trees=trees)
    job.start(warden, dict(os.environ), str(folder))
    received = inbox.get(timeout=60)
    assert isinstance(received, RunInput)
    return received


def ended(received: RunInput) -> CheckEnded:
    assert isinstance(received.input, CheckEnded)
    return received.input


def test_a_proof_has_the_tree_that_it_ran_on(repo: Path, trees: WorkTrees, warden: Warden) -> None:
    (repo / "new.txt").write_text("new\n")
    for command, code in (("true", 0), ("exit 3", 3)):
        received = prove(command, repo, trees, warden)
        assert (ended(received).exit_code, ended(received).changed) == (code, ())
        assert received.check is not None
        assert ended(received).tree == received.check.tree == trees.read_id()
        assert [fact.kind for fact in received.facts] == ["check.tree"]


@pytest.mark.parametrize(("name", "code"), [("SEGV", 139), ("ABRT", 134), ("KILL", None)])
def test_a_program_that_crashes_has_failed(
    repo: Path, trees: WorkTrees, warden: Warden, name: str, code: int | None
) -> None:
    """Some shells replace themselves by the last command; one that was killed from outside has found nothing."""
    received = prove(f"kill -{name} $$", repo, trees, warden)
    assert ended(received).exit_code == code
    assert received.check is not None
    assert received.check.exit_code == code


@pytest.mark.parametrize(
    "command",
    [
        "echo x > a.txt", "rm a.txt", "chmod +x a.txt", "echo x > x.txt; git add x.txt",
        "git rm -q --cached a.txt; rm a.txt",
        "git update-index --assume-unchanged a.txt; echo x > a.txt", "echo x > a.txt; git commit -qam x",
    ],
)  # fmt: skip
def test_a_change_of_tracked_files_voids_it(repo: Path, trees: WorkTrees, warden: Warden, command: str) -> None:
    before = trees.read_id()
    end = ended(prove(command, repo, trees, warden))
    assert (end.tree, len(end.changed)) == (before, 1)


def test_what_a_proof_only_reads_writes_back_or_commits_is_no_change(
    repo: Path, trees: WorkTrees, warden: Warden
) -> None:
    (repo / "new.txt").write_text("new\n")
    command = "cp a.txt b; echo x > a.txt; mv b a.txt; git add -A; git commit -qm all; echo x > x.log"
    assert ended(prove(command, repo, trees, warden)).changed == ()


def test_new_files_of_a_proof_are_named_and_ignored_until_they_change(
    repo: Path, trees: WorkTrees, warden: Warden, tmp_path: Path
) -> None:
    (repo / "report.txt").write_text("old\n")
    command = "date +%N >> report.txt; date +%N > coverage"
    assert ended(prove(command, repo, trees, warden)).changed == ("report.txt",)
    (repo / "coverage").unlink()
    before, written = trees.read_id(), (repo / "report.txt").read_text()
    received = prove(command, repo, trees, warden)
    end = ended(received)
    assert (end.exit_code, end.changed, end.tree) == (0, (), before)
    data = received.facts[0].data
    assert (data["untracked"], data["rewritten"]) == (["coverage"], ["report.txt"])
    assert trees.read_id() == open_trees(repo, tmp_path, warden).read_id() == before
    copies = ReviewCopies(trees, "r", str(tmp_path / "cache"))
    copy = copies.prepare_review(end.tree, 1, 0)
    assert (Path(copy.path) / "report.txt").read_text() == written
    assert not (Path(copy.path) / "coverage").exists()
    copies.finish_review(copy)
    assert (repo / "coverage").exists()
    (repo / "coverage").write_text("by somebody\n")
    assert trees.read_id() != before
    (repo / "report.txt").write_text("by somebody\n")
    again = prove("date +%N > report.txt", repo, trees, warden)  # what is there before a proof belongs to it
    assert (ended(again).changed, ended(again).tree in {before, ""}) == ((), False)
    assert ended(again).tree == trees.read_id()
    git(repo, "add", "report.txt")
    assert trees.read_id() != ended(again).tree


@pytest.mark.parametrize("command", ["sed -i s/x=1/x_=_1/ b.py; grep x b.py", "rm -f b.py", "chmod +x b.py"])
def test_a_change_of_new_files_of_the_work_voids_it_until_it_has_ended(
    repo: Path, trees: WorkTrees, warden: Warden, command: str
) -> None:
    """Most agents leave new files uncommitted, and a formatter may be part of the proof."""
    (repo / "b.py").write_text("x=1\n")
    before = trees.read_id()
    end = ended(prove(command, repo, trees, warden))
    assert (end.changed, end.tree) == (("b.py",), before)
    assert trees.read_id() != before
    trees.begin_proof()  # one that a crash interrupts
    end = ended(prove(command, repo, trees, warden))
    assert (end.changed, end.tree) == ((), trees.read_id())
    (repo / "b.py").unlink(missing_ok=True)
    (repo / "b.py").write_text("x=1\n")
    assert ended(prove(command, repo, trees, warden)).changed == ("b.py",)


def test_files_that_every_proof_rewrites_are_ignored_although_others_void_it(
    repo: Path, trees: WorkTrees, warden: Warden
) -> None:
    """A formatter of tracked files, and a database that is new, or was there before."""
    (repo / "old.db").write_text("old\n")
    command = "echo x > a.txt; for db in old.db new.db; do date +%N >> $db; done"
    assert ended(prove(command, repo, trees, warden)).changed == ("a.txt", "old.db")
    received = prove(command, repo, trees, warden)
    assert (ended(received).changed, received.facts[0].data["rewritten"]) == ((), ["new.db", "old.db"])
    (repo / "late.db").write_text("old\n")
    received = prove("date +%N > late.db; date +%N > old.db", repo, trees, warden)
    assert (ended(received).changed, received.facts[0].data["rewritten"]) == (("late.db",), ["old.db"])
    for folder in (Path(trees.folder) / "objects").glob("??"):  # as if they had been those of the repository
        shutil.rmtree(folder)
    (repo / "a.txt").write_text("later\n")
    assert ended(prove("date +%N > late.db", repo, trees, warden)).changed == ("late.db",)


def test_a_file_that_only_proofs_write_voids_none_whichever_was_the_last_one(
    repo: Path, trees: WorkTrees, warden: Warden
) -> None:
    """Such as the objects of a build, of which each proof makes again what the agent has changed."""
    prove("date +%N > a.o; date +%N > b.o", repo, trees, warden)
    for command in ("date +%N > a.o", "date +%N > a.o", "date +%N > b.o"):
        assert ended(prove(command, repo, trees, warden)).changed == ()
    assert trees.find_proof_only_files() == {"a.o", "b.o"}


def test_a_tracked_change_after_the_proof_is_another_tree(repo: Path, trees: WorkTrees, warden: Warden) -> None:
    end = ended(prove("echo x > coverage", repo, trees, warden))
    (repo / "a.txt").write_text("later\n")
    assert trees.read_id() != end.tree


def test_a_proof_that_removes_the_repository_proves_nothing(repo: Path, trees: WorkTrees, warden: Warden) -> None:
    end = ended(prove("rm -rf .git", repo, trees, warden))
    assert (end.exit_code, end.tree) == (None, "")
    assert "cannot be read" in end.detail


def test_an_agent_that_removes_the_repository_does_not_escape(repo: Path, trees: WorkTrees, warden: Warden) -> None:
    trees.record_repository()
    (repo / ".git").rename(repo.parent / "moved")
    with pytest.raises(TreeUnreadable, match="and no longer is"):
        prove("true", repo, trees, warden)
    assert trees.read_id() == UNREADABLE


def test_the_repository_around_does_not_stand_in_for_one_that_is_gone(
    repo: Path, tmp_path: Path, warden: Warden
) -> None:
    inner = make_repository(repo / "inner")
    trees = open_trees(inner / "sub", tmp_path, warden)
    trees.record_repository()
    assert trees.read_id() == git(inner, "rev-parse", "HEAD^{tree}")
    (inner / ".git").rename(tmp_path / "moved")
    assert trees.read_id() == UNREADABLE
    with pytest.raises(TreeUnreadable, match="its own is gone"):
        prove("true", inner, trees, warden)
    (tmp_path / "moved").rename(inner / ".git")
    moved = repo / "elsewhere"
    inner.rename(moved)
    assert open_trees(moved / "sub", tmp_path, warden).read_id() == git(moved, "rev-parse", "HEAD^{tree}")


def test_a_repository_that_was_made_in_the_workspace_is_named(repo: Path, tmp_path: Path, warden: Warden) -> None:
    """Its own is not gone."""
    trees = open_trees(repo / "sub", tmp_path, warden)
    trees.record_repository()
    git(repo / "sub", "init", "-q")
    with pytest.raises(TreeUnreadable, match="/sub: one was made inside its own"):
        trees.compute()
    for folder in (repo / "sub", repo):
        (folder / ".git").rename(folder / "moved")
    with pytest.raises(TreeUnreadable, match="its own is gone"):
        trees.compute_raw(always=True)


def test_a_file_that_a_run_hides_is_not_in_the_proved_tree(repo: Path, trees: WorkTrees, warden: Warden) -> None:
    """Only what was outside of the sparse working tree when the run began counts as in the index."""
    (repo / "hard.txt").write_text("fails\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "hard")
    git(repo, "sparse-checkout", "set", "--no-cone", "/*", "!/sub")
    trees.record_repository()
    assert trees.read_id() == git(repo, "rev-parse", "HEAD^{tree}")
    git(repo, "update-index", "--skip-worktree", "hard.txt")
    (repo / "hard.txt").unlink()
    assert git(repo, "status", "--porcelain") == ""
    trees.record_repository()  # a later attempt changes nothing
    received = prove("! grep fails *.txt", repo, trees, warden)
    assert ended(received).exit_code == 0
    assert trees.list_changed(git(repo, "rev-parse", "HEAD^{tree}"), ended(received).tree) == ("hard.txt",)
    assert received.facts[0].data["absent"] == 1


def test_a_decoy_does_not_stand_in_for_the_workspace(repo: Path, trees: WorkTrees, warden: Warden) -> None:
    """The proof runs in the workspace, whatever folder the configuration names as the working tree."""
    before = trees.read_id()
    decoy = repo.parent / "decoy"
    decoy.mkdir()
    (decoy / "a.txt").write_text("nice\n")
    git(repo, "config", "core.worktree", str(decoy))
    assert trees.read_id() == before
    assert ended(prove("echo x > a.txt", repo, trees, warden)).changed == ("a.txt",)


def test_a_broken_repository_is_never_proved(repo: Path, trees: WorkTrees, warden: Warden) -> None:
    (repo / ".git" / "HEAD").write_text("broken")
    assert trees.read_id() == UNREADABLE
    with pytest.raises(TreeUnreadable):
        prove("true", repo, trees, warden)


EDITS = st.one_of(
    st.tuples(
        st.sampled_from(["write", "new"]), st.sampled_from(["a.txt", "sub/b.txt", "c", "d\ne"]), st.sampled_from("xyz")
    ),
    st.tuples(
        st.sampled_from(["delete", "executable", "hide"]), st.sampled_from(["a.txt", "sub/b.txt", "c"]), st.just("")
    ),
    st.tuples(st.sampled_from(["stage", "commit", "unstage", "touch"]), st.just(""), st.just("")),
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EDITS, min_size=3, max_size=8))
def test_the_id_is_equal_if_and_only_if_the_content_is(
    repo: Path, tmp_path: Path, warden: Warden, edits: list[tuple[str, str, str]]
) -> None:
    trees, seen = open_trees(repo, tmp_path, warden), dict[str, str]()
    for kind, name, text in edits:
        path = repo / name
        match kind:
            case "write" | "new":
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
            case "delete":
                path.unlink(missing_ok=True)
            case "executable" if path.exists():
                path.chmod(0o755)
            case "hide":
                subprocess.run(["git", "update-index", "--assume-unchanged", name], cwd=repo, check=False)
            case "stage":
                git(repo, "add", "-A")
            case "commit":
                git(repo, "commit", "-q", "--allow-empty", "-am", "x")
            case "unstage":
                git(repo, "reset", "-q")
            case "touch":
                os.utime(repo / ".gitignore", (1, 1))
        content = str(
            sorted(
                (str(one.relative_to(repo)), one.stat().st_mode & 0o100, one.read_bytes())
                for one in repo.rglob("*")
                if one.is_file() and ".git" not in one.relative_to(repo).parts
            )
        )
        tree = trees.read_id()
        assert seen.setdefault(content, tree) == tree
        assert len(set(seen.values())) == len(seen)


def test_without_a_repository_a_proof_is_not_bound(tmp_path: Path, warden: Warden) -> None:
    (tmp_path / "plain").mkdir()
    subprocess.run(["touch", str(tmp_path / "plain" / "x")], check=True)
    trees = open_trees(tmp_path / "plain", tmp_path, warden)
    received = prove("echo x > x", tmp_path / "plain", trees, warden)
    assert (ended(received).exit_code, ended(received).tree, received.facts) == (0, "", ())
