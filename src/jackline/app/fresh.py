"""Files that are written once: whole or not at all, and never over one that is there. It replaces nothing."""

from __future__ import annotations

import os
from contextlib import suppress


def write(path: str, text: str, mode: int = 0o666) -> bool:
    """Whether it was written; False if anything of that name is there, be it a link that leads nowhere."""
    if os.path.lexists(path):
        return False
    beside = f"{path}.{os.urandom(6).hex()}.unfinished"
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        return _named(beside, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(beside)


def _named(beside: str, path: str) -> bool:
    """Give it its name; unlike a rename, a second name never replaces a file that appeared meanwhile."""
    try:
        os.link(beside, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError:  # a file system without second names: one more look has to do
        if os.path.lexists(path):
            return False
        os.rename(beside, path)
    return True
