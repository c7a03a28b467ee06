"""`jackline worktree`: from a run with a worktree of its own to its merge and its removal."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.cli.output import open_output
from jackline.engine.workspace_guard import guard_workspace
from jackline.errors import WorktreeRefused
from jackline.features.worktrees import worktree_command, worktree_merge, worktree_removal, worktree_state
from jackline.files import is_unlocked
from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.cli.test_terminal import Terminal
from tests.cli.test_worktree_run import WORK, find_root, git, list_kinds, repo, run, start
from tests.support.skips import obey_permissions

__all__ = ["repo"]
REFUSED = 1
USAGE = 2


def type_(place: Place, *words: str) -> Ended:
    return place.type("worktree", *words)


def test_from_the_run_to_the_merge_and_the_removal(repo: Place) -> None:
    assert "no worktrees" in type_(repo, "list").err
    assert start(repo, "--proof", "grep two a").code == 0
    (listed,) = type_(repo, "list", "--json").rows
    names = ("name", "run", "state", "folder", "ahead", "files", "changed", "merged")
    assert [listed[name] for name in names] == ["r", "r", "succeeded", "ready", 1, 1, 0, ""]
    assert "1 (1 file)" in type_(repo, "list").out
    assert type_(repo, "open", "r").out.strip() == str(find_root(repo))
    assert type_(repo, "gc").out.startswith("r stays: not merged into main: 1 commit on jackline/r")
    assert find_root(repo).is_dir()
    merged = type_(repo, "merge", "r")
    assert (merged.code, "merged jackline/r into main (fast-forward" in merged.out) == (0, True), merged
    assert (repo.repository / "a").read_text() == "one\ntwo\n"
    assert "already" in type_(repo, "merge", "#1").out
    assert "would remove r: in main" in type_(repo, "gc", "--dry-run").out
    assert find_root(repo).is_dir()
    assert type_(repo, "gc", "--json").json["removed"] is True
    assert not find_root(repo).exists()
    assert git(repo, "branch", "--list", "jackline/*") == ""
    assert list_kinds(repo)[-2:] == ["worktree.merged", "worktree.removed"]
    assert repo.type("verify", "r").code == 0
    assert start(repo, "r", run_id="next").code == 0  # the name is free again


@pytest.mark.parametrize("name", ["hidden", "node_modules/hidden"])
def test_a_folder_that_cannot_be_read_is_not_taken_for_empty(repo: Place, name: str) -> None:
    """Git does, without an error. One that can be read and not written, as some package managers make, is removed."""
    assert start(repo, steps=(SAY,)).code == 0
    (repo.repository / ".git" / "info" / "exclude").write_text("node_modules/\n")
    folder = find_root(repo) / name
    folder.mkdir(parents=True)
    (folder / "mine").touch()
    folder.chmod(0)
    kept = repo.type("worktree", "gc", preexec_fn=obey_permissions)
    assert kept.out == f"r stays: {folder} cannot be read: Permission denied\n", kept
    folder.chmod(0o500)
    removed = repo.type("worktree", "gc", preexec_fn=obey_permissions)
    assert removed.out == ("removed r: in main\n" if "/" in name else f"r stays: not committed: {name}/mine\n"), removed
    assert folder.exists() == ("/" not in name)


@pytest.mark.full
def test_what_is_wrong_with_one_repository_does_not_hide_the_others(repo: Place) -> None:
    other = repo.folder / "other"
    git(repo, "clone", "-q", str(repo.repository), str(other))
    assert start(repo, steps=(SAY,)).code == 0
    root = find_root(repo)
    assert repo.play(SAY, words=("--run-id", "second", "--worktree"), cwd=other).code == 0
    root.parent.chmod(0)
    refused = repo.type("worktree", "merge", "r", preexec_fn=obey_permissions)
    assert (refused.code, is_one_line(refused), "Permission denied" in refused.err) == (1, True, True), refused
    planned = repo.type("worktree", "gc", "--dry-run", preexec_fn=obey_permissions)
    assert planned.out == "r stays: its folder is damaged\n", "it is not gone"
    shutil.move(other, repo.folder / "away")
    collected = repo.type("worktree", "gc", "--all-repos", preexec_fn=obey_permissions)
    assert collected.code == 1, collected
    assert collected.out.splitlines()[0] == f"r stays: {root.parent} cannot be locked: Permission denied"
    root.parent.chmod(0o700)
    listed = type_(repo, "list", "--all-repos", "--json")
    assert [(row["name"], row["folder"]) for row in listed.rows] == [("r", "ready"), ("second", "damaged")], listed
    collected = type_(repo, "gc", "--all-repos")
    assert (collected.code, collected.out) == (0, "removed r: in main\nsecond stays: its folder is damaged\n")


def test_a_manifest_and_show_name_it(repo: Place) -> None:
    assert start(repo).code == 0
    assert f'"worktree_path": "{find_root(repo)}"' in (repo.home / "runs/r/manifest.json").read_text()
    assert "jackline/r" in repo.type("show", "r").out


@pytest.mark.parametrize("command", ["git switch -qc other", "git switch -q --detach"])
def test_a_merge_is_only_suggested_if_the_branch_has_the_commits(repo: Place, command: str) -> None:
    ended = start(repo, steps=(run(f"{command} && echo two >> a && git commit -qam second"), SAY))
    look = "jackline/r does not have the commits that are in its worktree; look at it: jackline worktree open r"
    assert (ended.code, look in ended.out, "merge it" in ended.out) == (0, True, False), ended
    git(repo, "switch", "-q", "jackline/r", where=find_root(repo))
    assert look in repo.type("show", "r").out
    git(repo, "merge", "-q", "HEAD@{1}", where=find_root(repo))
    assert "merge it: jackline worktree merge r" in repo.type("show", "r").out


def test_it_is_found_by_name_and_run_and_refusals_are_one_line(repo: Place) -> None:
    steps = (run("echo two >> a && git commit -qam second && echo more > more"), SAY)
    ended = start(repo, "some", steps=steps, run_id="first")
    assert (ended.code, "merge it: jackline worktree merge some" in ended.out) == (0, True), ended
    empty = start(repo, "empty", steps=(run("echo x > new"), SAY), run_id="second")
    assert "nothing is committed; look at it: jackline worktree open empty" in empty.out, empty
    for words, code, text in (
        (("merge", "some"), REFUSED, "not committed: more"),
        (("merge", "nothing"), USAGE, "no worktree matches"),
        (("merge", "some", "--ff-only", "--squash"), USAGE, "not allowed with"),
        (("merge", "some", "--into", ""), USAGE, "--into is empty"),
    ):
        refused = type_(repo, *words)
        assert (refused.code, is_one_line(refused), text in refused.err) == (code, True, True), refused
    elsewhere = repo.type("worktree", "merge", "st", cwd=repo.folder)  # the end of its id, by a slip
    assert (elsewhere.code, "no worktree matches 'st'" in elsewhere.err) == (USAGE, True), elsewhere
    kept = type_(repo, "salvage", "st")
    assert "kept at refs/jackline/first/1" in kept.out
    assert "its commits are on jackline/some (not merged)" in kept.out
    assert git(repo, "show", "refs/jackline/first/1:more") == "more"


def test_a_run_that_was_resumed_meanwhile_keeps_its_worktree(repo: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """As if `gc` had waited for another command: the run had failed when it began, and works now."""
    again, started, go = (repo.path(name) for name in ("again", "started", "go"))
    set_up = f"test -e {again} || exit 1; touch {started}; until test -e {go}; do sleep 0.01; done"
    assert start(repo, "--setup", set_up).code == REFUSED
    with (
        Home(load_config(repo.environment(), str(repo.repository))) as home,
        worktree_state.open_trees(home) as trees,
    ):
        repo.let_go("again")
        resumed = repo.start("resume", "r")
        repo.wait_for("started")
        worktree_command._collect(trees, home, open_output(json=False, colour=False), dry_run=False)
    assert "r stays: its run is running" in capsys.readouterr().out
    assert find_root(repo).is_dir()
    repo.let_go("go")
    ended = repo.end_of(resumed)
    assert ended.code == 0, ended
    assert git(repo, "log", "-1", "--format=%s", "jackline/r") == "second"


def merge_in_process(home: Home, trees: list[worktree_state.RunTree]) -> None:
    args = Namespace(ff_only=False, no_ff=False, squash=False, into=None, no_proof=True, no_review=True)
    worktree_command._merge(trees[0], args, home, open_output(json=False, colour=False))


def test_a_run_that_was_resumed_meanwhile_is_not_merged(repo: Place) -> None:
    """As if `merge` had waited for another command: the run had failed when it began, and works now."""
    again, started, go = (repo.path(name) for name in ("again", "started", "go"))
    proof = f"test -e {again} || exit 1; touch {started}; until test -e {go}; do sleep 0.01; done"
    assert start(repo, "--proof", proof, "--max-iterations", "1").code != 0
    with (
        Home(load_config(repo.environment(), str(repo.repository))) as home,
        worktree_state.open_trees(home) as trees,
    ):
        repo.let_go("again")
        resumed = repo.start("resume", "r", "--max-iterations", "2")
        repo.wait_for("started")
        with pytest.raises(WorktreeRefused, match="run r is active in"):
            merge_in_process(home, trees)
    assert git(repo, "log", "-1", "--format=%s") == "first"
    repo.let_go("go")
    assert repo.end_of(resumed).code == 0


def test_a_worktree_that_was_removed_meanwhile_is_not_merged(repo: Place) -> None:
    assert start(repo).code == 0
    with (
        Home(load_config(repo.environment(), str(repo.repository))) as home,
        worktree_state.open_trees(home) as trees,
    ):
        git(repo, "merge", "-q", "jackline/r")
        assert "removed r" in type_(repo, "gc").out
        with pytest.raises(WorktreeRefused, match="was removed in the meantime"):
            merge_in_process(home, trees)


def test_a_claim_holds_the_lock_that_another_home_of_the_same_database_sees(repo: Place) -> None:
    assert start(repo).code == 0
    folder = str(find_root(repo).parent.parent)
    with Home(load_config(repo.environment(), str(repo.repository))) as home:
        claimed = home.store().runs.get("r")
        assert claimed is not None
        with guard_workspace(home.store(), claimed, home.path, share=False):
            assert not is_unlocked(folder)
    assert is_unlocked(folder)


def test_a_run_that_begins_during_the_proof_of_a_merge_is_seen(repo: Place) -> None:
    """The proof of the merge takes its time: meanwhile a run begins to work in the checkout of the target."""
    started, go, busy, done = (repo.path(name) for name in ("started", "go", "busy", "done"))
    proof = f"test -e other || exit 0; touch {started}; until test -e {go}; do sleep 0.01; done"
    assert start(repo, "--proof", proof).code == 0
    (repo.repository / "other").write_text("other\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "other")
    merge = repo.start("worktree", "merge", "r")
    repo.wait_for("started")
    script = repo.script(run(f"touch {busy}; until test -e {done}; do sleep 0.01; done"), SAY)
    works = repo.start("run", "work", "--agent", "scripted", "--script", script, "--run-id", "w")
    repo.wait_for("busy")
    repo.let_go("go")
    refused = repo.end_of(merge)
    assert (refused.code, "run w is active in" in refused.err) == (REFUSED, True), refused
    assert git(repo, "log", "-1", "--format=%s") == "other"
    repo.let_go("done")
    assert repo.end_of(works).code == 0
    assert type_(repo, "merge", "r").code == 0


def test_no_run_can_start_while_the_files_of_a_checkout_change(repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(repo).code == 0
    free = []

    def look(*_words: Any) -> None:
        free.append(is_unlocked(str(repo.home / "runs")))

    monkeypatch.setattr(worktree_merge, "_move_target", look)
    with (
        Home(load_config(repo.environment(), str(repo.repository))) as home,
        worktree_state.open_trees(home) as trees,
    ):
        merge_in_process(home, trees)
    assert free == [False]


def test_a_branch_is_merged_even_if_the_folder_of_all_worktrees_is_gone(repo: Place) -> None:
    assert start(repo).code == 0
    shutil.rmtree(find_root(repo).parent)
    merged = type_(repo, "merge", "r")
    assert (merged.code, (repo.repository / "a").read_text()) == (0, "one\ntwo\n"), merged


def test_no_run_can_start_while_its_worktree_is_removed(repo: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in this home, nor in another one with the same database; and no merge begins."""
    assert start(repo).code == 0
    assert type_(repo, "merge", "r").code == 0
    free = []
    plan, remove = worktree_removal.plan_removal, worktree_removal.remove_worktree
    locked = (repo.home / "runs", find_root(repo).parent.parent, find_root(repo).parent)

    def look(do: Callable[..., Any], *words: Any) -> Any:
        free.append(any(is_unlocked(str(folder)) for folder in locked))
        return do(*words)

    monkeypatch.setattr(worktree_removal, "plan_removal", partial(look, plan))
    monkeypatch.setattr(worktree_removal, "remove_worktree", partial(look, remove))
    with (
        Home(load_config(repo.environment(), str(repo.repository))) as home,
        worktree_state.open_trees(home) as trees,
    ):
        worktree_command._collect(trees, home, open_output(json=False, colour=False), dry_run=False)
    assert (free, find_root(repo).exists()) == ([False, False], False)
    assert is_unlocked(str(repo.home / "runs"))


