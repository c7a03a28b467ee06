"""The tag in the environment by which the processes of a run are found, wherever they are in the process tree."""

from __future__ import annotations

import hashlib
import hmac

NAME = "JACKLINE_MARK"
ATTEMPT = "JACKLINE_ATTEMPT"


def mark_of(secret: bytes, run_id: str) -> dict[str, str]:
    """One tag per run and store: two homes with the same run id never kill each other's processes."""
    # A new attempt kills all processes with the tag; after the loss of a warden only those of its attempt are killed.
    return {NAME: hmac.new(secret, f"mark:{run_id}".encode(), hashlib.sha256).hexdigest()[:32]}
