"""The limits of a run, its usage over all attempts, and how often and when a transient failure is retried. Pure."""

from __future__ import annotations

from typing import TypeVar

from jackline.digests import sha256
from jackline.formatting import format_duration, format_usd
from jackline.named import NamedTuple, stored_as

HOUR_MS = 3_600_000
_MOST_DOUBLINGS = 40
_Time = TypeVar("_Time", int, float)


@stored_as("wall_ms iterations steps calls tokens usd_micros repeats")
class Limits(NamedTuple):
    """How much a run may use before it stops cleanly; None means no limit. The defaults are finite on purpose."""

    wall_ms: int | None = 8 * HOUR_MS
    iterations: int | None = 20
    steps: int | None = 500
    calls: int | None = 10_000
    tokens: int | None = None
    usd_micros: int | None = 20_000_000
    repeats: int | None = 25  # of one call with the same result, in a row in one turn; then a person is asked


@stored_as("wall_ms iterations steps calls tokens_input tokens_output tokens_cached usd_micros usd_estimated")
class Spent(NamedTuple):
    """The usage of a run so far, over all its attempts."""

    wall_ms: int = 0
    iterations: int = 0
    steps: int = 0
    calls: int = 0
    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    usd_micros: int = 0
    usd_estimated: int = 0  # the part of `usd_micros` that was estimated

    @property
    def tokens(self) -> int:
        """The tokens that count against the limit; every provider includes cached input in `tokens_input`."""
        return self.tokens_input + self.tokens_output

    def plus(self, **more: int) -> Spent:
        """Return a new account with these amounts added."""
        values = {name: amount + more.pop(name, 0) for name, amount in self._asdict().items()}
        if more:
            message = f"no such account: {', '.join(more)}"
            raise TypeError(message)
        return Spent(**values)


def count_units(amount: float, unit: int) -> int:
    """An amount in whole units, such as dollars in millionths; the least of them is one, because 0 is no limit."""
    return round(amount * unit) or int(amount > 0)


def find_exhausted_limit(limits: Limits, spent: Spent) -> str | None:
    """Describe the first limit that is reached; None if there is room for one more unit of each."""
    for name in ("wall_ms", "iterations", "steps", "calls", "tokens", "usd_micros"):
        limit = getattr(limits, name)
        # An iteration or a step is counted when it begins, so the last allowed one may still be running.
        used = getattr(spent, name)
        if limit is not None and used >= limit:
            return _describe_amount(name, used, limit)
    return None


def _describe_amount(name: str, used: int, limit: int) -> str:
    if name == "usd_micros":
        return f"{format_usd(used)} of {format_usd(limit)}"
    if name == "wall_ms":
        return f"{format_duration(used)} of {format_duration(limit)} of work"
    return f"{used:,} of {limit:,} {name}"


# --- retries


@stored_as("most base_ms cap_ms")
class RetryPolicy(NamedTuple):
    """At most `most` retries in a row; the wait doubles from `base_ms` up to `cap_ms`."""

    most: int = 2
    base_ms: int = 5_000
    cap_ms: int = 300_000


def compute_wait(first: _Time, doublings: int, longest: _Time) -> _Time:
    """The wait after so many failures, or looks that found nothing: the first one, doubled each time, and capped."""
    return min(first * (1 << max(0, min(doublings, _MOST_DOUBLINGS))), longest)


def compute_backoff_ms(policy: RetryPolicy, retries: int, seed: str) -> int:
    """The wait before retry number `retries` (from 1): doubling, capped, with up to a quarter of jitter taken off.

    The jitter comes from the seed (a run's id), so that ten parked runs do not wake at the same instant and yet
    a replay of the same run waits the same time.
    """
    whole = compute_wait(policy.base_ms, retries - 1, policy.cap_ms)
    digest = sha256(f"{seed}:{retries}".encode()).digest()
    return whole - whole * int.from_bytes(digest[:2], "big") // (4 * 0x10000)
