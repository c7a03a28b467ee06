"""Finds mistyped JACKLINE_ variables, which would be ignored silently. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PREFIX = "JACKLINE_"
_RUN_VARIABLE = "JACKLINE_RUN_ID"  # a shell inside a run has variables that are not settings
_SIMILARITY = 0.8


def mistyped(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each variable that is almost a setting, with the setting that was probably meant."""
    from difflib import get_close_matches

    if _RUN_VARIABLE in environ:
        return
    known = [key.name.upper() for key in KEYS]
    for name in sorted(environ):
        meant = name.removeprefix(_PREFIX)
        if not name.startswith(_PREFIX) or meant in known:
            continue
        for near in get_close_matches(meant, known, n=1, cutoff=_SIMILARITY):
            yield name, _PREFIX + near
