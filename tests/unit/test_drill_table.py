"""The verdicts of the drill as a table and as JSON."""

from __future__ import annotations

import json

from jackline.cli.output import parse_columns
from jackline.scenarios import verdicts
from jackline.scenarios.verdicts import FAIL, PASS, SKIP, CaseVerdict

GOOD = CaseVerdict("read-only", PASS, (), 0, 0, 1, 0, 1.234, "/kept/read-only")
BAD = CaseVerdict("upload-crash", FAIL, ("it happened 2 times", "no receipt"), 1, 2, 1, 0, 2.0, "/kept/upload-crash")
SKIPPED = CaseVerdict("task-crash", SKIP, ("no such tool",), 1, 0, 0, 0, 0.0, "")


def test_a_row_says_what_was_counted_and_why_it_failed() -> None:
    assert verdicts.build_row(GOOD) == ("read-only", "pass", "0/0", "1", "0", "1.2", "-")
    assert verdicts.build_row(BAD) == (
        "upload-crash",
        "fail",
        "2/1",
        "1",
        "0",
        "2.0",
        "it happened 2 times; no receipt",
    )


def test_every_row_fits_its_titles() -> None:
    assert len(parse_columns(verdicts.TABLE_TITLES)) == len(verdicts.build_row(GOOD))


def test_for_programs_a_case_is_one_object_that_names_its_evidence() -> None:
    told = json.loads(json.dumps(verdicts.build_record(BAD, "scripted")))
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
    assert verdicts.build_total([GOOD, BAD, SKIPPED], "claude", "/kept") == {
        "agent": "claude",
        "total": 3,
        "passed": 1,
        "failed": 1,
        "skipped": 1,
        "seconds": 3.234,
        "folder": "/kept",
    }


def test_the_summary_is_one_line() -> None:
    assert verdicts.summarize([GOOD]) == "1 case: 1 passed"
    assert verdicts.summarize([GOOD, BAD, SKIPPED]) == "3 cases: 1 passed, 1 failed, 1 skipped"
    assert verdicts.summarize([BAD]) == "1 case: 0 passed, 1 failed"


def test_only_a_drill_whose_cases_all_passed_is_a_success() -> None:
    assert verdicts.all_passed([GOOD, GOOD])
    assert not verdicts.all_passed([GOOD, BAD])
    assert not verdicts.all_passed([GOOD, SKIPPED])
    assert not verdicts.all_passed([])
