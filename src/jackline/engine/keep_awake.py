"""Keeps the machine awake while a run is active: a program of the system holds the inhibitor.

If this process is killed, the pipe to that program closes, and with it the inhibitor ends.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from typing import TYPE_CHECKING

from jackline.diagnostic_log import LOG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOLDER = ("cat",)  # lives until the end of its input
_INHIBITORS = (
    ("systemd-inhibit", "--what=sleep:idle", "--who=jackline", "--why=a run is active", "--mode=block"),
    ("caffeinate", "-i"),  # macOS
)
_MISSING = "neither systemd-inhibit nor caffeinate is installed"
_END_SECONDS = 2.0
_TRY_SECONDS = 10.0


@contextlib.contextmanager
def keep_awake(environ: Mapping[str, str], *, wanted: bool = True) -> Iterator[None]:
    """While the block lasts, the machine does not go to sleep by itself; if that is not possible, a line in the log."""
    process = _start_inhibitor(environ) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            _end_inhibitor(process)


def find_inhibitor(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command that holds an inhibitor on this machine; empty if there is none."""
    for name, *flags in _INHIBITORS:
        program = shutil.which(name, path=environ.get("PATH"))
        if program is not None:
            return (program, *flags, *_HOLDER)
    return ()


def try_inhibitor(environ: Mapping[str, str]) -> str:
    """Hold the inhibitor for a moment; why that is not possible, or an empty text."""
    command = find_inhibitor(environ)
    if not command:
        return _MISSING
    try:
        done = subprocess.run(  # noqa: S603 - a program of the system
            command, stdin=subprocess.DEVNULL, capture_output=True, env=dict(environ), timeout=_TRY_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    printed = done.stderr.decode(errors="replace").strip().splitlines()
    return "" if done.returncode == 0 else f"{command[0]}: {printed[-1] if printed else f'exit code {done.returncode}'}"


def _start_inhibitor(environ: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    command = find_inhibitor(environ)
    if not command:
        LOG.warning(f"keep_awake: {_MISSING}, so the machine may go to sleep")
        return None
    try:
        process = subprocess.Popen(  # noqa: S603 - a program of the system
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(environ)
        )
    except OSError as error:
        LOG.warning(f"keep_awake: {command[0]}: {error.strerror}")
        return None
    return process


def _end_inhibitor(process: subprocess.Popen[bytes]) -> None:
    if (code := process.poll()) is not None:  # it may not inhibit: no login session, or no bus
        LOG.warning(f"keep_awake: the inhibitor ended with exit code {code}: the machine could go to sleep")
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
