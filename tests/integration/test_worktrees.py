"""Merging, keeping and removing the worktrees of runs, with real git: nothing dirty or unmerged is ever lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from jackline import clock
from jackline.clock import boot_ms
from jackline.domain.records import Run, RunStatus, RunWorktree
from jackline.domain.spec import Spec, WorktreeSpec
from jackline.domain.states import Proof, RunState
from jackline.engine.git import Git
from jackline.engine.process import Warden
from jackline.engine.work_trees import WorkTrees
from jackline.errors import WorktreeRefused
from jackline.features.worktrees import worktree_merge, worktree_removal, worktree_state
from jackline.features.worktrees.worktree_merge import MergeResult, merge_tree
from jackline.features.worktrees.worktree_removal import RemovalPlan, plan_removal, remove_worktree
from jackline.features.worktrees.worktree_salvage import salvage_tree
from jackline.features.worktrees.worktree_state import RunTree, inspect_tree

RUN = "r"
BRANCH = "jackline/w"


class Scene:
    """A repository, and the worktree of a run that has succeeded with one commit."""

    def __init__(self, folder: Path, warden: Warden) -> None:
        self.folder, self.main, self.path = folder, folder / "main", folder / "trees" / "w"
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada",
            "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "ada@example.org",
        }  # fmt: skip
        self.main.mkdir()
        self.run("init", "-q", "-b", "main")
        (self.main / ".gitignore").write_text(".env\nnode_modules/\n")
        (self.main / "a").write_text("one\n")
        self.commit("first")
        self.base = self.run("rev-parse", "HEAD")
        self.path.parent.mkdir()
        self.run("worktree", "add", "-q", "--lock", "--reason", f"jackline run {RUN}", "-b", BRANCH, str(self.path))
        (self.path / "new").write_text("new\n")
        self.commit("work", self.path)
        self.git = Git(workspace=str(self.main), env=self.env, warden=warden, timeout_s=60)
        self.spec = Spec(
            prompt="p",
            workspace=str(self.path),
            worktree=WorktreeSpec(name="w", branch=BRANCH, path=str(self.path), source=str(self.main)),
        )
        self.state = RunState.SUCCEEDED
        self.proved_tree = ""

    def run(self, *words: str, where: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=where or self.main, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done)
        return done.stdout.strip()

    def commit(self, subject: str, where: Path | None = None) -> str:
        self.run("add", "-A", where=where)
        self.run("commit", "-qm", subject, where=where)
        return self.run("rev-parse", "HEAD", where=where)

    @property
    def tree(self) -> RunTree:
        proof = Proof.PROVED if self.proved_tree else Proof.UNVERIFIED
        status = RunStatus(state=self.state, proof=proof, tree=self.proved_tree)
        run = Run(
            id=RUN, number=1, repository="", lineage=RUN, parent=None, spec=self.spec, status=status, owner=None,
            event_seq=0, chain_head="", created_at=0, updated_at=0,
        )  # fmt: skip
        row = RunWorktree(
            run_id=RUN, repository="", name="w", branch=BRANCH, base=self.base, base_branch="main",
            path=str(self.path), host=clock.host_name(), made_at=1, set_up_at=1,
        )  # fmt: skip
        return RunTree(run=run, row=row, git=self.git, folder=str(self.folder / "run"))

    def merge(self, mode: str = "", *, prove: bool = True, busy: dict[str, str] | None = None) -> MergeResult:
        return merge_tree(self.tree, mode, "", lambda: nullcontext(busy or {}), prove=prove)

    def plan(self, *commits: str) -> RemovalPlan:
        return plan_removal(self.tree, {}, commits)

    def remove(self) -> None:
        remove_worktree(self.plan(), _NoStore(), 1)  # type: ignore[arg-type]

    def picture(self) -> tuple[str, ...]:
        """Everything of the main checkout, the branches and the worktrees."""
        files = sorted(
            f"{path.relative_to(self.main)}:{path.read_text()}"
            for path in self.main.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(self.main).parts
        )
        lines = (
            "status --porcelain",
            "for-each-ref refs/heads refs/jackline",
            "worktree list --porcelain",
            "diff --cached",
        )
        return (*files, *(self.run(*words.split()) for words in lines))


class _NoStore:
    """Stands for the record of a removal, which tests/cli covers."""

    worktrees = property(lambda self: self)

    def record_removed(self, *_words: object) -> None:
        pass


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with Warden.start(deadline_ms=boot_ms() + 170_000, marker={"JACKLINE_COMMAND": "test"}) as warden:
        made = Scene(tmp_path, warden)
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        (tmp_path / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.org\n")
        yield made


def diverge(scene: Scene, *, conflict: bool = False) -> str:
    (scene.main / ("new" if conflict else "other")).write_text("main\n")
    return scene.commit("on main")


# merging


def test_a_fast_forward_updates_branch_and_checkout(scene: Scene) -> None:
    tip = scene.run("rev-parse", BRANCH)
    result = scene.merge()
    assert (result.how, result.commit, result.proof) == ("fast-forward", tip, "no proof")
    assert (scene.main / "new").read_text() == "new\n"
    assert (scene.run("rev-parse", "main"), scene.run("status", "--porcelain")) == (tip, "")
    assert scene.merge().how == "up-to-date"
    assert os.listdir(scene.path.parent) == ["w"]


@pytest.mark.parametrize(("mode", "parents"), [("no-ff", 2), ("squash", 1), ("", 2)])
def test_a_merge_of_branches_that_went_apart(scene: Scene, mode: str, parents: int) -> None:
    before = diverge(scene)
    tip = scene.run("rev-parse", BRANCH)
    result = scene.merge(mode)
    found = scene.run("log", "-1", "--format=%P", "main").split()
    assert found == [before, tip][:parents]
    assert (result.how, (scene.main / "new").exists()) == ("squash" if mode == "squash" else "merge", True)
    assert (scene.main / "other").exists()
    assert scene.run("status", "--porcelain") == ""


@pytest.mark.parametrize("mode", ["", "squash"])
def test_without_an_identity_of_the_user_jackline_is_the_committer(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    diverge(scene)
    (scene.folder / ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")
    scene.env["GIT_CONFIG_COUNT"] = "0"
    monkeypatch.setenv("GIT_CONFIG_COUNT", "0")
    assert scene.merge(mode).how == (mode or "merge")
    assert scene.run("log", "-1", "--format=%an %ce") == "jackline jackline@localhost"


@pytest.mark.parametrize(("role", "people"), [("AUTHOR", "Bo jackline"), ("COMMITTER", "jackline Bo")])
def test_an_author_or_a_committer_that_git_knows_stays(scene: Scene, role: str, people: str) -> None:
    diverge(scene)
    (scene.folder / ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")
    scene.env |= {"GIT_CONFIG_COUNT": "0", f"GIT_{role}_NAME": "Bo", f"GIT_{role}_EMAIL": "bo@example.org"}
    scene.merge()
    assert scene.run("log", "-1", "--format=%an %cn") == people


def test_a_merge_commit_is_made_where_a_fast_forward_would_do(scene: Scene) -> None:
    tip = scene.run("rev-parse", BRANCH)
    scene.merge("no-ff")
    assert scene.run("log", "-1", "--format=%P", "main").split() == [scene.base, tip]


def test_ff_only_and_conflicts_change_nothing(scene: Scene) -> None:
    diverge(scene, conflict=True)
    before = scene.picture()
    with pytest.raises(WorktreeRefused, match="use --no-ff or --squash"):
        scene.merge("ff-only")
    with pytest.raises(WorktreeRefused, match="conflicts in new: nothing was changed"):
        scene.merge()
    assert scene.picture() == before
    assert os.listdir(scene.path.parent) == ["w"]


@pytest.mark.parametrize("change", ["changed", "staged", "merging", "rebasing", "twice", "busy"])
def test_a_main_checkout_that_is_not_clean_is_never_touched(scene: Scene, change: str) -> None:
    busy = {}
    match change:
        case "changed":
            (scene.main / "a").write_text("mine\n")
        case "staged":
            (scene.main / "mine").write_text("mine\n")
            scene.run("add", "mine")
        case "merging":
            (scene.main / ".git" / "MERGE_HEAD").write_text(f"{scene.base}\n")
        case "rebasing":  # git detaches HEAD meanwhile, and its end would find another commit on the branch
            diverge(scene)
            scene.run("-c", "sequence.editor=sed -i s/pick/edit/", "rebase", "-q", "-i", scene.base)
        case "twice":
            scene.run("worktree", "add", "-q", "--force", str(scene.folder / "twice"), "main")
        case _:
            busy = {str(scene.main): "other"}
    before = scene.picture()
    with pytest.raises(WorktreeRefused, match=str(scene.main)):
        scene.merge(busy=busy)
    assert scene.picture() == before


@pytest.mark.parametrize("bit", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_git_status_does_not_show_is_never_overwritten(scene: Scene, bit: str) -> None:
    """The text is the beginning of the new one: a merge that was cut off would look the same, and be undone."""
    (scene.path / "a").write_text("theirs\n")
    scene.commit("change a", scene.path)
    scene.run("update-index", bit, "a")
    (scene.main / "a").write_text("the")
    before = scene.picture()
    with pytest.raises(WorktreeRefused, match=r"^a in .* is marked assume-unchanged or skip-worktree"):
        scene.merge()
    assert scene.picture() == before
    assert (scene.main / "a").read_text() == "the"


@pytest.mark.parametrize("kind", ["other", "beginning", "empty", "link", "folder", "ignored", "parent"])
def test_a_file_in_the_way_stays(scene: Scene, kind: str) -> None:
    """Git itself refuses untracked files, and overwrites ignored ones. A part of the new text may be the user's."""
    name = ".env" if kind == "ignored" else "way/new" if kind == "parent" else "way"
    (scene.path / name).parent.mkdir(exist_ok=True)
    (scene.path / name).write_text("theirs\n")
    scene.run("add", "-f", name, where=scene.path)
    scene.commit("add it", scene.path)
    mine = scene.main / ("way/mine" if kind == "folder" else name.partition("/")[0])
    mine.parent.mkdir(exist_ok=True)
    if kind == "link":
        mine.symlink_to("nowhere")
    else:
        mine.write_text({"beginning": "the", "empty": ""}.get(kind, "mine\n"))
    text = "" if kind == "link" else mine.read_text()
    before = scene.picture()
    with pytest.raises(WorktreeRefused, match=f"in the way in .*: {mine.relative_to(scene.main)}; move that away"):
        scene.merge()
    assert scene.picture() == before
    assert (mine.is_symlink(), "" if kind == "link" else mine.read_text()) == (kind == "link", text)
    assert os.listdir(scene.path.parent) == ["w"]


