"""The program behind scripted_player.py. Must not import jackline: any Python can run it, like any other agent.

The package is loaded by its path, so it uses relative imports.
"""
