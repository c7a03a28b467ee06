"""The programs behind the agents that need a conversation: ollama's loop and the ACP client.

They are started by start.py, loaded by their path, and must not import jackline, like any other agent: hence the
relative imports. What they share with the scripted player (the gate, the lines) lives in `playing`.
"""
