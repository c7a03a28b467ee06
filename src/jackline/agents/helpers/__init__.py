"""The programs behind the agents that need a conversation: the ollama loop and the ACP client.

start.py starts them by path. Like any other agent they must not import jackline, so they use relative imports. They
share the gate client and the event lines with the scripted player.
"""
