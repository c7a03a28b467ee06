"""Builds the server from its tools, resources and prompts, which features register by dotted name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from jackline.mcp.server import Server

if TYPE_CHECKING:
    from jackline.mcp.desk import ToolContext

PARTS = (  # "module:function"; the function gets the server and the context
    "jackline.mcp.case_tools:register_case_tools",
    "jackline.mcp.entry_tools:register_entry_tools",
    "jackline.mcp.work_tools:register_work_tools",
    "jackline.mcp.event_tools:register_event_tools",
    "jackline.mcp.run_tools:register_run_tools",
    "jackline.mcp.asking:register_ask_tools",
    "jackline.mcp.resources:register_resources",
    "jackline.mcp.prompts:register_prompts",
)


def build_server(context: ToolContext) -> Server:
    """Build the server for one home."""
    server = Server(context)
    for part in PARTS:
        module, _, register = part.partition(":")
        getattr(import_module(module), register)(server, context)
    return server
