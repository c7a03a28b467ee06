"""Everything that the server offers, put together. Each part stands in a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.mcp import asking, case_tools, entry_tools, event_tools, prompts, resources, run_tools, work_tools
from jackline.mcp.server import Server

if TYPE_CHECKING:
    from jackline.mcp.desk import Desk

_PARTS = (case_tools, entry_tools, work_tools, event_tools, run_tools, asking, resources, prompts)


def build(desk: Desk) -> Server:
    """A server for one home."""
    server = Server(desk)
    for part in _PARTS:
        part.register(server, desk)
    return server
