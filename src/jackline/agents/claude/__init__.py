"""Claude Code: the adapter, its hooks and its output."""
