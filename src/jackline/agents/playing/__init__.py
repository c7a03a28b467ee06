"""The program behind scripted_player.py, in parts; it must not import jackline, like any other agent.

Hence the relative imports, here and nowhere else: this package is loaded by its path.
"""
