"""The copy for a reviewer: the proved files, nothing of the worker's repository, and the workspace is restored."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.clock import boot_ms
from jackline.engine.git import Git, GitFailed
from jackline.engine.process import Warden
from jackline.engine.review_copy import ReviewCopies, ReviewCopy, ReviewCopyFailed, ReviewEnd, describe_restore
from jackline.engine.review_seat import read_work_diff
from jackline.engine.tree_id import TreeUnreadable, verify_objects
from jackline.engine.work_trees import WorkTrees
from tests.integration.test_tree_id import add_submodule, git, make_repository
from tests.integration.test_tree_id import repo as repo  # noqa: PLC0414 - the fixture

RUN = "r-1"
WARDENS: list[Warden] = []  # one for all tests: each git command would start its own


@pytest.fixture(scope="module", autouse=True)
def warden() -> Iterator[None]:
    with Warden.start(deadline_ms=boot_ms() + 600_000, marker={}) as started:
        WARDENS.append(started)
        yield


@pytest.fixture
def copies(repo: Path, tmp_path: Path) -> ReviewCopies:
    return open_copies(repo, tmp_path)


def open_copies(workspace: Path, tmp_path: Path) -> ReviewCopies:
    workspace_git = Git(workspace=str(workspace), env=dict(os.environ), warden=WARDENS[-1])
    return ReviewCopies(WorkTrees(workspace_git, str(tmp_path / "run")), RUN, str(tmp_path / "cache"))


def prepare(copies: ReviewCopies, round_: int = 1, seat: int = 0) -> ReviewCopy:
    state = copies.trees.compute()
    assert state is not None
    return copies.prepare_review(state.id, round_, seat)


def work(repo: Path) -> None:
    """Changes as a worker leaves them: committed, staged, on the disk only, and deleted."""
    (repo / "a.txt").write_text("committed\n")
    git(repo, "commit", "-qam", "work")
    (repo / "a.txt").write_text("staged\n")
    git(repo, "add", "a.txt")
    (repo / "a.txt").write_text("on the disk\n")
    (repo / "new.txt").write_text("new\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "sub" / "b.txt").unlink()


def look(repo: Path) -> list[str]:
    files = sorted(
        (str(path.relative_to(repo)), path.lstat().st_mode, path.read_bytes())
        for path in repo.rglob("*")
        if ".git" not in path.relative_to(repo).parts and path.is_file()
    )
    words = (("rev-parse", "HEAD"), ("symbolic-ref", "HEAD"), ("ls-files", "-s", "-v"), ("status", "--porcelain"))
    return [str(files), *(git(repo, *one) for one in words)]


def test_the_copy_has_the_files_and_the_diff_of_the_run(copies: ReviewCopies, repo: Path) -> None:
    (repo / "own.txt").write_text("not the run's\n")
    copies.trees.record_start()
    work(repo)
    copies.trees.record_start()  # a later attempt changes nothing
    copy = prepare(copies)
    path = Path(copy.workspace)
    assert (path / "a.txt").read_text() == "on the disk\n"
    assert (path / "own.txt").exists()
    assert os.access(path / "run.sh", os.X_OK)
    assert git(path, "status", "--porcelain") == ""
    changed = git(path, "diff", "--name-status", "HEAD~1").splitlines()
    assert changed == ["M\ta.txt", "A\tnew.txt", "A\trun.sh", "D\tsub/b.txt"]
    assert git(path, "log", "--format=%s").splitlines()[-1] == "first"
    assert Path(copy.path).stat().st_mode & 0o077 == 0


def test_without_changes_before_the_run_the_parent_is_the_commit_itself(copies: ReviewCopies, repo: Path) -> None:
    start = git(repo, "rev-parse", "HEAD")
    copies.trees.record_start()
    work(repo)
    copy = prepare(copies)
    assert git(Path(copy.path), "rev-parse", "HEAD~1") == start
    copies.finish_review(copy)


def test_the_start_of_another_host_is_the_commit(copies: ReviewCopies, repo: Path, tmp_path: Path) -> None:
    work(repo)
    copy = prepare(copies)
    assert git(Path(copy.path), "rev-parse", "HEAD~1") == git(repo, "rev-parse", "HEAD")


def forge(repo: Path, name: str, other: str) -> None:
    """Let the object of this name have the content of another one."""
    target, source = (repo / ".git" / "objects" / one[:2] / one[2:] for one in (name, other))
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    target.write_bytes(source.read_bytes())


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_forged_object_does_not_stand_in_for_a_file_of_the_work(copies: ReviewCopies, repo: Path, kind: str) -> None:
    """Git believes the name of an object: without a check, the reviewer would see other files than the worker's."""
    copies.trees.record_start()
    good = git(repo, "rev-parse", "HEAD:sub/b.txt" if kind == "file" else "HEAD:sub")
    (repo / "sub" / "b.txt").write_text("evil\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "work")
    forge(repo, git(repo, "rev-parse", "HEAD:sub/b.txt" if kind == "file" else "HEAD:sub"), good)
    with pytest.raises(ReviewCopyFailed, match="its content does not match its name"):
        prepare(copies)


def test_a_forged_start_hides_no_change(copies: ReviewCopies, repo: Path) -> None:
    copies.trees.record_start()
    start = git(repo, "rev-parse", "HEAD:sub/b.txt")
    (repo / "sub" / "b.txt").write_text("evil\n")
    forge(repo, start, git(repo, "hash-object", "-w", "sub/b.txt"))
    diff = read_work_diff(copies.trees.git._replace(workspace=prepare(copies).path))
    assert diff is not None
    assert "+evil" in diff.text


def test_files_of_a_known_tree_need_not_be_there(repo: Path, copies: ReviewCopies) -> None:
    """A partial clone with a sparse working tree lacks them."""
    known, lacks = git(repo, "rev-parse", "HEAD^{tree}"), git(repo, "rev-parse", "HEAD:sub/b.txt")
    (repo / "a.txt").write_text("changed\n")
    git(repo, "commit", "-qam", "work")
    (repo / ".git" / "objects" / lacks[:2] / lacks[2:]).unlink()
    verify_objects(copies.trees.git, "HEAD^{tree}", known)
    with pytest.raises(GitFailed, match="an object is missing"):
        verify_objects(copies.trees.git, "HEAD^{tree}")


def test_a_reviewer_in_a_folder_of_the_repository(repo: Path, tmp_path: Path) -> None:
    copy = prepare(open_copies(repo / "sub", tmp_path))
    assert copy.workspace == os.path.join(copy.path, "sub")
    assert (Path(copy.workspace) / "b.txt").exists()


def test_what_a_reviewer_does_in_its_copy_reaches_nothing_and_is_kept(copies: ReviewCopies, repo: Path) -> None:
    work(repo)
    before, refs = look(repo), git(repo, "for-each-ref")
    copy = prepare(copies)
    path = Path(copy.workspace)
    (path / "a.txt").write_text("by the reviewer\n")
    (path / "more.txt").write_text("more\n")
    (path / "binary").write_bytes(bytes(range(256)))
    git(path, "add", "-A")
    git(path, "commit", "-qm", "mine")
    git(path, "branch", "-f", "main")
    git(path, "tag", "x")
    (path / "new.txt").unlink()
    (path / "x.log").write_text("ignored\n")
    end = copies.finish_review(copy)
    assert (end.written, end.restored, end.refs) == (("a.txt", "binary", "more.txt", "new.txt"), (), ())
    assert (look(repo), git(repo, "for-each-ref")) == (before, refs)
    assert not Path(copy.path).exists()
    assert os.listdir(Path(copy.path).parent) == []
    git(repo, "apply", "--check", end.patch)
    git(repo, "apply", end.patch)
    assert (repo / "a.txt").read_text() == "by the reviewer\n"
    assert (repo / "binary").read_bytes() == bytes(range(256))
    assert not (repo / "new.txt").exists()
    assert Path(end.patch).name == "1-0.patch"


def test_a_reviewer_that_only_reads_leaves_nothing(copies: ReviewCopies, repo: Path) -> None:
    work(repo)
    copy = prepare(copies)
    git(Path(copy.path), "status")
    assert copies.finish_review(copy) == ReviewEnd()
    assert not Path(copy.path).exists()
    assert not Path(copy.patch).exists()


@pytest.mark.parametrize("wreck", ["config", "missing", "link", "gone", "read-only", "copy is a link"])
def test_a_reviewer_that_wrecks_its_copy(copies: ReviewCopies, repo: Path, tmp_path: Path, wreck: str) -> None:
    copy, mark = prepare(copies), tmp_path / "ran"
    path = Path(copy.path)
    (path / "a.txt").write_text("mine\n")
    before = look(repo)
    match wreck:
        case "config":
            (path / ".gitattributes").write_text("* filter=f\n")
            for name in ("clean", "smudge"):
                git(path, "config", f"filter.f.{name}", f"touch {mark}")
            git(path, "config", "core.fsmonitor", f"touch {mark}")
            git(path, "config", "core.worktree", str(repo))
        case "missing":
            subprocess.run(["rm", "-rf", str(path / ".git")], check=True)
        case "link":
            (path / ".git").rename(tmp_path / "moved")
            (path / ".git").symlink_to(repo / ".git")
        case "gone":
            subprocess.run(["rm", "-rf", str(path)], check=True)
        case "read-only":
            (path / "sub").chmod(0o500)
        case "copy is a link":
            path.rename(tmp_path / "moved")
            path.symlink_to(repo)
    end = copies.finish_review(copy)
    assert look(repo) == before
    assert not path.exists()
    assert not mark.exists()
    assert ("a.txt" in end.written) == (wreck not in {"gone", "copy is a link"})


def test_a_link_around_the_copy_leads_to_no_removal(copies: ReviewCopies, tmp_path: Path) -> None:
    copy = prepare(copies)
    other = tmp_path / "other" / Path(copy.path).name
    other.mkdir(parents=True)
    (other / "precious").write_text("x")
    around = Path(copy.path).parent
    around.rename(tmp_path / "moved")
    around.symlink_to(other.parent)
    assert copies.finish_review(copy).written == ()
    assert (other / "precious").read_text() == "x"


def test_a_repository_that_a_reviewer_made_for_the_patch_is_not_used(copies: ReviewCopies) -> None:
    copy = prepare(copies)
    planted = Path(f"{copy.path}.git")
    (planted / "common").mkdir(parents=True)
    (planted / "commondir").write_text("common\n")
    (Path(copy.path) / "a.txt").write_text("mine\n")
    assert copies.finish_review(copy).written == ("a.txt",)


def test_the_workspace_is_restored_and_the_change_kept(copies: ReviewCopies, repo: Path) -> None:
    work(repo)
    before, head = look(repo), git(repo, "rev-parse", "HEAD")
    copy = prepare(copies)
    (repo / "a.txt").write_text("by the reviewer\n")
    (repo / "sub" / "b.txt").write_text("back\n")
    (repo / "more").mkdir()
    (repo / "more" / "x\ny").write_text("odd\n")
    (repo / "new.txt").unlink()
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "by the reviewer")
    (repo / "a.txt").write_text("again\n")
    git(repo, "switch", "-qc", "elsewhere")
    git(repo, "branch", "-f", "main", "HEAD~2")
    end = copies.finish_review(copy)
    assert look(repo) == before
    assert git(repo, "rev-parse", "main") == head
    assert set(end.restored) == {"a.txt", "sub/b.txt", "more/x\ny", "new.txt", "HEAD", "index"}
    assert end.refs == (f"refs/jackline/{RUN}/1",)
    assert git(repo, "show", f"{end.refs[0]}:a.txt") == "again"
    assert git(repo, "show", f"{end.refs[0]}^1:a.txt") == "by the reviewer"
    assert copies.restore_worker() == ReviewEnd()


