"""`python -m jackline`, and the console script: runs the command line and exits."""

from __future__ import annotations

import gc
import sys

_GC_THRESHOLD = 50_000  # allocations between two collections; Python's own default is 700


def console() -> None:
    """Run the command that was typed, and exit.

    Most commands live for a tenth of a second and leave no garbage. Collecting while they load, and once more at the
    end, took a tenth of that; a long-lived command is still collected.
    """
    gc.set_threshold(_GC_THRESHOLD)
    from jackline.cli.main import main

    code = main()
    gc.freeze()  # whatever is left goes away with the process
    sys.exit(code)


if __name__ == "__main__":
    console()
