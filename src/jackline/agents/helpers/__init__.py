"""The programs behind the agents ollama and acp: a tool loop around a model, and an ACP client.

start.py starts them by path. Like any other agent they must not import jackline, so they use relative imports. They
share the gate client and the event lines with the scripted player.
"""
