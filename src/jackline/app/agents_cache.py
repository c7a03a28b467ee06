"""The folder that `make agents` fills with CLIs for jackline's own tests: its path, and the files that are ours.

Without the list that `make agents` wrote, no file is ours: it may be another folder.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from jackline.app import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MARK = ".jackline-agents"  # tools/agents/install.py writes it: one name per line
_NAME = re.compile(r"[a-z]+-\d[\d.]*")
_LONGEST = 100_000


def folder_of_cache(environ: Mapping[str, str]) -> str:
    """The path of the cache."""
    named = environ.get("JACKLINE_AGENTS_CACHE") or os.path.join(places.cache_folder(environ), "agents")
    return os.path.abspath(named)


def cache_parts(cache: str) -> Iterator[str]:
    """The package folders on the list, the links to them, the lock, and the list itself."""
    listed = _read_list(os.path.join(cache, MARK))
    if listed is None:
        return
    for name in (*listed, "lock", MARK):
        path = os.path.join(cache, name)
        if os.path.isdir(path) if name in listed else os.path.isfile(path):
            yield path
    links = os.path.join(cache, "bin")
    for name in sorted(os.listdir(links)) if os.path.isdir(links) and not os.path.islink(links) else ():
        path = os.path.join(links, name)
        target = os.readlink(path).split(os.sep) if os.path.islink(path) else []
        if target[:1] == [".."] and target[1:2] and target[1] in listed:
            yield path


def _read_list(path: str) -> list[str] | None:
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as file:
        names = file.read(_LONGEST).split()
    return sorted({name for name in names if _NAME.fullmatch(name)})
