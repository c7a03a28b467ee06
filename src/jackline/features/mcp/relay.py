"""The MCP server that agents of a run start: answers what never changes, and starts `jackline mcp` for everything else.

It imports only the standard library, and as little of that as possible: loading the SDK takes 0.7 s, an agent waits for
its servers in every turn, and most turns call no tool. `replies.json` holds the answers of the real server to the
handshake and the lists (`make mcp-replies` writes it). Any other message, or an unusual one, goes to the real server,
which first gets the same handshake; from then on this process only copies bytes.
"""

from __future__ import annotations

import json
import os
import sys

_REPLIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replies.json")
_SERVER = (sys.executable, "-P", "-m", "jackline", "mcp")
_STDIN, _STDOUT = 0, 1
_CHUNK = 65_536


def main() -> int:
    """Serve until standard input ends; returns the exit code of the real server, if it was started."""
    with open(_REPLIES, "rb") as file:
        replies = json.load(file)
    if sys.stdin is None:  # closed: there is no client
        return 0
    lines = sys.stdin.buffer
    handshake: list[bytes] = []  # what the real server has to hear first
    while line := lines.readline():
        message = parse_message(line)
        if message.get("method") == "notifications/initialized" and len(handshake) == 1:
            handshake.append(line)
            continue
        reply = build_reply(replies, message, is_open=bool(handshake))
        if reply is None:
            return _relay(handshake, line)
        if message["method"] == "initialize":
            handshake.append(line)
        _write(_STDOUT, json.dumps(reply).encode() + b"\n")
    return 0


def parse_message(line: bytes) -> dict[str, object]:
    """The message of a line; an empty one if it is not a JSON object."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def build_reply(
    replies: dict[str, dict[str, object]], message: dict[str, object], *, is_open: bool
) -> dict[str, object] | None:
    """The reply to a message, after `initialize` if `is_open`; None if only the real server can answer."""
    method, number, params = message.get("method"), message.get("id"), message.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict) or type(number) not in {int, str}:
        return None
    result = replies["results"].get(method)
    if not isinstance(result, dict):
        return None
    if method == "initialize":
        version = params.get("protocolVersion")
        is_usual = isinstance(params.get("capabilities"), dict) and isinstance(params.get("clientInfo"), dict)
        if is_open or not is_usual or version not in replies["versions"]:
            return None
        result = {**result, "protocolVersion": version}
    elif not is_open or params.keys() - {"_meta"}:  # such as the cursor of a next page
        return None
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _relay(handshake: list[bytes], line: bytes) -> int:
    """Start the real server, repeat the handshake, and copy everything from this line on."""
    from threading import Thread

    server, to_server, answers = _start()
    with os.fdopen(answers, "rb") as output:
        if handshake:
            _write(to_server, handshake[0])
            number = parse_message(handshake[0]).get("id")
            while (answer := output.readline()) and parse_message(answer).get("id") != number:
                _write(_STDOUT, answer)
        Thread(target=_copy_input, args=(to_server, b"".join([*handshake[1:], line])), daemon=True).start()
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
