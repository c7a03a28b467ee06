"""Work that a git command would discard: kept at a ref first, without a trace in the user's index, HEAD or stash."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from jackline.engine import work_backup
from jackline.engine.git import Git
from jackline.engine.work_backup import Backup
from jackline.policy.call_context import CallContext
from jackline.policy.classify import classify_call

RUN = "r-1"


def git(repo: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.com")
    made = tmp_path / "repo"
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    (made / ".gitignore").write_text("*.log\nnode_modules/\n.env\nsecret/\n")
    (made / "a.txt").write_text("one\n")
    (made / "gone.txt").write_text("gone\n")
    git(made, "add", "-A")
    git(made, "commit", "-qm", "first")
    return made


def keep(repo: Path, command: str, folder: str = "") -> Backup:
    where = CallContext(str(repo), os.path.join(str(repo), folder))
    discards = classify_call((), "Bash", {"command": command}, where).discards
    assert discards, command
    return work_backup.keep_work(discards, RUN, lambda path: Git(workspace=path, env=dict(os.environ)))


def make_work(repo: Path) -> None:
    """A staged change, another one on top of it, a new file, an executable one, a link, and a deleted file."""
    (repo / "a.txt").write_text("staged\n")
    git(repo, "add", "a.txt")
    (repo / "a.txt").write_text("unstaged\n")
    (repo / "new dir").mkdir()
    (repo / "new dir" / "ü.txt").write_text("new\n")
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "link").symlink_to("nowhere")
    (repo / "gone.txt").unlink()


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard", "git clean -fd", "git clean -fd -enode", "git checkout -- .", "git restore .",
        "git checkout-index -f -a", "git read-tree -u --reset HEAD",
    ],
)  # fmt: skip
def test_all_work_is_kept_and_nothing_of_the_user_changes(repo: Path, command: str) -> None:
    make_work(repo)
    before = [git(repo, *words) for words in (("status", "--porcelain"), ("rev-parse", "HEAD"), ("ls-files", "-s"))]
    index = (repo / ".git" / "index").read_bytes()
    backup = keep(repo, command)
    assert backup == Backup(refs=(f"refs/jackline/{RUN}/1",))
    (ref,) = backup.refs
    assert git(repo, "show", f"{ref}:a.txt") == "unstaged"
    assert git(repo, "show", f"{ref}^2:a.txt") == "staged"
    assert git(repo, "show", f"{ref}:new dir/ü.txt") == "new"
    assert git(repo, "rev-parse", f"{ref}^1") == git(repo, "rev-parse", "HEAD")
    modes = {line.split("\t")[1]: line.split()[0] for line in git(repo, "ls-tree", "-r", ref).splitlines()}
    assert (modes["run.sh"], modes["link"]) == ("100755", "120000")
    assert "gone.txt" not in modes
    assert (repo / ".git" / "index").read_bytes() == index
    after = [git(repo, *words) for words in (("status", "--porcelain"), ("rev-parse", "HEAD"), ("ls-files", "-s"))]
    assert after == before
    assert git(repo, "stash", "list") == ""


def test_the_work_comes_back_by_the_documented_command(repo: Path) -> None:
    make_work(repo)
    (ref,) = keep(repo, "git reset --hard && git clean -fd").refs
    git(repo, "reset", "-q", "--hard")
    git(repo, "clean", "-qfd")
    assert not (repo / "run.sh").exists()
    git(repo, "restore", f"--source={ref}", "--worktree", "--", ".")
    assert (repo / "a.txt").read_text() == "unstaged\n"
    assert os.access(repo / "run.sh", os.X_OK)


def test_the_same_work_is_kept_once_and_other_work_at_the_next_number(repo: Path) -> None:
    (repo / "x").write_text("1")
    assert keep(repo, "git clean -f").refs == keep(repo, "git clean -f").refs == (f"refs/jackline/{RUN}/1",)
    (repo / "x").write_text("2")
    assert keep(repo, "git clean -f").refs == (f"refs/jackline/{RUN}/2",)


def test_a_change_in_the_instant_of_the_last_add_is_kept(repo: Path) -> None:
    """Same size, same time: only the age of the index tells git to compare the content."""
    (repo / "a.txt").write_text("new\n")
    git(repo, "add", "a.txt")
    index = (repo / ".git" / "index").stat().st_mtime_ns
    (repo / "a.txt").write_text("two\n")
    for path in (repo / "a.txt", repo / ".git" / "index"):
        os.utime(path, ns=(index, index))
    (ref,) = keep(repo, "git reset --hard").refs
    assert git(repo, "show", f"{ref}:a.txt") == "two"


@pytest.mark.parametrize(
    "bits", [("--assume-unchanged",), ("--skip-worktree",), ("--assume-unchanged", "--skip-worktree")]
)
def test_a_change_that_git_status_does_not_show_is_kept(repo: Path, bits: tuple[str, ...]) -> None:
    for bit in bits:
        git(repo, "update-index", bit, "a.txt", "gone.txt")
    (repo / "a.txt").write_text("hidden\n")
    marks = git(repo, "ls-files", "-v")
    (ref,) = keep(repo, "git reset --hard").refs
    assert git(repo, "show", f"{ref}:a.txt") == "hidden"
    assert git(repo, "ls-files", "-v") == marks


def test_files_outside_of_a_sparse_working_tree_are_not_deleted(repo: Path) -> None:
    git(repo, "sparse-checkout", "set", "--no-cone", "/a.txt")
    assert not (repo / "gone.txt").exists()
    (repo / "a.txt").write_text("changed\n")
    (ref,) = keep(repo, "git reset --hard").refs
    assert git(repo, "show", f"{ref}:gone.txt") == "gone"


def test_nothing_is_made_where_nothing_is_lost(repo: Path) -> None:
    assert keep(repo, "git clean -fdx") == Backup()
    assert keep(repo, "git restore .") == Backup()
    assert git(repo, "for-each-ref", "refs/jackline") == ""


def test_a_reset_keeps_the_commit_that_it_leaves(repo: Path) -> None:
    git(repo, "commit", "-q", "--allow-empty", "-m", "second")
    (ref,) = keep(repo, "git reset --hard HEAD~1").refs
    assert git(repo, "rev-parse", ref) == git(repo, "rev-parse", "HEAD")


def test_stashes_are_kept_before_they_are_dropped(repo: Path) -> None:
    (repo / "a.txt").write_text("stashed\n")
    git(repo, "stash")
    stash = git(repo, "rev-parse", "refs/stash")
    (ref,) = keep(repo, "git stash drop").refs
    assert stash in git(repo, "rev-parse", f"{ref}^@").split()


def test_before_the_first_commit(tmp_path: Path, repo: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    (empty / "a").write_text("a")
    (ref,) = keep(empty, "git clean -f").refs
    assert git(empty, "show", f"{ref}:a") == "a"


def test_work_in_a_conflict_is_kept(repo: Path) -> None:
    git(repo, "switch", "-qc", "other")
    (repo / "a.txt").write_text("theirs\n")
    git(repo, "commit", "-qam", "theirs")
    git(repo, "switch", "-q", "main")
    (repo / "a.txt").write_text("ours\n")
    git(repo, "commit", "-qam", "ours")
    assert subprocess.run(["git", "merge", "-q", "other"], cwd=repo, capture_output=True, check=False).returncode
    (repo / "a.txt").write_text("resolved\n")
    (ref,) = keep(repo, "git reset --hard").refs
    assert git(repo, "show", f"{ref}:a.txt") == "resolved"


def test_a_linked_worktree_keeps_its_own_work(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", "../linked")
    (tmp_path / "linked" / "a.txt").write_text("linked\n")
    (ref,) = keep(tmp_path / "linked", "git reset --hard").refs
    assert git(repo, "show", f"{ref}:a.txt") == "linked"


def test_the_whole_repository_is_kept_from_a_folder_of_it(repo: Path) -> None:
    (repo / "sub").mkdir()
    (repo / "a.txt").write_text("changed\n")
    (ref,) = keep(repo, "cd sub && git reset --hard").refs
    assert git(repo, "show", f"{ref}:a.txt") == "changed"
    assert keep(repo, "git -C sub checkout -f").refs == (ref,)


@pytest.mark.parametrize("path", ["node_modules/x/y.js", "build.log", "node_modules/.env"])
def test_caches_do_not_ask(repo: Path, path: str) -> None:
    (repo / path).parent.mkdir(parents=True, exist_ok=True)
    (repo / path).write_text("x")
    assert keep(repo, "git clean -fdx") == Backup()


@pytest.mark.parametrize("command", ["git clean -fdx", "git clean -dfX", "git clean -xf", "git clean -f -d -x"])
@pytest.mark.parametrize("path", [".env", "secret/key"])
def test_ignored_files_that_no_tool_makes_again_ask(repo: Path, path: str, command: str) -> None:
    (repo / path).parent.mkdir(exist_ok=True)
    (repo / path).write_text("x")
    assert path.split("/", maxsplit=1)[0] in keep(repo, command).problem
    assert keep(repo, "git clean -fd") == Backup()


def test_only_the_named_paths_count(repo: Path) -> None:
    (repo / ".env").write_text("x")
    (repo / "node_modules").mkdir()
    (repo / "node_modules" / "x").write_text("x")
    assert keep(repo, "git clean -fdx node_modules") == Backup()
    assert keep(repo, "git clean -fdx -- .env").problem


def test_what_is_too_large_asks(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_backup, "_MOST_BYTES", 10)
    (repo / "large").write_text("x" * 11)
    assert "too much" in keep(repo, "git clean -f").problem
    assert git(repo, "for-each-ref", "refs/jackline") == ""


@pytest.mark.parametrize(
    "command",
    [
        "git clean -ffd",
        "git reset --hard --recurse-submodules",
        'cd "$X" && git reset --hard',
        "git --git-dir=x reset --hard",
        "GIT_WORK_TREE=/x git reset --hard",
    ],
)
def test_what_cannot_be_kept_asks(repo: Path, command: str) -> None:
    assert keep(repo, command).problem


def test_no_hook_and_no_filter_runs(repo: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    hook = repo / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    git(repo, "config", "filter.f.clean", f"touch {mark}; cat")
    git(repo, "config", "filter.f.required", "true")
    (repo / ".git" / "info" / "attributes").write_text("* filter=f\n")
    (repo / ".git" / "hooks" / "post-index-change").write_bytes(hook.read_bytes())
    (repo / ".git" / "hooks" / "post-index-change").chmod(0o755)
    (repo / "x.new").write_text("x")
    for path in (repo / "a.txt", repo / ".git" / "index"):  # the content has to be compared
        os.utime(path, (1, 1))
    (ref,) = keep(repo, "git clean -f").refs
    assert not mark.exists()
    assert git(repo, "show", f"{ref}:x.new") == "x"


@pytest.mark.parametrize("name", [b"a\nb", b"\xff", b'"x"'])
def test_files_with_odd_names_are_kept(repo: Path, name: bytes) -> None:
    with open(os.path.join(os.fsencode(repo), name), "w") as file:
        file.write("odd")
    (ref,) = keep(repo, "git clean -f").refs
    listed = subprocess.run(["git", "ls-tree", "-z", "--name-only", ref], cwd=repo, check=True, capture_output=True)
    assert name in listed.stdout.split(b"\0")


def test_outside_a_repository_git_fails_itself(tmp_path: Path, repo: Path) -> None:
    assert keep(tmp_path, "git reset --hard") == Backup()
    assert keep(tmp_path, "cd missing && git reset --hard") == Backup()


@pytest.mark.parametrize(
    "command",
    [
        "git reset",
        "git reset --soft HEAD~1",
        "git clean -n",
        "git clean -fdxn",
        "git checkout main",
        "git checkout -b x",
        "git checkout feature/x",
        "git restore --staged .",
        "git switch main",
        "git stash",
        "git stash pop",
        "git rm a",
        "echo git reset --hard",
    ],
)
def test_other_commands_discard_nothing(command: str) -> None:
    assert classify_call((), "Bash", {"command": command}, CallContext("/w", "/w")).discards == ()


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("git update-ref -d refs/jackline/r/1", "ask"), ("git update-ref --stdin < x", "ask"),
        ("rm -rf .git/refs/jackline", "ask"), ("git fetch . +HEAD:refs/jackline/r/1", "ask"),
        ("rm -rf .git/refs/jackline /etc", "deny"), ("git show refs/jackline/r/1", "allow"),
        ("git checkout refs/jackline/r/1 -- a.txt", "allow"), ("git update-ref refs/heads/x HEAD", "allow"),
    ],
)  # fmt: skip
def test_an_agent_does_not_remove_what_was_kept(command: str, decision: str) -> None:
    assert str(classify_call((), "Bash", {"command": command}, CallContext("/w", "/w")).rule.decision) == decision
