"""The id of the files of a working tree: the same content has the same id, and nothing of the repository is started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Container
from pathlib import Path

import pytest

from jackline.clock import boot_ms
from jackline.engine import tree_files
from jackline.engine.committed_files import list_uncommitted
from jackline.engine.git import Git
from jackline.engine.process import Warden
from jackline.engine.tree_id import TreeState, TreeUnreadable, compute_tree, list_changed_files
from tests.support.skips import obey_permissions

Compute = Callable[..., TreeState]


def git(repo: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True)
    return done.stdout.decode("utf-8", "surrogateescape").strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.com")
    return make_repository(tmp_path / "repo")


def make_repository(made: Path, *words: str) -> Path:
    made.mkdir(parents=True)
    git(made, "init", "-q", "-b", "main", *words)
    (made / ".gitignore").write_text("*.log\nbuild/\n")
    (made / "a.txt").write_text("one\n")
    (made / "sub").mkdir()
    (made / "sub" / "b.txt").write_text("two\n")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "first")
    return made


@pytest.fixture
def compute(tmp_path: Path) -> Compute:
    def run(workspace: Path, folder: str = "trees", absent: Container[str] = ()) -> TreeState:
        state = compute_tree(open_git(workspace), str(tmp_path / folder), absent=absent)
        assert state is not None
        return state

    return run


def open_git(workspace: Path, warden: Warden | None = None) -> Git:
    return Git(workspace=str(workspace), env=dict(os.environ), warden=warden)


def names(tmp_path: Path, tree: str, folder: str = "trees") -> dict[str, str]:
    """The files of a tree, with their modes."""
    listed = git(tmp_path, "--git-dir", str(tmp_path / folder), "ls-tree", "-r", "-z", tree)
    return {line.split("\t")[1]: line.split()[0] for line in listed.split("\0") if line}


def test_the_id_is_that_of_the_commit_when_all_is_committed(repo: Path, compute: Compute) -> None:
    assert compute(repo).id == git(repo, "rev-parse", "HEAD^{tree}")
    assert compute(repo / "sub").id == git(repo, "rev-parse", "HEAD^{tree}")


def test_staged_committed_and_new_files_give_one_id(repo: Path, compute: Compute) -> None:
    first = compute(repo).id
    (repo / "a.txt").write_text("changed\n")
    (repo / "new.txt").write_text("new\n")
    ids = [compute(repo).id]
    git(repo, "add", "-N", "new.txt")
    ids.append(compute(repo).id)
    git(repo, "add", "-A")
    ids.append(compute(repo).id)
    git(repo, "commit", "-qm", "second")
    ids += [compute(repo).id, compute(repo, "other").id, git(repo, "rev-parse", "HEAD^{tree}")]
    assert len(set(ids)) == 1
    assert ids[0] != first


def test_nothing_of_the_repository_changes(repo: Path, compute: Compute) -> None:
    (repo / "a.txt").write_text("changed\n")
    (repo / "new.txt").write_text("new\n")

    def look() -> list[object]:
        folder = repo / ".git"
        return [(folder / "index").read_bytes(), sorted(p for p in folder.rglob("*")), git(repo, "for-each-ref")]

    before = look()
    compute(repo)
    assert look() == before


def test_ignored_files_are_not_in_it_unless_they_are_tracked(repo: Path, compute: Compute, tmp_path: Path) -> None:
    before = compute(repo).id
    (repo / "x.log").write_text("x")
    (repo / "build").mkdir()
    (repo / "build" / "y").write_text("y")
    assert compute(repo).id == before
    git(repo, "add", "-f", "x.log")
    (repo / "x.log").write_text("z")
    after = compute(repo)
    assert "x.log" in names(tmp_path, after.id)
    assert "x.log" in after.tracked


def test_links_and_the_executable_bit_count(repo: Path, compute: Compute, tmp_path: Path) -> None:
    (repo / "link").symlink_to("a.txt")
    (repo / "run").write_text("#!/bin/sh\n")
    before = compute(repo).id
    (repo / "run").chmod(0o755)
    after = compute(repo).id
    assert list_changed_files(open_git(repo), str(tmp_path / "trees"), before, after) == ("run",)
    assert (names(tmp_path, after)["link"], names(tmp_path, after)["run"]) == ("120000", "100755")


@pytest.mark.parametrize(
    "name", [b"a\nb", b"\xff\xfe", b'"quoted"', b"tab\tx", b"#x", b"git~1", " ü".encode(), b"a\\b"]
)
def test_odd_names(repo: Path, compute: Compute, tmp_path: Path, name: bytes) -> None:
    before = compute(repo).id
    path = os.path.join(os.fsencode(repo), name)
    with open(path, "w") as file:
        file.write("x")
    after = compute(repo).id
    assert list_changed_files(open_git(repo), str(tmp_path / "trees"), before, after) == (os.fsdecode(name),)
    os.unlink(path)
    assert compute(repo).id == before


def test_an_odd_folder(repo: Path, tmp_path: Path, compute: Compute) -> None:
    odd = make_repository(tmp_path / 'o"d\nd')
    assert compute(odd).id == git(odd, "rev-parse", "HEAD^{tree}")


@pytest.mark.parametrize("bit", ["--assume-unchanged", "--skip-worktree"])
def test_a_bit_of_the_index_hides_no_change(repo: Path, compute: Compute, tmp_path: Path, bit: str) -> None:
    before = compute(repo).id
    git(repo, "update-index", bit, "a.txt", "sub/b.txt")
    assert compute(repo).id == before
    (repo / "a.txt").write_text("hidden\n")
    (repo / "sub" / "b.txt").unlink()
    assert git(repo, "status", "--porcelain") == "" or bit == "--assume-unchanged"
    after = compute(repo).id
    assert list_changed_files(open_git(repo), str(tmp_path / "trees"), before, after) == ("a.txt", "sub/b.txt")


def test_a_sparse_working_tree_has_the_files_of_the_index(repo: Path, compute: Compute) -> None:
    before = compute(repo).id
    git(repo, "sparse-checkout", "set", "--no-cone", "/a.txt", "/.gitignore")
    assert not (repo / "sub").exists()
    state = compute(repo, absent=["sub/b.txt"])
    assert (state.id, state.absent) == (before, 1)
    (repo / "sub").mkdir()
    (repo / "sub" / "b.txt").write_text("there\n")
    assert compute(repo, absent=["sub/b.txt"]).id != before


def test_a_file_that_leaves_a_sparse_working_tree_is_deleted(repo: Path, compute: Compute, tmp_path: Path) -> None:
    git(repo, "config", "core.sparseCheckout", "true")
    git(repo, "update-index", "--skip-worktree", "sub/b.txt")
    (repo / "sub" / "b.txt").unlink()
    assert git(repo, "status", "--porcelain") == ""
    state = compute(repo, absent=["a.txt"])
    assert ("sub/b.txt" in names(tmp_path, state.id), state.absent) == (False, 0)


def test_a_change_in_the_instant_of_the_last_id_is_seen(repo: Path, compute: Compute, tmp_path: Path) -> None:
    """Same size, same time of change: only the age of the index tells that the content has to be read again."""
    (repo / "a.txt").write_text("new\n")
    before = compute(repo).id
    index = tmp_path / "trees" / "index"
    status = (repo / "a.txt").stat()
    (repo / "a.txt").write_text("two\n")
    os.utime(repo / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert compute(repo).id != before


def test_a_change_whose_time_is_set_back_is_seen(repo: Path, compute: Compute) -> None:
    """Git compares whole seconds: such a change in the second of the last id would stay hidden for good."""
    changed = repo / "a.txt"
    while True:  # until both changes were made in the same second
        found = []
        for text in ("new\n", "two\n"):
            changed.write_text(text)
            os.utime(changed, (1_000_000_000, 1_000_000_000))
            found.append((int(changed.stat().st_ctime), compute(repo).id))
        (first, before), (second, after) = found
        if first == second:
            break
    assert before != after


def test_a_conflict_is_taken_from_the_disk(repo: Path, compute: Compute, tmp_path: Path) -> None:
    git(repo, "switch", "-qc", "other")
    (repo / "a.txt").write_text("theirs\n")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "switch", "-q", "main")
    (repo / "a.txt").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    assert subprocess.run(["git", "merge", "-q", "other"], cwd=repo, capture_output=True, check=False).returncode
    during = compute(repo)
    assert "a.txt" in during.tracked
    (repo / "a.txt").write_text("resolved\n")
    resolved = compute(repo).id
    assert resolved != during.id
    git(repo, "commit", "-qam", "merged")
    assert compute(repo).id == resolved == git(repo, "rev-parse", "HEAD^{tree}")


def test_before_the_first_commit(repo: Path, tmp_path: Path, compute: Compute) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert compute(empty).id == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    (empty / "a").write_text("a")
    assert list(names(tmp_path, compute(empty).id)) == ["a"]


def test_ids_of_a_sha256_repository(repo: Path, tmp_path: Path, compute: Compute) -> None:
    made = make_repository(tmp_path / "wide", "--object-format=sha256")
    state = compute(made)
    assert len(state.id) == 64
    assert state.id == git(made, "rev-parse", "HEAD^{tree}")


def test_a_linked_worktree_has_its_own_files(repo: Path, tmp_path: Path, compute: Compute) -> None:
    git(repo, "worktree", "add", "-q", "../linked")
    assert compute(tmp_path / "linked").id == compute(repo).id
    (tmp_path / "linked" / "a.txt").write_text("linked\n")
    assert compute(tmp_path / "linked").id != compute(repo).id


def add_submodule(repo: Path, tmp_path: Path) -> Path:
    inner = make_repository(tmp_path / "inner")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "lib/inner")
    git(repo, "commit", "-qm", "submodule")
    return repo / "lib" / "inner"


@pytest.mark.parametrize("decoy", ["", "link", "folder"])
def test_a_file_with_the_name_of_another_in_other_letters_is_in_the_tree(
    repo: Path, tmp_path: Path, compute: Compute, decoy: str
) -> None:
    """Git does not list it with core.ignoreCase, which an agent can set; make prefers makefile to Makefile."""
    git(repo, "config", "core.ignoreCase", "true")
    if decoy == "link":
        (repo / ".GIT").symlink_to(".git")
    elif decoy == "folder":
        (repo / ".GIT").mkdir()
    (repo / "A.txt").write_text("another\n")
    (repo / "Sub").mkdir()
    (repo / "Sub" / "b.txt").write_text("another\n")
    (repo / "y.LOG").write_text("not ignored\n")
    assert {"A.txt", "Sub/b.txt", "a.txt", "sub/b.txt", "y.LOG"} <= names(tmp_path, compute(repo).id).keys()


def test_a_submodule_counts_by_its_files(repo: Path, tmp_path: Path, compute: Compute) -> None:
    module = add_submodule(repo, tmp_path)
    first = compute(repo)
    assert (first.nested, "lib/inner/a.txt" in first.tracked) == (("lib/inner/",), True)
    (module / "a.txt").write_text("changed\n")
    changed = compute(repo).id
    git(module, "commit", "-qam", "inside")
    assert compute(repo).id == changed
    git(repo, "commit", "-qam", "outside")
    assert compute(repo).id == changed
    git(module, "reset", "-q", "--hard", "HEAD~1")
    (module / "new.txt").write_text("new\n")
    again = compute(repo).id
    assert list_changed_files(open_git(repo), str(tmp_path / "trees"), first.id, again) == ("lib/inner/new.txt",)


def test_a_submodule_that_is_not_checked_out(repo: Path, tmp_path: Path, compute: Compute) -> None:
    commit = git(add_submodule(repo, tmp_path), "rev-parse", "HEAD")
    git(repo, "submodule", "--quiet", "deinit", "-f", "lib/inner")
    assert "lib/inner" not in names(tmp_path, compute(repo).id)
    state = compute(repo, absent=["lib/inner"])
    assert names(tmp_path, state.id)["lib/inner"] == "160000"
    assert commit in git(tmp_path, "--git-dir", str(tmp_path / "trees"), "ls-tree", "-r", state.id)


@pytest.mark.parametrize("is_nested", [False, True])
def test_work_below_a_submodule_that_is_not_checked_out_is_not_committed(
    repo: Path, tmp_path: Path, compute: Compute, is_nested: bool
) -> None:
    """It is in the tree that is proved, and neither `git status` nor `git add` finds it."""
    module, outer = add_submodule(repo, tmp_path), ""
    if is_nested:
        link = f"160000,{git(module, 'rev-parse', 'HEAD')},deep"
        git(module, "update-index", "--add", "--cacheinfo", link)
        git(module, "commit", "-qm", "deep")
        git(repo, "commit", "-qam", "deep")
        (module / "deep").mkdir()
        module, outer = module / "deep", "lib/inner/deep"
    else:
        git(repo, "submodule", "--quiet", "deinit", "-f", "lib/inner")
        outer = "lib/inner"
    index = str(tmp_path / "index")
    (module / "empty").mkdir()
    (module / ".." / ".gitignore").write_text("*.log\n")  # of the repository around it
    git(module.parent, "add", ".gitignore")
    git(module.parent, "commit", "-qm", "ignored")
    if is_nested:
        git(repo, "commit", "-qam", "ignored")
    (module / "x.log").write_text("x")
    assert list_uncommitted(open_git(repo), index) == ()
    (module / "impl").write_text("v2")
    assert git(repo, "status", "--porcelain") == ""
    assert names(tmp_path, compute(repo).id)[f"{outer}/impl"] == "100644"
    assert list_uncommitted(open_git(repo), index) == (f"{outer}/impl",)


def test_a_submodule_without_its_repository_still_counts(repo: Path, tmp_path: Path, compute: Compute) -> None:
    module = add_submodule(repo, tmp_path)
    (module / ".git").unlink()
    (module / "a.txt").write_text("hidden\n")
    before = compute(repo).id
    (module / "a.txt").write_text("hidden again\n")
    assert compute(repo).id != before


def test_a_submodule_that_became_a_file(repo: Path, tmp_path: Path, compute: Compute) -> None:
    module = add_submodule(repo, tmp_path)
    module.rename(tmp_path / "moved")
    module.write_text("a file\n")
    assert names(tmp_path, compute(repo).id)["lib/inner"] == "100644"


def test_a_repository_inside_counts_by_its_files(repo: Path, compute: Compute, tmp_path: Path) -> None:
    nested = make_repository(repo / "vendor" / "x")
    state = compute(repo)
    assert {"vendor/x/a.txt", "vendor/x/sub/b.txt"} <= names(tmp_path, state.id).keys()
    assert "vendor/x/a.txt" not in state.tracked
    (nested / "a.txt").write_text("changed\n")
    assert compute(repo).id != state.id


def test_a_repository_that_points_elsewhere(repo: Path, tmp_path: Path, compute: Compute) -> None:
    """A repository inside must not bring in files of another folder, nor of itself again."""
    other = make_repository(tmp_path / "other")
    nested = make_repository(repo / "vendor")
    git(nested, "config", "core.worktree", str(other))
    (other / "secret.txt").write_text("secret\n")
    assert not any("secret" in name for name in names(tmp_path, compute(repo).id))
    loop = repo / "loop"
    loop.mkdir()
    (loop / ".git").write_text(f"gitdir: {repo}/.git\n")
    (loop / "a.txt").write_text("loop\n")
    assert "loop/a.txt" in names(tmp_path, compute(repo).id)


def test_files_behind_a_link_are_not_read(repo: Path, tmp_path: Path, compute: Compute) -> None:
    outside = tmp_path / "outside"
    (repo / "sub").rename(outside)
    (repo / "sub").symlink_to(outside)
    assert names(tmp_path, compute(repo).id) == {".gitignore": "100644", "a.txt": "100644", "sub": "120000"}


def test_folders_files_and_pipes_in_place_of_files(repo: Path, compute: Compute, tmp_path: Path) -> None:
    compute(repo)
    (repo / "a.txt").unlink()
    (repo / "a.txt").mkdir()
    (repo / "a.txt" / "inside").write_text("x")
    (repo / "sub" / "b.txt").unlink()
    os.mkfifo(repo / "sub" / "b.txt")
    assert set(names(tmp_path, compute(repo).id)) == {".gitignore", "a.txt/inside"}


def test_large_new_files_are_named_and_left_out(
    repo: Path, compute: Compute, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tree_files, "MOST_FILE_BYTES", 100)
    monkeypatch.setattr(tree_files, "MOST_BYTES", 250)
    (repo / "large").write_text("x" * 101)
    for number, size in enumerate((90, 80, 70, 60)):
        (repo / f"data{number}").write_text("x" * size)
    (repo / "tracked").write_text("x" * 200)
    git(repo, "add", "tracked")
    state = compute(repo)
    assert state.left_out == ("data0", "large")
    assert {"data1", "data2", "data3", "tracked"} <= names(tmp_path, state.id).keys()


def test_an_unreadable_file_is_named_and_left_out(repo: Path, tmp_path: Path) -> None:
    (repo / "hidden").write_text("x")
    (repo / "hidden").chmod(0)
    program = (
        "import os, sys; from jackline.engine.git import Git; from jackline.engine.tree_id import compute_tree; "
        "print(compute_tree(Git(workspace=sys.argv[1], env=dict(os.environ)), sys.argv[2]).left_out)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(repo), str(tmp_path / "trees")],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=obey_permissions,
    )
    assert done.stdout == "('hidden',)\n"


def test_without_a_repository_there_is_no_id(tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert compute_tree(open_git(plain), str(tmp_path / "trees")) is None
    ignored = repo / "build"
    ignored.mkdir()
    assert compute_tree(open_git(ignored), str(tmp_path / "trees")) is None
    monkeypatch.setenv("PATH", "/nonexistent")
    assert compute_tree(open_git(repo), str(tmp_path / "trees")) is None


def test_a_broken_repository_is_not_the_same_as_none(repo: Path, tmp_path: Path) -> None:
    (repo / ".git" / "HEAD").unlink()
    with pytest.raises(TreeUnreadable):
        compute_tree(open_git(repo), str(tmp_path / "trees"))


def test_what_git_says_about_its_failure_is_told_in_full(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git prints what to do below its message."""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(TreeUnreadable, match=r"dubious ownership in .*: git config --global --add safe.directory /"):
        compute_tree(open_git(repo), str(tmp_path / "trees"))
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")
    (repo / "inside").mkdir()
    git(repo / "inside", "init", "-q", "--bare", ".git")
    with pytest.raises(TreeUnreadable, match=r"^inside: git rev-parse failed: this operation must be run in a work"):
        compute_tree(open_git(repo), str(tmp_path / "trees"))