@pytest.mark.parametrize("to_folder", [True, False])
def test_a_file_becomes_a_folder_or_a_folder_a_file(scene: Scene, to_folder: bool) -> None:
    names = ["both", "both/a"]
    for where, name in ((scene.main, names[not to_folder]), (scene.path, names[to_folder])):
        if where == scene.path:
            scene.run("reset", "-q", "--hard", "main", where=scene.path)
            scene.run("rm", "-rq", "both", where=scene.path)
        (where / name).parent.mkdir(exist_ok=True)
        (where / name).write_text(f"{name}\n")
        scene.commit("both", where)
    assert scene.merge().how == "fast-forward"
    assert (scene.main / names[to_folder]).read_text() == f"{names[to_folder]}\n"


@pytest.mark.parametrize("kind", ["beginning", "empty", "link", "folder"])
def test_a_merge_that_git_refuses_undoes_nothing(scene: Scene, kind: str) -> None:
    """The file appears after the checks: git refuses, and it stays although an unfinished merge could look like it."""
    mine = scene.main / "new"
    make = {"link": f"ln -s nowhere {mine}", "folder": f"mkdir {mine}; echo mine > {mine}/mine"}
    make |= {"beginning": f"printf ne > {mine}", "empty": f": > {mine}"}
    ended = merge_with_git(
        scene, f'case "$*" in *--ff-only*) {make[kind]}; exec "$GIT" "$@";; *) exec "$GIT" "$@";; esac'
    )
    assert "that were made in the meantime: merge again" in ended.stderr, ended
    assert mine.is_symlink() if kind == "link" else mine.exists()
    assert scene.run("rev-parse", "main") == scene.base
    assert os.listdir(scene.path.parent) == ["w"]


def test_uncommitted_work_and_a_live_run_are_not_merged(scene: Scene) -> None:
    (scene.path / "more").write_text("more\n")
    with pytest.raises(WorktreeRefused, match="not committed: more"):
        scene.merge()
    (scene.path / "more").unlink()
    scene.state = RunState.RUNNING
    with pytest.raises(WorktreeRefused, match="is active in"):
        scene.merge()


