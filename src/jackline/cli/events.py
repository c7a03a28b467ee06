"""Events in words: one line for a person, and which of them are worth one. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.formatting import make_printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.events import Event

_TEXTS = {
    "turn.started": "turn {turn} begins",
    "check.started": "proof: {command}",
    "stop.wanted": "stopping: {detail}",
    "cancel.requested": "cancel requested",
    "agent.message": "{text}",
    "agent.thinking": "(thinks) {text}",
    "agent.call.started": "calls {tool}",
    "agent.call.finished": "{tool} ended with exit code {exit_code}",
    "agent.usage": "used {tokens_input} + {tokens_output} tokens",
    "agent.error": "error: {text}",
    "agent.limit": "limit: {text}",
    "agent.retry": "it tries again: {text}",
    "agent.compacted": "its context was full: compacted from {tokens_before} to {tokens_after} tokens",
    "agent.switched": "{from} cannot go on ({why}): {to} takes over",
    "session.lost": "{agent} does not know its session any more: a fresh one begins with what is written down",
    "gate.advisory": "{agent} does not ask before its calls: they are recorded, not held",
    "mcp.missing": "{agent} gets no tools of jackline: {reason}",
    "run.waiting": "waiting: {reason}",
    "work.created": "{kind} is in the queue",
    "work.claimed": "{owner} takes it, attempt {attempt}",
    "work.released": "{owner} gives it back",
    "work.resolved": "{status}",
    "work.buried": "given up after {attempts} attempts",
    "work.annotated": "notes: {notes}",
    "work.waiting": "asks: {question}",
    "work.answered": "answer: {answer}",
    "case.started": "begins: {request}",
    "case.switched": "is the active one",
    "case.closed": "closed: {summary}",
    "case.reopened": "open again",
    "case.moved": "goes with its repository to {path}",
    "case.hypothesis.added": "{id} {text}",
    "case.hypothesis.resolved": "{id} is {status}: {text}",
    "case.evidence.added": "{id} {text}",
    "case.command.added": "{id} {status}: {text}",
    "case.learning.added": "{id} {text} ({status})",
    "case.learning.changed": "{id} {text} ({status})",
}
_NOTABLE = frozenset(
    {
        "turn.started", "check.started", "stop.wanted", "cancel.requested", "agent.message",
        "agent.call.started", "agent.error", "agent.limit", "agent.retry", "agent.switched", "session.lost",
        "gate.advisory", "mcp.missing",
    }
)  # fmt: skip
_LONGEST = 300
_RECORDS = "records"  # digests, which only `jackline verify` reads


class _Facts(dict[str, Any]):
    """What an event does not say is left open, never an error: a later version may say other things."""

    def __missing__(self, name: str) -> str:
        return "?"


def data_of(event: Event) -> Mapping[str, Any]:
    """What an event says."""
    found = json.loads(event.data)
    return found if isinstance(found, dict) else {}


def is_notable(event: Event) -> bool:
    """Whether it is worth a line while a run goes on."""
    return event.kind in _NOTABLE


def describe(event: Event) -> str:
    """One line for a person."""
    facts = _Facts(data_of(event))
    pattern = _TEXTS.get(event.kind)
    text = pattern.format_map(facts) if pattern else _plain(event.kind, facts)
    return make_printable(text)[:_LONGEST]


def _plain(kind: str, facts: Mapping[str, Any]) -> str:
    told = ((name, value) for name, value in facts.items() if name != _RECORDS)
    said = " ".join(f"{name}={value}" for name, value in told if value not in (None, "", [], {}))
    return f"{kind} {said}".rstrip()
