"""Starts the scripted agent (`python -I scripted_player.py`), a program of its own; must not import jackline.

The program is the package `playing` beside this file, loaded by path: any Python that is new enough can play
a script, also one that has no jackline installed.
"""

from __future__ import annotations

import os.path
import sys
from importlib import import_module

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # at the end: nothing here may hide a library
    sys.exit(import_module("playing.turn").main())
