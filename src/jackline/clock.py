"""The clocks and the names of this host; it only reads them, and nothing here ever waits.

Leases on one host run on the boot clock: it counts sleep and suspend, and nobody can set it.
"""

from __future__ import annotations

import os
import sys
import time

# macOS has no boot clock by that name; its monotonic clock stands still while the machine sleeps.
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ms() -> int:
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def host_name() -> str:
    return os.uname().nodename


def boot_id() -> str:
    """Name this boot of the machine: a boot clock, a pid or a start time of another boot means nothing."""
    if sys.platform == "darwin":
        return _system_value(b"kern.bootsessionuuid")
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def _system_value(name: bytes) -> str:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    value = ctypes.create_string_buffer(256)
    size = ctypes.c_size_t(len(value))
    if library.sysctlbyname(name, value, ctypes.byref(size), None, ctypes.c_size_t(0)) != 0:
        raise OSError(ctypes.get_errno(), f"sysctl {name.decode()} cannot be read")
    return value.value.decode("ascii")