def test_a_worktree_that_was_merged_into_another_branch_is_removed(repo: Place) -> None:
    git(repo, "switch", "-q", "--detach")
    assert start(repo).code == 0
    git(repo, "branch", "jackline/copy", "jackline/r")  # as if it were the branch of another run
    assert "r stays: not merged into any branch" in type_(repo, "gc").out
    assert type_(repo, "merge", "r", "--into", "main").code == 0
    assert type_(repo, "list", "--json").json["merged"] == "main"
    assert "removed r: in main" in type_(repo, "gc").out
    assert git(repo, "log", "-1", "--format=%s", "main") == "second"


def test_commits_after_a_merge_into_another_branch_stay(repo: Place) -> None:
    git(repo, "branch", "release")
    assert start(repo).code == 0
    git(repo, "branch", "jackline/copy", "jackline/r")
    assert type_(repo, "merge", "r", "--into", "release").code == 0
    (find_root(repo) / "a").write_text("three\n")
    git(repo, "commit", "-qam", "third", where=find_root(repo))
    git(repo, "branch", "-f", "jackline/copy", "jackline/r")
    assert "r stays: not merged into main" in type_(repo, "gc").out
    assert git(repo, "log", "-1", "--format=%s", "jackline/r") == "third"


def test_a_worktree_that_was_never_made_has_nothing_to_merge(repo: Place) -> None:
    queued = repo.type("enqueue", "work", "--agent", "scripted", "--script", repo.script(SAY), "--worktree", "later")
    assert queued.code == 0, queued
    refused = type_(repo, "merge", "later")
    assert (refused.code, is_one_line(refused)) == (REFUSED, True), refused
    assert "it is not made yet, and its run is queued" in refused.err
    assert repo.type("cancel", "#1").code == 0
    assert type_(repo, "gc", "--json").json["reason"] == "it was never made"