def test_files_that_only_a_proof_wrote_do_not_keep_a_merge_back(scene: Scene) -> None:
    (scene.path / "mine").write_text("by the agent\n")
    (scene.path / "below").mkdir()
    scene.spec = scene.spec._replace(workspace=str(scene.path / "below"))
    trees = WorkTrees(scene.git._replace(workspace=scene.spec.workspace), scene.tree.folder)
    for text in ("red\n", "green\n"):
        before = trees.begin_proof()
        assert before is not None
        for name in ("report", "mine", f"of {text}"):
            (scene.path / name).write_text(text)
        trees.end_proof(before)
    with pytest.raises(WorktreeRefused, match="not committed: mine;"):
        scene.merge()
    (scene.path / "mine").unlink()
    (scene.path / "report").write_text("by the agent\n")
    with pytest.raises(WorktreeRefused, match="not committed: report;"):
        scene.merge()
    (scene.path / "report").unlink()
    assert scene.merge().how == "fast-forward"
    with pytest.raises(WorktreeRefused, match="not committed: of green"):
        scene.remove()


def test_a_target_that_is_checked_out_nowhere_moves_alone(scene: Scene) -> None:
    scene.run("switch", "-qc", "elsewhere")
    (scene.main / "a").write_text("dirty\n")  # another branch: not the target's checkout
    assert scene.merge().how == "fast-forward"
    assert scene.run("rev-parse", "main") == scene.run("rev-parse", BRANCH)
    assert (scene.main / "a").read_text() == "dirty\n"
    assert not (scene.main / "new").exists()


def test_another_tree_than_the_proved_one_is_proved_again(scene: Scene) -> None:
    scene.spec = scene.spec._replace(proof=f"pwd >> {scene.folder}/proofs; test -f new")
    scene.proved_tree = scene.run("rev-parse", f"{BRANCH}^{{tree}}")
    before = diverge(scene)
    assert scene.merge().proof == "proved again"
    (proof,) = (scene.folder / "proofs").read_text().split()
    assert proof.endswith("/trees/.merge-w")
    scene.run("reset", "-q", "--hard", before)
    scene.spec = scene.spec._replace(proof="echo broken; exit 3")
    picture = scene.picture()
    with pytest.raises(WorktreeRefused, match=r"of the merged files failed \(exit 3\): broken; .* use --no-proof"):
        scene.merge()
    assert scene.picture() == picture
    assert scene.merge(prove=False).proof == "skipped"


def test_the_merge_is_proved_in_the_folder_of_the_run(scene: Scene) -> None:
    """Set-up runs at the top, as for the run; the proof in the folder where the run was started."""
    (scene.path / "sub").mkdir()
    (scene.path / "sub" / "inner").write_text("x\n")
    scene.commit("sub", scene.path)
    scene.spec = scene.spec._replace(
        workspace=str(scene.path / "sub"),
        proof="! test -e inner",
        worktree=scene.spec.worktree._replace(setup="test -e sub/inner || test ! -e sub"),
    )
    with pytest.raises(WorktreeRefused, match="the proof of the merged files failed"):
        scene.merge()
    scene.spec = scene.spec._replace(proof="test -e inner")
    assert scene.merge().proof == "proved again"
    scene.run("rm", "-rq", "sub", where=scene.path)
    scene.commit("no sub", scene.path)
    with pytest.raises(WorktreeRefused, match="have no folder sub, where the proof runs"):
        scene.merge()


def test_the_proved_tree_itself_is_not_proved_again(scene: Scene) -> None:
    scene.spec = scene.spec._replace(proof="exit 3")
    with pytest.raises(WorktreeRefused, match="the proof of the merged files"):
        scene.merge()
    scene.proved_tree = scene.run("rev-parse", f"{BRANCH}^{{tree}}")
    assert scene.merge("squash").proof == "proved before"


def test_a_forged_object_is_not_merged(scene: Scene) -> None:
    """The files on the disk were proved, and a checkout of their commit has others."""
    (scene.path / "new").write_text("proved\n")
    scene.commit("more work", scene.path)
    proved, other = scene.run("rev-parse", f"{BRANCH}:new"), scene.run("rev-parse", f"{BRANCH}~1:new")
    target, source = (scene.main / ".git" / "objects" / one[:2] / one[2:] for one in (proved, other))
    target.unlink()
    target.write_bytes(source.read_bytes())
    scene.spec = scene.spec._replace(proof="true")
    scene.proved_tree = scene.run("rev-parse", f"{BRANCH}^{{tree}}")
    picture = scene.picture()
    with pytest.raises(WorktreeRefused, match="its content does not match its name"):
        scene.merge()
    assert scene.picture() == picture


@pytest.mark.parametrize("mode", ["", "squash"])
def test_a_replaced_object_is_not_merged(scene: Scene, mode: str) -> None:
    """Git shows the other one wherever it reads this one, such as in a checkout."""
    (scene.path / "new").write_text("proved\n")
    scene.commit("more work", scene.path)
    new, other = scene.run("rev-parse", f"{BRANCH}:new"), scene.run("rev-parse", f"{BRANCH}~1:new")
    scene.run("replace", new, other)
    picture = scene.picture()
    with pytest.raises(WorktreeRefused, match=f"because {new} is replaced: `git replace -d {new}`, then merge"):
        scene.merge(mode)
    assert scene.picture() == picture
    scene.run("replace", "-d", new)
    scene.run("replace", scene.run("rev-parse", "main:a"), other)
    assert scene.merge(mode).target == "main"  # it was replaced before


_MERGE = """
import os, sys
from jackline.engine.process import Warden
from jackline.clock import boot_ms
from tests.integration.test_worktrees import Scene
class Again(Scene):
    def __init__(self, folder, warden, base):
        from pathlib import Path
        from jackline.engine.git import Git
        from jackline.domain.spec import Spec, WorktreeSpec
        from jackline.domain.states import RunState
        self.folder, self.main, self.path = Path(folder), Path(folder) / "main", Path(folder) / "trees" / "w"
        self.env, self.base, self.state, self.proved_tree = dict(os.environ), base, RunState.SUCCEEDED, ""
        self.git = Git(workspace=str(self.main), env=self.env, warden=warden, timeout_s=60)
        tree = WorktreeSpec(name="w", branch="jackline/w", path=str(self.path), source=str(self.main))
        self.spec = Spec(prompt="p", workspace=str(self.path), worktree=tree)
with Warden.start(deadline_ms=boot_ms() + 100_000, marker={"JACKLINE_COMMAND": "killed"}) as warden:
    open(sys.argv[3], "w").write(str(os.getpid()))
    print(Again(sys.argv[1], warden, sys.argv[2]).merge())
"""


