"""Annotations of the tools: whether a tool changes anything, and whether two equal calls have the effect of one."""

from __future__ import annotations

from mcp_types import ToolAnnotations

# These tools do not leave this machine, and they remove nothing.
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, idempotent_hint=False, destructive_hint=False, open_world_hint=False)
SETS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
# It runs commands of the caller, whose effects are unknown.
RUNS = ToolAnnotations(read_only_hint=False, idempotent_hint=False, destructive_hint=True, open_world_hint=True)
