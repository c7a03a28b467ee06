"""Reads the clocks of this host, its name and the id of its boot. It never waits.

Leases use the boot clock: it also counts while the machine is suspended, and cannot be set.
"""

from __future__ import annotations

import os
import sys
import time
from functools import cache

# macOS has no such clock; its monotonic clock stops while the machine sleeps.
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ms() -> int:
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def host_name() -> str:
    return os.uname().nodename


@cache  # no process outlives its boot
def boot_id() -> str:
    """Identify this boot: the boot clock, a pid and the start time of a process are only valid within one boot."""
    if sys.platform == "darwin":
        return _read_sysctl(b"kern.bootsessionuuid")
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _read_sysctl(name: bytes) -> str:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    value = ctypes.create_string_buffer(256)
    size = ctypes.c_size_t(len(value))
    if library.sysctlbyname(name, value, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        raise OSError(ctypes.get_errno(), f"sysctl {name.decode()} cannot be read")
    return value.value.decode("ascii")
