"""The first program in a tmux session of jackline: reads its environment from a FIFO, and becomes the command."""

from __future__ import annotations

import os
import signal
import sys

from jackline.engine.tmux import START_SECONDS

_OWN = (b"TMUX", b"TMUX_PANE", b"TERM", b"TERM_PROGRAM", b"TERM_PROGRAM_VERSION")  # of this window, set by tmux


def main(argv: list[str]) -> None:
    """Wait for the environment, and replace this process; a sender that died is not waited for without end."""
    path, *command = argv
    signal.alarm(START_SECONDS)
    with open(path, "rb") as pipe:
        data = pipe.read()
    signal.alarm(0)
    given = dict(pair.split(b"=", 1) for pair in data.split(b"\0") if b"=" in pair)
    own = {name: value for name, value in os.environb.items() if name in _OWN}
    given = {name: value for name, value in given.items() if name not in _OWN}
    os.execve(command[0], command, {**given, **own})  # noqa: S606 - the command that our starter passed


if __name__ == "__main__":
    main(sys.argv[1:])
