"""Whose a commit is, judged from lines of a reflog; what git really writes is in tests/integration/test_changes.py."""

from __future__ import annotations

import pytest

from jackline.domain.changes import (
    Changes,
    ReflogEntry,
    build_reflog_env,
    creates_commit,
    find_created_commits,
    parse_reflog,
    reflog_action,
    sum_changes,
)

ENTRY = ReflogEntry("HEAD", 100, "jackline/r1: mend it", "a@x", "c1", 1, "a@x", 100, "mend it\n\nwell\n")


def test_a_run_marks_what_its_processes_do() -> None:
    assert build_reflog_env("r1") == {"GIT_REFLOG_ACTION": reflog_action("r1")}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"text": "commit: mend it"}, False),
        ({"text": "jackline/r12: mend it"}, False),
        ({"text": "jackline/r1"}, False),
        ({"text": "jackline/r1: updating HEAD"}, False),
        ({"text": "jackline/r1: Merge made by the 'ort' strategy."}, False),
        ({"text": "jackline/r1: Merge made by the 'ort' strategy.", "parents": 2}, True),
        ({"at": 101}, False),
        ({"email": "b@x"}, False),
        ({"text": "jackline/r1 (pick): mend it", "at": 101}, True),
        ({"text": "jackline/r1 (pick): fast-forward"}, False),
        ({"text": "jackline/r1 (finish): mend it"}, False),
        ({"text": "jackline/r1 (start): checkout main"}, False),
    ],
)
def test_which_move_made_the_commit(changed: dict[str, object], expected: bool) -> None:
    assert creates_commit("r1", ENTRY._replace(**changed)) is expected  # type: ignore[arg-type]


def test_the_same_commit_in_two_reflogs_is_one() -> None:
    branch = ENTRY._replace(ref="refs/heads/main")
    later = ENTRY._replace(commit="c2", text="jackline/r1: more", message="more")
    only_there = branch._replace(commit="c3", at=99, committed_at=99)
    assert find_created_commits("r1", [branch, only_there, later, ENTRY]) == {
        "c3": "mend it",
        "c1": "mend it",
        "c2": "more",
    }


def test_a_listing_is_read_and_what_is_torn_is_passed_over() -> None:
    whole = "HEAD@{100}\njackline/r1: mend it\na@x\nc1\np1\na@x\n100\nmend it\n\nwell\n"
    assert parse_reflog(f"torn\nline\0{whole}\0") == [ENTRY]
    assert parse_reflog("") == parse_reflog("HEAD@{x}\n" + whole.partition("\n")[2]) == []


def test_lines_are_added_up_and_files_are_counted_once() -> None:
    numstat = "1\t2\ta\x003\t0\tb\x00-\t-\timage\x000\t0\t\x00old\x00a\x00"
    assert sum_changes({"c1": "mend it", "c2": ""}, numstat) == Changes(("c1 mend it", "c2"), 3, 4, 2)
    assert sum_changes({}, "") == Changes()
