"""SHA-256 and HMAC without OpenSSL, which would take 0.8 MB and some milliseconds of every command. Pure.

Every event, record and key needs a digest of a short text. Files can be large: `hashlib.file_digest` is faster there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256 as sha256  # noqa: PLC0414 - others import it from here
    from hmac import compare_digest as compare_digest  # noqa: PLC0414
else:
    from _operator import _compare_digest as compare_digest  # noqa: F401 - where `hmac` has it from

    try:
        from _sha2 import sha256  # since Python 3.12
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:  # a Python that was built without its own hashes
            from hashlib import sha256

_BLOCK_BYTES = 64
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


def hash_text(text: str) -> str:
    """The SHA-256 of a text, in hexadecimal digits; half a surrogate pair counts as it is."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def sign_text(secret: bytes, text: str) -> str:
    """The HMAC-SHA256 of a text (RFC 2104), in hexadecimal digits."""
    key = (sha256(secret).digest() if len(secret) > _BLOCK_BYTES else secret).ljust(_BLOCK_BYTES, b"\0")
    inner = sha256(key.translate(_INNER) + text.encode("utf-8", "surrogatepass")).digest()
    return sha256(key.translate(_OUTER) + inner).hexdigest()