def merge_with_git(scene: Scene, program: str) -> subprocess.CompletedProcess[str]:
    """Merge in a process of its own, with a script in the place of git."""
    folder = scene.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "git").write_text(f"#!/bin/sh\nGIT={shutil.which('git')}\n{program}\n")
    (folder / "git").chmod(0o755)
    env = {**scene.env, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", _MERGE, str(scene.folder), scene.base, str(scene.folder / "pid")],
        env=env, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def test_a_merge_starts_no_hook_and_no_file_monitor_of_the_repository(scene: Scene) -> None:
    trap = f"touch {scene.folder}/trapped"
    scene.run("config", "core.fsmonitor", f"{trap}; false")
    for name in ("post-merge", "post-checkout", "reference-transaction", "pre-merge-commit"):
        hook = scene.main / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\n{trap}\n")
        hook.chmod(0o755)
    assert scene.merge().how == "fast-forward"
    assert not (scene.folder / "trapped").exists()


@pytest.mark.parametrize("into", ["main~0", "main^{commit}", "refs/heads/main", "-x", ""])
def test_what_only_names_a_commit_is_no_branch_to_merge_into(scene: Scene, into: str) -> None:
    with pytest.raises(WorktreeRefused, match="there is no branch" if into else "name one with --into"):
        merge_tree(
            scene.tree._replace(row=scene.tree.row._replace(base_branch="")),
            "",
            into,
            lambda: nullcontext({}),
            prove=True,
        )


def test_a_kill_at_any_step_leaves_the_checkout_clean_or_merged(scene: Scene) -> None:
    """The process is killed after each git command that writes, in turn. The branch is never lost, and merges then."""
    before = diverge(scene)
    tip = scene.run("rev-parse", BRANCH)
    pid = scene.folder / "pid"
    for step in (
        "worktree add",
        "merge --quiet --no-commit",
        "write-tree",
        "commit-tree",
        "worktree remove",
        "--ff-only",
    ):
        scene.run("reset", "-q", "--hard", before)
        kill = f'"$GIT" "$@"; kill -9 $(cat {pid}); exit 0'
        killed = merge_with_git(scene, f'case "$*" in *"{step}"*) {kill};; *) exec "$GIT" "$@";; esac')
        assert killed.returncode == -signal.SIGKILL, (step, killed)
        assert scene.run("rev-parse", BRANCH) == tip
        merged = scene.run("rev-parse", "main") != before
        assert (scene.run("status", "--porcelain"), (scene.main / "new").exists()) == ("", merged), step
        assert merged == (step == "--ff-only")
    scene.run("reset", "-q", "--hard", before)
    assert scene.merge().how == "merge"
    assert scene.run("status", "--porcelain") == ""
    assert os.listdir(scene.path.parent) == ["w"]


@pytest.mark.parametrize("state", ["nothing", "half", "other"])
def test_a_fast_forward_that_was_cut_off_is_undone(scene: Scene, state: str) -> None:
    """As after a loss of power in the middle of it: some files are new, one is half written, one is a person's."""
    (scene.path / "a").write_text("one\ntwo\nthree\n")
    after = scene.commit("more", scene.path)
    if state != "nothing":
        (scene.main / "new").write_text("new\n")
        (scene.main / "a").write_text("one\ntwo\n" if state == "half" else "a person's\n")
    journal = scene.path.parent / ".merge-w.json"
    update = {"target": "main", "before": scene.base, "after": after, "checkout": str(scene.main)}
    journal.write_text(json.dumps(update))
    log = scene.path.parent / ".merge-w.log"
    log.touch()
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert not journal.exists()
    assert not log.exists()
    assert not (scene.main / "new").exists()
    assert (scene.main / "a").read_text() == ("a person's\n" if state == "other" else "one\n")
    assert scene.run("rev-parse", "main") == scene.base
    if state != "other":
        assert scene.run("status", "--porcelain") == ""
        assert scene.merge().how == "fast-forward"


def write_journal(scene: Scene) -> Path:
    """As a merge leaves it that was killed with its git."""
    journal = scene.path.parent / ".merge-w.json"
    update = {"target": "main", "before": scene.base, "after": scene.run("rev-parse", BRANCH)}
    journal.write_text(json.dumps({**update, "checkout": str(scene.main)}))
    return journal


def test_the_branch_to_which_a_person_has_switched_is_not_moved_by_the_undo(scene: Scene) -> None:
    journal = write_journal(scene)
    scene.run("switch", "-q", "-c", "mine")
    (scene.main / "b").write_text("mine\n")
    scene.commit("mine")
    (scene.main / "a").write_text("staged\n")
    scene.run("add", "a")
    before = scene.picture()
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert scene.picture() == before
    assert journal.exists()
    scene.run("reset", "-q", "--hard")
    scene.run("switch", "-q", "main")
    (scene.main / "new").write_text("ne")
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert (scene.run("status", "--porcelain"), journal.exists()) == ("", False)


def test_what_a_person_has_staged_since_stays_staged_in_the_undo(scene: Scene) -> None:
    (scene.path / "a").write_text("merged\n")
    scene.commit("more", scene.path)
    journal = write_journal(scene)
    (scene.main / "new").write_text("ne")
    (scene.main / "a").write_text("staged\n")
    (scene.main / "b").write_text("staged, too\n")
    scene.run("add", "a", "b")
    (scene.main / "a").write_text("one\n")
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert not journal.exists()
    assert scene.run("show", ":a") == "staged"
    assert scene.run("status", "--porcelain").split("\n") == ["MM a", "A  b"]


def test_an_index_that_git_had_written_is_undone_with_the_files(scene: Scene) -> None:
    journal = write_journal(scene)
    (scene.main / "b").write_text("mine\n")
    scene.run("read-tree", "-m", "-u", scene.base, BRANCH)
    scene.run("add", "b")
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert not journal.exists()
    assert scene.run("status", "--porcelain") == "A  b"


def test_a_merge_into_a_checkout_that_is_gone_is_forgotten(scene: Scene) -> None:
    journal = write_journal(scene)
    journal.write_text(journal.read_text().replace(str(scene.main), str(scene.folder / "gone")))
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert not journal.exists()


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_git_cannot_have_written_stays(scene: Scene, kind: str) -> None:
    """A person has put something else in the place of a new file, before the merge that was cut off is undone."""
    mine = scene.main / "new"
    mine.symlink_to("nowhere") if kind == "link" else mine.mkdir()
    journal = scene.path.parent / ".merge-w.json"
    update = {"target": "main", "before": scene.base, "after": scene.run("rev-parse", BRANCH)}
    journal.write_text(json.dumps({**update, "checkout": str(scene.main)}))
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert not journal.exists()
    assert mine.is_symlink() if kind == "link" else mine.is_dir()


def test_a_file_that_became_a_folder_is_undone(scene: Scene) -> None:
    (scene.path / "a").unlink()
    (scene.path / "a").mkdir()
    (scene.path / "a" / "b").write_text("b\n")
    after = scene.commit("a folder", scene.path)
    (scene.main / "a").unlink()
    (scene.main / "a").mkdir()
    (scene.main / "a" / "b").write_text("b")
    journal = scene.path.parent / ".merge-w.json"
    update = {"target": "main", "before": scene.base, "after": after, "checkout": str(scene.main)}
    journal.write_text(json.dumps(update))
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert (scene.main / "a").read_text() == "one\n"
    assert scene.run("status", "--porcelain") == ""


def test_work_that_git_status_does_not_show_is_not_left_behind_by_a_merge(scene: Scene) -> None:
    scene.run("update-index", "--assume-unchanged", "a", where=scene.path)
    (scene.path / "a").write_text("hidden\n")
    with pytest.raises(WorktreeRefused, match=f"a in {scene.path} is marked assume-unchanged"):
        scene.merge()
    assert scene.run("rev-parse", "main") == scene.base


def test_a_folder_that_is_no_longer_a_worktree_is_not_merged(scene: Scene) -> None:
    (scene.path / ".git").unlink()
    (scene.path / "a").write_text("not committed\n")
    with pytest.raises(WorktreeRefused, match="`jackline worktree salvage w`, move it away, then merge"):
        scene.merge()
    assert scene.run("rev-parse", "main") == scene.base


def test_a_repository_that_was_moved_is_named(scene: Scene) -> None:
    scene.main.rename(scene.folder / "moved")
    with pytest.raises(WorktreeRefused, match=f"the repository {scene.main} is gone: if it was moved, move it back"):
        scene.merge()


def test_a_branch_that_is_checked_out_elsewhere_stays(scene: Scene) -> None:
    assert scene.merge().how == "fast-forward"
    scene.run("worktree", "unlock", str(scene.path))
    scene.run("worktree", "move", str(scene.path), str(scene.path.parent / "moved"))
    (scene.path.parent / "moved" / "a").write_text("not committed\n")
    with pytest.raises(WorktreeRefused, match=r"its branch is checked out in .*moved"):
        scene.plan()


@pytest.mark.parametrize("name", ["w", "gone", "data.json"])
def test_the_temporary_worktree_of_a_killed_merge_is_removed(scene: Scene, name: str) -> None:
    folder = scene.path.parent / f".merge-{name}"
    scene.run("worktree", "add", "--quiet", "--detach", str(folder), scene.base)
    (folder / "result").write_text("of a proof\n")
    worktree_merge.repair_merges(scene.git, str(scene.path.parent))
    assert os.listdir(scene.path.parent) == ["w"]
    assert ".merge-" not in scene.run("worktree", "list")


def test_below_a_file_nothing_can_have_been_cut_off(scene: Scene) -> None:
    """The setting `worktrees` named a file, so the worktree was never made."""
    folder = str(scene.main / "a" / "worktrees")
    worktree_merge.repair_merges(scene.git, folder)
    worktree_removal.repair_removals(scene.git, folder)


def test_the_lock_of_a_killed_git_is_named_and_the_repair_waits_for_its_removal(scene: Scene) -> None:
    (scene.main / "new").write_text("ne")
    lock = scene.main / ".git" / "index.lock"
    lock.touch()
    journal = scene.path.parent / ".merge-w.json"
    update = {"target": "main", "before": scene.base, "after": scene.run("rev-parse", BRANCH)}
    journal.write_text(json.dumps({**update, "checkout": str(scene.main)}))
    with pytest.raises(WorktreeRefused, match=f"delete {lock}, which a killed one left, then try again"):
        scene.merge()
    assert journal.exists()
    lock.unlink()
    assert scene.merge().how == "fast-forward"
    assert scene.run("status", "--porcelain") == ""


def test_git_that_fails_halfway_changes_nothing(scene: Scene) -> None:
    """The disk is full in the middle of the fast-forward: git has written one file and stops."""
    before = scene.picture()
    fail = f"printf ne > {scene.main}/new; echo no space left >&2; exit 128"
    done = merge_with_git(scene, f'case "$*" in *--ff-only*) {fail};; *) exec "$GIT" "$@";; esac')
    assert "no space left; nothing was changed" in done.stderr, done
    assert scene.picture() == before


def test_a_disk_that_is_almost_full_is_noticed_before(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    before = scene.picture()
    monkeypatch.setattr(worktree_merge, "_SPACE", 1 << 60)
    with pytest.raises(WorktreeRefused, match="almost full"):
        scene.merge()
    assert scene.picture() == before


# removing


def test_what_is_merged_and_clean_is_removed_and_git_forgets_it(scene: Scene) -> None:
    scene.merge()
    (scene.path / "node_modules").mkdir()
    (scene.path / "node_modules" / "x").write_text("made again\n")
    assert scene.plan().merged == "main"
    scene.remove()
    assert not scene.path.exists()
    assert scene.run("branch", "--list", "jackline/*") == ""
    assert str(scene.path) not in scene.run("worktree", "list")


@pytest.mark.parametrize("is_missing", [False, True])
def test_commits_that_only_the_reflog_has_are_kept(scene: Scene, *, is_missing: bool) -> None:
    kept = []
    for name in ("first", "second", "amended"):
        (scene.path / name).write_text("precious\n")
        scene.commit(name, scene.path)
        if name == "amended":
            scene.run("switch", "-q", "--detach", where=scene.path)
            scene.run("commit", "-q", "--amend", "-m", "again", where=scene.path)
            kept.append(scene.run("rev-parse", "HEAD", where=scene.path))
            scene.run("switch", "-q", BRANCH, where=scene.path)
    kept.append(scene.run("rev-parse", "HEAD", where=scene.path))
    scene.run("reset", "-q", "--hard", "HEAD~3", where=scene.path)
    scene.merge()
    if is_missing:
        shutil.rmtree(scene.path)
    assert sorted(scene.plan().discarded) == sorted(kept)
    scene.remove()
    refs = scene.run("for-each-ref", "--format=%(objectname)", f"refs/jackline/{RUN}")
    assert sorted(refs.split()) == sorted(kept)


def make_dirty(scene: Scene) -> None:
    (scene.path / "a").write_text("changed\n")


def make_untracked(scene: Scene) -> None:
    (scene.path / "untracked").write_text("x\n")


def make_staged(scene: Scene) -> None:
    make_untracked(scene)
    scene.run("add", "-A", where=scene.path)


def make_hidden(scene: Scene) -> None:
    make_dirty(scene)
    scene.run("update-index", "--assume-unchanged", "a", where=scene.path)


def make_ignored(scene: Scene) -> None:
    (scene.path / ".env").write_text("only here\n")


def make_unmerged(scene: Scene) -> None:
    (scene.path / "more").write_text("x\n")
    scene.commit("unmerged", scene.path)


def make_detached(scene: Scene) -> None:
    scene.run("checkout", "-q", "--detach", where=scene.path)
    make_unmerged(scene)


def make_locked(scene: Scene) -> None:
    scene.run("worktree", "unlock", str(scene.path))
    scene.run("worktree", "lock", "--reason", "mine", str(scene.path))


def make_active(scene: Scene) -> None:
    scene.state = RunState.WAITING


def make_damaged(scene: Scene) -> None:
    (scene.path / ".git").unlink()


def make_rebasing(scene: Scene) -> None:
    (scene.main / ".git" / "worktrees" / "w" / "rebase-merge").mkdir()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (make_dirty, "not committed: a"),
        (make_untracked, "not committed: untracked"),
        (make_staged, "not committed: untracked"),
        (make_hidden, "a is marked assume-unchanged or skip-worktree"),
        (make_ignored, "ignored by git, and maybe needed: .env"),
        (make_unmerged, "not merged into main: "),
        (make_detached, "its HEAD is not on a branch"),
        (make_locked, "it is locked: mine"),
        (make_active, "its run is waiting"),
        (make_damaged, "its folder is damaged"),
        (make_rebasing, "a rebase is not finished"),
    ],
)
def test_what_may_be_lost_stays(scene: Scene, spoil: Callable[[Scene], None], reason: str) -> None:
    scene.merge()
    spoil(scene)
    with pytest.raises(WorktreeRefused, match=reason):
        scene.remove()
    assert (scene.path / "new").read_text() == "new\n"
    assert scene.run("rev-parse", BRANCH)


