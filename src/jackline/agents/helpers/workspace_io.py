"""The workspace for agents that leave files and commands to us: files inside it, and shell commands in it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

READ_CHARACTERS = 65_536
LISTED_NAMES = 1_000


class OutsideWorkspace(ValueError):
    """The path leads out of the workspace, or is not a path."""


def resolve_path(workspace: str, path: str) -> str:
    """The absolute path of a file in the workspace; links are resolved before the check."""
    if not path or "\0" in path:
        raise OutsideWorkspace(f"{path!r} is not a path")
    whole = os.path.realpath(os.path.join(workspace, path))
    if whole != workspace and not whole.startswith(workspace.rstrip("/") + "/"):
        raise OutsideWorkspace(f"{path} is outside the workspace {workspace}")
    return whole


def read_lines(workspace: str, path: str, first: int = 1, count: int | None = None) -> str:
    """Read lines of a text file, from line `first` on."""
    start = max(0, first - 1)
    with open(resolve_path(workspace, path), encoding="utf-8", errors="replace", newline="") as file:
        return "".join(islice(file, start, None if count is None else start + max(0, count)))


def write_text(workspace: str, path: str, content: str) -> None:
    whole = resolve_path(workspace, path)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    with open(whole, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(content)


def list_folder(workspace: str, path: str) -> str:
    """List the names in a folder, one per line; a folder ends with a slash."""
    with os.scandir(resolve_path(workspace, path)) as entries:
        found = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    more = [f"… and {len(found) - LISTED_NAMES} more"] if len(found) > LISTED_NAMES else []
    return "\n".join([*found[:LISTED_NAMES], *more])


# --- commands --------------------------------------------------------------------------------------------

COMMAND_SECONDS = 120.0
LONGEST_COMMAND_SECONDS = 3_600.0
HEAD_BYTES = 8_192
TAIL_BYTES = 24_576
CHECK_SECONDS = 0.05
TIMED_OUT = 124  # as timeout(1) exits
NOT_STARTED = 127


class ShellResult(NamedTuple):
    """The exit code and the output of a command."""

    exit_code: int
    output: str


def run_shell(
    command: str, workspace: str, environ: Mapping[str, str], seconds: float, heartbeat: Callable[[], None]
) -> ShellResult:
    try:
        process = subprocess.Popen(  # noqa: S603 - running a command that the gate allowed is the purpose
            ("/bin/sh", "-c", command),
            cwd=workspace,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except (OSError, ValueError) as error:
        return ShellResult(NOT_STARTED, str(error))
    with process:
        output, in_time = _read_output(process, time.monotonic() + seconds, heartbeat)
        if in_time:
            code = process.wait()
            return ShellResult(code if code >= 0 else 128 - code, output)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return ShellResult(TIMED_OUT, f"{output}\n[killed: it took longer than {seconds:g} s]")


def _read_output(process: subprocess.Popen[bytes], deadline: float, heartbeat: Callable[[], None]) -> tuple[str, bool]:
    """Read until it ends, without waiting for a child that still holds the pipe; False if it times out."""
    assert process.stdout is not None  # noqa: S101 - for the type checker: it was started with a pipe
    descriptor, buffer = process.stdout.fileno(), OutputBuffer()
    while time.monotonic() < deadline:
        ready, _, _ = select.select([descriptor], [], [], CHECK_SECONDS)
        chunk = os.read(descriptor, TAIL_BYTES) if ready else b""
        buffer.add(chunk)
        heartbeat()
        if ready and not chunk:  # it has closed its output
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        if not chunk and process.poll() is not None:
            return buffer.text(), True
    return buffer.text(), False


class OutputBuffer:
    """Keeps the beginning and the end of an output, and counts the bytes between them."""

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
