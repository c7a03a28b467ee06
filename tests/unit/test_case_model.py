"""The pure parts of a case: names, paths, plans, and what files and the next agent read."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.errors import UsageError
from jackline.features.cases import case_values, handoff
from jackline.features.cases.case_model import Case, CaseEntry, CaseStatus, EntryKind, Problem, parse_entry_id
from jackline.features.cases.entries import LONGEST_TEXT, check_text, resolve_repository_path
from jackline.features.cases.handoff import Handoff
from jackline.features.cases.learning import UnresolvedLearning
from jackline.features.cases.lifecycle import build_case_id, parse_plan

AT = 1_794_805_923_456
COUNTS = {"hypothesis": 2, "evidence": 1, "command": 1, "learning": 1}
H, E, C, L = EntryKind.HYPOTHESIS, EntryKind.EVIDENCE, EntryKind.COMMAND, EntryKind.LEARNING


def case(**more: Any) -> Case:
    values = {"status": CaseStatus.OPEN, "request": "mend it", "problem": Problem(), "counts": COUNTS} | more
    return Case("case-1", "repo", "/srv/r", "ann", None, created_at=AT, updated_at=AT, **values)


def entry(kind: EntryKind, text: str, status: str = "", number: int = 1, /, **data: Any) -> CaseEntry:
    return CaseEntry("case-1", kind, number, AT, AT + 1, text, status, data)


@pytest.mark.parametrize(
    ("request_", "slug"),
    [
        ("fix overlay keep_geom_type routing", "fix-overlay-keep-geom-type-routing"),
        ("  Über/../alles:  now! ", "ber-alles-now"),
        ("…", "case"),
        ("x" * 100, "x" * 48),
        ("one two " * 20, "one-two-one-two-one-two-one-two-one-two-one-two"),
    ],
)
def test_a_case_is_named_by_its_time_and_its_request(request_: str, slug: str) -> None:
    assert build_case_id(request_, AT) == f"20261116T051203Z-{slug}"


def test_entries_are_named_by_letter_and_number() -> None:
    assert (parse_entry_id("H001"), parse_entry_id("l12")) == ((H, 1), (L, 12))
    odd = ("", "H", "X1", "H-1", "1", "H1.5", "H\N{ARABIC-INDIC DIGIT ONE}", "H" + "9" * 40)
    assert [parse_entry_id(text) for text in odd] == [None] * 8
    assert entry(H, "", "", 7).id == "H007"
    assert entry(C, "", "", 1234).id == "C1234"


@pytest.mark.parametrize(
    ("path", "folder", "kept"),
    [
        ("docs/a.md", "/srv/r", "docs/a.md"),
        ("a.md", "/srv/r/docs", "docs/a.md"),
        ("../a.md", "/srv/r/docs", "a.md"),
        ("/srv/r/./docs//a.md", "/tmp", "docs/a.md"),
        ("docs/a.md", "/somewhere/else", "docs/a.md"),
    ],
)
def test_the_file_of_a_learning_is_told_from_the_root(path: str, folder: str, kept: str) -> None:
    assert resolve_repository_path("/srv/r", path, folder) == kept


@pytest.mark.parametrize("path", ["../a.md", "/etc/passwd", "/srv/rest/a", ".", "", " ", "docs/../..", "/srv/r"])
def test_a_learning_is_kept_by_no_file_outside(path: str) -> None:
    with pytest.raises(UsageError, match="is not a file in /srv/r"):
        resolve_repository_path("/srv/r", path, "/srv/r")


def test_a_text_is_neither_empty_nor_endless() -> None:
    assert check_text(" x\n", "it") == "x"
    for wrong in ("", " \n", "x" * (LONGEST_TEXT + 1)):
        with pytest.raises(UsageError, match=r"^it "):
            check_text(wrong, "it")


def test_a_plan_is_json_or_text() -> None:
    plans = [parse_plan('{"a": [1]}'), parse_plan(" read a.py\n"), parse_plan(""), parse_plan("[" * 100_000)[:2]]
    assert plans == [{"a": [1]}, "read a.py", None, "[["]
    assert parse_plan("NaN") is None


def test_the_capsule_has_the_keys_of_the_predecessor() -> None:
    assert list(case_values.build_problem_values(case())) == [
        "id",
        "created_at",
        "request",
        "intent",
        "target_properties",
        "intake_plan",
        "expected_verification",
        "risks",
        "non_goals",
        "dirty_worktree",
    ]


def test_each_kind_of_entry_says_its_own() -> None:
    begun = {"id": "H001", "created_at": "2026-11-16T05:12:03.456Z"}
    later = {"updated_at": "2026-11-16T05:12:03.457Z"}
    told = [
        case_values.build_entry_values(one)
        for one in (
            entry(H, "why", "open", note="n"),
            entry(E, "seen", hypothesis="H001"),
            entry(C, "true", "pass", exit_code=0),
            entry(L, "more tests", "test", kind="test-gap", path="t.py"),
        )
    ]
    assert told == [
        {**begun, "text": "why", "status": "open", **later, "note": "n"},
        {**begun, "id": "E001", "text": "seen", "hypothesis": "H001"},
        {**begun, "id": "C001", "command": "true", "status": "pass", "exit_code": 0},
        {**begun, "id": "L001", "kind": "test-gap", "summary": "more tests", "repo_action": "test", "path": "t.py"},
    ]


def test_a_closeout_says_what_was_not_met() -> None:
    result = {"id": "C001", "command": "false", "status": "fail", "exit_code": 1}
    told = {"summary": "done", "verification": [result], "risks": [], "forced": "late", "unmet": ["H001 is open"]}
    text = case_values.render_closeout(case(status=CaseStatus.CLOSED, closeout=told, closed_at=AT))
    assert "- fail: `false` (C001, exit 1)" in text
    assert "## Closed despite unmet conditions\n\n- late\n" in text
    assert "## Not met\n\n- H001 is open\n" in text
    assert "## Residual risks\n\n- none\n" in text
    assert case_values.build_closeout_values(case(closeout={"verification": ["old text"]}))["verification"] == [
        "old text"
    ]


TOLD = Handoff(
    case(problem=Problem("for speed", ("quick",), None, ("pytest -q",), ("slow",), ("no rewrite",))),
    (
        entry(H, "the cache", "open"),
        entry(H, "the disk", "rejected", 2, note="it is idle"),
    ),
    (entry(E, "misses", hypothesis="H001"), entry(E, "a hunch", "", 2)),
    (entry(C, "pytest -q", "fail", exit_code=1),),
    (entry(L, "pin it", "test", path="t.py"),),
    (UnresolvedLearning(entry(L, "pin it", "test", path="t.py"), "t.py is not tracked by git"),),
    (" M a.py",),
)


def test_the_next_agent_is_told_what_it_needs() -> None:
    text = handoff.render_handoff(TOLD)
    for part in (
        "# Case case-1 (open)\n\nmend it\n\nRepository: `/srv/r`\n\nIntent: for speed",
        "## Open hypotheses\n\n- H001 the cache\n- H001's E001: misses\n",
        "## Rejected: do not try these again\n\n- H002 the disk (it is idle)\n",
        "## Other evidence\n\n- a hunch\n",
        "- C001 fail (exit 1): `pytest -q`",
        "- L001 pin it: t.py is not tracked by git",
        "- ` M a.py`",
        "- decide H001: the cache",
        "`jackline case hypothesis resolve H001 --status accepted --case case-1  # or rejected, blocked, superseded`",
        '`jackline case evidence add "…" --hypothesis H001 --case case-1`',
        '`jackline case close --summary "…" --case case-1`',
    ):
        assert part in text
    assert handoff.build_handoff_values(TOLD)["next_steps"] == ["H001: the cache"]


def test_the_next_agent_is_told_what_came_before() -> None:
    begun = case(problem=Problem(intake_plan={"read": ["a.py"]}, dirty_worktree=(" M a.py",)))
    told = Handoff(
        begun,
        (entry(H, "the disk", "rejected"), entry(H, "the cache", "open", 2)),
        commands=(
            entry(C, "pytest -q", "fail", exit_code=1, output="E  boom\n1 failed in 3 s\n"),
            entry(C, "make", "skipped", 2, note="no network"),
        ),
        learnings=(entry(L, "pin it", "test", path="t.py"), entry(L, "odd", "none", 2, reason="once")),
        dirty=(" M a.py", "?? b.py"),
    )
    text = handoff.render_handoff(told)
    for part in (
        '## Intake plan\n\n`{"read": ["a.py"]}`\n',
        "- C001 fail (exit 1): `pytest -q`: 1 failed in 3 s\n- C002 skipped: `make`: no network\n",
        "## Learnings in the repository\n\n- L001 pin it (test: t.py)\n- L002 odd (none: once)\n",
        "- ` M a.py` (unchanged since the case started)\n- `?? b.py`\n",
        'evidence add "…" --hypothesis H002',  # the first was decided
    ):
        assert part in text
    assert [one["id"] for one in handoff.build_handoff_values(told)["learnings"]] == ["L001", "L002"]
    long = handoff.render_handoff(Handoff(case(problem=Problem(intake_plan="read " * 5000))))
    assert len(long) < 1500


def test_a_handoff_stays_short_and_harmless() -> None:
    many = tuple(entry(H, f"\x1b[2J{number} " + "x" * 2000, "open", number) for number in range(1, 501))
    text = handoff.render_handoff(TOLD._replace(hypotheses=many, evidence=()))
    assert len(text) < 60_000
    assert "\x1b" not in text
    assert "… and 440 earlier ones" in text
    values = handoff.build_handoff_values(TOLD._replace(hypotheses=many, unresolved=(*TOLD.unresolved,) * 500))
    assert [len(values[name]) for name in ("hypotheses", "next_steps", "unresolved_learnings")] == [20, 20, 20]


def test_an_open_hypothesis_is_told_however_many_were_decided_after_it() -> None:
    decided = (entry(H, "no", "rejected", number) for number in range(2, 502))
    values = handoff.build_handoff_values(TOLD._replace(hypotheses=(entry(H, "the cache", "open"), *decided)))
    ids = [one["id"] for one in values["hypotheses"]]
    assert (ids[0], ids[1], len(ids)) == ("H001", "H482", 21)


def test_of_a_closed_case_the_way_back_is_told() -> None:
    closed = case(status=CaseStatus.CLOSED, closeout={"summary": "done"}, closed_at=AT)
    text = handoff.render_handoff(Handoff(closed))
    assert "## Closed\n\ndone\n" in text
    assert handoff.list_next_commands(Handoff(closed)) == ["jackline case reopen case-1"]
