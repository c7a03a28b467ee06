"""Cases of a slow test that `make test-full` runs, because they differ little from those that every run has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def keep_some(cases: Sequence[Any], count: int = 2) -> list[Any]:
    """All cases for `parametrize`; only the first ones are in every run."""
    return [*cases[:count], *(_leave(one) for one in cases[count:])]


def keep_every_other(cases: Sequence[Any]) -> list[Any]:
    """All cases for `parametrize`, in their order; only every other one is in every run."""
    return [_leave(one) if number % 2 else one for number, one in enumerate(cases)]


def _leave(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full)
