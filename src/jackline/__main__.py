"""`python -m jackline`, and the console script: the command line in a process of its own, which ends with it."""

from __future__ import annotations

import gc
import sys

_RARELY = 50_000  # objects made since the last search for garbage, where Python's own default is 700


def console() -> None:
    """Run the command that was typed, and leave.

    Most commands live for a tenth of a second and leave no garbage. To look for it while they load, and once more at
    the end, took a tenth of that; one that lives long still gets rid of it.
    """
    gc.set_threshold(_RARELY)
    from jackline.cli.main import main

    code = main()
    gc.freeze()  # what is still there goes away with the process
    sys.exit(code)


if __name__ == "__main__":
    console()
