"""Policy: which calls are effects, when two calls are the same, and what the gate may do. Pure."""
