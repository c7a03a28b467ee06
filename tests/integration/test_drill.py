"""`jackline drill` through the real process: it passes, it can fail, and it leaves its evidence and nothing else."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jackline.engine import orphans
from jackline.scenarios.drill_cases import CASES
from tests.cli.place import Ended, Place, is_one_line

SECONDS = 300.0
# The drill with one part of it replaced, as a mistake in jackline or in a policy would do.
SABOTAGED = """
import sys
from jackline.scenarios import players
from jackline.cli.main import main
whole = players.render_policy
players.render_policy = lambda sandbox: {policy}
sys.exit(main(["drill", "--json", "--keep", sys.argv[1], "--case", "{case}"]))
"""
LYING_PROBE = "whole(sandbox).replace(sandbox.probe, 'exit 1')"  # it says that nothing has happened
NO_EFFECT = "whole(sandbox).replace('\"effect\"', '\"local\"').replace('probe', '#')"  # the gate knows no effect at all
# A pid that no process has.
GONE = "import os; from jackline.scenarios import case_runner as c; c.send_signal = lambda _, n: os.kill(2**22 - 1, n)"
NO_PROBE = "whole(sandbox).replace('probe = ', '# ')"


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("drill"))  # a short path: sockets lie below it
    made.repository.mkdir()
    yield made
    made.close()


def drill(place: Place, *words: str, **environ: str) -> Ended:
    return ended(place.start("drill", *words, environ=environ))


def ended(process: Any) -> Ended:
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, out, err)


def sabotaged(place: Place, case: str, policy: str) -> tuple[int, dict[str, Any]]:
    played = ended(place.python(SABOTAGED.format(case=case, policy=policy), place.path("kept")))
    assert len(played.rows) == 2, played
    return played.code, played.rows[0]


def test_a_quick_drill_passes_and_leaves_evidence(place: Place) -> None:
    kept = place.folder / "kept"
    played = drill(place, "--case", "read-only", "--case", "after-effect-before-ledger", "--json", "--keep", str(kept))
    assert played.code == 0, played
    after_effect, read_only, total = played.rows
    assert (after_effect["case"], after_effect["effects_seen"], after_effect["result"]) == (
        "after-effect-before-ledger",
        2,
        "pass",
    )
    assert (read_only["case"], read_only["effects_seen"], read_only["reasons"]) == ("read-only", 0, [])
    assert (total["passed"], total["failed"], total["skipped"], total["folder"]) == (2, 0, 0, str(kept))
    for row in (after_effect, read_only):
        there = set(os.listdir(row["evidence"]))
        assert {"home", "world", "said", "show.json", "receipts.json", "verify.json", "verdict.json"} <= there
    sent = (Path(after_effect["evidence"]) / "world" / "outbox.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in sent] == ["report", "last"]


def test_the_users_own_home_and_project_are_untouched(place: Place) -> None:
    (place.repository / "jackline.toml").write_text("max_calls = 1\n")
    assert drill(place, "--case", "bash-crash", "--keep", place.path("kept")).code == 0
    assert os.listdir(place.repository) == ["jackline.toml"]
    assert not place.home.exists()


def test_for_people_it_is_a_table_with_the_folder_of_the_evidence(place: Place) -> None:
    played = drill(place, "--case", "upload-crash", "--keep", place.path("kept"))
    row, summary = played.out.splitlines()
    assert row.split("\t")[:3] == ["upload-crash", "pass", "3/3"], played
    assert summary == f"1 case: 1 passed; the evidence is in {place.path('kept')}"
    assert "the agent dies in the middle of an upload" in played.err


@pytest.mark.full
def test_every_case_passes(place: Place) -> None:
    played = drill(place, "--agent", "scripted", "--json", "--keep", place.path("kept"))
    *rows, total = played.rows
    assert [(row["case"], row["result"], row["reasons"]) for row in rows] == [(one.name, "pass", []) for one in CASES]
    assert (played.code, total["passed"]) == (0, len(CASES))


# --- it can fail -------------------------------------------------------------------------------------------------


def test_a_probe_that_lies_makes_the_effect_happen_twice_and_the_drill_fails(place: Place) -> None:
    code, row = sabotaged(place, "after-effect-before-ledger", LYING_PROBE)
    assert (code, row["result"], row["effects_seen"], row["effects_expected"]) == (1, "fail", 3, 2)
    assert row["reasons"][0] == "the effect 'report' happened 2 times, expected once"
    sent = (Path(row["evidence"]) / "world" / "outbox.jsonl").read_text().splitlines()
    assert len(sent) == 3


def test_a_gate_that_knows_no_effects_fails_the_drill(place: Place) -> None:
    code, row = sabotaged(place, "kill-while-streaming", NO_EFFECT)
    assert (code, row["result"]) == (1, "fail")
    assert row["reasons"][0] == "the effect 'report' happened 2 times, expected once"


def test_an_effect_that_nobody_can_probe_leaves_the_run_in_doubt_and_fails_the_drill(place: Place) -> None:
    """Nothing happens twice, and still it is no pass: the run waits for a person."""
    code, row = sabotaged(place, "upload-crash", NO_PROBE)
    assert (code, row["result"]) == (1, "fail")
    assert "the run is waiting, not succeeded" in row["reasons"]
    assert not any("happened 2 times" in reason for reason in row["reasons"])


def test_a_process_that_is_gone_before_its_kill_is_a_case_that_failed(place: Place) -> None:
    program = SABOTAGED.replace("players.render_policy = lambda sandbox: {policy}", GONE)
    played = ended(place.python(program.format(case="bash-crash"), place.path("kept")))
    row, _ = played.rows
    assert (played.code, row["result"], "No such process" in row["reasons"][-1]) == (1, "fail", True), played


# --- what is asked wrongly ---------------------------------------------------------------------------------------


def test_a_program_that_is_missing_is_one_line_and_exit_13(place: Place) -> None:
    played = drill(place, "--agent", "claude", JACKLINE_CLAUDE_BINARY="/nowhere/claude")
    assert (played.code, is_one_line(played)) == (13, True), played
    assert "/nowhere/claude" in played.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--case", "nothing"), "the drill has no case 'nothing'; choose from task-crash"),
        (("--agent", "codex"), "the drill cannot run 'codex': choose one of scripted, claude"),
        (("--keep", "."), "is not empty: name a new folder with --keep"),
        (("--keep", "/proc/drill"), "cannot hold the drill's files"),
    ],
)
def test_what_cannot_be_done_is_one_line(place: Place, words: tuple[str, ...], said: str) -> None:
    (place.repository / "mine.txt").write_text("mine")
    played = drill(place, *words)
    assert (played.code, is_one_line(played), said in played.err) == (2, True, True), played


def test_a_drill_that_is_ended_leaves_no_process(place: Place) -> None:
    process = place.start("drill", "--case", "frozen-and-thawed", "--keep", place.path("kept"))
    place.wait_for("kept/frozen-and-thawed/world/here.report")
    process.send_signal(signal.SIGTERM)
    played = ended(process)
    assert (played.code, f"the evidence is in {place.path('kept')}" in played.err) == (130, True), played
    assert orphans.find_orphans({"HOME": place.path("kept/frozen-and-thawed/user")}) == []
