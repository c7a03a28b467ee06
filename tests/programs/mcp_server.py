"""A user's own MCP server with one tool, `poke`: it speaks just enough of the protocol, and imports nothing slow."""

from __future__ import annotations

import json
import sys

TOOL = {"name": "poke", "description": "poke it", "inputSchema": {"type": "object", "properties": {}}}


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            about = {"name": "other", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "poked"}]}
        case "ping":
            return {}
    return None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = answer(asked["method"], asked.get("params", {}))
    missing = {"error": {"code": -32601, "message": "Method not found"}}
    reply = missing if result is None else {"result": result}
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}) + "\n")
    sys.stdout.flush()
