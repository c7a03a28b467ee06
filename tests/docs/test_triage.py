"""The triage page knows every class of failure and every wait that a person can do something about."""

from __future__ import annotations

import pytest

from jackline.domain.states import Failure, RunState, WaitReason, exit_code
from tests.docs.pages import read

PAGE = "docs/triage.md"
SAID = {WaitReason.LIMIT, WaitReason.BUDGET, WaitReason.IN_DOUBT, WaitReason.APPROVAL, WaitReason.PAUSED}


def rows() -> list[list[str]]:
    lines = [line for line in read(PAGE).splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def row_of(failure: Failure) -> list[str]:
    return next(row for row in rows() if row[2] == f"`{failure}`")


@pytest.mark.parametrize("failure", list(Failure))
def test_every_class_has_symptom_command_cause_and_fix(failure: Failure) -> None:
    row = row_of(failure)
    assert all(row), row
    assert "`jackline " in row[3]


@pytest.mark.parametrize("failure", list(Failure))
def test_the_exit_code_is_the_real_one(failure: Failure) -> None:
    assert row_of(failure)[1] == str(exit_code(RunState.FAILED, None, failure))


@pytest.mark.parametrize("reason", sorted(SAID))
def test_every_wait_for_a_person_is_there(reason: WaitReason) -> None:
    row = next(row for row in rows() if f"`waiting: {reason}`" in row[0])
    assert row[1] == str(exit_code(RunState.WAITING, reason, None))
