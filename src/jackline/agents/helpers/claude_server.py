"""Starts a server that the user added to Claude Code for one project: its keys stay in the user's own file.

`claude-server FOLDER PROJECT NAME` replaces itself with the server; for a server with an address it prints its headers.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def main(arguments: list[str]) -> int:
    """Return the exit code, unless the server takes the place of this process."""
    folder, project, name = arguments
    path = os.path.join(folder or os.path.expanduser("~"), ".claude.json")
    try:
        with open(path, encoding="utf-8") as file:
            server: dict[str, Any] = json.load(file)["projects"][project]["mcpServers"][name]
        if server.get("url"):
            sys.stdout.write(json.dumps(_expand(server.get("headers") or {})))
            return 0
        argv = [_expand(server["command"]), *map(_expand, server.get("args") or [])]
        os.execvpe(argv[0], argv, {**os.environ, **_expand(server.get("env") or {})})  # noqa: S606 - the user's
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"jackline: server {name!r} of {path} cannot be started: {type(error).__name__}\n")
    return 1


def _expand(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Replace `${NAME}` and `${NAME:-default}`, as the CLI does."""
    if isinstance(value, dict):
        return {key: _expand(one) for key, one in value.items()}
    return _VARIABLE.sub(lambda found: os.environ.get(found[1], found[2] or ""), str(value))
