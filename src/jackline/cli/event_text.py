"""Describes events in one line each, and picks the ones worth showing during a run. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jackline.formatting import make_printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.events import Event

_TEXTS = {
    "turn.started": "turn {turn} started",
    "check.started": "proof: {command}",
    "stop.wanted": "stopping: {detail}",
    "turn.idle": "continuing the session ({times} of {most})",
    "cancel.requested": "cancel requested",
    "agent.message": "{text}",
    "agent.thinking": "(thinking) {text}",
    "agent.call.started": "calls {tool}",
    "agent.call.finished": "{tool} exited with {exit_code}",
    "agent.usage": "used {tokens_input} + {tokens_output} tokens",
    "agent.error": "error: {text}",
    "agent.limit": "limit: {text}",
    "agent.retry": "retrying: {text}",
    "agent.compacted": "compacted the full context from {tokens_before} to {tokens_after} tokens",
    "agent.switched": "{from} cannot continue ({why}): switching to {to}",
    "session.lost": "{agent} has lost its session: a new one starts from the records of the run",
    "backup.made": "kept the work before {command} at {ref}",
    "worktree.made": "made worktree {path} on branch {branch} at {commit}",
    "worktree.restored": "made worktree {path} again from branch {branch} at {commit}: what was not committed is gone",
    "worktree.setup": "set-up command of the worktree started: {command}",
    "worktree.ready": "worktree {path} is ready",
    "worktree.merged": "merged {branch} into {target}: {commit}",
    "worktree.removed": "removed worktree {path}",
    "gate.advisory": "{agent} has no enforced gate: its calls are recorded, not held",
    "gate.unprotected": "{agent} runs without {protection} ({flags})",
    "gate.settings": "{agent} starts without this project's settings ({files}): read them, then `jackline trust`",
    "budget.late": "{agent} reports its usage only at the end of a turn: the budget in USD holds between turns",
    "budget.blind": "{agent} reports no usage: no budget in USD applies to it",
    "cost.assumed": "{agent}'s model ({model}) has no known price: assuming ${input} and ${output} per million tokens",
    "mcp.missing": "{agent} gets no jackline tools: {reason}",
    "review.verdict": "verdict of {agent}: {outcome} (round {round}) {text}",
    "review.accepted": "accepted the work in review round {round}: {reason}",
    "review.undone": "undid what the reviewer changed; its changes are kept: {kept}",
    "iteration.ended": "iteration {iteration} ended: {failure}: {detail}",
    "check.tree": "the proof ran on tree {tree}{named}",
    "check.void": "the proof does not count: it changed the files that it ran on",
    "check.dropped": "the files have changed since the review began: they are proved and reviewed again",
    "finding.added": "{finding} {severity}, {where}: {text}",
    "finding.raised": "{finding} is {severity} now",
    "finding.resolved": "{finding} is resolved",
    "finding.dismissed": "{finding} was dismissed: {reason}",
    "run.waiting": "waiting: {reason}",
    "run.message": "message to the agent: {text}",
    "run.changed": "{name} changed from {old} to {new}",
    "bridge.sent": "{from} to {to} ({type}): {text}",
    "work.created": "{kind} enqueued",
    "work.claimed": "claimed by {owner}, attempt {attempt}",
    "work.released": "released by {owner}",
    "work.resolved": "{status}",
    "work.buried": "given up after {attempts} attempts",
    "work.annotated": "notes: {notes}",
    "work.waiting": "asks: {question}",
    "work.answered": "answer: {answer}",
    "case.started": "started: {request}",
    "case.switched": "is now the active case",
    "case.closed": "closed: {summary}",
    "case.reopened": "reopened",
    "case.moved": "moved with its repository to {path}",
    "case.hypothesis.added": "{id} {text}",
    "case.hypothesis.resolved": "{id} is {status}: {text}",
    "case.evidence.added": "{id} {text}",
    "case.command.added": "{id} {status}: {text}",
    "case.learning.added": "{id} {text} ({status})",
    "case.learning.changed": "{id} {text} ({status})",
}
_TURN_TEXTS = {
    "plan": "turn {turn} started: plan",
    "review": "turn {turn} started: {agent} reviews (round {round})",
}
_NOTABLE = frozenset(
    {
        "turn.started", "turn.idle", "stop.wanted", "cancel.requested", "agent.error", "agent.limit", "agent.retry",
        "agent.switched", "agent.compacted", "session.lost", "backup.made", "gate.advisory", "gate.settings",
        "worktree.made", "worktree.restored", "worktree.setup", "bridge.sent",
        "gate.unprotected", "mcp.missing", "review.verdict", "review.undone", "finding.added", "finding.raised",
        "finding.resolved", "iteration.ended", "check.void", "check.dropped",
        "budget.late", "budget.blind", "cost.assumed",
    }
)  # fmt: skip
_MAX_CHARS = 300
_SHORT_ID = 12
_MOST_NAMED = 5  # files in a text
_DIGESTS = "records"  # digests, which only `jackline verify` reads


class _EventData(dict[str, Any]):
    """Shows `?` for a missing key: events of another version may have other keys."""

    def __missing__(self, name: str) -> str:
        return "?"


def load_event_data(event: Event) -> Mapping[str, Any]:
    """Return the data of an event."""
    found = json.loads(event.data)
    return found if isinstance(found, dict) else {}


def is_notable(event: Event) -> bool:
    """Return whether an event is shown in one line while a run works."""
    return event.kind in _NOTABLE or (event.kind == "check.tree" and bool(describe_left_files(load_event_data(event))))


def describe_left_files(data: Mapping[str, Any]) -> str:
    """Describe the files of an event `check.tree` that the tree of a proof does not hold; empty if it holds all."""
    parts = (
        ("left out, too large or unreadable", "left_out"),
        ("there before, but rewritten by each proof and ignored", "rewritten"),
        ("written by the proof and ignored", "untracked"),
    )
    texts: list[str] = []
    for title, key in parts:
        names = [str(name) for name in data.get(key) or ()]
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        texts += [f"{title}: {', '.join(names[:_MOST_NAMED])}{more}"] if names else ()
    return "; ".join(texts)


def _is_correction(data: Mapping[str, Any]) -> bool:
    """Whether a count is lowered: the total of a turn replaces what its messages had announced."""
    return any(isinstance(count := data.get(name), int) and count < 0 for name in ("tokens_input", "tokens_output"))


def describe_event(event: Event) -> str:
    """Describe an event in one line."""
    data = _EventData(load_event_data(event))
    pattern = _TEXTS.get(event.kind)
    if event.kind == "agent.call.finished":  # a call that an earlier turn began is not named again
        data.setdefault("tool", "a call")
    if event.kind == "agent.call.finished" and "exit_code" not in data:  # files and web pages have none, gemini no code
        pattern = "{tool} failed" if data["ok"] is False else "{tool} finished"
    if event.kind == "check.started" and "check" in data:
        pattern = "{check}: {command}"
    if event.kind == "check.tree":
        left = describe_left_files(data)
        data["tree"], data["named"] = str(data["tree"])[:_SHORT_ID], f"; {left}" if left else ""
    if event.kind == "review.undone":
        data["kept"] = " ".join(map(str, filter(None, (data.get("patch"), *(data.get("refs") or ())))))
    if event.kind == "bridge.sent" and "signal" in data:
        data["type"] = f"{data['type']} {data['signal']}"
    if event.kind == "turn.started":
        pattern = _TURN_TEXTS.get(data["role"], pattern)
    if event.kind == "agent.usage" and _is_correction(data):
        pattern = "corrected its usage by {tokens_input} + {tokens_output} tokens"
    if pattern:
        text = pattern.format_map(data)
    else:
        named = ((name, value) for name, value in data.items() if name != _DIGESTS and value not in (None, "", [], {}))
        text = " ".join((event.kind, *(f"{name}={value}" for name, value in named)))
    return make_printable(text)[:_MAX_CHARS]
