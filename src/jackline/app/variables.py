"""Environment variables that were meant for jackline and are nearly right: read by nobody, and never noticed. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIX = "JACKLINE_"
_INSIDE = "JACKLINE_RUN_ID"  # a shell inside of a run has variables that are no settings
_ALIKE = 0.8


def mistyped(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each variable that is no setting but looks like one, with the one it looks like."""
    from difflib import get_close_matches

    if _INSIDE in environ:
        return
    known = [key.name.upper() for key in KEYS]
    for name in sorted(environ):
        meant = name.removeprefix(_PREFIX)
        if not name.startswith(_PREFIX) or meant in known:
            continue
        for near in get_close_matches(meant, known, n=1, cutoff=_ALIKE):
            yield name, _PREFIX + near
