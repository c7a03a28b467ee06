"""Separates the generated part of a retro's file from the text of a person. Pure.

The generated part is between two marks, and the first mark has its digest. If a person edited that part or removed the
marks, the file belongs to the person and is not written again.
"""

from __future__ import annotations

import hashlib
import re

_BEGIN = "<!-- jackline: generated, {digest}; write above or below, this part is written again -->"
_END = "<!-- jackline: end of the generated part -->"
_FOUND = re.compile(re.escape(_BEGIN).replace(r"\{digest\}", "([0-9a-f]{16})") + "\n(.*?)" + re.escape(_END), re.DOTALL)
_NOTES = "\n## Notes\n\nText here, or above the generated part, is kept.\n"


def fresh(title: str, generated: str) -> str:
    """The text of a new file."""
    return f"# {title}\n\n{_build_part(generated)}\n{_NOTES}"


def renewed(old: str, generated: str) -> str | None:
    """The file with a new generated part; None if a person edited that part."""
    found = _FOUND.findall(old)
    if len(found) != 1 or _digest(found[0][1]) != found[0][0]:
        return None
    return _FOUND.sub(lambda _: _build_part(generated), old)


def is_untouched(title: str, text: str) -> bool:
    """Whether a person added nothing to the file."""
    found = _FOUND.findall(text)
    return len(found) == 1 and text == fresh(title, found[0][1])


def _build_part(generated: str) -> str:
    text = f"{generated.rstrip()}\n\n".replace("<!--", "<! --")  # foreign text must not contain a mark
    return f"{_BEGIN.format(digest=_digest(text))}\n{text}{_END}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
