"""`jackline findings`: what reviewers said, and what a person drops; and where else a person sees it."""

from __future__ import annotations

import pytest

from jackline.app.home import open_home
from jackline.domain.events import Fact
from jackline.domain.records import RunStatus
from jackline.domain.review import build_review_facts
from jackline.domain.review_records import Finding, Verdict
from jackline.domain.states import Phase, RunState, WaitReason
from jackline.store.models import RunChange
from tests.cli.place import Place, is_one_line
from tests.support.stores import AT, claimed, made

ID = "blocked"


@pytest.fixture
def blocked(place: Place) -> Place:
    """A home with a run that waits because its reviewer blocks it."""
    findings = (
        Finding(ID, 1, 1, 0, "codex", "blocking", "a.py", 3, "it leaks\nfiles \x1b[31m"),
        Finding(ID, 2, 2, 0, "codex", "blocking", "", 0, "no test"),
        Finding(ID, 3, 2, 0, "codex", "nit", "b.py", 0, "name it"),
        Finding(ID, 4, 1, 0, "codex", "blocking", "c.py", 9, "was wrong", "resolved", 2),
    )
    verdict = Verdict(ID, 4, 2, 2, 0, "codex", "f" * 40, "fail", 1, "not yet", AT)
    status = RunStatus(
        RunState.WAITING, WaitReason.HUMAN, goal=Phase.REVIEWING, detail="2 blocking findings", review_round=2
    )
    with open_home(str(place.home), place.environment()) as home:
        store, where = home.store(create=True), str(place.repository)
        spec = {"workspace": where, "review": ("codex",), "agent": "claude"}
        made(store, ID, spec=spec, repository=where)
        facts = (*build_review_facts(verdict, findings), Fact("run.waiting", {"reason": "human"}))
        store.leases.write_change(claimed(store, ID), RunChange(AT, facts, status, verdict=verdict, findings=findings))
    return place


def test_findings_are_listed(blocked: Place) -> None:
    ended = blocked.type("findings", ID)
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "round 2, codex: fail, 1 resolved: not yet",
        "F1 open blocking, a.py:3 (codex, round 1)",
        "    it leaks",
        "    files \ufffd[31m",
        "F2 open blocking, no file (codex, round 2)",
        "    no test",
        "F3 open nit, b.py (codex, round 2)",
        "    name it",
        "F4 resolved blocking, c.py:9 (codex, round 1)",
        "    was wrong",
    ]
    assert f"jackline findings {ID} --dismiss F1 F2 --reason WHY" in ended.err
    listed = blocked.type("findings", "--json").json
    assert listed["run"] == ID
    assert [(one["id"], one["state"]) for one in listed["findings"]][3] == ("F4", "resolved")
    assert [(one["outcome"], one["review_round"]) for one in listed["verdicts"]] == [("fail", 2)]


def test_a_person_drops_findings(blocked: Place) -> None:
    ended = blocked.type("findings", ID, "--dismiss", "F1", "--reason", "meant so")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "dismissed: F1")
    assert f"then continue: jackline resume {ID}" in ended.out
    both = blocked.type("findings", ID, "--dismiss", "f2,F3", "--reason", "later", "--json").json
    assert [(one["id"], one["state"], one["reason"]) for one in both["findings"]] == [
        ("F2", "dismissed", "later"),
        ("F3", "dismissed", "later"),
    ]
    assert both["run"]["state"] == "waiting"
    shown = blocked.type("findings", ID).out
    assert "    dismissed: meant so" in shown
    assert "you: F1 was dismissed: meant so" in blocked.type("logs", ID).out
    assert blocked.type("verify", ID).code == 0
    assert f"continue: jackline resume {ID}" in blocked.type("show", ID).out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--dismiss", "F9", "--reason", "x"), "no finding matches 'F9'; see `jackline findings blocked`"),
        (("--dismiss", "F4", "--reason", "x"), "F4 is resolved already"),
        (("--dismiss", "F1"), "add --reason TEXT"),
        (("--dismiss", "F1", "--reason", " "), "add --reason TEXT"),
        (("--reason", "x"), "--reason is for --dismiss"),
        (("--dismiss", ",", "--reason", "x"), "name a finding"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(blocked: Place, words: tuple[str, ...], line: str) -> None:
    ended = blocked.type("findings", ID, *words)
    assert (ended.code, ended.out) == (2, "")
    assert is_one_line(ended)
    assert line in ended.err
    assert '"dismissed"' not in blocked.type("findings", ID, "--json").out


def test_an_ended_run_keeps_its_findings(blocked: Place) -> None:
    assert blocked.type("cancel", ID).code == 0
    refused = blocked.type("findings", ID, "--dismiss", "F1", "--reason", "x")
    assert (refused.code, "run blocked was cancelled: its findings no longer have an effect" in refused.err) == (
        2,
        True,
    ), refused


def test_a_run_without_reviews(place: Place) -> None:
    assert place.type("run", "x", "--agent", "command", "--", "true").code == 0
    ended = place.type("findings")
    assert (ended.code, ended.out) == (0, "")
    assert "has no reviews" in ended.err


def test_a_run_whose_reviewer_gave_no_verdict_says_what_it_waits_for(place: Place) -> None:
    unclear = RunStatus(RunState.WAITING, WaitReason.HUMAN, goal=Phase.REVIEWING, detail="codex gave no clear verdict")
    with open_home(str(place.home), place.environment()) as home:
        store, where = home.store(create=True), str(place.repository)
        made(store, ID, spec={"workspace": where, "review": ("codex",), "agent": "claude"}, repository=where)
        store.leases.write_change(claimed(store, ID), RunChange(AT, (Fact("run.waiting"),), unclear))
    ended = place.type("findings", ID)
    assert (ended.code, ended.err) == (0, f"run {ID} has no verdict yet\n  codex gave no clear verdict\n")


def test_other_commands_show_the_reviews(blocked: Place) -> None:
    shown = blocked.type("show", ID).out
    for words in (
        "review     codex; round 2, 2 open blocking findings, 1 others",
        "read: jackline findings blocked",
        "drop a finding that is wrong: jackline findings blocked --dismiss F1 F2 --reason WHY",
    ):
        assert words in shown
    assert [one["number"] for one in blocked.type("show", ID, "--json").json["findings"]] == [1, 2, 3, 4]
    (entry,) = blocked.type("inbox", "--json").rows
    assert (entry["kind"], entry["run"]) == ("review", ID)
    assert "F1 a.py:3: it leaks files" in entry["text"]
    assert f"jackline resume {ID}" in entry["commands"]
    assert "reviewers block a run" in blocked.type("inbox", "--list").out
    logged = blocked.type("logs", ID).out
    assert "run: verdict of codex: fail (round 2) not yet" in logged
    assert "run: F2 blocking, no file: no test" in logged
    assert blocked.type("export", ID).code == 0
    page = (blocked.home / "runs" / ID / "RESUME.md").read_text()
    assert "    F1 blocking, a.py:3: it leaks files" in page
    assert f"jackline findings {ID} --home {blocked.home} --dismiss ID --reason WHY" in page
    summary = (blocked.home / "runs" / ID / "summary.txt").read_text()
    assert "F1 blocking, a.py:3: it leaks files" in summary