@pytest.mark.parametrize("where", ["feature/x", ""])
def test_commits_on_another_branch_than_the_runs_are_not_merged(scene: Scene, where: str) -> None:
    """The agent has switched to another branch, or to none, and committed there: the branch of the run has nothing."""
    scene.merge()
    scene.run("switch", "-q", *(("-c", where) if where else ("--detach",)), where=scene.path)
    assert (scene.merge().how, inspect_tree(scene.tree).merged) == ("up-to-date", "main")  # no other commits yet
    (scene.path / "more").write_text("x\n")
    tip = scene.commit("elsewhere", scene.path)
    head = where or tip[:12]
    state = inspect_tree(scene.tree)
    assert (state.merged, state.head) == ("", head)
    with pytest.raises(WorktreeRefused, match=f"has {head} checked out, with commits that {BRANCH} does not have"):
        scene.merge()
    with pytest.raises(WorktreeRefused, match=f"has {where} checked out" if where else "its HEAD is not on a branch"):
        scene.remove()
    scene.run("merge", "-q", tip)
    assert (scene.merge().how, scene.plan().merged) == ("up-to-date", "main")
    assert inspect_tree(scene.tree).head == ""


IGNORED = ("out/results.csv", ".notes.txt.swp", "experiment.log", "dist/app", "target/x", "lib.so", "x.a", "venv/notes")
SLOW_IGNORED = [pytest.param(name, marks=pytest.mark.full) for name in IGNORED[2:]]
CACHES = (
    "node_modules/x/dist/y", "pkg/__pycache__/a.pyc", ".venv/lib/x", ".venv/pyvenv.cfg", "target2/CACHEDIR.TAG",
    "target2/debug/x", ".pytest_cache/v", ".mypy_cache/3/x", ".ruff_cache/x", "a.pyc", "p.egg-info/top",
)  # fmt: skip


