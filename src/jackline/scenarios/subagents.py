"""Runs several subagents at once for the scripted agent, which makes one call at a time. It knows only the gate.

usage: subagents.py TOOL NAME...    asks the gate for one Task per name, all at once, and runs TOOL NAME for each

It finds the gate as its agent does (JACKLINE_GATE, JACKLINE_GATE_TOKEN), and runs nothing without its answer.
"""

import json
import os
import socket
import sys
from typing import Any

_SECONDS = 60.0


def main(tool: str, names: list[str]) -> int:
    """Start one process for each name; 0 if all of them succeed."""
    started = [_start_subagent(tool, name) for name in names]
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started)


def _start_subagent(tool: str, name: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = run_task(tool, name)
    finally:
        os._exit(code)


def run_task(tool: str, name: str) -> int:
    """Ask the gate, run the tool, report the outcome."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(os.environ["JACKLINE_GATE"])
        stream = connection.makefile("rwb")
        answer = ask_gate(stream, op="prepare", tool="Task", input={"prompt": name}, agent_call=f"subagent-{name}")
        if answer["decision"] != "allow":
            return 0 if answer["decision"] == "stored" else 1
        code = os.spawnv(os.P_WAIT, tool, (tool, name))  # noqa: S606 - without a shell
        ask_gate(stream, op="finish", call=answer["call"], ok=code == 0, exit_code=code, output=f"{name} is done")
        return code


def ask_gate(stream: Any, **question: object) -> dict[str, Any]:  # noqa: ANN401 - the type that makefile returns has no short name
    """Send one line, read one line."""
    line = json.dumps({"token": os.environ["JACKLINE_GATE_TOKEN"], **question})
    stream.write(line.encode() + b"\n")
    stream.flush()
    answer: dict[str, Any] = json.loads(stream.readline())
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
