"""The calls that a crash cut off and that have to be made again before anything else. It decides nothing itself.

The ledger asks it what a call that an agent wants to make has to wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import Decision, Replay

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from jackline.domain.gate import Intent
    from jackline.domain.records import Call

_SHOWN = 300
_MOST_SHOWN = 5
_MOST_REFUSALS = 20  # in one turn; a model that does not listen by then never will


class Queue:
    """What is left to be made again, by id. One call may take the place of each."""

    def __init__(self, calls: Iterable[Call], finished: Container[str] = (), *, holds: bool = True) -> None:
        """`calls` are the oldest first, as they are to be told; `finished` are keys of tasks whose output is known.

        Who cannot be held only gets noted what it makes again: nothing waits.
        """
        self._left = {call.id: call for call in calls}
        self._finished, self._holds = finished, holds
        self._under_way: dict[str, str] = {}  # the call that makes it again → the one that was cut off
        self._refusals = 0

    def __len__(self) -> int:
        """How many are waited for."""
        return len(self._left) if self._holds else 0

    @property
    def is_stuck(self) -> bool:
        """Whether the agent was told often enough."""
        return self._refusals >= _MOST_REFUSALS

    def place(self, intent: Intent) -> Intent:
        """The intent as the gate is to see it: as the one that makes a call again, or as one that has to wait."""
        if not self._left:
            return intent
        meant = self._meant(intent)
        if meant is not None:
            # A subagent's task keeps the key of the first one, however the agent words it now.
            return intent._replace(replaces=meant.id, key=meant.key)
        if not self._holds or intent.parent_id in self._under_way:  # part of a task that is being made again
            return intent
        return intent._replace(waits_for=self.told())

    def decided(self, call_id: str, intent: Intent, decision: Decision) -> None:
        """What the gate said to it."""
        if intent.waits_for and decision is Decision.DENY:
            self._refusals += 1
        if intent.replaces is None or decision is Decision.ASK:
            return
        if decision is Decision.ALLOW:
            self._under_way[call_id] = intent.replaces
        else:  # its result is known, or it may not be made any more: then nothing waits for it
            self._left.pop(intent.replaces, None)

    def ended(self, call_id: str) -> bool:
        """A call has come out, whatever its outcome; True if it was the last that was waited for."""
        original = self._under_way.pop(call_id, None)
        return original is not None and self._left.pop(original, None) is not None and not self._left

    def told(self) -> str:
        """The calls that are left, in words that a model can follow."""
        calls = [f"{call.tool} {call.input[:_SHOWN]}" for call in self._left.values()]
        more = f"; and {len(calls) - _MOST_SHOWN} more" if len(calls) > _MOST_SHOWN else ""
        return "; ".join(calls[:_MOST_SHOWN]) + more

    def _meant(self, intent: Intent) -> Call | None:
        free = [call for call in self._left.values() if call.id not in self._under_way.values()]
        same = next((call for call in free if call.key == intent.key), None)
        if same is not None or intent.parent_id is not None or intent.key in self._finished:
            return same
        # The words for a subagent are never the same twice.
        return next((call for call in free if call.replay is Replay.RELAUNCH and call.tool == intent.tool), None)
