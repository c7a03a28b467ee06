"""Two subagents at once for the scripted agent, which makes one call at a time. Knows no jackline but its gate.

usage: subagents.py TOOL NAME...    asks the gate for a Task of every name, at the same time, and runs TOOL NAME for it

It finds the gate as its agent does (JACKLINE_GATE, JACKLINE_GATE_TOKEN), and runs nothing without its answer.
"""

import json
import os
import socket
import sys
from typing import Any

_SECONDS = 60.0


def main(tool: str, names: list[str]) -> int:
    """One process for each name; 0 if all of them did their work."""
    started = [_fork(tool, name) for name in names]
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in started]
    return max(ended)


def _fork(tool: str, name: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = work(tool, name)
    finally:
        os._exit(code)


def work(tool: str, name: str) -> int:
    """Ask, do it, tell how it went."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_SECONDS)
        connection.connect(os.environ["JACKLINE_GATE"])
        stream = connection.makefile("rwb")
        answer = ask(stream, op="prepare", tool="Task", input={"prompt": name}, agent_call=f"subagent-{name}")
        if answer["decision"] != "allow":
            return 0 if answer["decision"] == "stored" else 1
        code = os.spawnv(os.P_WAIT, tool, (tool, name))  # noqa: S606 - no shell is wanted
        ask(stream, op="finish", call=answer["call"], ok=code == 0, exit_code=code, output=f"{name} is done")
        return code


def ask(stream: Any, **question: object) -> dict[str, Any]:  # noqa: ANN401 - what makefile gives has no short name
    """One line there, one line back."""
    line = json.dumps({"token": os.environ["JACKLINE_GATE_TOKEN"], **question})
    stream.write(line.encode() + b"\n")
    stream.flush()
    answer: dict[str, Any] = json.loads(stream.readline())
    return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
