"""The clocks count in milliseconds, and a boot has a name."""

from __future__ import annotations

import time

from jackline import clock


def test_the_boot_clock_never_goes_back_and_counts_suspend() -> None:
    monotonic = time.monotonic_ns() // 1_000_000
    first, second = clock.boot_ms(), clock.boot_ms()
    assert monotonic <= first <= second


def test_the_wall_clock_is_epoch_milliseconds() -> None:
    assert abs(clock.wall_ms() - time.time() * 1000) < 60_000


def test_this_boot_and_this_host_have_one_name() -> None:
    assert clock.boot_id() == clock.boot_id() != ""
    assert clock.host_name() != ""
