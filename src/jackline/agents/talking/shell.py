"""A command of the model: run to its end or its time, with bounded output, in a process group of its own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

SECONDS = 120.0
MOST_SECONDS = 3_600.0
HEAD_BYTES = 8_192
TAIL_BYTES = 24_576
CHECK_SECONDS = 0.05
TIMED_OUT = 124  # what timeout(1) says
NOT_STARTED = 127


class Ended(NamedTuple):
    """How a command ended."""

    exit_code: int
    output: str


def run(command: str, workspace: str, environ: Mapping[str, str], seconds: float, pulse: Callable[[], None]) -> Ended:
    try:
        process = subprocess.Popen(  # noqa: S603 - running what the gate has allowed is the purpose
            ("/bin/sh", "-c", command),
            cwd=workspace,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except (OSError, ValueError) as error:
        return Ended(NOT_STARTED, str(error))
    with process:
        output, in_time = _follow(process, time.monotonic() + seconds, pulse)
        if in_time:
            code = process.wait()
            return Ended(code if code >= 0 else 128 - code, output)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Ended(TIMED_OUT, f"{output}\n[killed: it took longer than {seconds:g} s]")


def _follow(process: subprocess.Popen[bytes], deadline: float, pulse: Callable[[], None]) -> tuple[str, bool]:
    """Read until it has ended, without waiting for a child that it left with the pipe; False when time is up."""
    assert process.stdout is not None  # noqa: S101 - for the type checker: it was started with a pipe
    descriptor, kept = process.stdout.fileno(), _Kept()
    while time.monotonic() < deadline:
        ready, _, _ = select.select([descriptor], [], [], CHECK_SECONDS)
        chunk = os.read(descriptor, TAIL_BYTES) if ready else b""
        kept.add(chunk)
        pulse()
        if not chunk and (process.poll() is not None or (ready and _waited(process, deadline))):
            return kept.text(), True
    return kept.text(), False


def _waited(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """It has closed its output; what is left is its end."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(max(0.0, deadline - time.monotonic()))
    return process.returncode is not None


class _Kept:
    """The beginning and the end of an output, and how much is missing between them."""

    def __init__(self) -> None:
        self._head, self._tail, self._cut = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        room = HEAD_BYTES - len(self._head)
        self._head += chunk[:room] if room > 0 else b""
        rest = self._tail + (chunk[room:] if room > 0 else chunk)
        self._tail = rest[-TAIL_BYTES:]
        self._cut += len(rest) - len(self._tail)

    def text(self) -> str:
        middle = f"\n[… {self._cut} bytes left out …]\n".encode() if self._cut else b""
        return (self._head + middle + self._tail).decode("utf-8", "replace")
