"""What a client is told about each tool besides its words: whether it changes anything, and whether twice is once."""

from __future__ import annotations

from mcp_types import ToolAnnotations

# None of them leaves this machine, and none takes away what was written before.
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, idempotent_hint=False, destructive_hint=False, open_world_hint=False)
SETS = ToolAnnotations(read_only_hint=False, idempotent_hint=True, destructive_hint=False, open_world_hint=False)
# It runs commands that somebody names: nobody knows what they do.
RUNS = ToolAnnotations(read_only_hint=False, idempotent_hint=False, destructive_hint=True, open_world_hint=True)
