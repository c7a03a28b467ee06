"""What a run changed, asked of real git: its own commits and nobody else's, whatever moved the branches."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.clock import boot_ms
from jackline.domain.changes import UNCHANGED, Changes, build_reflog_env
from jackline.engine.git import read_changes
from jackline.engine.process import Warden

RUN = "01run"
OTHER = "01other"


class Tree:
    """A repository, and those who work in it: a run if one is named, else a person."""

    def __init__(self, folder: Path, warden: Warden) -> None:
        self.folder, self.warden = folder, warden
        home = folder.parent / "user"
        home.mkdir(exist_ok=True)
        (home / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n")
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}

    def git(self, *words: str, run: str = "", where: Path | None = None, code: int = 0, **more: str) -> str:
        env = {**self.env, **(build_reflog_env(run) if run else {}), **more}
        folder = where or self.folder
        ended = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert ended.returncode == code, (words, ended)
        return ended.stdout.strip()

    def commit(self, subject: str, run: str = RUN, where: Path | None = None, name: str = "") -> str:
        """A new file of one line, committed; gives back the commit."""
        path = (where or self.folder) / (name or subject.replace(" ", "-").replace("/", "-")[:50])
        path.write_text("a line\n")
        self.git("add", "-A", where=where)
        self.git("commit", "-q", "-m", subject, run=run, where=where)
        return self.git("rev-parse", "HEAD", where=where)

    def asked(self, run: str = RUN, where: Path | None = None, known: Changes = UNCHANGED) -> Changes | None:
        return read_changes(run, str(where or self.folder), self.env, self.warden, known)

    def found(self, run: str = RUN, where: Path | None = None, known: Changes = UNCHANGED) -> Changes:
        changes = self.asked(run, where, known)
        assert changes is not None
        return changes


@pytest.fixture(scope="module")
def warden() -> Iterator[Warden]:
    with Warden.start(deadline_ms=boot_ms() + 600_000, marker={"JACKLINE_COMMAND": "test-changes"}) as one:
        yield one


@pytest.fixture
def bare_tree(tmp_path: Path, warden: Warden) -> Tree:
    """A repository without a commit."""
    folder = tmp_path / "tree"
    folder.mkdir()
    made = Tree(folder, warden)
    made.git("init", "-q")
    return made


@pytest.fixture
def tree(bare_tree: Tree) -> Tree:
    """A repository with one commit, made by a person."""
    bare_tree.commit("begin", run="")
    return bare_tree


# --- what counts -----------------------------------------------------------------------------------------------


def test_nothing_was_done(tree: Tree, bare_tree: Tree) -> None:
    assert tree.found() == Changes()


def test_commits_are_told_oldest_first_with_their_lines(tree: Tree) -> None:
    first = tree.commit("one thing")
    (tree.folder / "begin").write_text("another line\nand one more\n")
    (tree.folder / "one-thing").unlink()
    tree.git("commit", "-q", "-a", "-m", "two  things\nat once\n\nand a body", run=RUN)
    second = tree.git("rev-parse", "HEAD")
    found = tree.found()
    assert found == Changes((f"{first} one thing", f"{second} two things"), 2, 3, 2)
    assert found.ids == (first, second)


def test_the_first_commit_of_an_empty_repository(bare_tree: Tree) -> None:
    assert bare_tree.found() == Changes()
    first = bare_tree.commit("begin")
    assert bare_tree.found() == Changes((f"{first} begin",), 1, 1, 0)


def test_a_commit_of_somebody_else_in_between_is_not_counted(tree: Tree) -> None:
    mine = tree.commit("mine")
    tree.commit("theirs", run="")
    tree.commit("another run", run=OTHER)
    last = tree.commit("mine again")
    assert tree.found().ids == (mine, last)
    assert len(tree.found(OTHER).commits) == 1


def test_an_id_that_begins_like_another_is_another(tree: Tree) -> None:
    tree.commit("longer", run=f"{RUN}-2")
    tree.commit("a dot is only a dot", run="01xun")
    assert tree.found("01.un") == Changes()
    assert tree.found() == Changes()


def test_what_was_amended_away_is_gone(tree: Tree) -> None:
    tree.commit("first try")
    tree.git("commit", "-q", "--amend", "-m", "second try", run=RUN)
    assert tree.found().commits == (f"{tree.git('rev-parse', 'HEAD')} second try",)


def test_an_amended_commit_of_somebody_else_is_a_new_one_of_the_run(tree: Tree) -> None:
    tree.git("commit", "-q", "--amend", "-m", "better words", run=RUN)
    assert tree.found().ids == (tree.git("rev-parse", "HEAD"),)


def test_what_somebody_else_amended_is_theirs(tree: Tree) -> None:
    tree.commit("mine")
    tree.git("commit", "-q", "--amend", "-m", "theirs now")
    assert tree.found() == Changes()


@pytest.mark.parametrize("message", ["", "Fast-forward", "(pick): x", "a\tb", "größer: 🙂", "x: y: z", "-"])
def test_strange_subjects(tree: Tree, message: str) -> None:
    tree.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", message, run=RUN)
    subject = " ".join(message.split())
    assert tree.found().commits == (f"{tree.git('rev-parse', 'HEAD')} {subject}".rstrip(),)


def test_another_encoding(tree: Tree) -> None:
    tree.git("config", "i18n.commitEncoding", "latin1")
    words = os.fsencode("größer".encode("latin1").decode("utf-8", "surrogateescape"))
    (tree.folder.parent / "message").write_bytes(words)
    tree.git("commit", "-q", "--allow-empty", "-F", str(tree.folder.parent / "message"), run=RUN)
    assert tree.found().ids == (tree.git("rev-parse", "HEAD"),)


# --- what moves branches ---------------------------------------------------------------------------------------


@pytest.fixture
def side(tree: Tree) -> str:
    """A commit of somebody else on a branch `side`; main has gone on, too."""
    tree.git("checkout", "-q", "-b", "side")
    side = tree.commit("their side", run="")
    tree.git("checkout", "-q", "main")
    return side


def test_checkout_and_reset_make_nothing(tree: Tree, side: str) -> None:
    tree.git("checkout", "-q", "side", run=RUN)
    tree.git("checkout", "-q", "-b", "more", run=RUN)
    tree.git("checkout", "-q", "main", run=RUN)
    tree.git("reset", "-q", "--hard", side, run=RUN)
    assert tree.found() == Changes()


@pytest.mark.parametrize("subject", ["Fast-forward", "updating HEAD", "Merge made by me", "checkout main"])
def test_moving_to_a_commit_with_a_treacherous_subject(tree: Tree, subject: str) -> None:
    tree.git("checkout", "-q", "-b", "side")
    tree.git("commit", "-q", "--allow-empty", "-m", subject, GIT_COMMITTER_DATE="2020-01-01T00:00:00Z")
    tree.git("checkout", "-q", "main")
    tree.git("merge", "-q", "side", run=RUN)
    tree.git("reset", "-q", "--hard", "HEAD~1", run=RUN)
    tree.git("reset", "-q", "--hard", "side", run=RUN)
    tree.git("rebase", "-q", "side", run=RUN)
    assert tree.found() == Changes()


def test_a_fast_forward_makes_nothing_and_a_merge_is_one_commit(tree: Tree, side: str) -> None:
    tree.git("merge", "-q", "side", run=RUN)
    assert tree.found() == Changes()
    tree.git("reset", "-q", "--hard", "HEAD~1")
    tree.commit("theirs on main", run="")
    tree.git("merge", "-q", "side", run=RUN)
    merge = tree.git("rev-parse", "HEAD")
    assert tree.found() == Changes((f"{merge} Merge branch 'side'",))


def test_a_merge_with_a_conflict_that_was_solved(tree: Tree) -> None:
    tree.git("checkout", "-q", "-b", "side")
    tree.commit("left", run="", name="same")
    tree.git("checkout", "-q", "main")
    (tree.folder / "same").write_text("right\n")
    tree.git("add", "same")
    tree.git("commit", "-q", "-m", "right")
    tree.git("merge", "-q", "side", run=RUN, code=1)
    (tree.folder / "same").write_text("both\n")
    tree.git("add", "same")
    tree.git("commit", "-q", "--no-edit", run=RUN)
    assert tree.found().ids == (tree.git("rev-parse", "HEAD"),)


def test_cherry_pick_and_revert(tree: Tree, side: str) -> None:
    tree.commit("theirs on main", run="")
    tree.git("cherry-pick", side, run=RUN)
    picked = tree.git("rev-parse", "HEAD")
    tree.git("revert", "--no-edit", "HEAD", run=RUN)
    assert tree.found().ids == (picked, tree.git("rev-parse", "HEAD"))


def test_a_rebase_leaves_the_new_commits_only(tree: Tree) -> None:
    tree.git("checkout", "-q", "-b", "work", run=RUN)
    old = {tree.commit("work one"), tree.commit("work two")}
    tree.git("checkout", "-q", "main")
    tree.commit("theirs on main", run="")
    tree.git("rebase", "-q", "main", "work", run=RUN)
    found = tree.found()
    assert list(found.ids) == tree.git("rev-list", "--reverse", "main..work").split()
    assert not old & set(found.ids)


def test_a_rebase_that_squashes(tree: Tree) -> None:
    for subject in ("one", "two", "three"):
        tree.commit(subject)
    editor = "sed -i -e '2s/pick/squash/' -e '3s/pick/fixup/'"
    tree.git("rebase", "-q", "-i", "HEAD~3", run=RUN, GIT_SEQUENCE_EDITOR=editor)
    assert tree.found() == Changes((f"{tree.git('rev-parse', 'HEAD')} one",), 3, 3, 0)


def test_a_rebase_that_keeps_the_dates(tree: Tree) -> None:
    tree.git("checkout", "-q", "-b", "work")
    tree.commit("work")
    tree.git("checkout", "-q", "main")
    tree.commit("theirs", run="")
    tree.git("rebase", "-q", "--committer-date-is-author-date", "main", "work", run=RUN)
    assert tree.found().ids == (tree.git("rev-parse", "work"),)


def test_patches_that_were_applied(tree: Tree) -> None:
    tree.commit("to be mailed", run="")
    tree.git("format-patch", "-q", "-1", "-o", str(tree.folder.parent))
    tree.git("reset", "-q", "--hard", "HEAD~1")
    patch = next(tree.folder.parent.glob("*.patch"))
    tree.git("am", "-q", str(patch), run=RUN)
    assert tree.found().ids == (tree.git("rev-parse", "HEAD"),)


def test_a_stash_is_no_commit(tree: Tree) -> None:
    (tree.folder / "begin").write_text("not yet\n")
    tree.git("stash", "-q", run=RUN)
    tree.git("stash", "pop", "-q", run=RUN)
    assert tree.found() == Changes()


def test_fetching_and_pulling_what_others_made(tree: Tree, warden: Warden) -> None:
    tree.git("clone", "-q", str(tree.folder), str(tree.folder.parent / "clone"))
    clone = Tree(tree.folder.parent / "clone", warden)
    tree.commit("theirs", run="")
    clone.git("pull", "-q", "--ff-only", run=RUN)
    assert clone.found() == Changes()
    mine = clone.commit("mine")
    tree.commit("theirs again", run="")
    clone.git("pull", "-q", "--no-rebase", "--no-edit", run=RUN)
    assert clone.found().ids == (mine, clone.git("rev-parse", "HEAD"))
    clone.git("reset", "-q", "--hard", mine)
    clone.git("pull", "-q", "--rebase", run=RUN)
    assert clone.found().ids == (clone.git("rev-parse", "HEAD"),)


# --- where it happens ------------------------------------------------------------------------------------------


def test_linked_worktrees_see_each_other_and_stay_apart(tree: Tree) -> None:
    linked = tree.folder.parent / "linked"
    tree.git("worktree", "add", "-q", "--detach", str(linked), run=RUN)
    detached = tree.commit("without a branch", where=linked)
    tree.git("checkout", "-q", "-b", "linked", where=linked, run=RUN)
    branch = tree.commit("on a branch", where=linked)
    theirs = tree.commit("of another run", OTHER)
    assert tree.found().ids == tree.found(where=linked).ids == (detached, branch)
    assert tree.found(OTHER).ids == (theirs,)


def test_a_detached_head(tree: Tree) -> None:
    tree.git("checkout", "-q", "--detach", run=RUN)
    made = tree.commit("nowhere in particular")
    assert tree.found().ids == (made,)
    tree.git("checkout", "-q", "main", run=RUN)
    assert tree.found() == Changes(), "no ref leads to it any more"


def test_a_folder_inside_the_tree(tree: Tree) -> None:
    below = tree.folder / "a" / "b"
    below.mkdir(parents=True)
    made = tree.commit("from below", where=below)
    assert tree.found(where=below) == Changes((f"{made} from below",), 1, 1, 0)


def test_names_of_files_that_need_care(tree: Tree) -> None:
    for name in ("with space", "with\ttab", 'with"quote', "with\nline", "größer", "\udcff", "-n"):
        Path(os.fsdecode(os.fsencode(tree.folder / name))).write_text("one\ntwo\n")
    tree.git("add", "-A")
    tree.git("commit", "-q", "-m", "names", run=RUN)
    assert tree.found()[1:] == (7, 14, 0)


def test_renamed_and_binary_files(tree: Tree) -> None:
    (tree.folder / "long").write_text("".join(f"line {number}\n" for number in range(50)))
    tree.git("add", "-A")
    tree.git("commit", "-q", "-m", "theirs")
    tree.git("mv", "long", "moved")
    (tree.folder / "image").write_bytes(bytes(range(256)))
    tree.git("add", "-A")
    tree.git("commit", "-q", "-m", "moved", run=RUN)
    assert tree.found()[1:] == (2, 0, 0)


def test_where_there_is_no_repository(tmp_path: Path, tree: Tree) -> None:
    assert tree.asked(where=tmp_path) is None
    assert tree.asked(where=tmp_path / "gone") is None
    tree.env["PATH"] = str(tmp_path)
    assert tree.asked() is None, "no git at all"


def test_a_bare_repository(tree: Tree) -> None:
    tree.commit("mine")
    bare = tree.folder.parent / "bare.git"
    tree.git("clone", "-q", "--bare", str(tree.folder), str(bare), run=RUN)
    assert tree.found(where=bare) == Changes()


def test_what_is_known_stays_when_the_reflog_has_gone(tree: Tree) -> None:
    mine, away = tree.commit("mine"), tree.commit("reset away")
    known = tree.found()
    tree.git("reset", "-q", "--hard", mine)
    tree.git("reflog", "expire", "--expire=all", "--all")
    assert tree.found() == Changes()
    assert tree.found(known=known) == Changes((f"{mine} mine",), 1, 1, 0)
    tree.git("gc", "-q", "--prune=now")
    assert tree.git("cat-file", "-t", away, code=128) == ""
    assert tree.found(known=known).ids == (mine,)


# --- who cannot be trusted -------------------------------------------------------------------------------------


def test_nothing_that_a_repository_names_is_started(tree: Tree) -> None:
    trap = tree.folder.parent / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tree.folder.parent}/sprung\n")
    trap.chmod(0o755)
    (tree.folder / ".gitattributes").write_text("* diff=trap filter=trap\n")
    made = tree.commit("mine")
    for key in (
        "core.fsmonitor", "core.pager", "pager.log", "diff.external", "diff.trap.command", "diff.trap.textconv",
        "core.sshCommand", "core.editor", "gpg.program", "filter.trap.clean", "filter.trap.smudge", "alias.log",
        "core.alternateRefsCommand",
    ):  # fmt: skip
        tree.git("config", key, f"!{trap}" if key == "alias.log" else str(trap))
    tree.git("config", "log.showSignature", "true")
    for name in ("post-index-change", "reference-transaction", "post-checkout"):
        (tree.folder / ".git" / "hooks" / name).symlink_to(trap)
    assert tree.found().ids == (made,)
    assert not (tree.folder.parent / "sprung").exists()


def test_a_missing_object_is_not_fetched(tree: Tree) -> None:
    """A repository may say that what it lacks is to be had by a command: the commit is told, its lines are not."""
    trap = tree.folder.parent / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tree.folder.parent}/sprung\n")
    trap.chmod(0o755)
    (tree.folder / "begin").write_text("something else\n")
    made = tree.commit("mine")
    blob = tree.git("rev-parse", f"{made}:begin")
    (tree.folder / "begin").unlink()  # else git would take it from there
    (tree.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{trap}", "protocol.ext.allow": "always",
    }.items():  # fmt: skip
        tree.git("config", key, value)
    assert tree.found() == Changes((f"{made} mine",))
    assert not (tree.folder.parent / "sprung").exists()
    tree.git("show", made, code=128)
    assert (tree.folder.parent / "sprung").exists(), "the trap works"


def test_hundreds_of_commits_within_the_same_second_keep_their_order(tree: Tree) -> None:
    script = 'for n in $(seq 300); do git commit -q --allow-empty -m "commit $n" || exit 1; done'
    subprocess.run(["/bin/sh", "-c", script], cwd=tree.folder, env={**tree.env, **build_reflog_env(RUN)}, check=True)
    found = tree.found().commits
    assert [commit.partition(" ")[2] for commit in found] == [f"commit {number}" for number in range(1, 301)]
