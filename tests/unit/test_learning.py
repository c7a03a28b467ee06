"""Whether a learning has come to something: a tracked file, or a reason; and what is told of those that have not."""

from __future__ import annotations

from typing import Any

import pytest

from jackline.features.cases.case_model import Case, CaseEntry, CaseStatus, EntryKind, Problem
from jackline.features.cases.learning import find_paths, find_unresolved, format_unresolved, review_learnings

AT = 1_700_000_000_000
TRACKED = frozenset({"docs/a.md"})


def learning(number: int, case: str = "c", **data: Any) -> CaseEntry:
    return CaseEntry(case, EntryKind.LEARNING, number, AT, AT, f"lesson {number}", "docs", data)


def case_of(name: str = "c", status: CaseStatus = CaseStatus.OPEN, count: int = 1) -> Case:
    counts = {"learning": count}
    return Case(name, "r", "/w", "ada", "run", status, "why?", Problem(), AT, AT, counts)


@pytest.mark.parametrize(
    ("data", "lacks"),
    [
        ({"path": "docs/a.md"}, ""),
        ({"reason": "a one-off"}, ""),
        ({"path": "docs/b.md", "reason": "it comes later"}, ""),
        ({"path": "docs/b.md"}, "docs/b.md is not tracked by git"),
        ({"path": "docs"}, "docs is not tracked by git"),
        ({}, "it names no file and no reason"),
        ({"path": "", "reason": ""}, "it names no file and no reason"),
    ],
)
def test_a_tracked_file_or_a_reason_resolves_it(data: dict[str, str], lacks: str) -> None:
    assert [one.lacks for one in find_unresolved([learning(1, **data)], TRACKED)] == ([lacks] if lacks else [])


def test_without_an_answer_of_git_only_a_reason_resolves_it() -> None:
    said = "cannot determine whether git tracks docs/a.md; see `git status`"
    entries = [learning(1, path="docs/a.md"), learning(2, reason="a one-off")]
    assert [one.lacks for one in find_unresolved(entries, None)] == [said]


def test_other_entries_are_passed_over() -> None:
    hypothesis = CaseEntry("c", EntryKind.HYPOTHESIS, 1, AT, AT, "because", "open")
    assert find_unresolved([hypothesis], TRACKED) == []
    assert find_paths([hypothesis]) == ()


def test_git_is_asked_once_about_each_file_and_not_where_a_reason_is_enough() -> None:
    entries = [learning(1, path="a"), learning(2, path="a"), learning(3, path="b", reason="r"), learning(4)]
    assert find_paths(entries) == ("a",)


def test_a_line_says_which_and_what_is_missing() -> None:
    (one,) = find_unresolved([learning(7, path="x")], TRACKED)
    assert format_unresolved(one) == "L007 lesson 7: x is not tracked by git"


def test_an_open_case_with_resolved_learnings_is_mentioned_and_holds_nothing() -> None:
    found = review_learnings([case_of()], {"c": [learning(1, path="docs/a.md")]}, {"c": TRACKED})
    assert (found.case_ids, found.unresolved) == (("c",), ())
    assert found.output == "case c is open; learnings: 1, unresolved: 0"


def test_a_closed_case_has_passed_its_own_gate() -> None:
    found = review_learnings([case_of(status=CaseStatus.CLOSED)], {"c": [learning(1)]}, {"c": TRACKED})
    assert found.case_ids == found.unresolved == ()


def test_of_several_cases_each_learning_is_named_with_its_own() -> None:
    entries = {"c": [learning(1, path="docs/a.md"), learning(2)], "d": [learning(1, "d", path="nowhere")]}
    found = review_learnings([case_of(count=2), case_of("d")], entries, {"c": TRACKED, "d": TRACKED})
    assert found.unresolved == ("c L002", "d L001")
    assert found.output.splitlines() == [
        "case c is open; learnings: 2, unresolved: 1",
        "  L002 lesson 2: it names no file and no reason",
        "case d is open; learnings: 1, unresolved: 1",
        "  L001 lesson 1: nowhere is not tracked by git",
    ]
