"""The timeouts of a turn or a check: its own, the wall-clock budget of the run, an idle agent. They stop nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.clock import boot_ms
from jackline.domain.signals import Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.records import Spec

WORDS = {
    Stop.WALL: "it exceeded its timeout",
    Stop.IDLE: "the agent printed nothing within the idle timeout",
    Stop.BUDGET: "budget spent: wall clock",
}


class Alarms:
    """The timeouts that apply now; the wall-clock budget includes earlier attempts."""

    def __init__(self, spec: Spec, spent_wall_ms: int) -> None:
        """Start the wall-clock budget of this attempt."""
        self._spec = spec
        limit = spec.limits.wall_ms
        self._budget_until = None if limit is None else boot_ms() + max(0, limit - spent_wall_ms)
        self._until: int | None = None
        self._last_output: Callable[[], int] | None = None
        self._is_over: Callable[[], bool] = lambda: False

    def start(self, last_output: Callable[[], int] | None = None, is_over: Callable[[], bool] = lambda: False) -> None:
        """Start the timeouts of a turn or check; without `last_output` there is no idle timeout."""
        self._until = boot_ms() + self._spec.turn_timeout_ms
        self._last_output, self._is_over = last_output, is_over

    def clear(self) -> None:
        """End the timeouts: the job has ended or is being stopped."""
        self._until = None

    def next(self) -> tuple[float, Stop] | None:
        """The seconds until the next timeout and which one it is; None if there is none."""
        if self._until is None or self._is_over():  # a job that only has to be stored cannot time out
            return None
        ends = [(self._until, Stop.WALL)]
        if self._budget_until is not None:
            ends.append((self._budget_until, Stop.BUDGET))
        if self._last_output is not None and self._spec.idle_timeout_ms:
            ends.append((self._last_output() + self._spec.idle_timeout_ms, Stop.IDLE))
        end, why = min(ends)
        return max(0, end - boot_ms()) / 1000, why
