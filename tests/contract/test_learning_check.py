"""The learning check reads all open cases of a run, however many there are, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.cases.case_model import NewCase, Problem
from jackline.features.cases.case_store import CaseNotebook
from jackline.features.cases.learning_check import find_open_cases
from tests.support.stores import made

if TYPE_CHECKING:
    from jackline.store.store import Store

MANY = 55  # a list of cases shows fifty


def test_all_open_cases_of_a_run_are_found(store: Store) -> None:
    made(store, "the-run")
    for number in range(MANY):
        new = NewCase(f"case-{number}", "repository", "/r", "ada", "why?", Problem(), "the-run")
        CaseNotebook(store).start(new, f"place-{number}", 1_000 + number, "claude")
    assert len(find_open_cases(store, "the-run")) == MANY
    assert find_open_cases(store, "another") == []
