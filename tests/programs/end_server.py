"""Ends a PostgreSQL server when every process that uses it is dead, however it died: `end_server.py USERS FOLDER`.

Each of them holds a shared lock on the file USERS, which the kernel takes from a process that is killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import signal
import sys

_PATIENCE_S = 60


def kill_server(folder: str) -> None:
    with open(os.path.join(folder, "postmaster.pid"), encoding="utf-8") as page:
        server = int(page.readline())
    descriptor = os.pidfd_open(server)
    with open(f"/proc/{server}/cmdline", "rb") as command:
        if os.fsencode(folder) not in command.read().split(b"\0"):  # another process has its number
            return
    signal.pidfd_send_signal(descriptor, signal.SIGQUIT)  # it ends its children, too, and at once
    select.select([descriptor], [], [], _PATIENCE_S)


def main(users: str, folder: str) -> None:
    if os.fork():
        return
    os.setsid()
    with open(users, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it was ended in the ordinary way
            kill_server(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.unlink(users)  # before the lock is gone: who waits for it finds out, and starts anew


main(*sys.argv[1:])