def test_a_run_whose_worktree_was_removed_is_not_resumed(repo: Place) -> None:
    assert start(repo, "--proof", "false", "--max-iterations", "1").code == 16
    assert type_(repo, "merge", "r", "--no-proof").code == 0
    assert "removed r" in type_(repo, "gc").out
    steps = repo.type("show", "r").out.splitlines()[-2:]
    assert steps == ["its worktree was removed: start another run", "output: jackline logs r"]
    refused = repo.type("resume", "r", "--max-iterations", "3")
    assert (refused.code, is_one_line(refused), "start another run" in refused.err) == (USAGE, True, True), refused
    after = repo.type("show", "r", "--json").json
    assert (after["failure"], after["attempts"][-1]["token"]) == ("proof", 1), after


@pytest.mark.full
def test_the_list_says_that_a_run_is_lost(repo: Place) -> None:
    crash = {"JACKLINE_CRASH_AT": "call.intent.committed"}
    assert repo.play(WORK, SAY, words=("--run-id", "r", "--worktree"), environ=crash).code == -9
    assert type_(repo, "list").out.startswith("r\t#1\tlost\tready\t")
    listed = type_(repo, "list", "--json").json
    assert (listed["state"], listed["lost"]) == ("running", True)


@pytest.mark.parametrize(("columns", "name"), [(60, "lost"), (80, "lost-2048803e41c2")])
def test_the_list_fits_a_narrow_terminal(repo: Place, columns: int, name: str) -> None:
    """The name, which other commands need, is whole."""
    assert start(repo, "--setup", "true").code == 0
    assert start(repo, name, steps=(SAY,), run_id="lost").code == 0
    shutil.rmtree(find_root(repo, name))
    terminal = Terminal(repo, "worktree", "list", COLUMNS=str(columns), NO_COLOR="1")
    while terminal.read():
        pass
    terminal.end()
    lines = terminal.seen.splitlines()
    assert max(map(len, lines)) <= columns, lines
    assert [line.split() for line in lines] == [
        ["NAME", "RUN", "STATE", "AHEAD", "CHANGED", "MERGED"],
        [name, "#2", "succeeded", "0", "missing", "main"],
        ["r", "#1", "succeeded", "1", "(1", "file)", "0", "no"],
    ]


