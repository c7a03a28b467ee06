"""Where a demo puts its files: a folder of its own, never mixed with others."""

from __future__ import annotations

import os
import tempfile

from jackline.errors import UsageError


def new_folder(wanted: str | None) -> str:
    """An empty folder that can be written; the demo never mixes its files with others."""
    folder = os.path.abspath(wanted) if wanted else tempfile.gettempdir()
    try:
        if not wanted:
            return tempfile.mkdtemp(prefix="jackline-demo-")
        os.makedirs(folder, exist_ok=True)
        if not os.listdir(folder):
            os.mkdir(os.path.join(folder, "home"), mode=0o700)
            return folder
    except OSError as error:
        raise UsageError(f"{folder} cannot hold the demo ({error.strerror}): name another folder with --keep") from None
    raise UsageError(f"{folder} is not empty: name a new folder with --keep")
