"""Whether a JSON value can be written down and read again by everybody: not too deep, every number a number. Pure."""

from __future__ import annotations

from math import isfinite
from typing import Any

DEEPEST = 100  # values in values: whoever reads it with a recursive parser must get to its end


def wrong(value: object) -> str:
    """What is wrong with it, to be read after its name; empty if nothing is."""
    level = [value]
    for _ in range(DEEPEST):
        if any(isinstance(one, float) and not isfinite(one) for one in level):
            return "has a number that is too large, or none"
        level = [inner for one in level for inner in _inside(one)]
    return f"is nested more than {DEEPEST} deep" if level else ""


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
