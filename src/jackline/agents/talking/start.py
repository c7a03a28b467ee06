"""Starts a helper (`python -IS start.py ollama|acp …`), a program of its own; must not import jackline."""

from __future__ import annotations

import os.path
import sys
from importlib import import_module

PROGRAMS = ("ollama", "acp")

if __name__ == "__main__":
    program = sys.argv[1] if len(sys.argv) > 1 else ""
    if program not in PROGRAMS:
        sys.exit(f"which program? one of: {', '.join(PROGRAMS)}")
    agents = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(os.path.dirname(agents))  # at the end: nothing here may hide a library
    sys.exit(import_module(f"{os.path.basename(agents)}.talking.{program}").main(sys.argv[2:]))
