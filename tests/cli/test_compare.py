"""`compare`: runs side by side, with the newest batch as the default, and each run of a batch in its own worktree."""

from __future__ import annotations

import subprocess

import pytest

from jackline.domain.changes import UNCHANGED
from jackline.domain.records import Run, RunStatus
from jackline.domain.review_records import Verdict
from jackline.domain.spec import Spec
from jackline.domain.states import Proof, RunState
from jackline.features.compare.compare_command import ComparedRun, _format_letter, _format_row
from jackline.formatting import measure_width
from tests.cli.place import SAY, Place, is_one_line
from tests.cli.test_terminal import Terminal

HOSTILE = "\x1b[2Jx\u202e\x9b1m"
COMMIT = {
    "call": {
        "tool": "Bash",
        "input": {"command": "commit"},
        "run": "printf 'one\\ntwo\\n' > new.txt && git add new.txt && git commit -q -m new",
    }
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Three runs that the tests only read: one commits, one fails its proof, one has another, hostile prompt."""
    place = Place(tmp_path_factory.mktemp("compare"))
    place.repository.mkdir()
    make_git(place)
    usage = {"usage": {"input": 900, "output": 100, "usd": 0.02}}
    assert place.play(usage, COMMIT, SAY, words=("mend it", "--run-id", "aa", "--proof", "true")).code == 0
    words = ("mend it", "--run-id", "bb", "--proof", "exit 3", "--max-iterations", "1")
    assert place.play(SAY, words=words).code == 16
    assert place.play(SAY, words=(f"another {HOSTILE}", "--run-id", "cc")).code == 0
    return place


def make_git(place: Place) -> None:
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    place.environ.update(names)
    for words in (
        "init -q -b main .",
        "config user.name a",
        "config user.email a@b",
        "commit -q --allow-empty -m first",
    ):
        environ = place.environment()
        subprocess.run(["git", *words.split()], cwd=place.repository, env=environ, check=True, capture_output=True)


def test_the_table_in_a_pipe_has_everything(three: Place) -> None:
    compared = three.type("compare", "#1", "bb", "3")
    rows = [line.split("\t") for line in compared.out.splitlines()]
    assert [row[0] for row in rows] == ["#1", "#2", "#3"]
    assert [row[1] for row in rows][::2] == ["✓ succeeded", "✓ succeeded"]
    assert rows[1][1].startswith("✗ failed: ")
    assert {row[2] for row in rows} == {"scripted"}
    assert rows[0][4].startswith("proved")
    assert rows[1][4].startswith("refuted")
    assert rows[2][4] == "-"
    assert rows[0][7:11] == ["1 +2 -0", "1", "$0.02", "1000"]
    assert (rows[1][7], rows[1][8]) == ("-", "0")
    assert [row[-1][:10] for row in rows] == ["A: mend it", "A: mend it", "B: another"]
    assert all(line.isprintable() for line in compared.out.replace("\t", "").splitlines())
    assert compared.err == "the prompts differ: the letter before each marks those that are the same\n"
    same = three.type("compare", "aa", "bb")
    assert (same.err, same.out.splitlines()[0].split("\t")[-1]) == ("", "mend it")


def test_json_has_one_object_for_each_run(three: Place) -> None:
    first, second, third = three.type("compare", "aa", "bb", "cc", "--json").rows
    assert (first["id"], first["files_changed"], first["insertions"], len(first["commits"])) == ("aa", 1, 2, 1)
    assert (first["proof"], first["cost_usd"], first["tokens"]) == ("proved", 0.02, 1000)
    assert [one["prompt_group"] for one in (first, second, third)] == [1, 1, 2]
    assert (first["verdicts"], first["open_findings"]) == ([], {})


@pytest.mark.parametrize("columns", [60, 200])
def test_a_narrow_terminal_exchanges_rows_and_columns(three: Place, columns: int) -> None:
    shown = Terminal(three, "compare", "aa", "bb", "cc", "--no-color", COLUMNS=str(columns)).end().splitlines()
    assert all(measure_width(line) <= columns or "prompts differ" in line for line in shown)
    titles = [line.split()[0] for line in shown if line.strip()]
    if columns == 200:
        assert shown[0].split()[:3] == ["RUN", "STATE", "AGENT"]
        assert [line.split()[0] for line in shown[1:4]] == ["#1", "#2", "#3"]
    else:
        assert titles[:4] == ["RUN", "STATE", "AGENT", "ITERATIONS"]
        assert shown[0].split() == ["RUN", "#1", "#2"]
        assert titles.count("RUN") == 2  # the third run is in a second table


def test_mistakes(three: Place) -> None:
    for words in (("aa",), ("aa", "aa"), ("aa", "nothing"), ("aa", "--batch", "b"), ("--batch", "none"), ()):
        refused = three.type("compare", *words)
        assert (refused.code, is_one_line(refused)) == (2, True), (words, refused)


def test_the_runs_of_a_batch_work_each_in_its_own_worktree(place: Place) -> None:
    make_git(place)
    script = place.script(COMMIT, SAY)
    words = ("enqueue", "mend {line}", "--each", "-", "-j", "2", "--worktree", "--script", script)
    queued = place.type(*words, stdin="this\nthat\n")
    assert queued.code == 0, queued
    assert place.type("serve", "--once").code == 0
    both = place.type("compare", "--json").rows  # the newest batch
    assert [one["state"] for one in both] == ["succeeded", "succeeded"], both
    assert [one["prompt"] for one in both] == ["mend this", "mend that"]
    assert [len(one["commits"]) for one in both] == [1, 1]
    shown = [place.type("show", one["id"], "--json").json for one in both]
    assert len({one["spec"]["workspace"] if "spec" in one else one["workspace"] for one in shown}) == 2
    assert not (place.repository / "new.txt").exists()
    branches = subprocess.run(
        ["git", "branch", "--format=%(refname:short)"], cwd=place.repository, capture_output=True, text=True, check=True
    ).stdout.split()
    assert len([name for name in branches if name.startswith("jackline/")]) == 2


def test_work_that_is_not_committed_counts_from_the_start_to_the_proved_tree(place: Place) -> None:
    make_git(place)
    (place.repository / "old.txt").write_text("there before\n")
    step = {"call": {"tool": "Bash", "input": {"command": "x"}, "run": "printf 'one\\ntwo\\n' > new.txt"}}
    words = ("mend it", "--run-id", "aa", "--proof", "test -s new.txt && date > report")
    assert place.play(step, SAY, words=words).code == 0
    assert place.play(SAY, words=("mend it", "--run-id", "bb", "--proof", "true")).code == 0
    rows = [line.split("\t") for line in place.type("compare", "aa", "bb").out.splitlines()]
    assert [row[7:9] for row in rows] == [["1 +2 -0", "0"], ["-", "0"]]
    first = place.type("compare", "aa", "bb", "--json").rows[0]
    assert (first["files_changed"], first["insertions"], first["commits"]) == (1, 2, [])


def test_letters_for_many_prompts() -> None:
    assert [_format_letter(number) for number in (1, 26, 27, 53)] == ["A", "Z", "AA", "BA"]


def test_verdicts_findings_and_the_tree_of_the_proof() -> None:
    status = RunStatus(agent="claude", state=RunState.SUCCEEDED, proof=Proof.PROVED, tree="0123456789abcdef")
    spec = Spec(prompt="mend it", workspace="/w", proof="pytest")
    run = Run(
        id="r", number=7, repository="x", lineage="r", parent=None, spec=spec, status=status, owner=None, event_seq=1,
        chain_head="", created_at=0, updated_at=0,
    )  # fmt: skip
    verdict = Verdict(
        run_id="r", turn=2, iteration=1, review_round=1, seat=0, agent="codex", tree="0", outcome="pass",
        resolved=0, summary="", at=0,
    )  # fmt: skip
    one = ComparedRun(
        run=run,
        loss="",
        prompt_group=1,
        verdicts=(verdict, verdict._replace(seat=1, agent=f"x{HOSTILE}", outcome="fail")),
        open_findings={"nit": 2, "blocking": 1},
        changes=UNCHANGED,
        cost_micros=None,
    )
    row = _format_row(one, [one], is_one_repository=False)
    assert row[0] == "r"
    assert row[4:7] == ["proved 01234567", "codex pass, x [2Jx  1m fail", "1 blocking, 2 nit"]
    assert row[9] == "unknown"
