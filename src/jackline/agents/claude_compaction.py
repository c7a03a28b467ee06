"""How Claude Code tells that it compacts its context, and how it is given something back afterwards. Pure.

It runs a command before (PreCompact) and when a session begins anew (SessionStart); neither goes over http. What the
first one prints is added to the instructions for the summary, and `additionalContext` of the second stands in the next
request to the model. Seen with the real one: tests/agents/test_claude_compaction.py.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from jackline.domain.adapter import Compaction, Moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BEFORE = "PreCompact"
_AFTER = "SessionStart"
_FORGOT = ("compact", "resume")
_SECONDS = 20  # it takes a fraction of one; nothing waits for ever
_CONTEXT_BYTES = 8_000  # about two thousand tokens


class ClaudeCompaction:
    """The two hooks of Claude Code."""

    most_bytes = _CONTEXT_BYTES

    def moment(self, fields: Mapping[str, Any]) -> Moment | None:
        match fields.get("hook_event_name"):
            case "PreCompact":
                return Moment.BEFORE
            case "SessionStart" if fields.get("source") in _FORGOT:
                return Moment.AFTER
            case _:
                return None

    def said(self, moment: Moment, text: str) -> str:
        if moment is Moment.BEFORE:
            return text
        return json.dumps({"hookSpecificOutput": {"hookEventName": _AFTER, "additionalContext": text}})


COMPACTION: Compaction = ClaudeCompaction()


def hooks(command: Sequence[str]) -> dict[str, Any]:
    """The entries for the settings; whatever becomes of the command, the session goes on as if there were none."""
    hook = {"type": "command", "command": f"{shlex.join(command)} || true", "timeout": _SECONDS}
    return {_BEFORE: [{"hooks": [hook]}], _AFTER: [{"matcher": "|".join(_FORGOT), "hooks": [hook]}]}
