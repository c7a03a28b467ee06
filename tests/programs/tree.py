"""An agent with a family: prints one JSON line with all pids once everybody is in place, then waits.

`tree.py MODE`: plain | leave (exits 0 at once) | deaf (all ignore SIGTERM) | obey (exits 5 on SIGTERM).
The family: a child; a daemon (double fork, own session); and a ghost, a daemon with an empty environment.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NoReturn

WAIT = "import os, signal, sys; {}; os.write(int(sys.argv[1]), b'%d\\n' % os.getpid()); signal.pause()"


def become_waiter(report: int, env: dict[str, str], mode: str) -> NoReturn:
    os.set_inheritable(report, True)
    deaf = "signal.signal(signal.SIGTERM, signal.SIG_IGN)" if mode == "deaf" else "0"
    os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", WAIT.format(deaf), str(report)], env)  # noqa: S606 - no shell is wanted


def start_child(report: int, mode: str) -> None:
    if os.fork() == 0:
        become_waiter(report, dict(os.environ), mode)


def start_daemon(report: int, env: dict[str, str], mode: str) -> None:
    between = os.fork()
    if between == 0:
        os.setsid()
        if os.fork() == 0:
            become_waiter(report, env, mode)
        os._exit(0)
    os.waitpid(between, 0)


def read_pid(reader: int) -> int:
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(reader, 1)
    return int(line)


def main(mode: str) -> None:
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "obey":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
    reader, writer = os.pipe()
    pids = {"agent": os.getpid()}
    start_child(writer, mode)
    pids["child"] = read_pid(reader)
    start_daemon(writer, dict(os.environ), mode)
    pids["daemon"] = read_pid(reader)
    start_daemon(writer, {}, mode)
    pids["ghost"] = read_pid(reader)
    os.write(1, json.dumps(pids).encode() + b"\n")
    if mode != "leave":
        while True:
            signal.pause()


main(sys.argv[1])
