"""`make mutants` on a small tree: it reports survivors, mutants that do not fit, and tests that fail without one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.mutants.__main__ import run_mutants
from tools.mutants.patches import Edit, Mutant, PatchFailed, apply_mutant, restore_files

CODE = "def is_open(door):\n    return door == 'open'\n\n\ndef spare():\n    return 1\n"
TEST = "from jackline.doors import is_open\n\n\ndef test_doors():\n    assert is_open('open') and not is_open('shut')\n"
GUARD = Edit("src/jackline/doors.py", "    return door == 'open'\n", "    return True\n")
SPARE = Edit("src/jackline/doors.py", "    return 1\n", "    return 2\n")
GONE = Edit("src/jackline/doors.py", "    return door == 'ajar'\n", "    return True\n")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    files = {
        "src/jackline/__init__.py": "",
        "src/jackline/doors.py": CODE,
        "tests/test_doors.py": TEST,
        "tests/test_broken.py": "def test_broken():\n    assert 0\n",
        "pytest.ini": "[pytest]\n",
    }
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    return tree


def make_mutant(*edits: Edit, test: str = "tests/test_doors.py::test_doors") -> Mutant:
    return Mutant("doors", "Every door is open.", (test,), edits, "doors.toml")


@pytest.mark.parametrize(
    ("mutant", "failures", "said"),
    [
        (make_mutant(GUARD), 0, "killed    doors"),
        (make_mutant(SPARE, GUARD), 0, "killed    doors"),
        (make_mutant(SPARE), 1, "SURVIVED  doors: Every door is open."),
        (make_mutant(GONE), 1, "DOES NOT FIT  doors: its old text occurs 0 times"),
        (make_mutant(GUARD._replace(file="src/jackline/none.py")), 1, "src/jackline/none.py does not exist"),
        (make_mutant(GUARD, test="tests/test_doors.py::test_none"), 1, "UNCLEAR   doors: pytest ended with 4"),
        (
            make_mutant(GUARD, test="tests/test_broken.py::test_broken"),
            1,
            "FAILS WITHOUT A MUTANT, TOO: tests/test_broken",
        ),
        (make_mutant(SPARE._replace(new="    return (\n")), 1, "UNCLEAR   doors: pytest ended with 4"),
    ],
    ids=["guard", "two edits", "nothing tested", "drifted", "no file", "no test", "broken test", "no program"],
)
def test_only_a_failed_test_kills(
    tree: Path, capsys: pytest.CaptureFixture[str], mutant: Mutant, failures: int, said: str
) -> None:
    assert run_mutants([mutant], 1, tree) == failures
    assert said in capsys.readouterr().out
    assert (tree / "src" / "jackline" / "doors.py").read_text() == CODE, "it works on a copy"


def test_several_mutants_do_not_see_each_other(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mutants = [make_mutant(one)._replace(name=f"m{number}") for number, one in enumerate((GUARD, SPARE, GUARD, SPARE))]
    assert run_mutants(mutants, 2, tree) == 2
    out = capsys.readouterr().out
    assert [name for name in ("m0", "m1", "m2", "m3") if f"SURVIVED  {name}" in out] == ["m1", "m3"]


def test_a_mutant_is_taken_back(tree: Path) -> None:
    originals = apply_mutant(make_mutant(GUARD, SPARE), tree, 1)
    assert "True" in (tree / GUARD.file).read_text()
    restore_files(originals, 2)
    assert (tree / GUARD.file).read_text() == CODE
    with pytest.raises(PatchFailed, match="0 times"):
        apply_mutant(make_mutant(GONE), tree, 3)
