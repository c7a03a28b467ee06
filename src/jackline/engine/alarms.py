"""The clocks over a turn or a check: its timeout, the run's wall-clock budget, an agent's silence. They only tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.clock import boot_ms
from jackline.domain.signals import Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.records import Spec

WORDS = {
    Stop.WALL: "it took longer than its timeout",
    Stop.IDLE: "the agent printed nothing for longer than the idle timeout",
    Stop.BUDGET: "budget spent: wall clock",
}


class Alarms:
    """What may run out while something is under way; the budget counts from before this attempt."""

    def __init__(self, spec: Spec, spent_wall_ms: int) -> None:
        """The attempt begins now."""
        self._spec = spec
        limit = spec.limits.wall_ms
        self._budget_until = None if limit is None else boot_ms() + max(0, limit - spent_wall_ms)
        self._until: int | None = None
        self._last_output: Callable[[], int] | None = None
        self._is_over: Callable[[], bool] = lambda: False

    def start(self, last_output: Callable[[], int] | None = None, is_over: Callable[[], bool] = lambda: False) -> None:
        """Something is under way from now on; only an agent can be silent for too long."""
        self._until = boot_ms() + self._spec.turn_timeout_ms
        self._last_output, self._is_over = last_output, is_over

    def clear(self) -> None:
        """Nothing is under way any more, or it is being stopped already."""
        self._until = None

    def next(self) -> tuple[float, Stop] | None:
        """How many seconds until which clock runs out; None while none is running."""
        if self._until is None or self._is_over():  # what only remains to be written down cannot be late
            return None
        ends = [(self._until, Stop.WALL)]
        if self._budget_until is not None:
            ends.append((self._budget_until, Stop.BUDGET))
        if self._last_output is not None and self._spec.idle_timeout_ms:
            ends.append((self._last_output() + self._spec.idle_timeout_ms, Stop.IDLE))
        end, why = min(ends)
        return max(0, end - boot_ms()) / 1000, why
