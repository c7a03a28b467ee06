"""What this process wrote last, so that it need not read it back. A hint only: every write compares with the database.

A hint that turns out to be old costs one more round: the transaction is rolled back and run again on what is read.
"""

from __future__ import annotations

from jackline.domain.records import Call, Lease
from jackline.store.base import Head

_CALLS_KEPT = 64
_LONGEST_KEPT = 65_536  # characters of input


class Memory:
    """The heads of the runs that this process works on, and the calls that it let through and that are still open."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[Lease, Head]] = {}
        self._calls: dict[str, Call] = {}

    def head(self, lease: Lease) -> Head | None:
        """The head of the lease's run as we left it."""
        known = self._heads.get(lease.run_id)
        return known[1] if known is not None and known[0] == lease else None

    def keep_head(self, lease: Lease, head: Head) -> None:
        """Remember how we left it; only after the commit."""
        self._heads[lease.run_id] = (lease, head)

    def call(self, lease: Lease, call_id: str) -> Call | None:
        """A call of the lease's run as we wrote it; given out once."""
        call = self._calls.pop(call_id, None)
        return call if call is not None and call.run_id == lease.run_id else None

    def keep_call(self, call: Call) -> None:
        """Remember a call that is under way; only after the commit."""
        if len(call.input) <= _LONGEST_KEPT:
            if len(self._calls) >= _CALLS_KEPT:
                self._calls.clear()
            self._calls[call.id] = call

    def forget(self, run_id: str) -> None:
        """What is known of this run may be old."""
        self._heads.pop(run_id, None)
        self._calls.clear()
