"""End a runaway (relay.py) on a host where a walk through /proc is slow, as with thousands of processes.

`slow_walk.py FILE` prints how many would not die.
"""

from __future__ import annotations

import os
import sys
import time

from jackline.engine.warden import process_tree
from jackline.engine.warden.host import become_subreaper
from jackline.engine.warden.process_tree import ProcessTree

RELAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "relay.py")


WALK = process_tree.list_processes


def walk_slowly() -> dict[int, process_tree.Process]:
    table = WALK()
    time.sleep(0.02)
    return table


def main(file: str) -> None:
    become_subreaper()
    tree = ProcessTree()
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(writer, 1)
        os.execv(sys.executable, [sys.executable, "-I", "-S", RELAY, file])  # noqa: S606 - no shell is wanted
    os.read(reader, 6)
    process_tree.list_processes = walk_slowly
    _, survivors = tree.kill_all(patience_ms=30_000)
    os.write(1, b"%d\n" % survivors)


main(sys.argv[1])
