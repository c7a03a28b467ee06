"""Runs shell texts in a real bash that can start nothing: every program only writes down its words.

Many texts share one bash, each in a subshell of its own, in a temporary folder. The programs p1 to p9 are functions,
and files for `env`, `exec` and the like; any other word is written down by bash's handler for missing commands.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BASH = shutil.which("bash") or ""
PROGRAMS = [f"p{number}" for number in range(1, 10)]
_REAL = ("bash", "env", "xargs", "timeout")  # programs that start others
_WAIT = 120  # seconds for all texts of one bash; some of them loop until they have used up their second
_WAIT_FOR_REST = 10  # seconds for what the texts left running: some of it never ends
_SCRIPT = """
_log() { builtin printf '%s\\0' "$#" "${@//$'\\n'/$'\\1'}" >>"$_LOG" || builtin kill -9 "$_SELF"; }
command_not_found_handle() { _log "$@"; return 127; }
for _p in p1 p2 p3 p4 p5 p6 p7 p8 p9; do
  builtin eval "$_p() { _log $_p \\"\\$@\\"; return $(( (${_p#p} * _SEED + ${_p#p} / 3) % 2 )); }"
  builtin export -f $_p
done
builtin export -f _log command_not_found_handle
builtin mapfile -d '' -t _TEXTS <"$_INPUT"
builtin trap '' XFSZ
FUNCNEST=20
for _n in "${!_TEXTS[@]}"; do
  (
    builtin export _LOG="$_OUTPUT/$_n" _SELF=$BASHPID
    builtin ulimit -t 1 -f 2
    if (( _n % 2 )); then builtin shopt -s expand_aliases; fi
    if (( _n % 3 )); then builtin set -- A 'B C'; fi
    builtin unset _TEXTS[_n+1] _p
    builtin eval "${_TEXTS[_n]}"
  ) </dev/null
done
"""
_WITNESS = """#!/bin/sh
printf '%s\\0' "$(($# + 1))" "${0##*/}" "$@" >>"$_LOG.$$"
"""


def prepare_folder(folder: Path) -> None:
    """Make the programs that bash can find."""
    programs = folder / "programs"
    programs.mkdir()
    for name in _REAL:
        (programs / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    (programs / "sh").symlink_to(BASH)
    for name in PROGRAMS:
        (programs / name).write_text(_WITNESS)
        (programs / name).chmod(0o700)


def run_texts(texts: Sequence[str], seed: int, folder: Path) -> list[list[list[str]]]:
    """Return the calls that each text made, as far as it came; `folder` is prepared."""
    output, work, source = folder / "output", folder / "work", folder / "input"
    for made in (output, work):
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir()
    source.write_bytes(b"".join(text.encode(errors="surrogateescape") + b"\0" for text in texts))
    environment = {
        "PATH": str(folder / "programs"),
        "HOME": str(work),
        "LC_ALL": "C.UTF-8",
        "_INPUT": str(source),
        "_OUTPUT": str(output),
        "_SEED": str(seed % 7),
        "x": "r s",
        "b": "from the environment",
    }
    reading, writing = os.pipe()  # its end means that the texts left nothing running
    bash = subprocess.Popen(
        [BASH, "--norc", "-c", _SCRIPT],
        env=environment,
        cwd=work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[writing],
    )
    os.close(writing)
    try:
        bash.wait(_WAIT)
        _wait_for_end(reading)
    except subprocess.TimeoutExpired:
        pass  # a text waits for something that never comes; what was run until now counts
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(bash.pid, signal.SIGKILL)
        bash.wait()
    calls: list[list[list[str]]] = [[] for _ in texts]
    for log in output.iterdir():
        calls[int(log.name.partition(".")[0])] += _read_calls(log)
    return calls


def _wait_for_end(reading: int) -> None:
    import select

    select.select([reading], [], [], _WAIT_FOR_REST)


def _read_calls(log: Path) -> list[list[str]]:
    """Return the calls in one log: each is the number of its words, and the words."""
    # A line break would end a write: the others write to the same file at the same time.
    fields = log.read_bytes().decode(errors="surrogateescape").replace("\1", "\n").split("\0")[:-1]
    found: list[list[str]] = []
    while fields and fields[0].isdigit():
        count = int(fields[0])
        if len(fields) <= count:
            break  # the log was full
        found.append(fields[1 : count + 1])
        fields = fields[count + 1 :]
    return found
