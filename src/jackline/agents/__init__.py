"""One small file per agent: how to launch it and how to read it; never sees the store."""
