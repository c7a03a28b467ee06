"""Caches the last writes of this process, so that it need not read them back.

A cached value is only a hint: every write compares it with the database. A stale hint costs one more round: the
transaction is rolled back and run again with fresh values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jackline.domain.records import Call, Lease
    from jackline.store.parts import RunHead

_CALLS_KEPT = 64
_LONGEST_KEPT = 65_536  # characters of input


class WriteCache:
    """The heads of the runs that this process works on, and its open calls."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[Lease, RunHead]] = {}
        self._calls: dict[str, Call] = {}

    def get_head(self, lease: Lease) -> RunHead | None:
        """The head of the lease's run after our last write."""
        known = self._heads.get(lease.run_id)
        return known[1] if known is not None and known[0] == lease else None

    def put_head(self, lease: Lease, head: RunHead) -> None:
        """Keep a head; only after the commit."""
        self._heads[lease.run_id] = (lease, head)

    def take_call(self, lease: Lease, call_id: str) -> Call | None:
        """A call of the lease's run as we wrote it; it is returned once."""
        call = self._calls.pop(call_id, None)
        return call if call is not None and call.run_id == lease.run_id else None

    def put_call(self, call: Call) -> None:
        """Keep an open call; only after the commit."""
        if len(call.input) <= _LONGEST_KEPT:
            if len(self._calls) >= _CALLS_KEPT:
                self._calls.clear()
            self._calls[call.id] = call

    def drop_run(self, run_id: str) -> None:
        """Forget the run, because its cached values may be stale."""
        self._heads.pop(run_id, None)
        self._calls.clear()
