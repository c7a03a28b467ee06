"""Small builders of plain records for tests of the views: a run, its turns, calls, events; no store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackline.domain.events import Event, Fact, place
from jackline.domain.records import Call, Run, RunStatus, Turn
from jackline.domain.spec import Spec
from jackline.domain.states import CallClass, CallState, Decision, Replay

AT = 1_700_000_000_000  # 2023-11-14T22:13:20Z
SPEC = Spec("mend it", "/srv/repository", agent="claude", task="chores", proof="make test")


def run(status: RunStatus | None = None, **more: Any) -> Run:
    values: dict[str, Any] = {
        "id": "run-1", "number": 12, "repository": "0123456789abcdef", "lineage": "run-1", "parent": None,
        "spec": SPEC, "status": status or RunStatus(), "owner": None, "event_seq": 1, "chain_head": "ab",
        "created_at": AT, "updated_at": AT + 500,
    }  # fmt: skip
    return Run(**(values | more))


def turn(number: int = 1, **more: Any) -> Turn:
    values: dict[str, Any] = {
        "run_id": "run-1", "number": number, "step": number, "attempt": 1, "role": "work", "agent": "claude",
        "session": "s-1", "prompt": "mend it", "started_at": AT + 10, "ended_at": AT + 2510, "exit_code": 0,
        "last_message": f"said in turn {number}",
    }  # fmt: skip
    return Turn(**(values | more))


def call(call_id: str = "call-1", **more: Any) -> Call:
    values: dict[str, Any] = {
        "id": call_id, "run_id": "run-1", "attempt": 1, "turn": 1, "step": 2, "occurrence": 1, "tool": "mail",
        "call_class": CallClass.EFFECT, "replay": Replay.ASK, "decision": Decision.ALLOW, "rule": "mails",
        "door": "hook", "key": f"key of {call_id}", "target": "mail:bob", "input": '{"to":"bob"}',
        "state": CallState.DONE, "prepared_at": AT,
    }  # fmt: skip
    return Call(**(values | more))


def events(*facts: tuple[str, Mapping[str, Any]]) -> list[Event]:
    """A stream of them, ten milliseconds apart."""
    told: list[Event] = []
    for seq, (kind, data) in enumerate(facts, 1):
        actor = "agent" if kind.startswith("agent.") else "engine"
        told.append(place(Fact(kind, data), "run-1", seq, AT + seq * 10, actor, told[-1].hash if told else ""))
    return told
