"""`jackline case`: every action as people and agents use it, what is refused, and what is recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jackline.app import config
from jackline.app.home import Home
from jackline.errors import CaseRefused
from jackline.features.cases import entries
from jackline.features.cases import location as case_place
from jackline.features.cases.lifecycle import Opening, start_case
from tests.cli.place import SAY, Ended, Place, is_one_line
from tests.cli.test_startup_imports import HEAVY, PROGRAM
from tests.support.secrets import TOKENS

START = ("case", "start", "fix overlay keep_geom_type routing")


@pytest.fixture
def place(place: Place) -> Place:
    """In a git repository with a file that is tracked."""
    place.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    git(place.repository, "init", "-q")
    (place.repository / "tests").mkdir()
    (place.repository / "tests" / "test_intake.py").touch()
    git(place.repository, "add", "tests")
    return place


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def begin(place: Place, *words: str, **more: Any) -> str:
    ended = place.type(*START, *words, "--json", **more)
    assert ended.code == 0, ended
    return str(ended.json["id"])


def do(place: Place, *words: str, **more: Any) -> Ended:
    ended = place.type("case", *words, **more)
    assert ended.code == 0, ended
    return ended


def refused(ended: Ended, code: int, *said: str) -> None:
    assert (ended.code, is_one_line(ended), ended.out) == (code, True, ""), ended
    assert [one for one in said if one not in ended.err] == [], ended.err


def active(place: Place) -> str | None:
    path = place.repository / ".agents" / "runs" / "ACTIVE"
    return path.read_text().strip() if path.exists() else None


# the notebook


def test_the_sequence_of_the_predecessor(place: Place) -> None:
    case_id = begin(place, "--verify", "test -d tests")
    assert case_id.endswith("Z-fix-overlay-keep-geom-type-routing")
    assert active(place) == case_id
    added = do(place, "hypothesis", "add", "Doc fanout is outranking direct file hits")
    assert added.out == "H001 open\n"
    assert do(place, "evidence", "add", "--hypothesis", "H001", "overlay.py ranks below doc seeds").out == "E001\n"
    assert do(place, "hypothesis", "resolve", "H001", "--status", "accepted").out == "H001 accepted\n"
    words = ("--kind", "intake-misroute", "--summary", "keep_geom_type needs a gold routing query")
    kept = do(place, "learning", "add", *words, "--repo-action", "test", "--path", "tests/test_intake.py")
    assert kept.out == "L001 test\n"
    assert do(place, "learning", "review", "--require-resolved").out.split("\t")[1] == "resolved"
    closed = do(place, "close", "--summary", "Added router quality harness", "--verification", "test -d tests")
    assert closed.out == f"{case_id} closed\n"
    assert active(place) is None
    folder = place.repository / ".agents" / "runs" / case_id
    assert sorted(one.name for one in folder.iterdir() if not one.name.startswith(".")) == [
        "closeout.json",
        "closeout.md",
        "commands.jsonl",
        "evidence.jsonl",
        "hypotheses.jsonl",
        "learning.jsonl",
        "problem.json",
    ]


def test_the_capsule_keeps_every_argument(place: Place) -> None:
    (place.repository / "new.py").touch()
    words = (
        "--intent",
        "quick",
        "--target",
        "a",
        "--target",
        "b",
        "--non-goal",
        "c",
        "--risk",
        "d",
        "--verify",
        "true",
    )
    case = place.type(*START, *words, "--skip-intake", "--json").json
    assert (case["intent"], case["target_properties"], case["non_goals"]) == ("quick", ["a", "b"], ["c"])
    assert (case["risks"], case["expected_verification"], case["intake_plan"]) == (["d"], ["true"], None)
    assert "?? new.py" in case["dirty_worktree"]
    problem = json.loads((place.repository / ".agents/runs" / case["id"] / "problem.json").read_text())
    assert problem == {name: case[name] for name in problem}
    assert "?? .agents/" not in do(place, "handoff").out  # what it writes itself is ignored


def test_status_shows_what_is_open(place: Place) -> None:
    begin(place)
    for text in ("the cache", "the disk"):
        do(place, "hypothesis", "add", text)
    do(place, "hypothesis", "resolve", "h2", "--status", "rejected", "--note", "it is idle")
    do(place, "command", "add", "pytest -q", "--status", "fail", "--note", "2 failed")
    shown = do(place, "status").out
    assert "H001 open: the cache" in shown
    assert "the disk" not in shown
    assert "C001 fail: pytest -q" in shown
    told = do(place, "status", "--json").json
    assert [one["id"] for one in told["open_hypotheses"]] == ["H001"]
    assert told["counts"] == {"hypothesis": 2, "evidence": 0, "command": 1, "learning": 0}
    listed = do(place, "hypothesis", "list", "--json").rows
    assert [(one["id"], one["status"], one.get("note")) for one in listed] == [
        ("H001", "open", None),
        ("H002", "rejected", "it is idle"),
    ]
    assert do(place, "hypothesis", "list", "--status", "open").out.splitlines() == ["H001\topen\tthe cache\t"]


def test_a_text_that_begins_with_a_dash(place: Place) -> None:
    begin(place)
    assert do(place, "hypothesis", "add", "--json", "--", "--force is ignored").json["text"] == "--force is ignored"


def test_the_next_agent_gets_a_page(place: Place) -> None:
    case_id = begin(place)
    do(place, "hypothesis", "add", "the cache")
    (place.repository / "changed.py").touch()
    page = do(place, "handoff").out
    assert page.startswith(f"# Case {case_id} (open)\n\nfix overlay")
    assert "- H001 the cache" in page
    assert "`?? changed.py`" in page
    told = do(place, "handoff", "--json").json
    assert told["next_steps"] == ["H001: the cache"]
    assert told["dirty_now"] == ["A  tests/test_intake.py", "?? changed.py"]


# commands that are run


def test_a_command_is_run_and_its_exit_code_passed_on(place: Place) -> None:
    begin(place)
    ended = place.type("case", "command", "run", "--", "sh", "-c", "echo said; echo warned >&2; exit 7")
    assert (ended.code, ended.out) == (7, "said\n")
    assert "warned\n" in ended.err
    assert "C001 fail" in ended.err
    assert place.type("case", "command", "run", "--", "test -d tests && echo yes").out == "yes\n"
    first, second = do(place, "status", "--json").json["last_commands"]
    assert (first["status"], first["exit_code"], first["output"]) == ("fail", 7, "said\nwarned\n")
    assert (second["status"], second["command"]) == ("pass", "test -d tests && echo yes")
    assert second["duration_ms"] >= 0


def test_a_command_that_is_not_there_or_never_ends(place: Place) -> None:
    begin(place)
    assert place.type("case", "command", "run", "--", "no-such-program", "x").code == 127
    late = place.type("case", "command", "run", "--case-seconds", "0.2", "--json", "--", "sleep", "600")
    assert (late.code, late.json["timed_out"], late.json["status"]) == (11, True, "fail")
    refused(place.type("case", "command", "run"), 2, "no command given")


def test_what_a_command_prints_is_redacted(place: Place) -> None:
    begin(place)
    token = TOKENS["github p"]
    place.type("case", "command", "run", "--", "echo", f"token {token}")
    for path in (place.repository / ".agents" / "runs").rglob("*.json*"):
        assert token not in path.read_text()
    assert "[redacted]" in do(place, "status", "--json").json["last_commands"][0]["output"]


# learnings


def test_a_learning_is_resolved_by_a_tracked_file_or_a_reason(place: Place) -> None:
    begin(place)
    words = ("learning", "add", "--kind", "doc-gap", "--summary", "say it")
    do(place, *words, "--repo-action", "docs", "--path", "new.md")
    do(place, *words, "--repo-action", "none", "--reason", "it is one of a kind")
    do(place, *words, "--repo-action", "test", "--path", "test_intake.py", cwd=place.repository / "tests")
    review = place.type("case", "learning", "review", "--json")
    assert review.code == 0
    assert [(one["id"], one["resolved"], one["lacks"]) for one in review.rows] == [
        ("L001", False, "new.md is not tracked by git"),
        ("L002", True, None),
        ("L003", True, None),
    ]
    assert place.type("case", "learning", "review", "--require-resolved").code == 1
    (place.repository / "new.md").touch()
    assert place.type("case", "learning", "review", "--require-resolved").code == 1
    git(place.repository, "add", "new.md")
    assert place.type("case", "learning", "review", "--require-resolved").code == 0


def test_the_location_of_a_learning_can_be_changed(place: Place) -> None:
    begin(place)
    words = ("--kind", "doc-gap", "--summary", "say it", "--repo-action", "docs")
    do(place, "learning", "add", *words, "--path", "tpyo.md")
    gate = ("case", "learning", "review", "--require-resolved")
    assert place.type(*gate).code == 1
    do(place, "learning", "amend", "L001", "--repo-action", "none", "--reason", "nobody needs it")
    assert place.type(*gate).code == 0
    do(place, "learning", "amend", "L001", "--repo-action", "docs", "--path", "right.md")
    (lacking,) = place.type("case", "learning", "review", "--json").rows
    assert (lacking["resolved"], lacking["lacks"]) == (False, "right.md is not tracked by git")
    (place.repository / "right.md").touch()
    git(place.repository, "add", "right.md")
    assert place.type(*gate).code == 0
    for name in ("L002", "H001", "x"):
        refused(place.type("case", "learning", "amend", name, "--repo-action", "none", "--reason", "r"), 1, name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--repo-action", "none"), "needs --reason"),
        (("--repo-action", "none", "--reason", " "), "the reason is empty"),
        (("--repo-action", "none", "--reason", "x", "--path", "a"), "takes no --path"),
        (("--repo-action", "test"), "needs --path"),
        (("--repo-action", "test", "--reason", "x"), "needs --path"),
        (("--repo-action", "test", "--path", "../outside.py"), "is not a file in"),
        (("--repo-action", "test", "--path", "/etc/passwd"), "is not a file in"),
        (("--repo-action", "tset", "--path", "a"), "invalid choice"),
    ],
)
def test_an_empty_learning_is_refused(place: Place, words: tuple[str, ...], said: str) -> None:
    begin(place)
    refused(place.type("case", "learning", "add", "--kind", "test-gap", "--summary", "x", *words), 2, said)
    assert do(place, "status", "--json").json["counts"]["learning"] == 0


# closing


def test_close_runs_the_verification_that_the_case_began_with(place: Place) -> None:
    case_id = begin(place, "--verify", "echo ran >> ran.txt", "--verify", "test -s ran.txt")
    closed = do(
        place, "close", "--summary", "done", "--risk", "few tests", "--json", cwd=place.repository / "tests"
    ).json
    assert (place.repository / "ran.txt").read_text() == "ran\n"
    assert closed["status"] == "closed"
    results = closed["closeout"]["verification"]
    assert [(one["id"], one["command"], one["status"], one["exit_code"]) for one in results] == [
        ("C001", "echo ran >> ran.txt", "pass", 0),
        ("C002", "test -s ran.txt", "pass", 0),
    ]
    told = json.loads((place.repository / ".agents/runs" / case_id / "closeout.json").read_text())
    assert (told["summary"], told["verification"], told["residual_risks"]) == ("done", results, ["few tests"])


def test_a_failing_verification_closes_nothing_and_is_written_down(place: Place) -> None:
    case_id = begin(place)
    ended = place.type("case", "close", "--summary", "x", "--verification", "echo why; exit 3", "true")
    assert ended.code == 16
    assert ended.err.splitlines()[-1].startswith(f"jackline: case {case_id} is not closed: verification C001 failed")
    assert "why" in ended.err
    told = do(place, "status", "--json").json
    assert told["status"] == "open"
    assert [one["status"] for one in told["last_commands"]] == ["fail", "pass"]
    assert active(place) == case_id
    late = place.type("case", "close", "--summary", "x", "--verification", "sleep 600", "--case-seconds", "0.2")
    assert late.code == 16


def test_unmet_requirements_are_reported_before_anything_runs(place: Place) -> None:
    begin(place)
    refused(place.type("case", "close", "--summary", "x"), 1, "no verification command is given")
    do(place, "hypothesis", "add", "the cache")
    words = ("learning", "add", "--kind", "doc-gap", "--summary", "say it", "--repo-action", "docs", "--path", "new.md")
    do(place, *words)
    ended = place.type("case", "close", "--summary", "x", "--verification", "touch ran.txt")
    refused(ended, 1, "hypothesis H001 is open", "L001 say it: new.md is not tracked by git", '--force "why"')
    assert not (place.repository / "ran.txt").exists()
    do(place, "hypothesis", "resolve", "H001", "--status", "blocked")
    (place.repository / "new.md").touch()
    git(place.repository, "add", "new.md")
    do(place, "close", "--summary", "x", "--verification", "true")


def test_what_is_written_during_the_verification_counts(place: Place) -> None:
    begin(place)
    late = f"{sys.executable} -m jackline case hypothesis add 'the disk'"
    ended = place.type("case", "close", "--summary", "x", "--verification", late)
    assert (ended.code, "hypothesis H001 is open" in ended.err) == (1, True), ended
    assert do(place, "status", "--json").json["status"] == "open"


def test_a_forced_close_says_what_was_not_met(place: Place) -> None:
    case_id = begin(place, "--verify", "false")
    do(place, "hypothesis", "add", "the cache")
    refused(place.type("case", "close", "--summary", "x", "--force", " "), 2, "--force needs a reason")
    closed = do(place, "close", "--summary", "given up", "--force", "the customer left", "--json").json
    assert closed["closeout"]["forced"] == "the customer left"
    assert closed["closeout"]["unmet"] == [
        "hypothesis H001 is open",
        "verification C001 failed (exit 1): false",
    ]
    assert "- the customer left" in (place.repository / ".agents/runs" / case_id / "closeout.md").read_text()


def test_a_closed_case_refuses_every_write(place: Place) -> None:
    case_id = begin(place, "--verify", "true")
    do(place, "hypothesis", "add", "the cache")
    do(place, "hypothesis", "resolve", "H001", "--status", "accepted")
    do(place, "close", "--summary", "x")
    before = do(place, "status", "--case", case_id, "--json").json
    gap = ("--kind", "doc-gap", "--summary", "x", "--repo-action", "none", "--reason", "x")
    for words in (
        ("hypothesis", "add", "x"),
        ("hypothesis", "resolve", "H001", "--status", "rejected"),
        ("evidence", "add", "x"),
        ("command", "add", "x", "--status", "pass"),
        ("learning", "add", *gap),
        ("close", "--summary", "x"),
    ):
        refused(place.type("case", *words), 1, "no case is active in")
        refused(place.type("case", *words, "--case", case_id), 1, f"case {case_id} is closed", "case reopen")
    refused(place.type("case", "command", "run", "--case", case_id, "--", "touch", "ran.txt"), 1, "is closed")
    assert not (place.repository / "ran.txt").exists()
    refused(place.type("case", "switch", case_id), 1, "is closed")
    assert do(place, "status", "--case", case_id, "--json").json == before


def test_reopening(place: Place) -> None:
    refused(place.type("case", "reopen"), 1, "none of the newest closed cases here is yours")
    case_id = begin(place, "--verify", "true")
    refused(place.type("case", "reopen", case_id), 1, "is open")
    refused(place.type("case", "reopen"), 1, "there is nothing to reopen")
    do(place, "close", "--summary", "x")
    assert do(place, "reopen").out == f"{case_id} open\n"
    assert active(place) == case_id
    assert not (place.repository / ".agents/runs" / case_id / "closeout.json").exists()
    assert do(place, "hypothesis", "add", "again").out == "H001 open\n"


# several cases, repositories, users, runs


def test_one_case_is_active_and_others_can_be_switched_to(place: Place) -> None:
    first = begin(place, "--verify", "true")
    second = place.type("case", "start", "another")
    refused(second, 1, f"case {first} is open and active here")
    do(place, "close", "--summary", "x")
    other = do(place, "start", "another").out.strip()
    refused(place.type("case", "reopen", first), 1, f"case {other} is open and active here")
    do(place, "close", "--summary", "x", "--force", "later")
    do(place, "reopen", first)
    assert active(place) == first
    refused(place.type("case", "switch", other), 1, "is closed")
    listed = place.type("case", "list", "--json").rows
    assert [(one["id"], one["status"]) for one in listed] == [(other, "closed"), (first, "open")]
    assert [one["id"] for one in do(place, "list", "--status", "open", "--json").rows] == [first]
    page = do(place, "list", "--limit", "1")
    assert page.out.startswith(other)
    assert f"jackline case list --limit 1 --after {other}" in page.err
    assert do(place, "list", "--limit", "1", "--after", other).out.startswith(first)


def test_each_repository_has_its_own(place: Place) -> None:
    first = begin(place)
    elsewhere = place.folder / "elsewhere"
    (elsewhere / "below").mkdir(parents=True)
    git(elsewhere, "init", "-q")
    second = begin(place, cwd=elsewhere / "below")
    assert (elsewhere / ".agents/runs/ACTIVE").read_text().strip() == second
    assert active(place) == first
    assert [one["id"] for one in do(place, "list", "--json").rows] == [first]
    assert len(do(place, "list", "--all-repos", "--json").rows) == 2
    refused(place.type("case", "switch", second), 1, "belongs to")
    assert do(place, "hypothesis", "add", "from afar", "--case", second).out == "H001 open\n"
    assert "from afar" in (elsewhere / ".agents/runs" / second / "hypotheses.jsonl").read_text()


def test_each_user_has_their_own(place: Place) -> None:
    begin(place)
    environ = place.environment()
    with Home(config.load_config(environ, str(place.repository))) as home:
        ann = case_place.get_location(home, str(place.repository), environ)
        bob = ann._replace(user_name="bob", actor="bob")
        assert case_place.find_active(home, bob) is None
        theirs = start_case(home, Opening("theirs"), at=bob)
        assert case_place.get_active(home, bob).id == theirs.id != case_place.get_active(home, ann).id
        assert entries.switch_case(home, theirs.id, at=ann).id == theirs.id  # handed over
        assert [event.actor for event in home.store().records.list_events(f"case:{theirs.id}")] == ["bob", ann.actor]
        with pytest.raises(CaseRefused, match="none of the newest closed cases here is yours"):
            entries.reopen_case(home, at=bob._replace(user_name="eve"))


def test_inside_a_run_the_case_belongs_to_it(place: Place) -> None:
    outside = begin(place)
    run_id = place.play(SAY, words=("--json",)).json["id"]
    inside: dict[str, Any] = {"environ": {"JACKLINE_RUN": run_id, "JACKLINE_ACTOR": "claude"}}
    refused(place.type("case", "status", **inside), 1, f"no case is active in run {run_id}")
    case = place.type("case", "start", "within", "--json", **inside).json
    assert case["run"] == run_id
    assert do(place, "hypothesis", "add", "a", **inside).out == "H001 open\n"
    assert do(place, "status", "--json", **inside).json["id"] == case["id"]
    assert do(place, "status", "--json").json["id"] == outside == active(place)
    refused(place.type("case", "switch", outside, **inside), 1, f"does not belong to run {run_id}")
    events = place.type("logs", run_id, "--events", "--json").rows
    assert events  # the run's own stream is as it was
    do(place, "close", "--summary", "x", "--force", "it was a test", **inside)
    assert do(place, "status", "--json", "--case", case["id"]).json["status"] == "closed"
    assert active(place) == outside


def test_inside_a_run_no_effect_gets_around_the_gate(place: Place) -> None:
    """What a case runs is not seen by the agent's door, so the run's own policy is asked here."""
    run_id = place.play(SAY, words=("--json",)).json["id"]
    inside: dict[str, Any] = {"environ": {"JACKLINE_RUN": run_id}}
    do(place, "start", "within", **inside)
    push = ("git", "push", "--force", "origin", "main")
    refused(place.type("case", "command", "run", "--", *push, **inside), 1, "cannot be run from here (effect")
    closing = ("close", "--summary", "x", "--verification", "true", "--verification", "sh -c 'git push origin main'")
    refused(place.type("case", *closing, **inside), 1, "so that the gate sees it")
    assert do(place, "status", "--json", **inside).json["counts"]["command"] == 0
    assert place.type("case", "command", "run", "--", "true", **inside).code == 0


def test_inside_a_run_of_another_database_there_is_one_message(place: Place) -> None:
    begin(place)
    for words in (("status",), ("hypothesis", "add", "x"), ("start", "x"), ("list",)):
        ended = place.type("case", *words, environ={"JACKLINE_RUN": "run-of-others"})
        assert (is_one_line(ended), "JACKLINE_RUN" in ended.err, "run-of-others" in ended.err) == (True, True, True)
        assert ended.code != 0


# intake


def test_the_plan_of_the_intake_command_is_kept(place: Place) -> None:
    script = 'read -r line; echo "{\\"asked\\": \\"$line\\", \\"same\\": \\"$JACKLINE_REQUEST\\"}"'
    asked = START[2]
    case = place.type(*START, "--json", environ={"JACKLINE_INTAKE": script}).json
    assert case["intake_plan"] == {"asked": asked, "same": asked}


@pytest.mark.parametrize("command", ["exit 3", "no-such-program", "kill -9 $$"])
def test_a_failing_intake_is_only_a_warning(place: Place, command: str) -> None:
    ended = place.type(*START, environ={"JACKLINE_INTAKE": command})
    assert ended.code == 0
    assert "the intake command made no plan" in ended.err
    assert do(place, "status", "--json").json["intake_plan"] is None


def test_a_project_names_its_intake_once_it_is_trusted(place: Place) -> None:
    (place.repository / "jackline.toml").write_text('intake = "touch ran.txt; echo read overlay.py"\n')
    ended = place.type(*START, "--verify", "true")
    assert (ended.code, "intake names a program" in ended.err, "jackline trust" in ended.err) == (0, True, True)
    assert not (place.repository / "ran.txt").exists()
    do(place, "close", "--summary", "x")
    assert place.trust().code == 0
    assert place.type("case", "start", "b", "--skip-intake", "--verify", "true", "--json").json["intake_plan"] is None
    assert not (place.repository / "ran.txt").exists()
    do(place, "close", "--summary", "x")
    assert place.type("case", "start", "c", "--json").json["intake_plan"] == "read overlay.py"
    assert place.type("trust", "--show").code == 0  # files of cases in .agents/runs do not change the project


# bad input


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("status",), 1, "no case is active in"),
        (("start",), 2, "the request is missing"),
        (("start", " "), 2, "the request is empty"),
        (("start", "two", "words"), 2, "unrecognized arguments"),
        (("start", "x" * 20_000), 2, "characters"),
        (("start", "x", "--verify", ""), 2, "--verify is empty"),
        (("hypothesis",), 2, "required: ACTION"),
        (("hypothesis", "ad"), 2, "invalid choice"),
        (("status", "--case", "2026"), 1, "no case matches '2026'"),
        (("switch", ""), 1, "no case matches"),
        (("list", "--limit", "0"), 2, "not a whole number"),
        (("close",), 2, "--summary"),
        (("handoff",), 1, "no case is active in"),
        (("files",), 1, "no case is active in"),
        (("nonsense",), 2, "invalid choice"),
    ],
)
def test_bad_input_without_a_case(place: Place, words: tuple[str, ...], code: int, said: str) -> None:
    refused(place.type("case", *words), code, said)
    assert not (place.repository / ".agents").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("hypothesis", "add", ""), 2, "the hypothesis is empty"),
        (("hypothesis", "resolve", "H002", "--status", "accepted"), 1, "no hypothesis matches 'H002'"),
        (("hypothesis", "resolve", "E001", "--status", "accepted"), 1, "no hypothesis matches 'E001'"),
        (("hypothesis", "resolve", "H001", "--status", "open"), 2, "invalid choice"),
        (("hypothesis", "resolve", "H001"), 2, "--status"),
        (("evidence", "add", "x", "--hypothesis", "H009"), 1, "no hypothesis matches 'H009'"),
        (("command", "add", "x"), 2, "--status"),
        (("command", "add", "x", "--status", "great"), 2, "invalid choice"),
        (("close", "--summary", ""), 2, "the summary is empty"),
    ],
)
def test_bad_input_to_a_case(place: Place, words: tuple[str, ...], code: int, said: str) -> None:
    begin(place)
    do(place, "hypothesis", "add", "the cache")
    before = do(place, "status", "--json").json
    refused(place.type("case", *words), code, said)
    assert do(place, "status", "--json").json == before


def test_a_beginning_that_fits_several_is_refused(place: Place) -> None:
    first = begin(place, "--verify", "true")
    do(place, "close", "--summary", "x")
    do(place, "start", "another")
    refused(place.type("case", "status", "--case", "2"), 2, "matches 2 cases")
    assert do(place, "status", "--case", first[:-3]).out.startswith(first)


def test_a_mistake_is_json_for_programs(place: Place) -> None:
    ended = place.type("case", "status", "--json")
    assert (ended.code, ended.json["exit_code"]) == (1, 1)
    assert "no case is active" in ended.json["error"]


@pytest.mark.parametrize(
    "words",
    [("status",), ("hypothesis", "add", "x"), ("evidence", "add", "x"), ("command", "add", "x", "--status", "pass")],
)
def test_frequent_commands_import_nothing_heavy(place: Place, words: tuple[str, ...]) -> None:
    begin(place)
    ended = place.end_of(place.python(PROGRAM, "case", *words))
    assert ended.code == 0, ended
    loaded = ended.out.splitlines()[-1].split()
    unwanted = [name for name in HEAVY if name != "jackline.exports"]  # its own files are views, and light
    assert [name for name in loaded if any(name == one or name.startswith(f"{one}.") for one in unwanted)] == []
