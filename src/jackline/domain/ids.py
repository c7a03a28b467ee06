"""Ids: time-ordered, collision-free in parallel, short to type. Pure: time and randomness are passed in.

An id is 26 characters of Crockford's base 32 in lower case: 48 bits of milliseconds, 80 bits of randomness.
"""

from __future__ import annotations

import re

from jackline.digests import hash_text

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_CHOSEN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_NUMBER = r"#?([0-9]{1,9})"
RANDOM_BYTES = 10


def make(wall_ms: int, randomness: bytes) -> str:
    """Make an id from a time and ten random bytes."""
    number = (wall_ms & (1 << 48) - 1) << 80 | int.from_bytes(randomness[:RANDOM_BYTES], "big")
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def is_chosen(text: str) -> bool:
    """Whether a caller may use this text as a run's id, which becomes the name of a folder."""
    return re.fullmatch(_CHOSEN, text) is not None and ".." not in text


def as_number(text: str) -> int | None:
    """The short number in `#12` or `12`, else None."""
    found = re.fullmatch(_NUMBER, text)
    return int(found[1]) if found else None


def repository_id(path: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the path."""
    return hash_text(path)[:16]
