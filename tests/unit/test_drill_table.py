"""How the verdicts of the drill are told to people and to programs."""

from __future__ import annotations

import json

from jackline.app.drill import table
from jackline.app.drill.verdict import FAIL, PASS, SKIP, Verdict
from jackline.cli.output import columns

GOOD = Verdict("read-only", PASS, (), 0, 0, 1, 0, 1.234, "/kept/read-only")
BAD = Verdict("upload-crash", FAIL, ("it happened 2 times", "no receipt"), 1, 2, 1, 0, 2.0, "/kept/upload-crash")
LEFT_OUT = Verdict("task-crash", SKIP, ("no such tool",), 1, 0, 0, 0, 0.0, "")


def test_a_row_says_what_was_counted_and_why_it_failed() -> None:
    assert table.row(GOOD) == ("read-only", "pass", "0/0", "1", "0", "1.2", "-")
    assert table.row(BAD) == ("upload-crash", "fail", "2/1", "1", "0", "2.0", "it happened 2 times; no receipt")


def test_every_row_fits_its_titles() -> None:
    assert len(columns(table.TITLES)) == len(table.row(GOOD))


def test_for_programs_a_case_is_one_object_that_names_its_evidence() -> None:
    told = json.loads(json.dumps(table.record(BAD, "scripted")))
    assert told == {
        "agent": "scripted",
        "case": "upload-crash",
        "result": "fail",
        "reasons": ["it happened 2 times", "no receipt"],
        "effects_expected": 1,
        "effects_seen": 2,
        "replayed": 1,
        "refused": 0,
        "seconds": 2.0,
        "evidence": "/kept/upload-crash",
    }


def test_the_total_counts_every_result() -> None:
    assert table.total([GOOD, BAD, LEFT_OUT], "claude", "/kept") == {
        "agent": "claude",
        "total": 3,
        "passed": 1,
        "failed": 1,
        "skipped": 1,
        "seconds": 3.234,
        "folder": "/kept",
    }


def test_the_summary_is_one_line() -> None:
    assert table.summary([GOOD]) == "1 case: 1 passed"
    assert table.summary([GOOD, BAD, LEFT_OUT]) == "3 cases: 1 passed, 1 failed, 1 left out"
    assert table.summary([BAD]) == "1 case: 0 passed, 1 failed"


def test_only_a_drill_whose_cases_all_passed_is_a_success() -> None:
    assert table.all_passed([GOOD, GOOD])
    assert not table.all_passed([GOOD, BAD])
    assert not table.all_passed([GOOD, LEFT_OUT])
    assert not table.all_passed([])
