"""The receipts of a run: its effects, their targets, and the evidence for each. Pure: it does not read the store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jackline.domain.call_text import HOST_NOTES, describe_ledger_call, format_target
from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState, Decision
from jackline.formatting import format_line, format_rfc3339, to_datetime
from jackline.named import NamedTuple

CONFIRMED, CLAIMED, IN_DOUBT, REPLAYED, UNGATED = "confirmed", "claimed", "in doubt", "replayed", "ungated"
STATUS_MEANINGS = {
    CONFIRMED: "confirmed by a probe or a person, or its output names an external id",
    CLAIMED: "reported by the tool, without other evidence",
    IN_DOUBT: "it may have happened; the outcome is unknown",
    REPLAYED: "a stored result was returned, or the call was repeated after it was known not to have happened",
    UNGATED: "seen in the agent's output; the gate did not hold it",
}
_STREAM = "stream"  # the door of calls that jackline learns about after they have started
_CHECKED = frozenset({"probe", "person"})
_DID_NOT_HAPPEN = frozenset({CallState.VOID, CallState.FAILED, CallState.ABANDONED})
_KEY_CHARS = 12
_MAX_CELL = 100  # characters
_MARKUP = re.compile(r"[\\|<\[`]")
_TITLES = ("time", "status", "what", "rule", "target", "external", "took", "at", "key", "call")


class RunLedger(NamedTuple):
    """The calls and receipts of one run; of an ancestor only steps up to `upto` count."""

    run_id: str
    calls: Sequence[Call]
    receipts: Sequence[Receipt]
    upto: int | None = None


class Effect(NamedTuple):
    """One row of the table."""

    call: Call
    status: str
    external: Mapping[str, str]
    evidence: str = ""  # the source of the confirmation
    original: str | None = None  # the call that this one replays
    inherited: bool = False


class Receipts(NamedTuple):
    """The contents of `jackline receipts`."""

    run_id: str
    effects: tuple[Effect, ...]
    unknown: tuple[Call, ...] = ()  # interrupted calls without a known class
    denied: int = 0
    asked: int = 0
    did_not: int = 0  # effects known not to have happened


def build_receipts(own: RunLedger, ancestors: Sequence[RunLedger] = ()) -> Receipts:
    """Build the receipts of a run; inherited ones come first, those of the oldest ancestor before all."""
    inherited = [one for ancestor in reversed(ancestors) for one in _build_effects(ancestor, inherited=True)]
    effects = [call for call in own.calls if call.call_class is CallClass.EFFECT]
    return Receipts(
        run_id=own.run_id,
        effects=(*inherited, *_build_effects(own)),
        unknown=tuple(
            one for one in own.calls if one.state is CallState.IN_DOUBT and one.call_class is not CallClass.EFFECT
        ),
        denied=sum(call.state is CallState.DENIED and call.decision is not Decision.ASK for call in effects),
        asked=sum(call.state is CallState.DENIED and call.decision is Decision.ASK for call in effects),
        did_not=sum(call.state in _DID_NOT_HAPPEN for call in effects),
    )


def receipts_to_json(receipts: Receipts) -> dict[str, Any]:
    """Convert to JSON values; keys are not shortened, times are RFC 3339."""
    return {
        "run": receipts.run_id,
        "effects": [
            {
                "status": one.status,
                "evidence": one.evidence or None,
                "original": one.original,
                "inherited": one.inherited,
                "external": dict(one.external),
                **_call_to_json(one.call),
            }
            for one in receipts.effects
        ],
        "unknown": [_call_to_json(call) for call in receipts.unknown],
        "denied": receipts.denied,
        "asked": receipts.asked,
        "did_not_happen": receipts.did_not,
    }


def render_receipts(receipts: Receipts) -> str:
    """Render a Markdown table that is also readable as text, and what it leaves out."""
    lines = [f"# Receipts of run {receipts.run_id}", ""]
    if receipts.effects:
        used = {one.status for one in receipts.effects}
        legend = (f"- **{status}**: {meaning}" for status, meaning in STATUS_MEANINGS.items() if status in used)
        lines += [*_render_table(_TITLES, [format_effect(one) for one in receipts.effects]), "", *legend, ""]
    else:
        lines += ["This run has no effects.", ""]
    if receipts.unknown:
        rows = [[_format_time(call.prepared_at), describe_ledger_call(call), call.id] for call in receipts.unknown]
        lines += [
            "## Outcome unknown",
            "",
            "These calls were interrupted, and no rule says what they touch: check.",
            "",
        ]
        lines += [*_render_table(("time", "what", "call"), rows), ""]
    left_out = format_left_out(receipts)
    return "\n".join([*lines, f"Not listed: {left_out}.", ""] if left_out else lines)


def format_left_out(receipts: Receipts) -> str:
    """Return the numbers of calls that are not listed, because they had no effect; empty if there are none."""
    counts = (
        (receipts.did_not, "known not to have happened"),
        (receipts.denied, "denied"),
        (receipts.asked, "needed approval"),
    )
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _build_effects(ledger: RunLedger, *, inherited: bool = False) -> Iterator[Effect]:
    receipts = {one.call_id: one for one in ledger.receipts}
    states = {call.id: call.state for call in ledger.calls}
    for call in ledger.calls:
        happened = call.state in {CallState.DONE, CallState.IN_DOUBT, CallState.PREPARED}
        counts = ledger.upto is None or call.step <= ledger.upto
        if call.call_class is CallClass.EFFECT and happened and counts:
            yield _build_effect(call, receipts.get(call.id), states, inherited=inherited)


def _build_effect(call: Call, receipt: Receipt | None, states: Mapping[str, CallState], *, inherited: bool) -> Effect:
    external = _find_external_ids(call, receipt)
    is_replay = call.decision is Decision.STORED or states.get(call.original or "") in _DID_NOT_HAPPEN
    evidence = _find_evidence(receipt)
    if call.state is not CallState.DONE:
        return Effect(call=call, status=IN_DOUBT, external=external, evidence="", original=None, inherited=inherited)
    if call.door == _STREAM:
        status = UNGATED
    elif is_replay:
        status = REPLAYED
    else:
        status = CONFIRMED if evidence not in {"", "agent"} else CLAIMED
    return Effect(
        call=call,
        status=status,
        external=external,
        evidence=evidence,
        original=call.original if is_replay else None,
        inherited=inherited,
    )


def _find_evidence(receipt: Receipt | None) -> str:
    if receipt is None:
        return ""
    if receipt.origin in _CHECKED:
        return receipt.origin
    return "external id" if receipt.external_id else "agent"


def _find_external_ids(call: Call, receipt: Receipt | None) -> dict[str, str]:
    """Return the external ids by the names of the rule; another id of the receipt is named `id`."""
    try:
        found = json.loads(call.external) if call.external else {}
    except ValueError:
        found = {}
    values = found.items() if isinstance(found, dict) else ()
    named = {str(name): str(value) for name, value in values if name not in HOST_NOTES}
    if receipt is not None and receipt.external_id and receipt.external_id not in named.values():
        named["id"] = receipt.external_id
    return named


def _call_to_json(call: Call) -> dict[str, Any]:
    return {
        "run": call.run_id,
        "call": call.id,
        "at": format_rfc3339(to_datetime(call.prepared_at)),
        "finished_at": None if call.finished_at is None else format_rfc3339(to_datetime(call.finished_at)),
        "duration_ms": call.duration_ms,
        "tool": call.tool,
        "what": describe_ledger_call(call),
        "rule": call.rule,
        "key": call.key,
        "target": call.target or None,
        "door": call.door,
        "state": call.state.value,
        "attempt": call.attempt,
        "turn": call.turn,
        "step": call.step,
    }


def format_effect(one: Effect) -> list[str]:
    """Return the cells of an effect's row, one for each title of the table."""
    call = one.call
    status = f"{one.status} {one.original}" if one.original else one.status
    if call.state is CallState.PREPARED:
        status = f"{status} (no outcome yet)"
    return [
        _format_time(call.prepared_at),
        f"{status} (inherited from {call.run_id})" if one.inherited else status,
        describe_ledger_call(call),
        call.rule,
        format_target(call.target) or "-",
        " ".join(f"{name}={value}" for name, value in one.external.items()) or "-",
        "-" if call.duration_ms is None else f"{call.duration_ms / 1000:.1f} s",
        f"attempt {call.attempt}, turn {call.turn}",
        call.key[:_KEY_CHARS],
        call.id,
    ]


def _render_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    # One short line without Markdown and HTML, because an agent wrote the text.
    cells = [[_MARKUP.sub(r"\\\g<0>", format_line(text, _MAX_CELL)) for text in row] for row in (titles, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(titles))]
    lines = [f"| {' | '.join(f'{text:<{width}}' for text, width in zip(row, widths, strict=True))} |" for row in cells]
    return [lines[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *lines[1:]]


def _format_time(at: int) -> str:
    return format_rfc3339(to_datetime(at))
