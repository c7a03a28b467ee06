"""`make mcp-replies`: writes the answers of the MCP server that do not change, for `jackline/features/mcp/relay.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

PAGE = Path(__file__).parents[1] / "src" / "jackline" / "features" / "mcp" / "replies.json"
METHODS = ("initialize", "ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list")


def ask_server(version: str) -> dict[str, Any]:
    """The results of the real server for a client of this protocol version, by method."""
    about = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "replies", "version": "1"}}
    messages: list[dict[str, Any]] = [{"id": 0, "method": "initialize", "params": about}]
    messages.append({"method": "notifications/initialized"})
    messages += [{"id": number, "method": method} for number, method in enumerate(METHODS[1:], 1)]
    results = {}
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "HOME": home, "JACKLINE_HOME": os.path.join(home, "jackline")}
        command = [sys.executable, "-P", "-m", "jackline", "mcp"]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "cwd": home, "env": environ}
        with subprocess.Popen(command, text=True, bufsize=1, **pipes) as server:
            for message in messages:
                server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")  # type: ignore[union-attr]
                if "id" in message:
                    reply = json.loads(server.stdout.readline())  # type: ignore[union-attr]
                    results[message["method"]] = reply["result"]
    return results


def render() -> str:
    """The text of the file."""
    answers = ask_server(HANDSHAKE_PROTOCOL_VERSIONS[-1])
    return (
        json.dumps({"versions": HANDSHAKE_PROTOCOL_VERSIONS, "results": answers}, indent=1, ensure_ascii=False) + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
