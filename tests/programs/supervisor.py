"""A supervisor to be killed or frozen: `supervisor.py LEASE_MS MARKER LOCK_FILE MODE`.

Prints the pids of its warden, guard and tree as one JSON line, then how the agent and the warden ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys

from jackline.clock import boot_ms
from jackline.engine.process import Warden
from jackline.engine.warden.process_tree import read_process

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tree.py")


def main(lease_ms: int, marker: str, lock_file: str, mode: str) -> None:
    lock = os.open(lock_file, os.O_CREAT | os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    warden = Warden.start(deadline_ms=boot_ms() + 3_600_000, lock_fd=lock, marker={"JACKLINE_TEST": marker})
    child = warden.spawn([sys.executable, "-I", "-S", TREE, mode], {"PATH": os.environ["PATH"]}, "/")
    pids = json.loads(os.read(child.stdout, 65536))
    guard = read_process(child.pid)
    pids |= {"warden": warden.pid, "guard": guard.parent if guard else 0}
    warden.renew(boot_ms() + lease_ms)  # only now: they live when they are told of, however long it took to start
    os.write(1, json.dumps(pids).encode() + b"\n")
    ending = child.wait()
    warden.close()
    report = {"lost": ending.lost if ending else None, "warden": warden.exit_code}
    os.write(1, json.dumps(report).encode() + b"\n")


main(int(sys.argv[1]), *sys.argv[2:5])
