"""Forty processes, and forty that watch one of them each; who sees his one die creates a file.

`mourners.py FILE` prints `begun` when all are in place, each in a session of its own. The watchers are the
younger ones: they have the higher pids, and whoever kills in the order of pids comes to them last.
"""

from __future__ import annotations

import os
import signal
import sys

PAIRS = 40


def start_watched(report: int) -> int:
    """Give a pipe that ends when the new process dies."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.write(report, b".")
        signal.pause()
    os.close(writer)
    return reader


def start_watcher(report: int, pipe: int, file: str) -> None:
    if os.fork() == 0:
        os.setsid()
        os.write(report, b".")
        os.read(pipe, 1)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY))
        os._exit(0)


def main(file: str) -> None:
    reader, writer = os.pipe()
    pipes = [start_watched(writer) for _ in range(PAIRS)]
    for pipe in pipes:
        start_watcher(writer, pipe, file)
    for _ in range(2 * PAIRS):
        os.read(reader, 1)
    os.write(1, b"begun\n")
    signal.pause()


main(sys.argv[1])
