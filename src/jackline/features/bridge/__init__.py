"""The bridge of a run: durable messages between its agents, a person, and agents that join from outside."""
