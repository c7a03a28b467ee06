"""Retry and backoff: how often a transient failure is retried, and how long to wait before each retry. Pure."""

from __future__ import annotations

import hashlib

from jackline.named import NamedTuple, stored_as


@stored_as("most base_ms cap_ms")
class RetryPolicy(NamedTuple):
    """At most `most` retries in a row; the wait doubles from `base_ms` up to `cap_ms`."""

    most: int = 2
    base_ms: int = 5_000
    cap_ms: int = 300_000


def backoff_ms(policy: RetryPolicy, retries: int, seed: str) -> int:
    """The wait before retry number `retries` (from 1): doubling, capped, with up to a quarter of jitter taken off.

    The jitter comes from the seed (a run's id), so that ten parked runs do not wake at the same instant and yet
    a replay of the same run waits the same time.
    """
    whole = min(policy.cap_ms, policy.base_ms << max(0, min(retries, 40) - 1))
    digest = hashlib.sha256(f"{seed}:{retries}".encode()).digest()
    return whole - whole * int.from_bytes(digest[:2], "big") // (4 * 0x10000)
