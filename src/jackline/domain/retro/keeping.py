"""What of a retro's file is jackline's and what is a person's. Pure.

The generated part stands between two marks, the first of which has its digest: if a person changed that part, or took
the marks away, the file is theirs, and is not written again.
"""

from __future__ import annotations

import hashlib
import re

_BEGIN = "<!-- jackline: generated, {digest}; write above or below, this part is written again -->"
_END = "<!-- jackline: end of the generated part -->"
_FOUND = re.compile(re.escape(_BEGIN).replace(r"\{digest\}", "([0-9a-f]{16})") + "\n(.*?)" + re.escape(_END), re.DOTALL)
_NOTES = "\n## Notes\n\nWhat you write here, or above the generated part, stays.\n"


def fresh(title: str, generated: str) -> str:
    """A new file."""
    return f"# {title}\n\n{_part(generated)}\n{_NOTES}"


def renewed(old: str, generated: str) -> str | None:
    """The file with its generated part put anew; None if that is not jackline's to change any more."""
    found = _FOUND.findall(old)
    if len(found) != 1 or _digest(found[0][1]) != found[0][0]:
        return None
    return _FOUND.sub(lambda _: _part(generated), old)


def is_untouched(title: str, text: str) -> bool:
    """Whether nothing in the file is a person's."""
    found = _FOUND.findall(text)
    return len(found) == 1 and text == fresh(title, found[0][1])


def _part(generated: str) -> str:
    text = f"{generated.rstrip()}\n\n".replace("<!--", "<! --")  # no mark may come from what others wrote
    return f"{_BEGIN.format(digest=_digest(text))}\n{text}{_END}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
