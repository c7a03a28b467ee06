"""Run away: fork, exit, and let the child do the same in a new session, so that no pid lives for long.

It gives up after 100 000 rounds, and creates the file named on the command line then.
"""

from __future__ import annotations

import os
import signal
import sys

ROUNDS = 100_000


def main(finished: str) -> None:
    os.write(1, b"begun\n")
    if os.fork():
        while True:
            signal.pause()
    for _ in range(ROUNDS):
        if os.fork():
            os._exit(0)
        os.setsid()
    os.close(os.open(finished, os.O_CREAT | os.O_WRONLY))


main(sys.argv[1])
