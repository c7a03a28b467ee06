"""Starts a helper (`python -IS start.py ollama|acp|… …`) as a separate program; must not import jackline."""

from __future__ import annotations

import os.path
import sys
from importlib import import_module

PROGRAMS = {"ollama": "ollama_loop", "acp": "acp_client", "claude-server": "claude_server"}

if __name__ == "__main__":
    program = sys.argv[1] if len(sys.argv) > 1 else ""
    if program not in PROGRAMS:
        sys.exit(f"no such program; choose one of: {', '.join(PROGRAMS)}")
    agents = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(os.path.dirname(agents))  # last, so that it hides no library
    sys.exit(import_module(f"{os.path.basename(agents)}.helpers.{PROGRAMS[program]}").main(sys.argv[2:]))
