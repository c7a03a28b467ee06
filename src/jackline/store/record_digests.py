"""Stores a digest of each row in the event that wrote it, so that later edits of the row can be detected.

The data of an event holds the digests of the rows written with it: `"records": {"turn 3": DIGEST}`. A digest covers the
values of the columns listed here, in this order. Databases hold these digests: never reorder a list or add to it.
Not covered are columns that change without an event, such as leases, counters and the time of the last change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.digests import sha256
from jackline.domain.events import Fact, canonical
from jackline.named import stored_dict
from jackline.store import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jackline.domain.records import Call, Message, Receipt, Run
    from jackline.domain.review_records import Finding
    from jackline.store.models import RunChange

RECORDS = "records"  # the key in an event's data
RUN = "run"

RUN_COLUMNS = (
    "id", "number", "repository", "lineage", "parent", "forked_at", "state", "reason", "wake_at", "failure", "proof",
    "token", "finished_at",
)  # fmt: skip
CALL_COLUMNS = (
    "id", "run_id", "attempt", "turn", "step", "occurrence", "tool", "call_class", "replay", "decision", "rule", "door",
    "key", "target", "input", "state", "prepared_at", "agent_call", "reason", "answer", "original", "output",
    "exit_code", "finished_at", "parent_id", "input_ref", "output_ref", "duration_ms", "external", "reason_code",
)  # fmt: skip
RECEIPT_COLUMNS = ("call_id", "run_id", "key", "target", "rule", "output", "external_id", "origin", "at")
MESSAGE_COLUMNS = ("run_id", "number", "text", "at")
STEP_COLUMNS = {
    "turn": (
        "run_id", "number", "step", "attempt", "role", "agent", "session", "prompt", "started_at", "ended_at",
        "exit_code", "failure", "detail", "last_message", "stdout_bytes", "stderr_bytes", "raw_lines", "wall_ms",
        "iterations", "steps", "calls", "tokens_input", "tokens_output", "tokens_cached", "usd_micros",
    ),
    "check": ("run_id", "step", "attempt", "command", "started_at", "ended_at", "exit_code", "output", "tree"),
    "checkpoint": ("run_id", "step", "kind", "life", "cursor", "at"),
    "iteration": ("run_id", "number", "tree", "failure", "digest", "detail", "at"),
    "verdict": (
        "run_id", "turn", "iteration", "review_round", "seat", "agent", "tree", "outcome", "resolved", "summary", "at",
    ),
    "finding": (
        "run_id", "number", "review_round", "seat", "agent", "severity", "file", "line", "text", "state",
        "settled_round", "reason",
    ),
}  # fmt: skip
_LABELS = {
    "turn": ("number",), "check": ("step",), "checkpoint": ("step", "kind"), "iteration": ("number",),
    "verdict": ("turn",), "finding": ("number",),
}  # fmt: skip
_AGENT_PREFIXES = ("agent.", "call.")
_STEP_RECORDED = Fact("step.recorded")


def digest_text(text: str) -> str:
    """The digest of a text."""
    return sha256(text.encode()).hexdigest()


def digest_row(values: Mapping[str, Any], columns: Iterable[str]) -> str:
    """The digest of a row, from its values by column."""
    return digest_text(canonical([values[name] for name in columns]))


def digest_run(run: Run) -> dict[str, str]:
    """The digest of a run's row as it is after the write."""
    status = run.status
    state = (str(status.state), rows.word(status.reason), status.wake_at, rows.word(status.failure), str(status.proof))
    names = (run.id, run.number, run.repository, run.lineage, run.parent, run.forked_at)
    return {RUN: digest_text(canonical([*names, *state, status.attempt, run.finished_at]))}


def digest_calls(calls: Iterable[Call]) -> dict[str, str]:
    """The digests of calls' rows."""
    return {name_call(call.id): digest_row(rows.call_values(call), CALL_COLUMNS) for call in calls}


def digest_receipt(receipt: Receipt) -> dict[str, str]:
    """The digest of a receipt's row."""
    return {name_receipt(receipt.call_id): digest_row(stored_dict(receipt), RECEIPT_COLUMNS)}


def digest_message(message: Message) -> dict[str, str]:
    """The digest of a message's row."""
    return {name_message(message.number): digest_row(stored_dict(message), MESSAGE_COLUMNS)}


def name_message(number: int) -> str:
    """The name of a message among the records."""
    return f"message {number}"


def name_call(call_id: str) -> str:
    """The name of a call among the records."""
    return f"call {call_id}"


def name_receipt(call_id: str) -> str:
    """The name of a receipt among the records."""
    return f"receipt {call_id}"


def name_step_record(record: str, values: Mapping[str, Any]) -> str:
    """The name of a turn, a check, a finding or another record of a step."""
    return " ".join([record, *(str(values[name]) for name in _LABELS[record])])


def is_final(values: Mapping[str, Any]) -> bool:
    """Whether a turn or a check has ended and is not written again; other records are final from the beginning."""
    return values.get("ended_at", 0) is not None


def cover(facts: tuple[Fact, ...], records: Mapping[str, str]) -> tuple[Fact, ...]:
    """The facts of one write, with the digests of its rows in the last; an agent's own data stays unchanged."""
    if not records:
        return facts
    *before, last = facts or (_STEP_RECORDED,)
    if last.kind.startswith(_AGENT_PREFIXES):
        before, last = [*before, last], _STEP_RECORDED
    return (*before, Fact(last.kind, {**last.data, RECORDS: dict(records)}))


def digest_step_records(change: RunChange) -> Iterator[tuple[str, str]]:
    """The digests of the records of a change that are final."""
    written = (
        ("turn", change.turn and rows.turn_values(change.turn)),
        *(
            (record, rows.build_parameters(value))
            for record, value in (
                ("check", change.check),
                ("checkpoint", change.checkpoint),
                ("iteration", change.iteration),
                ("verdict", change.verdict),
                *(("finding", finding) for finding in change.findings),
            )
            if value is not None
        ),
    )
    for record, values in written:
        if values is not None and is_final(values):
            yield name_step_record(record, values), digest_row(values, STEP_COLUMNS[record])


def digest_finding(finding: Finding) -> dict[str, str]:
    """The digest of a finding's row."""
    values = rows.build_parameters(finding)
    return {name_step_record("finding", values): digest_row(values, STEP_COLUMNS["finding"])}
