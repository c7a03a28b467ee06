"""The real CLIs of the agents, pinned, for the tests."""
