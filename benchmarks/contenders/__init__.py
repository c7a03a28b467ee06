"""One module for each durable system; each runs alone in its own process.

A module has `prepare(folder, variant)`, which creates its files in the folder and returns a Prepared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prepared:
    """A system that is set up: its work, its settings in one line, its clean-up, and the units in the work."""

    work: Callable[[], object]
    note: str = ""
    close: Callable[[], object] = lambda: None
    units: int = 1