def test_a_missing_folder_of_a_run_that_succeeded_can_be_created_again(repo: Place) -> None:
    assert start(repo).code == 0
    shutil.rmtree(find_root(repo))
    refused = type_(repo, "open", "r")
    assert (refused.code, is_one_line(refused), "resume" in refused.err) == (REFUSED, True, False), refused
    _, keep, _, create, _ = refused.err.split("`")
    assert keep == "jackline worktree salvage r"
    subprocess.run(shlex.split(create), check=True, env=repo.environment(), capture_output=True)
    assert type_(repo, "open", "r").out.strip() == str(find_root(repo))
    assert (find_root(repo) / "a").read_text() == "one\ntwo\n"


def test_open_starts_a_shell_there(repo: Place) -> None:
    assert start(repo).code == 0
    shell = repo.folder / "shell"
    shell.write_text(f"#!/bin/sh\npwd > {repo.path('where')}\n")
    shell.chmod(0o755)
    repo.environ["SHELL"] = str(shell)
    terminal = Terminal(repo, "worktree", "open", "r")
    while terminal.read():
        pass
    terminal.end()
    assert (repo.folder / "where").read_text().strip() == str(find_root(repo))


def test_a_checkout_on_a_full_disk_keeps_everything(repo: Place) -> None:
    """The worktree cannot be made on a disk of 1 MB: the run fails before its agent, and is resumed on a larger one."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    (repo.repository / "large").write_bytes(os.urandom(3_000_000))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "large")
    small = repo.folder / "small"
    small.mkdir()
    repo.environ["JACKLINE_WORKTREES"] = str(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)], check=True)
    try:
        ended = start(repo)
        assert ended.code == REFUSED, ended
        assert repo.type("show", "r", "--json").json["failure"] == "worktree"
        assert "turn.launched" not in list_kinds(repo)
        assert git(repo, "status", "--porcelain") == ""
        subprocess.run(["mount", "-o", "remount,size=20m", str(small)], check=True)
        resumed = repo.type("resume", "r")
        assert resumed.code == 0, resumed
        assert git(repo, "log", "-1", "--format=%s", "jackline/r") == "second"
    finally:
        subprocess.run(["umount", "--lazy", str(small)], check=True)
