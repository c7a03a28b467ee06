"""Files of the workspace, and of nowhere else, for agents that leave reading and writing to us."""

from __future__ import annotations

import os
from itertools import islice

MOST_CHARACTERS = 65_536
MOST_NAMES = 1_000


class Outside(ValueError):
    """The path leads out of the workspace, or is none."""


def inside(workspace: str, path: str) -> str:
    """The whole path of a file of the workspace; links are followed before anything is compared."""
    if not path or "\0" in path:
        raise Outside(f"{path!r} is not a path")
    whole = os.path.realpath(os.path.join(workspace, path))
    if whole != workspace and not whole.startswith(workspace.rstrip("/") + "/"):
        raise Outside(f"{path} is outside the workspace {workspace}")
    return whole


def read(workspace: str, path: str, first: int = 1, count: int | None = None) -> str:
    """Lines of a text file, from the first-th on."""
    start = max(0, first - 1)
    with open(inside(workspace, path), encoding="utf-8", errors="replace", newline="") as file:
        return "".join(islice(file, start, None if count is None else start + max(0, count)))


def write(workspace: str, path: str, content: str) -> None:
    whole = inside(workspace, path)
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    with open(whole, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(content)


def names(workspace: str, path: str) -> str:
    """What is in a folder, one name a line; a folder ends with a slash."""
    with os.scandir(inside(workspace, path)) as entries:
        found = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    more = [f"… and {len(found) - MOST_NAMES} more"] if len(found) > MOST_NAMES else []
    return "\n".join([*found[:MOST_NAMES], *more])
