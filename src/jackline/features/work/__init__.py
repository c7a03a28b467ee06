"""Work items: the agent's own queue."""
