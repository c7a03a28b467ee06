"""How a repository is named: by the hash of its path, as the predecessor did. Pure."""

from __future__ import annotations

import hashlib


def repository_id(path: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the path."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:16]
