"""Starts that fail, with and without free descriptors: says after each kind whether all that it opened is closed.

A process of its own, because another one's threads may open or close something at any time.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from jackline.clock import boot_ms
from jackline.engine.process import SpawnFailed, Warden

ENV = {"PATH": os.environ["PATH"]}


def descriptors() -> list[str]:
    return os.listdir("/proc/self/fd")


@contextmanager
def free_descriptors(count: int) -> Iterator[None]:
    """Take all descriptors that this process may have, but for a few."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(count + 1)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, descriptors())) + 1, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(taken[0]))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in taken:
            os.close(fd)


def refused(warden: Warden, program: str, words: str) -> None:
    try:
        warden.spawn([program], ENV, "/")
    except SpawnFailed as error:
        if words not in str(error):
            raise
        return
    sys.exit(f"{program} was started")


def tell(before: list[str]) -> None:
    print("all closed" if descriptors() == before else f"{before} became {descriptors()}", flush=True)  # noqa: T201 - its report


def main() -> None:
    with Warden.start(deadline_ms=boot_ms() + 60_000, marker={}) as warden:
        before = descriptors()
        for _ in range(5):
            refused(warden, "no-such-agent", "No such file")
        tell(before)
        for count in (0, 1, 3, 5):
            with free_descriptors(count):
                refused(warden, "true", "Too many open files")
            tell(before)
        child = warden.spawn(["echo", "alive"], ENV, "/")
        os.write(1, b"".join(chunk.data for chunk in child.read(60)))
        child.wait(60)
        child.close()


main()
