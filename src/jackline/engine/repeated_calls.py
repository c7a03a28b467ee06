"""Counts how often in a row an agent makes the same call with the same result. It decides and stores nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.digests import hash_text
from jackline.domain.events import canonical

if TYPE_CHECKING:
    from jackline.engine.call_ledger import CallRequest

_KEPT = 10_000  # characters of an input, to be redacted and shortened
# They wait for something else, and agents call them repeatedly.
_WAITING = frozenset(
    {
        "TaskOutput", "TaskResult", "BashOutput", "AgentOutputTool", "get_command_output", "read_background",
        "write_stdin", "wait",
        *(
            f"{prefix}{tool}"
            for prefix in ("mcp__jackline__", "mcp_jackline_", "jackline_")
            for tool in ("receive_messages", "ask_human_result", "work_next", "run_status", "bridge_status")
        ),
    }
)  # fmt: skip


class RepeatedCalls:
    """The calls of one turn, as far as they are the same one. Thread-safe enough: the ledger serialises its use."""

    def __init__(self) -> None:
        """Start with no call."""
        self._open: dict[str, tuple[str, str]] = {}  # call id → its digest and its words
        self._last = ""
        self._count = 0

    def record_start(self, call_id: str, request: CallRequest) -> None:
        """Record that a call was requested."""
        if request.tool not in _WAITING:
            given = canonical(request.input)
            self._open[call_id] = hash_text(f"{request.tool} {given}"), f"{request.tool} {given[:_KEPT]}"

    def record_end(self, call_id: str, result: str) -> tuple[int, str]:
        """Record the result of a call; return how often in a row it was the same, and the call's words."""
        digest, words = self._open.pop(call_id, ("", ""))
        if not digest:
            return 0, ""
        same = f"{digest} {hash_text(result)}"
        self._count = self._count + 1 if same == self._last else 1
        self._last = same
        return self._count, words