def test_an_object_that_the_repository_lost_is_written_again(repo: Path, compute: Compute, tmp_path: Path) -> None:
    (repo / "new.txt").write_text("new\n")
    git(repo, "add", "new.txt")
    before = compute(repo).id
    git(repo, "reset", "-q")
    git(repo, "prune", "--expire=now")
    (repo / "a.txt").write_text("else\n")
    after = compute(repo).id
    git(tmp_path, "--git-dir", str(tmp_path / "trees"), "cat-file", "-e", f"{after}:new.txt")
    assert after != before


def test_what_a_killed_process_left_is_no_obstacle(repo: Path, compute: Compute, tmp_path: Path) -> None:
    before = compute(repo).id
    for name in ("index.new", "index.new.lock"):
        (tmp_path / "trees" / name).write_text("half")
    assert compute(repo).id == before


HOSTILE = """
[core]
    fsmonitor = touch {mark}; false
    hooksPath = {hooks}
    sshCommand = touch {mark}
    pager = touch {mark}
    editor = touch {mark}
    attributesFile = {hooks}/attributes
    alternateRefsCommand = touch {mark}
[filter "f"]
    clean = touch {mark}; cat
    smudge = touch {mark}; cat
    process = touch {mark}
    required = true
[diff "f"]
    textconv = touch {mark}
    command = touch {mark}
[diff]
    external = touch {mark}
[alias]
    ls-files = !touch {mark}
[uploadpack]
    packObjectsHook = touch {mark}
"""


