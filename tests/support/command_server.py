"""Starts jackline's commands by forking a Python that has loaded jackline: a new one takes 35 to 130 ms longer.

Each command is still a process of its own: a child of the test, with its own environment, folder and streams. A new
Python is started for what is decided while it starts (the variables in `_FOR_PYTHON`, options of `Popen`), and where
this way of forking is not known to work. JACKLINE_NEW_PYTHON=1 starts a new one for each command.
"""

from __future__ import annotations

import atexit
import inspect
import json
import os
import platform
import socket
import subprocess
import sys
from functools import cache
from typing import Any

_SERVER = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "programs", "forking_jackline.py"))
_FOR_PYTHON = ("PYTHON", "LC_", "LANG", "JACKLINE_CRASH_AT")  # read while Python starts or jackline is loaded
_OPTIONS = frozenset({"stdin", "stdout", "stderr", "text"})
_MOST_BYTES = 100_000
_CAN_FORK = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
# The program gets the terminal as its own, so that Ctrl-C typed into it becomes a signal.
AT_TERMINAL = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
JACKLINE = "os.execv(sys.executable, [sys.executable, '-m', 'jackline', *sys.argv[1:]])"


def start_jackline(
    words: tuple[str, ...], *, cwd: str, env: dict[str, str], at_terminal: bool = False, **options: Any
) -> subprocess.Popen[Any]:
    """Start `jackline WORDS`, with the options of `Popen`; `at_terminal`: its standard input is its terminal."""
    size = sum(len(os.fsencode(text)) + 8 for text in (*words, *env, *env.values()))
    is_plain = options.keys() <= _OPTIONS and not any(name.startswith(_FOR_PYTHON) for name in env)
    can_fork = _CAN_FORK and not os.environ.get("JACKLINE_NEW_PYTHON")
    if can_fork and is_plain and size < _MOST_BYTES and os.access(cwd, os.X_OK):
        return _ForkedCommand(words, at_terminal=at_terminal, cwd=cwd, env=env, **options)
    program = ("-c", AT_TERMINAL + JACKLINE) if at_terminal else ("-m", "jackline")
    return subprocess.Popen([sys.executable, *program, *words], cwd=cwd, env=env, **options)


class _ForkedCommand(subprocess.Popen[Any]):
    """A command that the server has forked; all but its start is what `Popen` does with any child."""

    def __init__(self, words: tuple[str, ...], *, at_terminal: bool, **options: Any) -> None:
        self._at_terminal = at_terminal
        super().__init__(words, **options)

    def _execute_child(self, *arguments: Any) -> None:
        given = inspect.signature(subprocess.Popen._execute_child).bind(self, *arguments).arguments  # type: ignore[attr-defined]
        streams = ("p2cread", "c2pwrite", "errwrite")
        fds = [given[name] if given[name] >= 0 else number for number, name in enumerate(streams)]
        umask = os.umask(0)
        os.umask(umask)
        message = {
            "words": given["args"],
            "folder": os.fspath(given["cwd"]),
            "environ": given["env"],
            "umask": umask,
            "at_terminal": self._at_terminal,
        }
        server = _start_server(os.getpid())
        socket.send_fds(server, [json.dumps(message).encode()], fds)
        reply = server.recv(100)
        assert reply, f"{_SERVER} could not load jackline: its error is among the output of the tests"
        self.pid = int(reply)
        self._child_created = True
        names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(given[name] for name in names))  # type: ignore[attr-defined]


@cache
def _start_server(_pid: int) -> socket.socket:
    """The connection to this process's own server, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environ = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    argv = [sys.executable, _SERVER, str(theirs.fileno())]
    with theirs:
        server = subprocess.Popen(argv, cwd="/", env=environ, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours
