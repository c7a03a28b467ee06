"""The loop with the real Claude Code and the real Codex: work, prove, repair, review, until the review passes.

The models decide by what they are told and by what the files hold, so that they continue after any crash.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jackline.fake_model.pointing import point
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from tests.agents.stage import RUN, Stage, wait_until
from tests.real_agents import binary

if TYPE_CHECKING:
    from jackline.fake_model.wire import ModelRequest

TASK = "write part.py"
NAME = "part.py"
# What the worker writes in each iteration: refuted, then two flaws, one flaw, none.
VERSIONS = {1: "version = 1\n", 2: "version = 2\n", 3: "version = 3\n", 4: "version = 4\n"}
PROOF = "sh check.sh"
CHECK = """\
if [ -e {hold} ]; then echo $$ > {reached}; sleep 600; fi
grep -q 'version = [2-9]' part.py || {{ echo RED-PROOF; exit 1; }}
"""
SEEN = re.compile(r"version = (\d)\nLOOKED")
LAST = 4
REVIEWS = "You are a code reviewer."
PLANS, EXECUTES, PLAN = "do not change anything yet", "Carry out your plan now", "First part.py, then the proof."


def answer(outcome: str, *texts: str, earlier: dict[str, str] | None = None) -> str:
    """A reviewer's answer in the agreed form."""
    findings = [{"severity": "blocking", "file": NAME, "line": 1, "text": text} for text in texts]
    fields = {"verdict": outcome, "findings": findings, "earlier": earlier or {}, "summary": f"it is a {outcome}"}
    return f"I have looked at it.\n\n```json\n{json.dumps(fields)}\n```"


VERDICTS = {
    2: answer("fail", "FLAW-ONE", "FLAW-TWO"),
    3: answer("fail", earlier={"F1": "resolved", "F2": "unresolved"}),
    4: answer("pass", earlier={"F2": "resolved"}),
}


class Model(Script):
    """A model that may stop at a point, until it is released; each point is reached once."""

    def __init__(self, table: Table, stops_at: str = "") -> None:
        super().__init__(())
        self.table = table
        self.stops_at, self.reached, self.released = stops_at, threading.Event(), threading.Event()

    def next_reply(self, asked: ModelRequest) -> Reply:
        return self.decide(asked) if asked.tools else super().next_reply(asked)

    def decide(self, asked: ModelRequest) -> Reply:
        raise NotImplementedError

    def pass_by(self, point: str) -> None:
        """Wait here if it is the point to stop at, for the first time."""
        if point == self.stops_at and not self.reached.is_set():
            self.reached.set()
            assert self.released.wait(120)


class Worker(Model):
    """Writes the version that the feedback asks for, and then says that it is done."""

    def decide(self, asked: ModelRequest) -> Reply:
        if REVIEWS in asked.text:  # the reviewer is the same program
            return self.table.models[1].decide(asked)
        if PLANS in asked.text and EXECUTES not in asked.text:
            self.pass_by("plan")
            return Reply(say=PLAN)
        refuted = 2 if "RED-PROOF" in asked.text else 1
        target = max((refuted, *(version + 1 for version in self.table.failed)))
        self.pass_by(f"work-{target}")
        if self.table.file.exists() and self.table.file.read_text() == VERSIONS[target]:
            return Reply(say=f"version {target} is written")
        return Reply(shell=f"echo '{VERSIONS[target].strip()}' > {NAME}")


class Reviewer(Model):
    """Looks at the file, and judges what it has seen."""

    def decide(self, asked: ModelRequest) -> Reply:
        seen = SEEN.findall(asked.text)
        if not seen:
            return Reply(shell=f"cat {NAME}; printf LOOK; echo ED")
        version = int(seen[-1])
        self.pass_by(f"review-{version}")
        if version < LAST:
            self.table.failed.add(version)
        return Reply(say=VERDICTS[version])


