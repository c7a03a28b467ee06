"""An effect that can die at its boundary: python effect.py COUNTER NAME [BOUNDARY]; python effect.py COUNTER --probe.

Appends NAME to the file COUNTER, the world outside. BOUNDARY is `NAME:before` or `NAME:after`: there it kills, with
SIGKILL and all at once, every process above it up to the `jackline` that supervises it. Once: the file
COUNTER.killed says that it was done.
"""

from __future__ import annotations

import json
import os
import signal
import sys


def parents() -> list[int]:
    """Everybody above, up to the supervisor."""
    found, pid = [], os.getppid()
    while pid > 1:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            above = int(file.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        found.append(pid)
        if b"jackline" in words and ({b"run", b"resume"} & set(words)):
            return found
        pid = above
    sys.exit("there is no supervisor above: nobody is killed")


def die(counter: str) -> None:
    try:
        os.close(os.open(f"{counter}.killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    for pid in reversed(parents()):
        os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def probe(counter: str) -> int:
    """Whether the effect of the call on stdin is there."""
    name = json.load(sys.stdin)["input"]["name"]
    if not os.path.exists(counter):
        return 1
    with open(counter, encoding="utf-8") as file:
        return 0 if name in file.read().split() else 1


def main() -> None:
    if sys.argv[2] == "--probe":
        sys.exit(probe(sys.argv[1]))
    counter, name, boundary = sys.argv[1], sys.argv[2], (sys.argv[3:] or [""])[0]
    if boundary == f"{name}:before":
        die(counter)
    descriptor = os.open(counter, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{name}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)
    if boundary == f"{name}:after":
        die(counter)
    sys.stdout.write(f"id-{name}\n")


if __name__ == "__main__":
    main()