def ignore_files(scene: Scene, names: tuple[str, ...]) -> None:
    with open(scene.main / ".git" / "info" / "exclude", "ab") as file:
        file.write(b"".join(os.fsencode(f"/{name.partition('/')[0]}\n") for name in names))
    for name in names:
        (scene.path / name).parent.mkdir(parents=True, exist_ok=True)
        (scene.path / name).write_text("x\n")


@pytest.mark.parametrize("name", [*IGNORED[:2], *SLOW_IGNORED, pytest.param(os.fsdecode(b"odd\xff/x"), id="odd")])
def test_ignored_files_that_are_not_certainly_caches_stay(scene: Scene, name: str) -> None:
    scene.merge()
    ignore_files(scene, CACHES)
    ignore_files(scene, (name,))
    shown = name.replace("\udcff", "\ufffd")
    with pytest.raises(WorktreeRefused, match=f"maybe needed: {shown}; copy what you need and delete that in"):
        scene.remove()
    assert (scene.path / name).exists()
    assert salvage_tree(scene.tree, ()).ignored == (shown,)


def test_caches_are_removed(scene: Scene) -> None:
    scene.merge()
    ignore_files(scene, CACHES)
    scene.remove()
    assert not scene.path.exists()


def add_submodule(scene: Scene) -> str:
    """Commit a submodule on the branch of the run, merge it, and leave it not checked out; return its commit."""
    module = scene.folder / "module"
    module.mkdir()
    scene.run("init", "-q", "-b", "main", where=module)
    (module / "m").write_text("m\n")
    commit = scene.commit("module", module)
    (scene.path / ".gitmodules").write_text(f'[submodule "sub"]\npath = sub\nurl = {module}\n')
    scene.run("add", "-A", where=scene.path)
    scene.run("update-index", "--add", "--cacheinfo", f"160000,{commit},sub", where=scene.path)
    scene.run("commit", "-qm", "submodule", where=scene.path)
    (scene.path / "sub").mkdir()
    scene.merge()
    return commit


@pytest.mark.parametrize("name", ["sub/work", "sub/below/work"])
def test_files_in_a_submodule_that_is_not_checked_out_stay_and_are_salvaged(scene: Scene, name: str) -> None:
    """`git status` does not show them."""
    add_submodule(scene)
    plan = scene.plan()
    (scene.path / name).parent.mkdir(exist_ok=True)
    (scene.path / name).write_text("precious\n")
    assert inspect_tree(scene.tree).changed == 1
    for refused in (scene.merge, scene.remove):
        with pytest.raises(WorktreeRefused, match=f"not committed: {name}"):
            refused()
    with pytest.raises(WorktreeRefused, match="it was changed in the meantime"):
        remove_worktree(plan, _NoStore(), 1)  # type: ignore[arg-type]
    for spoil in (lambda _scene: None, make_damaged):
        spoil(scene)
        (ref,) = salvage_tree(scene.tree, ()).refs
        assert scene.run("show", f"{ref}:{name}") == "precious"
    assert (scene.path / name).exists()