def test_nothing_of_a_hostile_repository_is_started(repo: Path, compute: Compute, tmp_path: Path) -> None:
    mark, hooks = tmp_path / "ran", tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-index-change", "post-checkout", "pre-commit", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    before = compute(repo).id
    for where in (repo, make_repository(repo / "nested")):
        with (where / ".git" / "config").open("a") as file:
            file.write(HOSTILE.format(mark=mark, hooks=hooks))
        (where / ".git" / "info").mkdir(exist_ok=True)
        (where / ".git" / "info" / "attributes").write_text("* filter=f diff=f text eol=crlf ident\n")
        (where / ".gitattributes").write_text("* filter=f diff=f working-tree-encoding=UTF-16\n")
        (where / "a.txt").write_text("changed $Id$\r\n")
    after = compute(repo).id
    listed = list_changed_files(open_git(repo), str(tmp_path / "trees"), before, after)
    assert {".gitattributes", "a.txt", "nested/a.txt"} <= set(listed)
    assert git(tmp_path, "--git-dir", str(tmp_path / "trees"), "cat-file", "blob", f"{after}:a.txt") == "changed $Id$"
    assert not mark.exists()


def test_replaced_objects_do_not_count(repo: Path, compute: Compute) -> None:
    before = compute(repo).id
    (repo / "a.txt").write_text("other\n")
    other = git(repo, "hash-object", "-w", "a.txt")
    git(repo, "replace", git(repo, "rev-parse", "HEAD:a.txt"), other)
    assert compute(repo).id != before


def test_the_files_as_they_are_give_the_id_whatever_the_index_remembers(repo: Path, compute: Compute) -> None:
    """With conversions the repository stores other bytes; whether git has looked at the file must not matter."""
    (repo / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (repo / "a.txt").write_bytes(b"one\r\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "converted")
    before = compute(repo).id
    (repo / "a.txt").touch()
    assert compute(repo).id == before == compute(repo, "other").id


def test_a_dead_warden_is_reported(repo: Path, tmp_path: Path) -> None:
    with Warden.start(deadline_ms=boot_ms() + 60_000, marker={}) as warden:
        pass
    with pytest.raises(TreeUnreadable):
        compute_tree(open_git(repo, warden), str(tmp_path / "trees"))
