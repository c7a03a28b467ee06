"""Parts of command lines and environments that several adapters share. Pure: starts nothing and reads no file."""

from __future__ import annotations

import os.path
import re
import sys
from typing import TYPE_CHECKING, Any

from jackline.agents.json_fields import strip_colours
from jackline.agents.outcomes import last_line
from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import McpServer, TurnRequest

OWN_SESSION = "name the session with jackline's own --session"
HELPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers", "start.py")

_SCRIPTS = (".js", ".mjs", ".cjs")
_ERROR_LINE = re.compile(r"^(?:Error|Unknown argument|Invalid ).*", re.MULTILINE)
_LONGEST_LINE = 500
_NODE_STDIN_BYTES = 8 * 1024 * 1024  # gemini and qwen cut off the rest, one of them silently

# Node queues what a pipe does not accept at once, and `process.exit` discards the queue: the end of a long answer,
# and with it the terminal event, would be lost. The option is removed before anything else starts, so that no other
# program of the agent sees it. It is an environment variable because the binary may be a wrapper instead of node.
_BLOCKING_OUTPUT = (
    "delete process.env.NODE_OPTIONS;"
    "for(const stream of[process.stdout,process.stderr])stream._handle?.setBlocking?.(true)"
)
# Escaped by hand: every agent loads this module, and urllib.parse would take half a megabyte.
_ESCAPED_OUTPUT = "".join(one if one.isalnum() else f"%{ord(one):02X}" for one in _BLOCKING_OUTPUT)
NODE_ENV = {"NODE_OPTIONS": f"--import=data:text/javascript,{_ESCAPED_OUTPUT}"}


def model_flag(request: TurnRequest) -> str:
    """The model as one argument: as a separate one, a name that starts with "-" would be read as a flag."""
    return f"--model={request.model}"


def encode_prompt(request: TurnRequest) -> bytes:
    """The prompt for standard input, of any length: an argument is limited to 128 KB."""
    return request.prompt.encode("utf-8", "replace")


def reject_arguments(agent: str, arguments: tuple[str, ...], rejected: Mapping[str, str]) -> None:
    """Raise UsageError for an extra argument that jackline has to choose itself; `rejected` gives the reasons."""
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in rejected:
            raise UsageError(f"{agent} does not accept {flag} here: {rejected[flag]}; remove it")


def mcp_servers(server: McpServer | None) -> dict[str, Any]:
    """A server by its name, in the JSON that most CLIs use; empty if there is none."""
    if server is None:
        return {}
    program, *arguments = server.argv
    return {server.name: {"command": program, "args": arguments, "env": dict(server.env)}}


def node_argv(binary: str, launchers: Mapping[str, str], *options: str) -> tuple[str, ...]:
    """The start of the command line of a JavaScript CLI: node, then the program.

    `launchers` maps the file name of a package's launcher to that of the program beside it: a launcher would stay in
    between, and killing it would leave the agent running. A binary that is not a script is a wrapper, and stays.
    """
    if not binary.endswith(_SCRIPTS):
        return (binary,)
    folder, name = os.path.split(binary)
    return ("node", *options, os.path.join(folder, launchers.get(name, name)))


def encode_node_prompt(agent: str, request: TurnRequest) -> bytes:
    """The prompt for standard input; UsageError if the CLI would read only its beginning."""
    data = encode_prompt(request)
    if len(data) > _NODE_STDIN_BYTES:
        raise UsageError(f"{agent} reads at most 8 MiB of prompt, not {len(data)} bytes; put the rest into a file")
    return data


def find_error_line(tail: str) -> str:
    """The line of a JavaScript CLI's stderr with the error: a stack trace or a help page may follow it."""
    plain = strip_colours(tail)
    found = _ERROR_LINE.search(plain)
    return found[0].strip()[:_LONGEST_LINE] if found else last_line(plain)


def helper_argv(request: TurnRequest, program: str, *words: str) -> tuple[str, ...]:
    """The command line of one of jackline's helper programs, without site packages, which could interfere."""
    return (request.binary or sys.executable, "-IS", HELPER, program, *words)


def helper_env(request: TurnRequest) -> dict[str, str]:
    """What a program that prints event lines needs to reach the gate, keep a session and identify its turn."""
    return {
        "JACKLINE_GATE": request.gate,
        "JACKLINE_GATE_TOKEN": request.token,
        "JACKLINE_RUN_ID": request.run_id,
        "JACKLINE_ATTEMPT": str(request.attempt),
        "JACKLINE_TURN": str(request.turn),
        "JACKLINE_SESSION": request.session or "",
        "JACKLINE_RESUME": "1" if request.resume else "0",
        "JACKLINE_AGENT_FOLDER": request.folder,
        "JACKLINE_WORKSPACE": request.workspace,
        "JACKLINE_MODEL": request.model,
        "JACKLINE_EFFORT": request.effort,
    }
