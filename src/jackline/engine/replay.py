"""The interrupted calls that the run insists on: they must be made again before any other. It decides nothing.

The ledger asks it whether a requested call has to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import Decision, Replay

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from jackline.domain.call_gate import Intent
    from jackline.domain.records import Call

_SHOWN = 300
_MOST_SHOWN = 5
_MOST_REFUSALS = 20  # per turn, before the run stops


class ReplayQueue:
    """The calls still to be made again. Each is replaced by one new call."""

    def __init__(
        self,
        calls: Iterable[Call],
        finished: Container[str] = (),
        *,
        reported: Iterable[Call] = (),
        holds: bool = True,
    ) -> None:
        """`calls` are in order, the oldest first; `finished` are keys of tasks whose output is known.

        `reported` are calls that the agent may make again; nothing waits for them.
        `holds`: the gate can make other calls wait. Otherwise the repeated calls are only recorded.
        """
        self._left = {call.id: call for call in calls}
        self._reported = {call.key: call.id for call in reported}
        self._finished, self._holds = finished, holds
        self._under_way: dict[str, str] = {}  # new call → the interrupted call that it replaces
        self._refusals = 0

    def __len__(self) -> int:
        """The number of calls that others wait for."""
        return len(self._left) if self._holds else 0

    @property
    def is_stuck(self) -> bool:
        """Whether the agent was refused too often."""
        return self._refusals >= _MOST_REFUSALS

    def mark_intent(self, intent: Intent) -> Intent:
        """Mark the intent as the repetition of an interrupted call, or as one that has to wait."""
        if not self._left:
            return intent._replace(replaces=self._reported.get(intent.key))
        original = self._find_original(intent)
        if original is not None:
            # The task of a subagent keeps its first key, however the agent words it now.
            return intent._replace(replaces=original.id, key=original.key)
        if not self._holds or intent.parent_id in self._under_way:  # part of a task that is being repeated
            return intent
        return intent._replace(waits_for=self.describe_calls())

    def record_decision(self, call_id: str, intent: Intent, decision: Decision) -> None:
        """Record the gate's decision."""
        if intent.waits_for and decision is Decision.DENY:
            self._refusals += 1
        if intent.replaces is None or decision is Decision.ASK:
            return
        if self._reported.get(intent.key) == intent.replaces:
            del self._reported[intent.key]
            return
        if decision is Decision.ALLOW:
            self._under_way[call_id] = intent.replaces
        else:  # its result is stored, or it may not be made: nothing waits for it
            self._left.pop(intent.replaces, None)

    def record_end(self, call_id: str) -> bool:
        """Record the end of a call, whatever its outcome; True if it was the last one to be repeated."""
        original = self._under_way.pop(call_id, None)
        return original is not None and self._left.pop(original, None) is not None and not self._left

    def describe_calls(self) -> str:
        """Describe the remaining calls for a model."""
        calls = [f"{call.tool} {call.input[:_SHOWN]}" for call in self._left.values()]
        more = f"; and {len(calls) - _MOST_SHOWN} more" if len(calls) > _MOST_SHOWN else ""
        return "; ".join(calls[:_MOST_SHOWN]) + more

    def _find_original(self, intent: Intent) -> Call | None:
        free = [call for call in self._left.values() if call.id not in self._under_way.values()]
        same = next((call for call in free if call.key == intent.key), None)
        if same is not None or intent.parent_id is not None or intent.key in self._finished:
            return same
        # A model never words the task of a subagent the same way twice.
        return next((call for call in free if call.replay is Replay.RELAUNCH and call.tool == intent.tool), None)
