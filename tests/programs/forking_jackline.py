"""Loads jackline once, and forks for each command that it is told to run: `forking_jackline.py SOCKET_FD`.

A forked process is made a child of whoever asked (CLONE_PARENT), sets up what a new Python would have got, and runs the
command as `python -m jackline` does. It ends when the other end of the socket is closed.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import io
import json
import os
import platform
import signal
import socket
import sys
import termios
import threading
import time
from pathlib import Path
from typing import Any, NoReturn, TextIO

_MOST_BYTES = 1_000_000
_CLONE_PARENT = 0x8000
_EXIT_NOT_FLUSHED = 120  # of Python itself
_CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
# What commands import where they use it, besides modules of jackline.
_ALSO = (
    "argparse", "asyncio", "difflib", "getpass", "glob", "hashlib", "hmac", "http.client", "http.server",
    "logging", "psycopg", "pwd", "queue", "secrets", "select", "selectors", "shlex", "shutil", "socketserver",
    "sqlite3", "ssl", "subprocess", "tempfile", "textwrap", "tomllib", "tty", "unicodedata",
    "urllib.error", "urllib.request", "uuid", "zoneinfo",
)  # fmt: skip


def load_jackline() -> None:
    """Import every module that is no program of its own."""
    import jackline

    folder = Path(jackline.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(("jackline", *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
        if not name.endswith((".__main__", ".start")) and not name.startswith("jackline.features.mcp"):
            importlib.import_module(name)
    for name in _ALSO:
        importlib.import_module(name)


def fork_sibling() -> int:
    """Fork as os.fork() does; the new process is a child of our parent."""
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = ctypes.PyDLL(None).syscall(_CLONE, _CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
    else:
        ctypes.pythonapi.PyOS_AfterFork_Parent()
    return int(pid)


def wait_for_command(connection: socket.socket) -> dict[str, Any] | None:
    """In each forked process: its command, with its streams in place. In the server: None, at the end."""
    while True:
        message, fds, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
        if not message:
            return None
        pid = fork_sibling()
        if pid == 0:
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
            os.closerange(3, max(*fds, connection.detach()) + 1)
            return json.loads(message)  # type: ignore[no-any-return]
        for fd in fds:
            os.close(fd)
        connection.send(str(pid).encode())


def become(command: dict[str, Any]) -> None:
    """Set up what a new Python finds."""
    if command["at_terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(command["folder"])
    os.umask(command["umask"])
    coerced = {"LC_CTYPE": os.environ["LC_CTYPE"]} if "LC_CTYPE" in os.environ else {}  # by Python, as it starts
    os.environ.clear()
    os.environ.update(command["environ"] | coerced)
    time.tzset()
    sys.argv = [importlib.import_module("jackline.__main__").__file__ or "", *command["words"]]
    sys.path[0] = os.getcwd()
    sys.stdin = open_stream(0, sys.stdin)
    sys.stdout = open_stream(1, sys.stdout)
    sys.stderr = open_stream(2, sys.stderr)


def open_stream(fd: int, like: TextIO) -> TextIO:
    raw = open(fd, "rb" if fd == 0 else "wb", closefd=False)  # noqa: SIM115 - open until the process ends
    is_line_buffered = fd == 2 or os.isatty(fd)
    newline = None if fd == 0 else "\n"
    return io.TextIOWrapper(raw, like.encoding, like.errors, newline=newline, line_buffering=is_line_buffered)


def exit_at_once(code: int) -> NoReturn:
    """End as Python does, but free nothing: the memory is shared with the server, and would be copied first."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = _EXIT_NOT_FLUSHED
    os._exit(code)


if __name__ == "__main__":
    load_jackline()
    gc.collect()
    gc.freeze()  # a collection in a forked process would write to, and so copy, every page of what was loaded
    wanted = None
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is for the tests
        wanted = wait_for_command(socket.socket(fileno=int(sys.argv[1])))
    if wanted is not None:
        become(wanted)
        from jackline.__main__ import console

        try:
            console()
        except SystemExit as end:
            exit_at_once(end.code if isinstance(end.code, int) else 0)
