"""The timeouts of a turn or a check: wall clock, silence, and the run's budget of time. It stops nothing itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.clock import boot_ms
from jackline.domain.run_inputs import StopReason

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.spec import Spec

TIMEOUT_DETAILS = {
    StopReason.WALL: "it exceeded its timeout",
    StopReason.IDLE: "the agent printed nothing within the idle timeout",
    StopReason.BUDGET: "budget spent: its working time is used up",
}
PROOF_TIMEOUT = "the proof exceeded its timeout"


class Timeouts:
    """The timeouts that apply now; the wall-clock budget includes earlier attempts."""

    def __init__(self, spec: Spec, spent_wall_ms: int, calls_until: Callable[[], int] = lambda: 0) -> None:
        """Start the wall-clock budget of this attempt; until `calls_until` calls stop the idle clock."""
        self._spec, self._calls_until = spec, calls_until
        limit = spec.limits.wall_ms
        self._budget_until = None if limit is None else boot_ms() + max(0, limit - spent_wall_ms)
        self._started: int | None = None  # None: no job runs
        self._last_output: Callable[[], int] | None = None
        self._is_over: Callable[[], bool] = lambda: False

    def start(self, last_output: Callable[[], int] | None = None, is_over: Callable[[], bool] = lambda: False) -> None:
        """Start the timeouts of a turn or check; without `last_output` there is no idle timeout."""
        self._started = boot_ms()
        self._last_output, self._is_over = last_output, is_over

    def clear(self) -> None:
        """End the timeouts: the job has ended or is being stopped."""
        self._started = None

    def find_next(self) -> tuple[float, StopReason] | None:
        """The seconds until the next timeout and which one it is; None if there is none."""
        if self._started is None or self._is_over():  # a job that only has to be stored cannot time out
            return None
        ends, now = [], boot_ms()
        if self._spec.turn_timeout_ms:
            ends.append((self._started + self._spec.turn_timeout_ms, StopReason.WALL))
        if self._budget_until is not None:
            ends.append((self._budget_until, StopReason.BUDGET))
        if self._last_output is not None and self._spec.idle_timeout_ms:
            # While a call runs this is `now`: the call may end at any moment, and then the clock starts.
            since = min(max(self._last_output(), self._calls_until()), now)
            ends.append((since + self._spec.idle_timeout_ms, StopReason.IDLE))
        if not ends:
            return None
        end, why = min(ends)
        return max(0, end - now) / 1000, why
