"""Starts the scripted agent (`python -I scripted_player.py`) as a separate program; must not import jackline.

The program is the package `playback` beside this file, loaded by path: any recent Python can play a script, even one
without jackline installed.
"""

from __future__ import annotations

import os.path
import sys
from importlib import import_module

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # last, so that it hides no library
    sys.exit(import_module("playback.player").main())
