"""The mark in the environment by which a run's processes are found again, wherever they have moved."""

from __future__ import annotations

import hashlib
import hmac

NAME = "JACKLINE_MARK"
ATTEMPT = "JACKLINE_ATTEMPT"


def mark_of(secret: bytes, run_id: str) -> dict[str, str]:
    """One mark per run and store: two homes that use the same run id never end each other's processes."""
    # A new attempt ends everything with the run's mark; a warden that was lost only what also bears its attempt.
    return {NAME: hmac.new(secret, f"mark:{run_id}".encode(), hashlib.sha256).hexdigest()[:32]}