def test_ignored_files_in_a_submodule_that_is_not_checked_out_hinder_no_merge(scene: Scene) -> None:
    """They are no work to commit, and git would keep them; only a removal of the folder would delete them."""
    add_submodule(scene)
    ignored = scene.path / "sub" / "node_modules" / "x"
    ignored.parent.mkdir()
    ignored.write_text("x\n")
    assert scene.merge().how == "up-to-date"
    with pytest.raises(WorktreeRefused, match="not committed: sub/node_modules/x"):
        scene.remove()
    (ref,) = salvage_tree(scene.tree, ()).refs
    assert scene.run("show", f"{ref}:sub/node_modules/x") == "x"


@pytest.mark.parametrize("where", ["folder", "git", "missing"])
def test_the_repository_of_a_submodule_stays(scene: Scene, where: str) -> None:
    """Where `git submodule status` says that it is not checked out, it may have branches that are not pushed."""
    add_submodule(scene)
    scene.plan()
    if where == "folder":
        scene.run("clone", "-q", str(scene.folder / "module"), "sub", where=scene.path)
    else:
        words = ("-c", "protocol.file.allow=always", "submodule", "-q")
        scene.run(*words, "update", "--init", where=scene.path)
        scene.run(*words, "deinit", "-f", "--all", where=scene.path)
    if where == "missing":
        shutil.rmtree(scene.path)
    assert where == "missing" or scene.run("submodule", "status", where=scene.path).startswith("-")
    with pytest.raises(WorktreeRefused, match=r"it has submodules \(sub\): push what you need"):
        scene.remove()
    assert where == "git" or inspect_tree(scene.tree).changed == 0
    scene.run("worktree", "remove", "-f", "-f", str(scene.path))
    scene.remove()
    assert scene.run("branch", "--list", "jackline/*") == ""


def test_files_in_a_submodule_of_a_submodule_stay(scene: Scene) -> None:
    add_submodule(scene)
    commit = scene.run("rev-parse", "HEAD:sub", where=scene.path)
    scene.run("clone", "-q", str(scene.folder / "module"), "sub", where=scene.path)
    scene.run("update-index", "--add", "--cacheinfo", f"160000,{commit},deep", where=scene.path / "sub")
    scene.run("commit", "-qm", "deeper", where=scene.path / "sub")
    scene.commit("moved", scene.path)
    (scene.path / "sub" / "deep").mkdir(exist_ok=True)
    assert inspect_tree(scene.tree).changed == 0
    (scene.path / "sub" / "deep" / "work").write_text("precious\n")
    assert worktree_state.list_changes(scene.tree.here) == ["sub/deep/work"]


def test_a_change_after_the_check_stays(scene: Scene) -> None:
    """Work that appears between the check and the removal stays."""
    scene.merge()
    plan = scene.plan()
    make_untracked(scene)
    with pytest.raises(WorktreeRefused, match="it stays"):
        remove_worktree(plan, _NoStore(), 1)  # type: ignore[arg-type]
    assert (scene.path / "untracked").exists()
    assert f"locked jackline run {RUN}" in scene.run("worktree", "list", "--porcelain")
    (scene.path / "untracked").unlink()
    make_unmerged(scene)
    with pytest.raises(WorktreeRefused, match="it stays"):
        remove_worktree(plan, _NoStore(), 1)  # type: ignore[arg-type]
    assert scene.run("log", "-1", "--format=%s", BRANCH) == "unmerged"
    assert inspect_tree(scene.tree).folder == "ready"