class Table(Stage):
    """A stage with two agents, each with its own model."""

    failed: set[int]  # versions that the reviewer has rejected
    models: tuple[Model, ...]
    reviewer: FakeModel
    crash: str = ""

    @property
    def environment(self) -> dict[str, str]:
        codex = point("codex", self.reviewer.address, str(self._user)).env
        crash = {"JACKLINE_CRASH_AT": self.crash} if self.crash else {}
        return {**super().environment, **codex, "JACKLINE_CODEX_BINARY": binary("codex"), **crash}

    def build(self) -> None:
        super().build()
        for path, content in point("codex", self.reviewer.address, str(self._user)).files.items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).write_bytes(content)
        (self.repository / "check.sh").write_text(CHECK.format(hold=self.hold, reached=self.held))
        self.git("add", "check.sh")
        self.git("commit", "--quiet", "--message", "a check")

    @property
    def hold(self) -> Path:
        return self.folder / "hold"

    @property
    def held(self) -> Path:
        return self.folder / "held"

    @property
    def worktree(self) -> Path:
        (found,) = self._user.glob(".local/share/jackline/worktrees/*/loop")
        return found

    @property
    def file(self) -> Path:
        return self.worktree / NAME

    def begin(self, *more: str, reviewer: str = "codex") -> subprocess.Popen[str]:
        return self.start_run(
            TASK, "--proof", PROOF, "--review", reviewer, "--worktree", "loop", "--max-iterations", "6", *more
        )

    def compute_tree(self) -> str:
        """The tree of the worker's files, by git itself."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "GIT_INDEX_FILE": str(self.folder / "index")}

        def git(*words: str) -> str:
            done = subprocess.run(
                ["git", *words], cwd=self.worktree, env=environ, check=True, capture_output=True, text=True
            )
            return done.stdout.strip()

        git("read-tree", "HEAD")
        git("add", "--all")
        return git("write-tree")


Lay = Callable[..., Table]


@pytest.fixture
def lay(tmp_path: Path) -> Iterator[Lay]:
    """Lay the table; the models stop where they are told."""
    with ExitStack() as stack:

        def build(stops_at: str = "", worker: type[Worker] = Worker, reviewer: type[Reviewer] = Reviewer) -> Table:
            table = Table("claude", binary("claude"), tmp_path, None)  # type: ignore[arg-type]
            table.failed = set()
            models = worker(table, stops_at), reviewer(table, stops_at)
            table.models = models
            table.model, table.reviewer = (stack.enter_context(FakeModel(model)) for model in models)
            stack.callback(table.close)
            for model in models:
                stack.callback(model.released.set)
            table.build()
            return table

        yield build


def check_end(table: Table) -> dict[str, Any]:
    """What holds at the end, however often the supervisor died."""
    shown = table.show()
    assert (shown["state"], shown["proof"], shown["iteration"]) == ("succeeded", "proved", LAST), shown
    life = shown["life"]
    assert (life["spent"]["iterations"], life["review_round"]) == (LAST, 3)
    assert 0 < life["spent"]["usd_micros"] < shown["spec"]["limits"]["usd_micros"]
    assert shown["spec"]["workspace"] == str(table.worktree)
    assert table.file.read_text() == VERSIONS[LAST]
    assert not (table.repository / NAME).exists()
    reviews = table.type("findings", RUN, "--json").json
    assert [(one["id"], one["text"], one["state"], one["settled_round"]) for one in reviews["findings"]] == [
        ("F1", "FLAW-ONE", "resolved", 2),
        ("F2", "FLAW-TWO", "resolved", 3),
    ]
    verdicts = reviews["verdicts"]
    assert [(one["outcome"], one["iteration"], one["review_round"]) for one in verdicts] == [
        ("fail", 2, 1), ("fail", 3, 2), ("pass", 4, 3),
    ]  # fmt: skip
    tree = table.compute_tree()
    assert (life["tree"], shown["checks"][-1]["tree"], verdicts[-1]["tree"]) == (tree, tree, tree)
    assert table.type("verify", RUN).code == 0
    assert table.processes_left() == []
    return shown


@pytest.mark.full
def test_the_loop_ends_when_the_review_passes(lay: Lay) -> None:
    table = lay()
    ended = table.end_of(table.begin())
    assert ended.code == 0, (ended, table.show()["turns"])
    shown = check_end(table)
    turns = shown["turns"]
    assert [(turn["role"], turn["agent"], turn["iteration"]) for turn in turns] == [
        ("work", "claude", 1), ("work", "claude", 2), ("review", "codex", 2), ("work", "claude", 3),
        ("review", "codex", 3), ("work", "claude", 4), ("review", "codex", 4),
    ]  # fmt: skip
    works = [turn for turn in turns if turn["role"] == "work"]
    reviews = [turn for turn in turns if turn["role"] == "review"]
    assert len({turn["session"] for turn in works}) == 1
    assert len({turn["session"] for turn in reviews}) == len(reviews)
    # Each turn is told what is new, once.
    assert [("RED-PROOF" in turn["prompt"], "FLAW-ONE" in turn["prompt"]) for turn in works] == [
        (False, False), (True, False), (False, True), (False, False),
    ]  # fmt: skip
    assert "FLAW-TWO" in works[-1]["prompt"]
    assert all(TASK in turn["prompt"] for turn in reviews)
    assert not any(TASK in turn["prompt"] for turn in works[1:])


# --- killed in every phase


def wait_for_point(table: Table) -> None:
    wait_until(lambda: any(model.reached.is_set() for model in table.models), "the point was never reached")


KILLED = [
    "plan", "work-1", "work-2", "work-3", "work-4", "review-2", "review-3", "review-4", "prove",
]  # fmt: skip
CRASHES = [
    *(f"turn.exited:{number}" for number in (1, 2, 3)), "check.finished:1", "check.finished:2",
    *(f"advance.committed:{number}" for number in (4, 8, 12, 16, 20)), "turn.spawning:3", "turn.spawned:5",
]  # fmt: skip


@pytest.mark.parametrize("point_name", [pytest.param(name, marks=pytest.mark.full) for name in KILLED])
def test_a_supervisor_that_is_killed_changes_nothing_about_the_end(lay: Lay, point_name: str) -> None:
    table = lay(point_name)
    more = ("--plan",) if point_name == "plan" else ()
    if point_name == "prove":
        table.hold.touch()
    run = table.begin(*more)
    if point_name == "prove":
        wait_until(table.held.exists, "the proof never started")
        table.hold.unlink()
    else:
        wait_for_point(table)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    for model in table.models:
        model.released.set()
    ended = table.type("resume", RUN, "--json")
    assert ended.code == 0, (ended, table.show()["turns"])
    assert len(check_end(table)["attempts"]) == 2


@pytest.mark.full
@pytest.mark.parametrize("crash", CRASHES)
def test_a_supervisor_that_dies_between_two_steps_changes_nothing_about_the_end(lay: Lay, crash: str) -> None:
    table = lay()
    table.crash = crash
    died = table.end_of(table.begin())
    table.crash = ""
    assert died.code == -signal.SIGKILL, died
    ended = table.type("resume", RUN, "--json")
    assert ended.code == 0, (ended, table.show()["turns"])
    assert len(check_end(table)["attempts"]) == 2


# --- a reviewer that does not keep to its task


class Writer(Reviewer):
    """Tries to change the work, in its copy and in the worker's tree, and then passes it."""

    def decide(self, asked: ModelRequest) -> Reply:
        worker = self.table.worktree
        tries = [
            Reply(shell=f"echo spoilt > {NAME}"),
            Reply(shell=f"echo spoilt > {worker}/{NAME}"),
            Reply(shell=f"git -C {worker} commit --quiet --allow-empty --message spoilt"),
        ]
        return tries[asked.results] if asked.results < len(tries) else Reply(say=answer("pass"))


