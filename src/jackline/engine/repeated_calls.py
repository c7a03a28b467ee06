"""Counts how often in a row an agent makes the same calls with the same results. It decides and stores nothing."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from jackline.digests import hash_text
from jackline.domain.events import canonical
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.engine.call_ledger import CallRequest

_KEPT = 10_000  # characters of an input, to be redacted and shortened
_LONGEST = 4  # calls in a cycle, such as a test, an edit, the test, and the edit back
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


class Repetition(NamedTuple):
    """The same calls again and again."""

    times: int  # in a row
    calls: tuple[str, ...]  # the words of each


_NONE = Repetition(0, ())


class RepeatedCalls:
    """The calls of one turn, as far as they are the same ones. Thread-safe enough: the ledger serialises its use."""

    def __init__(self) -> None:
        """Start with no call."""
        self._open: dict[str, tuple[str, str]] = {}  # call id → its digest and its words
        self._last = deque[tuple[str, str]](maxlen=_LONGEST)  # digest with result, and words; the newest first
        self._matches = [0] * (_LONGEST + 1)  # how many calls in a row were the one that many calls before

    def record_start(self, call_id: str, request: CallRequest) -> None:
        """Record that a call was requested."""
        if request.tool not in _WAITING:
            given = canonical(request.input)
            self._open[call_id] = hash_text(f"{request.tool} {given}"), f"{request.tool} {given[:_KEPT]}"

    def record_end(self, call_id: str, result: str) -> Repetition:
        """Record the result of a call; return how often in a row the last calls were the same."""
        digest, words = self._open.pop(call_id, ("", ""))
        if not digest:
            return _NONE
        same = f"{digest} {hash_text(result)}"
        for back, (before, _) in enumerate(self._last, 1):
            self._matches[back] = self._matches[back] + 1 if before == same else 0
        self._last.appendleft((same, words))
        times = [1 + self._matches[back] // back for back in range(1, len(self._last) + 1)]
        most = max(times)
        cycle = list(self._last)[times.index(most) :: -1]  # the shortest one, in its order
        return Repetition(most, tuple(call for _, call in cycle))
