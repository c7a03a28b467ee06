"""The scripted agent's calls: ask the gate, run the tool (a program, an edit, a commit), report the result.

No tool of a script runs in any other way.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from .agent_io import SHOWN_CHARACTERS, GateClient, Stop, build_failure, emit

OUTPUT_BYTES = 65_536  # the end of a tool's output is kept,
FIRST_LINE_BYTES = 1_024  # and its first line, where a program prints the id of the object that it created
CHECK_SECONDS = 0.05
NOT_STARTED = 127  # a shell's exit code for a program that it cannot start
PLACEHOLDER = re.compile(r"(?<!\$)\{([A-Za-z0-9_.-]+)\}")  # ${HOME} is the shell's


@dataclass(slots=True)
class ScriptState:
    """The state that a step may need."""

    gate: GateClient
    folder: str
    attempt: int
    step: int = 0  # the number of the current step, from 1


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool."""

    exit_code: int
    output: str = ""
    external_id: str = ""
    first_line: str = ""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool, its input, and the work itself, which starts only after the gate allows it."""

    tool: str
    input: Mapping[str, object]
    work: Callable[[], ToolResult]
    on_denied: str = "continue"


def play_call(state: ScriptState, value: Mapping[str, Any]) -> None:
    work = partial(_run_call, value)
    call = ScriptedCall(value["tool"], value.get("input", {}), work, value.get("on_denied", "continue"))
    if value.get("ungated"):
        _perform(f"ungated-s{state.step}", call, gate=None)
    else:
        _ask_and_perform(state, call)


def play_edit(state: ScriptState, value: Mapping[str, str]) -> None:
    _ask_and_perform(state, ScriptedCall("edit", value, partial(_run_edit, value)))


def play_commit(state: ScriptState, message: str) -> None:
    _ask_and_perform(state, ScriptedCall("commit", {"message": message}, partial(_run_commit, message)))


def _ask_and_perform(state: ScriptState, call: ScriptedCall) -> None:
    answer = state.gate.prepare(call.tool, call.input, f"s{state.step}")
    match answer["decision"]:
        case "allow":
            _perform(str(answer["call"]), call, state.gate)
        case "stored":
            stored = ToolResult(0, str(answer.get("output") or ""))
            _emit_finished(str(answer.get("call") or ""), call, stored, stored=True)
        case "deny":
            denial = f"{call.tool} was denied: {answer.get('reason') or 'no reason was given'}"
            emit("message", text=denial, call=answer.get("call"))
            if call.on_denied == "stop":
                raise build_failure("agent_error", denial)
        case "ask":
            raise Stop(0, "end", reason="deferred")


def _perform(call_id: str, call: ScriptedCall, gate: GateClient | None) -> None:
    emit("call.started", call=call_id, tool=call.tool, input=call.input)
    result = call.work()
    if gate is not None:
        gate.finish(
            call=call_id,
            ok=result.exit_code == 0,
            exit_code=result.exit_code,
            output=result.output,
            external_id=result.external_id,
        )
    _emit_finished(call_id, call, result)


def _emit_finished(call_id: str, call: ScriptedCall, result: ToolResult, *, stored: bool = False) -> None:
    emit(
        "call.finished",
        call=call_id,
        tool=call.tool,
        ok=result.exit_code == 0,
        exit_code=result.exit_code,
        output=result.output[-SHOWN_CHARACTERS:],
        stored=stored,
    )


# --- the tools -------------------------------------------------------------------------------------------


def _run_call(call: Mapping[str, Any]) -> ToolResult:
    given, command = call.get("input", {}), call.get("run")
    values = {"workspace": os.getcwd(), **given}
    result = ToolResult(0)
    if isinstance(command, str):
        from shlex import quote

        # For the shell, inserted values are quoted: an input must not become a command.
        argv = ["/bin/sh", "-c", _fill_placeholders(command, values, quote)]
        result = _run_program(argv, json.dumps(given).encode())
    elif command is not None:
        argv = [_fill_placeholders(word, values) for word in command]
        result = _run_program(argv, json.dumps(given).encode())
    if result.exit_code != 0 or "external_id" not in call:
        return result
    external_id = _fill_placeholders(call["external_id"], {**values, "stdout": result.first_line})
    return ToolResult(0, result.output, external_id)


def _run_edit(edit: Mapping[str, str]) -> ToolResult:
    path = edit["path"]
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if "append" in edit:
            text, mode = edit["append"], "a"
        elif "content" in edit:
            text, mode = edit["content"], "w"
        else:
            with open(path, encoding="utf-8", newline="") as file:
                before = file.read()
            if edit["find"] not in before:
                return ToolResult(1, f"{path}: the text to replace was not found")
            text, mode = before.replace(edit["find"], edit["replace"], 1), "w"
        with open(path, mode, encoding="utf-8", newline="") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        return ToolResult(1, str(error))
    return ToolResult(0)


def _run_commit(message: str) -> ToolResult:
    result = _run_program(("git", "add", "-A"))
    if result.exit_code == 0:
        # An author for a machine without one: git rejects a commit without.
        fallback = {"user.name": "scripted", "user.email": "scripted@localhost"}
        missing = [name for name in fallback if not _run_program(("git", "config", name)).first_line]
        author = [word for name in missing for word in ("-c", f"{name}={fallback[name]}")]
        result = _run_program(("git", *author, "commit", "-m", message))
    if result.exit_code != 0:
        return result
    return ToolResult(0, result.output, _run_program(("git", "rev-parse", "HEAD")).first_line)


def _run_program(argv: Sequence[str], given: bytes = b"") -> ToolResult:
    """Run a program in its own session, as real agents do: it outlives them when they are killed."""
    with tempfile.TemporaryFile() as stdin:  # not a pipe: a tool that never reads must not block us
        stdin.write(given)
        stdin.seek(0)
        try:
            process = subprocess.Popen(  # noqa: S603 - starting the script's program is the purpose
                argv, stdin=stdin, stdout=subprocess.PIPE, start_new_session=True
            )
        except (OSError, ValueError) as error:
            return ToolResult(NOT_STARTED, str(error))
    with process:
        first, last = _capture_output(process)
        code = process.wait()
    line = first.decode("utf-8", "replace").partition("\n")[0].strip()
    return ToolResult(code if code >= 0 else 128 - code, last.decode("utf-8", "replace"), first_line=line)


def _capture_output(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Keep the beginning and the end of its output, without waiting for a child that still holds the pipe."""
    assert process.stdout is not None  # noqa: S101 - for the type checker: it was started with a pipe
    descriptor, first, last = process.stdout.fileno(), b"", b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], CHECK_SECONDS)
        chunk = os.read(descriptor, OUTPUT_BYTES) if ready else b""
        if (ready and not chunk) or (not ready and process.poll() is not None):
            return first, last
        first += chunk[: FIRST_LINE_BYTES - len(first)]
        last = (last + chunk)[-OUTPUT_BYTES:]


def _fill_placeholders(pattern: str, values: Mapping[str, object], quote: Callable[[str], str] = str) -> str:
    """Replace {name} with its value; unknown names stay."""

    def replace(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        value = values[found[1]]
        return quote(value if isinstance(value, str) else json.dumps(value))

    return PLACEHOLDER.sub(replace, pattern)
