"""The tools of the scripted agent: a program, an edit, a commit. The gate was asked before, in calls.py."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

OUTPUT_BYTES = 65_536  # of a tool's output its end is kept,
FIRST_LINE_BYTES = 1_024  # and its first line, where a program prints the id of what it made
CHECK_SECONDS = 0.05
NOT_STARTED = 127  # what a shell says of a program that it cannot start
FIELD = re.compile(r"(?<!\$)\{([A-Za-z0-9_.-]+)\}")  # ${HOME} is the shell's


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool came to."""

    exit_code: int
    output: str = ""
    external_id: str = ""
    first_line: str = ""


def run_tool(argv: Sequence[str], given: bytes = b"") -> Result:
    """Run a program in a session of its own, as real agents do: it outlives them when they are killed."""
    with tempfile.TemporaryFile() as stdin:  # not a pipe: a tool that never reads must not block us
        stdin.write(given)
        stdin.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - starting what the script names is the purpose
                argv, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True
            )
        except (OSError, ValueError) as error:
            return Result(NOT_STARTED, str(error))
    with process:
        first, last = _captured(process)
        code = process.wait()
    line = first.decode("utf-8", "replace").partition("\n")[0].strip()
    return Result(code if code >= 0 else 128 - code, last.decode("utf-8", "replace"), first_line=line)


def _captured(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """The beginning and the end of what it prints, without waiting for a child that it left with the pipe."""
    assert process.stdout is not None  # noqa: S101 - for the type checker: it was started with a pipe
    descriptor, first, last = process.stdout.fileno(), b"", b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], CHECK_SECONDS)
        chunk = os.read(descriptor, OUTPUT_BYTES) if ready else b""
        if (ready and not chunk) or (not ready and process.poll() is not None):
            return first, last
        first += chunk[: FIRST_LINE_BYTES - len(first)]
        last = (last + chunk)[-OUTPUT_BYTES:]


def fill(pattern: str, values: Mapping[str, object], quote: Callable[[str], str] = str) -> str:
    """Put the values into {name}; a name that is not among them stays as it stands."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        given = values[found[1]]
        return quote(given if isinstance(given, str) else json.dumps(given))

    return FIELD.sub(value, pattern)


def run_call(call: Mapping[str, Any]) -> Result:
    given, command = call.get("input", {}), call.get("run")
    values = {"workspace": os.getcwd(), **given}
    result = Result(0) if command is None else run_tool(_argv(command, values), json.dumps(given).encode())
    if result.exit_code != 0 or "external_id" not in call:
        return result
    return Result(0, result.output, fill(call["external_id"], {**values, "stdout": result.first_line}))


def _argv(command: str | Sequence[str], values: Mapping[str, object]) -> Sequence[str]:
    """A text is for the shell, and what is filled into it is quoted: an input must not become a command."""
    if isinstance(command, str):
        from shlex import quote

        return ("/bin/sh", "-c", fill(command, values, quote))
    return [fill(word, values) for word in command]


def run_edit(edit: Mapping[str, str]) -> Result:
    try:
        return _edited(edit)
    except (OSError, ValueError) as error:
        return Result(1, str(error))


def _edited(edit: Mapping[str, str]) -> Result:
    path = edit["path"]
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    if "append" in edit:
        return _written(path, edit["append"], "a")
    if "content" in edit:
        return _written(path, edit["content"], "w")
    with open(path, encoding="utf-8", newline="") as file:
        before = file.read()
    if edit["find"] not in before:
        return Result(1, f"{path}: the text to replace is not there")
    return _written(path, before.replace(edit["find"], edit["replace"], 1), "w")


def _written(path: str, text: str, mode: str) -> Result:
    with open(path, mode, encoding="utf-8", newline="") as file:
        file.write(text)
    return Result(0)


def run_commit(message: str) -> Result:
    done = run_tool(("git", "add", "-A"))
    if done.exit_code == 0:
        done = run_tool(("git", *_author(), "commit", "-m", message))
    if done.exit_code != 0:
        return done
    return Result(0, done.output, run_tool(("git", "rev-parse", "HEAD")).first_line)


def _author() -> list[str]:
    """A name where the machine has none: git refuses a commit without."""
    fallback = {"user.name": "scripted", "user.email": "scripted@localhost"}
    missing = [name for name in fallback if not run_tool(("git", "config", name)).first_line]
    return [word for name in missing for word in ("-c", f"{name}={fallback[name]}")]
