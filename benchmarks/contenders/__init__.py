"""One module for each system that makes something durable; each runs alone in a process of its own.

A module has `prepare(folder, variant)`, which makes its own files in the folder and gives back a Prepared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prepared:
    """A system that is set up: its work, its settings in one line, how it is put away, units in the work."""

    work: Callable[[], object]
    note: str = ""
    close: Callable[[], object] = lambda: None
    units: int = 1