@pytest.mark.parametrize("bit", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_git_status_does_not_show_is_restored_and_kept(
    copies: ReviewCopies, repo: Path, bit: str
) -> None:
    git(repo, "update-index", bit, "a.txt")
    (repo / "a.txt").write_text("the worker's\n")
    copy = prepare(copies)
    before = look(repo)
    (repo / "a.txt").write_text("a person's\n")
    (repo / "more.txt").write_text("more\n")
    end = copies.finish_review(copy)
    assert look(repo) == before
    assert set(end.restored) == {"a.txt", "more.txt"}
    assert git(repo, "show", f"{end.refs[0]}:a.txt") == "a person's"


@pytest.mark.parametrize("change", ["index", "branch", "detached", "first commit", "link"])
def test_each_kind_of_change_is_restored(copies: ReviewCopies, repo: Path, tmp_path: Path, change: str) -> None:
    if change == "first commit":
        repo = tmp_path / "empty"
        repo.mkdir()
        git(repo, "init", "-q", "-b", "main")
        (repo / "a.txt").write_text("a\n")
        copies = open_copies(repo, tmp_path)
    else:
        work(repo)
    if change == "detached":
        git(repo, "checkout", "-q", "--detach")
    copy = prepare(copies)
    status = git(repo, "status", "--porcelain=v2", "--branch")
    match change:
        case "index":
            git(repo, "reset", "-q")
        case "branch":
            git(repo, "switch", "-qc", "other")
        case "detached":
            git(repo, "switch", "-qc", "other")
        case "first commit":
            git(repo, "add", "-A")
            git(repo, "commit", "-qm", "first")
        case "link":
            (repo / "sub").rmdir()
            (repo / "sub").symlink_to(tmp_path)
    end = copies.finish_review(copy)
    assert end.restored
    assert git(repo, "status", "--porcelain=v2", "--branch") == status


def test_a_status_in_the_workspace_is_no_change(copies: ReviewCopies, repo: Path) -> None:
    copy = prepare(copies)
    os.utime(repo / "a.txt", (1, 1))
    git(repo, "status")
    assert copies.finish_review(copy) == ReviewEnd()
    assert git(repo, "for-each-ref", "refs/jackline") == ""


def test_a_submodule_is_copied_restored_and_kept(copies: ReviewCopies, repo: Path, tmp_path: Path) -> None:
    module = add_submodule(repo, tmp_path)
    copy = prepare(copies)
    assert (Path(copy.path) / "lib" / "inner" / "a.txt").read_text() == "one\n"
    (module / "a.txt").write_text("by the reviewer\n")
    end = copies.finish_review(copy)
    assert (module / "a.txt").read_text() == "one\n"
    assert git(module, "show", f"{end.refs[-1]}:a.txt") == "by the reviewer"


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_submodule_that_is_not_checked_out_is_no_change_of_a_reviewer(
    copies: ReviewCopies, repo: Path, tmp_path: Path, is_removed: bool
) -> None:
    add_submodule(repo, tmp_path)
    git(repo, "submodule", "--quiet", "deinit", "lib/inner")
    copies.trees.record_repository()
    copy = prepare(copies)
    if is_removed:
        (Path(copy.path) / "lib" / "inner").rmdir()
    assert copies.finish_review(copy).written == (("lib/inner",) if is_removed else ())


def test_a_shared_workspace_is_left_alone(copies: ReviewCopies, repo: Path) -> None:
    state = copies.trees.compute()
    assert state is not None
    copy = copies.prepare_review(state.id, 1, 0, restores=False)
    (repo / "a.txt").write_text("of another run\n")
    assert copies.finish_review(copy) == ReviewEnd()
    assert (repo / "a.txt").read_text() == "of another run\n"


def test_after_a_crash_copies_are_removed_and_the_workspace_restored(
    copies: ReviewCopies, repo: Path, tmp_path: Path
) -> None:
    work(repo)
    before = look(repo)
    copy = prepare(copies)
    (Path(copy.path) / "sub").mkdir(exist_ok=True)
    (Path(copy.path) / "sub").chmod(0o500)
    (repo / "a.txt").write_text("by the reviewer\n")
    again = open_copies(repo, tmp_path)  # another process
    end = again.recover_review(restores=True)
    assert (end.restored, look(repo)) == (("a.txt",), before)
    assert not Path(copy.path).exists()
    assert again.recover_review(restores=True) == ReviewEnd()


def test_after_a_crash_a_checkout_of_a_person_is_left_alone(copies: ReviewCopies, repo: Path, tmp_path: Path) -> None:
    git(repo, "branch", "older")
    copy = prepare(copies)
    (repo / "a.txt").write_text("by a person\n")
    git(repo, "commit", "-qam", "by a person")
    tip = git(repo, "rev-parse", "HEAD")
    git(repo, "switch", "-q", "older")
    before = look(repo)
    again = open_copies(repo, tmp_path)  # another process
    assert again.recover_review(restores=False) == ReviewEnd()
    assert (look(repo), git(repo, "rev-parse", "main")) == (before, tip)
    assert not Path(copy.path).exists()
    assert again.recover_review(restores=True) == ReviewEnd()  # nothing is left to restore


def test_a_restore_that_failed_is_finished_in_any_checkout(copies: ReviewCopies, repo: Path, tmp_path: Path) -> None:
    """Else a reviewer that leaves a lock of git behind would change the work."""
    before = look(repo)
    copy = prepare(copies)
    (repo / "a.txt").write_text("by the reviewer\n")
    git(repo, "add", "a.txt")
    lock = repo / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(ReviewCopyFailed, match=r"index\.lock"):
        copies.finish_review(copy)
    again = open_copies(repo, tmp_path)  # another process
    with pytest.raises(ReviewCopyFailed, match=r"index\.lock"):
        again.recover_review(restores=False)
    lock.unlink()
    end = again.recover_review(restores=False)
    assert (end.restored, look(repo)) == (("index", "a.txt"), before)
    assert git(repo, "show", f"{end.refs[0]}:a.txt") == "by the reviewer"
    assert again.recover_review(restores=False) == ReviewEnd()


@pytest.mark.parametrize("is_known", [False, True])  # where the workspace was when the run began, on this host
@pytest.mark.parametrize("how", ["removed", "core.worktree"])
def test_the_files_around_the_repository_are_left_alone(tmp_path: Path, repo: Path, how: str, is_known: bool) -> None:
    """Without its own repository, the workspace is in the one around it, such as that of a home folder."""
    inner = repo / "inner"
    if how == "removed":
        git(repo, "worktree", "add", "-q", "inner")
    else:
        make_repository(inner)
    (repo / "own.txt").write_text("of a person\n")
    copies = open_copies(inner, tmp_path)
    if is_known:
        copies.trees.record_repository()
    copy = prepare(copies)
    (inner / "a.txt").write_text("by the reviewer\n")
    if how == "removed":
        (inner / ".git").rename(tmp_path / "moved")
    else:
        git(inner, "config", "core.worktree", str(repo))
    with pytest.raises(ReviewCopyFailed, match="its own is gone, or core"):
        copies.finish_review(copy)
    assert (repo / "own.txt").read_text() == "of a person\n"
    assert (repo / "a.txt").read_text() == "one\n"
    if how == "removed":
        (tmp_path / "moved").rename(inner / ".git")
    else:
        git(inner, "config", "--unset", "core.worktree")
    assert copies.recover_review(restores=False).restored == ("a.txt",)
    assert (inner / "a.txt").read_text() == "one\n"


def test_a_worktree_that_is_gone_is_named(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    copies = open_copies(tmp_path / "linked", tmp_path)
    copy = prepare(copies)
    shutil.rmtree(tmp_path / "linked")
    with pytest.raises(ReviewCopyFailed, match=f"/linked is gone; `jackline resume {RUN}` creates a worktree of"):
        copies.finish_review(copy)


def test_no_branch_is_moved_before_its_tip_is_kept(copies: ReviewCopies, repo: Path) -> None:
    git(repo, "branch", "older")
    head = git(repo, "rev-parse", "HEAD")
    copy = prepare(copies)
    (repo / "a.txt").write_text("by a person\n")
    git(repo, "commit", "-qam", "by a person")
    tip = git(repo, "rev-parse", "HEAD")
    git(repo, "switch", "-q", "older")
    end = copies.finish_review(copy)
    assert (end.restored, git(repo, "rev-parse", "main")) == (("HEAD",), head)
    assert tip in [git(repo, "rev-parse", ref) for ref in end.refs]
    line = describe_restore(RUN, str(repo), end.restored, end.refs)
    assert f"git -C {repo} branch NEW-NAME {end.refs[-1]}" in line
    assert git(repo, "rev-parse", end.refs[-1]) == tip


def test_a_commit_like_an_earlier_backup_is_kept_itself(copies: ReviewCopies, repo: Path) -> None:
    copy = prepare(copies)
    (repo / "a.txt").write_text("the same\n")
    copies.finish_review(copy)
    copy = prepare(copies)
    (repo / "a.txt").write_text("the same\n")
    git(repo, "commit", "-qam", "a message that would be lost")
    tip = git(repo, "rev-parse", "HEAD")
    end = copies.finish_review(copy)
    assert tip in [git(repo, "rev-parse", ref) for ref in end.refs]


def test_no_hook_runs_while_a_workspace_is_restored(copies: ReviewCopies, repo: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    copy = prepare(copies)
    git(repo, "switch", "-qc", "other")
    for name in ("reference-transaction", "post-checkout", "post-index-change"):
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    git(repo, "config", "filter.f.smudge", f"touch {mark}; cat")
    (repo / ".git" / "info").mkdir(exist_ok=True)
    (repo / ".git" / "info" / "attributes").write_text("* filter=f\n")
    (repo / "a.txt").write_text("by the reviewer\n")
    assert set(copies.finish_review(copy).restored) == {"a.txt", "HEAD"}
    assert (repo / "a.txt").read_text() == "one\n"
    assert not mark.exists()


def test_a_copy_that_cannot_be_written_is_reported_and_nothing_is_left(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = open_copies(repo, tmp_path)
    state = copies.trees.compute()
    assert state is not None
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(ReviewCopyFailed, match="cannot be made"):
        copies.prepare_review(state.id, 1, 0)
    with pytest.raises(ReviewCopyFailed, match="cannot be made"):
        open_copies(repo, tmp_path / "else").prepare_review("1" * 40, 1, 0)
    assert not (tmp_path / "else" / "cache" / "reviews" / RUN / "1-0").exists()


def test_a_patch_that_cannot_be_written_leaves_the_copy_until_the_restore(
    copies: ReviewCopies, repo: Path, tmp_path: Path
) -> None:
    copy = prepare(copies)
    (Path(copy.path) / "a.txt").write_text("mine\n")
    (tmp_path / "run" / "reviews" / "1-0.patch").mkdir()
    (repo / "a.txt").write_text("by the reviewer\n")
    with pytest.raises(ReviewCopyFailed, match="cannot be kept"):
        copies.finish_review(copy)
    assert (Path(copy.path) / "a.txt").read_text() == "mine\n"
    assert open_copies(repo, tmp_path).recover_review(restores=False).restored == ("a.txt",)
    assert (repo / "a.txt").read_text() == "one\n"


def test_without_a_repository_a_review_works_on_all_files(tmp_path: Path, repo: Path) -> None:
    plain = tmp_path / "plain"
    (plain / "sub").mkdir(parents=True)
    (plain / "sub" / "x").write_text("x\n")
    copies = open_copies(plain, tmp_path)
    assert copies.trees.compute() is None
    copy = copies.prepare_review("", 1, 0)
    assert (Path(copy.workspace) / "sub" / "x").read_text() == "x\n"
    (Path(copy.workspace) / "sub" / "x").write_text("y\n")
    (plain / "sub" / "x").write_text("z\n")
    end = copies.finish_review(copy)
    assert (end.written, end.restored) == (("sub/x",), ("sub/x",))
    assert (plain / "sub" / "x").read_text() == "x\n"
    assert not (plain / ".git").exists()


def test_a_shallow_repository(repo: Path, tmp_path: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", "shallow")
    copy = prepare(open_copies(tmp_path / "shallow", tmp_path))
    assert len(git(Path(copy.path), "log", "--format=%s").splitlines()) == 2


def test_a_copy_that_would_lack_files_is_refused_before_the_work(repo: Path, tmp_path: Path) -> None:
    git(repo, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--sparse", f"file://{repo}", "clone")
    copies = open_copies(tmp_path / "clone", tmp_path)
    copies.trees.record_repository()
    copies.trees.record_start()
    with pytest.raises(TreeUnreadable, match="has not fetched 1 file: `git sparse-checkout disable` fetches them"):
        copies.trees.check_complete()
    git(tmp_path / "clone", "sparse-checkout", "disable")
    copies.trees.check_complete()
    assert (Path(prepare(copies).path) / "sub" / "b.txt").exists()


def test_a_repository_inside_is_part_of_the_copy(copies: ReviewCopies, repo: Path) -> None:
    make_repository(repo / "vendor")
    copy = prepare(copies)
    assert (Path(copy.path) / "vendor" / "a.txt").exists()
    assert not (Path(copy.path) / "vendor" / ".git").exists()
    assert copies.finish_review(copy) == ReviewEnd()