@pytest.mark.full
@pytest.mark.parametrize("reviewer", ["codex", "claude"])
def test_a_reviewer_that_edits_changes_nothing(lay: Lay, reviewer: str) -> None:
    table = lay(reviewer=Writer)
    before = table.git("log", "--format=%s", "--all")
    ended = table.end_of(table.begin(reviewer=reviewer))
    shown = table.show()
    assert (ended.code, shown["iteration"]) == (0, 2), (ended, shown["turns"], shown["calls"])
    assert table.file.read_text() == VERSIONS[2]
    assert "spoilt" not in before + table.git("log", "--format=%s", "--all")
    tried = [call for call in shown["calls"] if shown["turns"][call["turn"] - 1]["role"] == "review"]
    # Codex does not report every command that ends at once in its sandbox.
    assert len(tried) == 3 if reviewer == "claude" else len(tried) <= 3
    asked = table.model.asked if reviewer == "claude" else table.reviewer.asked
    assert asked[-1].results == 3
    assert {call["state"] for call in tried} <= {"denied" if reviewer == "claude" else "failed"}
    assert all("Reviewers must not change anything" in call["reason"] for call in tried)
    if reviewer == "claude":
        assert "Reviewers must not change anything" in asked[-1].text
    assert shown["life"]["tree"] == table.compute_tree()


class Nagger(Reviewer):
    """Finds something new in every round."""

    def decide(self, asked: ModelRequest) -> Reply:
        number = len(self.table.failed) + 1
        self.table.failed.add(number)
        return Reply(say=answer("fail", f"a new flaw, number {number}"))


class Obeyer(Worker):
    """Changes the file in each turn."""

    def decide(self, asked: ModelRequest) -> Reply:
        wanted = f"version = {1 + len(self.table.failed)}\n".replace("1", "2", 1)
        if self.table.file.exists() and self.table.file.read_text() == wanted:
            return Reply(say="I changed it")
        return Reply(shell=f"echo '{wanted.strip()}' > {NAME}")


@pytest.mark.full
def test_a_reviewer_that_always_finds_something_new_is_stopped(lay: Lay) -> None:
    table = lay(worker=Obeyer, reviewer=Nagger)
    ended = table.end_of(table.begin())
    shown = table.show()
    assert (ended.code, shown["state"], shown["reason"]) == (14, "waiting", "human"), (ended, shown["turns"])
    assert len([turn for turn in shown["turns"] if turn["role"] == "review"]) <= 3
    assert "review" in shown["detail"]
