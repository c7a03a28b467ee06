"""The listed mutants fit the source: a refactoring that moves a guard has to move its mutant, too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants.patches import Mutant, find_misfits, load_mutants

ROOT = Path(__file__).parents[2]
MUTANTS = load_mutants()
REFRESH = "it no longer fits: write the same mistake into today's code, in tools/mutants/"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_listed_mutant_fits_the_source_and_names_tests(mutant: Mutant) -> None:
    assert find_misfits(mutant, ROOT) == [], REFRESH + mutant.listed_in
    assert all(edit.old != edit.new and edit.old.endswith("\n") for edit in mutant.edits)
    assert mutant.breaks.endswith(".")
    assert mutant.tests
    for test in mutant.tests:
        path, _, name = test.partition("::")
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert not name or name in functions, f"{test} does not exist"


def test_mutants_have_names_of_their_own_and_change_only_the_package() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 20
    assert all(edit.file.startswith("src/jackline/") for mutant in MUTANTS for edit in mutant.edits)
