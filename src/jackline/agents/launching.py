"""What launches have in common: the prompt as bytes, and the arguments that jackline chooses itself. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import McpServer, TurnRequest

OWN_SESSION = "name the session with jackline's own --session"


def model(request: TurnRequest) -> str:
    """The model as one word: as a word of its own, one that begins with "-" would be taken for a flag."""
    return f"--model={request.model}"


def prompt(request: TurnRequest) -> bytes:
    """The prompt as it goes to standard input, of whatever length: a word of a command line may have 128 KB."""
    return request.prompt.encode("utf-8", "replace")


def refuse(agent: str, arguments: tuple[str, ...], unfit: Mapping[str, str]) -> None:
    """Raise UsageError for an extra argument that would take from jackline what it must choose itself."""
    for argument in arguments:
        flag = argument.partition("=")[0]
        if flag in unfit:
            raise UsageError(f"{agent} cannot be given {flag} here: {unfit[flag]}; leave it out")


def mcp_servers(server: McpServer | None) -> dict[str, Any]:
    """A server as most CLIs spell it in their JSON, below its name; nothing if there is none."""
    if server is None:
        return {}
    program, *arguments = server.argv
    return {server.name: {"command": program, "args": arguments, "env": dict(server.env)}}
