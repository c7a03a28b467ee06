"""Starts the warden (`python -I -S __main__.py CONTROL_FD LOCK_FD DEADLINE_MS`); must not import jackline.

The program is the package around this file, loaded by its path.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    engine = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.append(engine)  # at the end, so that it hides no library
    code = __import__("warden.loop").loop.main(*(int(word) for word in sys.argv[1:4]))
    os._exit(code)  # at once: the supervisor waits, and there is nothing to clean up
