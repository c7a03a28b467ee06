"""`make mcp-replies`: writes the answers of the MCP server that do not change, for `jackline/features/mcp/relay.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

PAGE = Path(__file__).parents[1] / "src" / "jackline" / "features" / "mcp" / "replies.json"
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
_META = "io.modelcontextprotocol"
_CLIENT = {"name": "replies", "version": "1"}


def ask_server(version: str) -> dict[str, Any]:
    """The results of the real server for a client of this protocol version, by method."""
    messages: list[dict[str, Any]]
    if version in MODERN_PROTOCOL_VERSIONS:
        params = build_params(version)
        messages = [{"id": method, "method": method, "params": params} for method in ("server/discover", *LISTS)]
    else:
        about = {"protocolVersion": version, "capabilities": {}, "clientInfo": _CLIENT}
        messages = [{"id": 0, "method": "initialize", "params": about}, {"method": "notifications/initialized"}]
        messages += [{"id": method, "method": method} for method in ("ping", *LISTS)]
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


def build_params(version: str) -> dict[str, Any]:
    """The parameters of a request without a session."""
    return {
        "_meta": {
            f"{_META}/protocolVersion": version,
            f"{_META}/clientInfo": _CLIENT,
            f"{_META}/clientCapabilities": {},
        }
    }


def render() -> str:
    """The text of the file."""
    results = ask_server(HANDSHAKE_PROTOCOL_VERSIONS[-1])
    stateless = ask_server(MODERN_PROTOCOL_VERSIONS[-1])
    fields = {name: value for name, value in stateless["tools/list"].items() if name not in results["tools/list"]}
    discovered = {name: value for name, value in stateless["server/discover"].items() if name not in fields}
    replies = {
        "versions": HANDSHAKE_PROTOCOL_VERSIONS,
        "stateless_versions": MODERN_PROTOCOL_VERSIONS,
        "stateless_fields": fields,
        "results": {**results, "server/discover": discovered},
    }
    return json.dumps(replies, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
