"""The MCP server that agents of a run start: answers what never changes, and starts `jackline mcp` for everything else.

It imports only the standard library, and as little of that as possible: loading the SDK takes 0.7 s, an agent waits for
its servers in every turn, and most turns call no tool. `replies.json` holds the answers of the real server to the
opening of a session and the lists (`make mcp-replies` writes it). Any other message, or an unusual one, goes to the
real server, which first gets the same opening; from then on this process only copies bytes.

A client opens with `initialize`, or, from version 2026-07-28 of the protocol on, with `server/discover`; each of its
later requests then names the version, and each result has a few fields more.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # as in `typing`, which takes a third of the start
if TYPE_CHECKING:
    from typing import Any

_REPLIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replies.json")
_SERVER = (sys.executable, "-P", "-m", "jackline", "mcp")
_VERSION, _CAPABILITIES = (f"io.modelcontextprotocol/{name}" for name in ("protocolVersion", "clientCapabilities"))
_STDIN, _STDOUT = 0, 1
_CHUNK = 65_536


def main() -> int:
    """Serve until standard input ends; returns the exit code of the real server, if it was started."""
    with open(_REPLIES, "rb") as file:
        replies = json.load(file)
    if sys.stdin is None:  # closed: there is no client
        return 0
    lines = sys.stdin.buffer
    opening: list[bytes] = []  # what the real server has to hear first
    opened_by = ""  # the method
    while line := lines.readline():
        message = parse_message(line)
        if message.get("method") == "notifications/initialized" and opened_by == "initialize" and len(opening) == 1:
            opening.append(line)
            continue
        result = find_result(replies, message, opened_by)
        if result is None:
            return _relay(opening, line)
        if not opening:
            opening, opened_by = [line], str(message["method"])
        _write(_STDOUT, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
    return 0


def parse_message(line: bytes) -> dict[str, Any]:
    """The message of a line; an empty one if it is not a JSON object."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def find_result(replies: Any, message: dict[str, Any], opened_by: str) -> dict[str, Any] | None:  # noqa: ANN401 - JSON
    """The result of a request after the session was opened by this method; None if only the real server can answer."""
    method, params = message.get("method"), message.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict) or type(message.get("id")) not in {int, str}:
        return None
    meta = params.get("_meta", {})
    version = meta.get(_VERSION) if isinstance(meta, dict) else None
    if method == "initialize":
        is_usual = isinstance(params.get("capabilities"), dict) and isinstance(params.get("clientInfo"), dict)
        if opened_by or not is_usual or params.get("protocolVersion") not in replies["versions"]:
            return None
        return {**replies["results"][method], "protocolVersion": params["protocolVersion"]}
    if params.keys() - {"_meta"}:  # such as the cursor of a next page
        return None
    if opened_by == "initialize" and version is None:
        found: dict[str, Any] | None = replies["results"].get(method) if method != "server/discover" else None
        return found
    is_usual = version in replies["stateless_versions"] and isinstance(meta.get(_CAPABILITIES), dict)
    if opened_by == "initialize" or not is_usual or not (opened_by or method == "server/discover"):
        return None
    result = replies["results"].get(method) if method != "ping" else None  # which these versions do not have
    return {**result, **replies["stateless_fields"]} if result else None


def _relay(opening: list[bytes], line: bytes) -> int:
    """Start the real server, repeat the opening, and copy everything from this line on."""
    from threading import Thread

    server, to_server, answers = _start()
    with os.fdopen(answers, "rb") as output:
        if opening:
            _write(to_server, opening[0])
            number = parse_message(opening[0]).get("id")
            while (answer := output.readline()) and parse_message(answer).get("id") != number:
                _write(_STDOUT, answer)
        Thread(target=_copy_input, args=(to_server, b"".join([*opening[1:], line])), daemon=True).start()
        while data := output.read1(_CHUNK):
            _write(_STDOUT, data)
    return os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])


def _start() -> tuple[int, int, int]:
    """The process, and the ends of its pipes."""
    its_input, to_server = os.pipe()
    answers, its_output = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, its_input, _STDIN), (os.POSIX_SPAWN_DUP2, its_output, _STDOUT)]
    server = os.posix_spawn(_SERVER[0], _SERVER, os.environ, file_actions=actions)
    os.close(its_input)
    os.close(its_output)
    return server, to_server, answers


def _copy_input(to_server: int, first: bytes) -> None:
    """Copy to the server until our input ends; a server that has ended is noticed by its output."""
    try:
        _write(to_server, first)
        while data := sys.stdin.buffer.read1(_CHUNK):  # type: ignore[union-attr]  # it is a BufferedReader
            _write(to_server, data)
        os.close(to_server)
    except BrokenPipeError:
        pass


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    try:
        code = main()
    except (BrokenPipeError, KeyboardInterrupt):  # the agent is gone, or ends us
        code = 0
    os._exit(code if code >= 0 else 128 - code)  # without waiting for a thread that still reads
