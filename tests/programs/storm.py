"""Fork without pause, at most 300 times, and once more whenever a child dies; nobody ends by himself."""

from __future__ import annotations

import os
import signal

FORKS = 300


def main() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.write(writer, b"t" * FORKS)
    signal.signal(signal.SIGCHLD, lambda *_: fork_on(reader))
    os.write(1, b"begun\n")
    fork_on(reader)
    while True:
        signal.pause()


def fork_on(reader: int) -> None:
    """Each token in the pipe is one fork, whoever of the family takes it."""
    try:
        while os.read(reader, 1):
            if os.fork() == 0 and int.from_bytes(os.urandom(1)) % 2:
                os.setsid()
    except BlockingIOError:
        return


main()