def test_a_branch_that_moves_during_the_removal_stays(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.merge()
    plan = scene.plan()
    monkeypatch.setattr(worktree_removal, "_move_apart", lambda *_words: make_unmerged(scene))
    with pytest.raises(WorktreeRefused, match="it stays"):
        remove_worktree(plan, _NoStore(), 1)  # type: ignore[arg-type]
    assert scene.run("log", "-1", "--format=%s", BRANCH) == "unmerged"


class Killed(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("step", ["list_changes", "_run", "remove_folder"])
@pytest.mark.parametrize("is_later", [False, True])
def test_a_removal_that_was_cut_off_is_made_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, step: str, *, is_later: bool
) -> None:
    """The folder is whole or gone, never a worktree that lacks files; and the next removal succeeds."""
    scene.merge()
    plan = scene.plan()
    where = worktree_state if step == "list_changes" else worktree_removal
    real = getattr(where, step)

    def die(*words: object, **named: object) -> None:
        if is_later:
            real(*words, **named)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(where, step, die)
        with pytest.raises(Killed):
            remove_worktree(plan, _NoStore(), 1)  # type: ignore[arg-type]
    worktree_removal.repair_removals(scene.git, str(scene.path.parent))
    assert inspect_tree(scene.tree).changed == 0
    assert scene.path.exists() == (step == "list_changes" or (step == "_run" and not is_later))
    scene.remove()
    assert os.listdir(scene.path.parent) == []
    assert scene.run("branch", "--list", "jackline/*") == ""
    assert str(scene.path) not in scene.run("worktree", "list")


def test_what_appeared_before_a_removal_was_cut_off_comes_back(scene: Scene) -> None:
    scene.merge()
    make_untracked(scene)
    scene.path.rename(scene.path.parent / ".gc-w")
    worktree_removal.repair_removals(scene.git, str(scene.path.parent))
    assert (scene.path / "untracked").exists()
    with pytest.raises(WorktreeRefused, match="not committed: untracked"):
        scene.plan()


def test_an_unchanged_copy_is_no_reason_to_stay(scene: Scene) -> None:
    scene.merge()
    scene.spec = scene.spec._replace(worktree=scene.spec.worktree._replace(copy=(".env",)))
    for folder in (scene.main, scene.path):
        (folder / ".env").write_text("KEY=1\n")
    (scene.path / ".env").write_text("KEY=2\n")
    with pytest.raises(WorktreeRefused, match="maybe needed"):
        scene.plan()
    (scene.path / ".env").write_text("KEY=1\n")
    scene.remove()
    assert not scene.path.exists()


@pytest.mark.parametrize("how", ["squash", "cherry-pick", "remote"])
def test_merged_in_other_ways(scene: Scene, how: str) -> None:
    tip = scene.run("rev-parse", BRANCH)
    diverge(scene)
    if how == "squash":
        scene.run("merge", "-q", "--squash", BRANCH)
        scene.commit("squashed")
    elif how == "cherry-pick":
        scene.run("cherry-pick", tip)
    else:
        scene.run("init", "-q", "--bare", str(scene.folder / "remote"))
        scene.run("remote", "add", "origin", str(scene.folder / "remote"))
        scene.run("push", "-q", "origin", BRANCH)
    assert inspect_tree(scene.tree).merged == (f"origin/{BRANCH}" if how == "remote" else "main (squashed)")
    scene.remove()
    assert (
        scene.run("rev-parse", f"refs/jackline/{RUN}/branch") == tip
    )  # nowhere else, or only as long as on the remote


def test_what_the_remote_has_merged_needs_no_ref(scene: Scene) -> None:
    scene.run("init", "-q", "--bare", str(scene.folder / "remote"))
    scene.run("remote", "add", "origin", str(scene.folder / "remote"))
    scene.run("push", "-q", "origin", f"{BRANCH}:main", BRANCH)
    scene.remove()
    assert scene.run("for-each-ref", "refs/jackline") == ""


def test_a_folder_that_is_gone_is_only_forgotten_if_its_branch_is_merged(scene: Scene) -> None:
    shutil.rmtree(scene.path)
    with pytest.raises(WorktreeRefused, match="not merged"):
        scene.remove()
    assert inspect_tree(scene.tree)._replace(tip="") == worktree_state.WorktreeState(folder="missing", ahead=1, files=1)
    scene.merge()
    scene.remove()
    assert str(scene.path) not in scene.run("worktree", "list")


@pytest.mark.parametrize("kind", ["detached", "staged", "both", "conflict"])
def test_what_only_git_has_of_a_folder_that_was_moved_stays_until_it_is_kept(scene: Scene, kind: str) -> None:
    scene.merge()
    if kind in {"detached", "both"}:
        make_detached(scene)
    if kind in {"staged", "both"}:
        make_staged(scene)
    if kind == "conflict":
        make_detached(scene)
        scene.run("checkout", "-q", "--detach", f"{BRANCH}~1", where=scene.path)
        (scene.path / "new").write_text("other\n")
        tip = scene.commit("other", scene.path)
        with pytest.raises(AssertionError):
            scene.run("merge", "-q", BRANCH, where=scene.path)
        scene.run("update-ref", "--no-deref", "HEAD", tip, where=scene.path)
    tip = scene.run("rev-parse", "HEAD", where=scene.path)
    moved = scene.folder / "moved"
    scene.path.rename(moved)
    with pytest.raises(WorktreeRefused, match=r"its folder is gone, and only git has .* salvage w"):
        scene.remove()
    (ref,) = salvage_tree(scene.tree, ()).refs
    if kind in {"staged", "both"}:
        assert scene.run("show", f"{ref}:untracked") == "x"
    assert tip in scene.run("rev-list", ref).split()
    assert salvage_tree(scene.tree, ()).refs == ()
    if kind == "conflict":
        with pytest.raises(WorktreeRefused, match="its folder is gone, and a merge is not finished in it"):
            scene.remove()
        return
    if kind != "staged":
        with pytest.raises(WorktreeRefused, match="with commits that are not merged into main"):
            scene.remove()
        scene.run("merge", "-q", ref)
    scene.remove()
    assert str(scene.path) not in scene.run("worktree", "list")
    assert (moved / "new").exists()


# keeping


def test_uncommitted_work_is_kept_and_nothing_changes(scene: Scene) -> None:
    make_dirty(scene)
    make_untracked(scene)
    make_ignored(scene)
    found = salvage_tree(scene.tree, ())
    assert (found.branch, found.merged, found.ignored) == (BRANCH, "", (".env",))
    (ref,) = found.refs
    assert scene.run("show", f"{ref}:a") == "changed"
    assert scene.run("show", f"{ref}:untracked") == "x"
    assert scene.run("status", "--porcelain", where=scene.path) == "M a\n?? untracked"
    assert salvage_tree(scene.tree, ()).refs == (ref,)  # the same work is kept once


def test_the_files_of_a_damaged_folder_are_kept(scene: Scene) -> None:
    make_dirty(scene)
    make_untracked(scene)
    shutil.rmtree(scene.main / ".git" / "worktrees" / "w")
    (ref,) = salvage_tree(scene.tree, ()).refs
    assert (scene.run("show", f"{ref}:a"), scene.run("show", f"{ref}:untracked")) == ("changed", "x")
    assert scene.run("rev-parse", f"{ref}^1") == scene.run("rev-parse", BRANCH)
    assert (scene.path / "untracked").exists()


def test_commits_of_a_branch_that_is_gone_are_kept(scene: Scene) -> None:
    tip = scene.run("rev-parse", BRANCH)
    scene.run("worktree", "remove", "-f", "-f", str(scene.path))
    scene.run("branch", "-qD", BRANCH)
    with pytest.raises(WorktreeRefused, match=f"is gone, and only git has its commit {tip[:12]}: .* salvage w"):
        scene.plan(scene.base, tip)
    found = salvage_tree(scene.tree, (tip,))
    assert found.refs == (f"refs/jackline/{RUN}/lost",)
    assert scene.run("rev-parse", found.refs[0]) == tip
    assert scene.plan(scene.base, tip).merged == "its branch is gone"
    again = salvage_tree(scene.tree, (tip,))
    assert (again.refs, again.branch, again.merged) == ((), "", found.refs[0].removeprefix("refs/"))
    make = salvage_tree(scene.tree, ())
    assert (make.refs, make.branch, make.merged) == ((), "", "")


def test_detached_commits_are_kept(scene: Scene) -> None:
    make_detached(scene)
    tip = scene.run("rev-parse", "HEAD", where=scene.path)
    assert scene.run("rev-parse", salvage_tree(scene.tree, ()).refs[0]) == tip
    scene.run("reset", "-q", "--hard", "HEAD~1", where=scene.path)
    make_unmerged(scene)  # another one: the first stays kept
    scene.run("commit", "-q", "--amend", "-m", "other", where=scene.path)
    other = scene.run("rev-parse", "HEAD", where=scene.path)
    assert scene.run("rev-parse", salvage_tree(scene.tree, ()).refs[0]) == other
    assert scene.run("rev-parse", f"refs/jackline/{RUN}/head") == tip


def test_a_change_that_git_status_does_not_show_is_salvaged(scene: Scene) -> None:
    make_hidden(scene)
    (ref,) = salvage_tree(scene.tree, ()).refs
    assert scene.run("show", f"{ref}:a") == "changed"


@pytest.mark.parametrize("damaged", [False, True])
def test_repositories_inside_are_named(scene: Scene, damaged: bool) -> None:
    for name in ("inner", "below/deep", "node_modules/package"):
        (scene.path / name).mkdir(parents=True)
        scene.run("init", "-q", where=scene.path / name)
        (scene.path / name / "x").write_text("x\n")
    if damaged:
        make_damaged(scene)
    assert salvage_tree(scene.tree, ()).nested == ("below/deep/", "inner/")
