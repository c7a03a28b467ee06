"""The listed mutants: reading them from the TOML files in this folder, and applying one to a tree."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Edit(NamedTuple):
    """Whole lines of one file, and what replaces them."""

    file: str
    old: str
    new: str


class Mutant(NamedTuple):
    """One guard removed: `breaks` says which, `tests` are the node ids that must fail."""

    name: str
    breaks: str
    tests: tuple[str, ...]
    edits: tuple[Edit, ...]
    listed_in: str


class PatchFailed(Exception):
    """The old text of a mutant is not in its file, or more than once."""


def load_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """The mutants of every TOML file in the folder, by file and in its order."""
    mutants = []
    for page in sorted(folder.glob("*.toml")):
        for table in tomllib.loads(page.read_text(encoding="utf-8"))["mutant"]:
            edits = tuple(Edit(**edit) for edit in table.pop("edit"))
            mutants.append(Mutant(**{**table, "tests": tuple(table["tests"])}, edits=edits, listed_in=page.name))
    return mutants


def find_misfits(mutant: Mutant, root: Path) -> list[str]:
    """Why the mutant cannot be applied to this tree; empty if it can."""
    misfits = []
    for edit in mutant.edits:
        path = root / edit.file
        times = path.read_text(encoding="utf-8").count(edit.old) if path.is_file() else None
        if times is None:
            misfits.append(f"{edit.file} does not exist")
        elif times != 1:
            misfits.append(f"its old text occurs {times} times in {edit.file}, not once:\n{edit.old.rstrip()}")
    return misfits


def apply_mutant(mutant: Mutant, root: Path, moment: int) -> dict[Path, str]:
    """Write the edits; return the original texts, which `restore_files` takes.

    `moment` becomes the time of the files and must differ at each call: Python compiles a file again only if its
    time or size has changed, and counts the time in seconds.
    """
    misfits = find_misfits(mutant, root)
    if misfits:
        raise PatchFailed("; ".join(misfits))
    originals: dict[Path, str] = {}
    for edit in mutant.edits:
        path = root / edit.file
        text = path.read_text(encoding="utf-8")
        originals.setdefault(path, text)
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
        os.utime(path, (moment, moment))
    return originals


def restore_files(originals: dict[Path, str], moment: int) -> None:
    """Write the original texts again."""
    for path, text in originals.items():
        path.write_text(text, encoding="utf-8")
        os.utime(path, (moment, moment))
