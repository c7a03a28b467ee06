"""The receipts of a run: every effect, what it touched, and what shows that it happened. Pure: it reads no store."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jackline.domain.records import Call, Receipt
from jackline.domain.states import CallClass, CallState, Decision
from jackline.formatting import format_line, format_rfc3339, to_datetime
from jackline.named import NamedTuple

CONFIRMED, CLAIMED, IN_DOUBT, REPLAYED, UNGATED = "confirmed", "claimed", "in doubt", "replayed", "ungated"
MEANINGS = {
    CONFIRMED: "a probe or a person says so, or its output names an id of the outside",
    CLAIMED: "the tool says so, and nothing else shows it",
    IN_DOUBT: "it may have happened, and nobody knows",
    REPLAYED: "a stored result was given again, or it was made again after it was known not to have happened",
    UNGATED: "seen in the agent's output: nobody held it",
}
_STREAM = "stream"  # the door of calls that run already when jackline hears of them
_CHECKED = frozenset({"probe", "person"})
_CAME_TO_NOTHING = frozenset({CallState.VOID, CallState.FAILED, CallState.ABANDONED})
_KEY_SHOWN = 12
_CELL = 100  # characters
_MARKS = re.compile(r"[\\|<\[`]")
_TITLES = ("time", "status", "tool", "rule", "target", "external", "took", "at", "key", "call")


class Ledger(NamedTuple):
    """What the receipts are told from; `upto` is the last step that counts of a run that another was forked from."""

    run_id: str
    calls: Sequence[Call]
    receipts: Sequence[Receipt]
    upto: int | None = None


class Effect(NamedTuple):
    """One line."""

    call: Call
    status: str
    external: Mapping[str, str]
    evidence: str = ""  # who says that it happened
    original: str | None = None  # of one that was replayed
    inherited: bool = False


class Receipts(NamedTuple):
    """Everything that `jackline receipts` tells."""

    run_id: str
    effects: tuple[Effect, ...]
    unknown: tuple[Call, ...] = ()  # calls of no known class that were cut off
    denied: int = 0
    asked: int = 0
    did_not: int = 0  # effects that are known not to have happened


def fold(own: Ledger, ancestors: Sequence[Ledger] = ()) -> Receipts:
    """The receipts of a run, with those that it inherits first, the oldest run's before all."""
    inherited = [one for ancestor in reversed(ancestors) for one in _effects(ancestor, inherited=True)]
    effects = [call for call in own.calls if call.call_class is CallClass.EFFECT]
    return Receipts(
        own.run_id,
        (*inherited, *_effects(own)),
        tuple(one for one in own.calls if one.state is CallState.IN_DOUBT and one.call_class is not CallClass.EFFECT),
        denied=sum(call.state is CallState.DENIED and call.decision is not Decision.ASK for call in effects),
        asked=sum(call.state is CallState.DENIED and call.decision is Decision.ASK for call in effects),
        did_not=sum(call.state in _CAME_TO_NOTHING for call in effects),
    )


def to_dict(told: Receipts) -> dict[str, Any]:
    """Plain JSON values; keys are whole, times are RFC 3339."""
    return {
        "run": told.run_id,
        "effects": [_effect_values(one) for one in told.effects],
        "unknown": [_call_values(call) for call in told.unknown],
        "denied": told.denied,
        "asked": told.asked,
        "did_not_happen": told.did_not,
    }


def to_markdown(told: Receipts) -> str:
    """A table that can be read as text, too, and what is not in it."""
    lines = [f"# Receipts of run {told.run_id}", ""]
    if told.effects:
        lines += [*_table(_TITLES, [_cells(one) for one in told.effects]), "", *_legend(told.effects)]
    else:
        lines += ["No effect was made.", ""]
    if told.unknown:
        rows = [[_time(call.prepared_at), call.tool, call.input, call.id] for call in told.unknown]
        lines += ["## Outcome unknown", "", "Cut off; no rule says what they touch: look.", ""]
        lines += [*_table(("time", "tool", "input", "call"), rows), ""]
    counts = ((told.did_not, "known not to have happened"), (told.denied, "denied"), (told.asked, "asked for"))
    left_out = ", ".join(f"{count} {word}" for count, word in counts if count)
    return "\n".join([*lines, f"Not listed: {left_out}.", ""] if left_out else lines)


def _effects(ledger: Ledger, *, inherited: bool = False) -> Iterator[Effect]:
    receipts = {one.call_id: one for one in ledger.receipts}
    states = {call.id: call.state for call in ledger.calls}
    for call in ledger.calls:
        happened = call.state in {CallState.DONE, CallState.IN_DOUBT, CallState.PREPARED}
        known = ledger.upto is None or call.step <= ledger.upto
        if call.call_class is CallClass.EFFECT and happened and known:
            yield _effect(call, receipts.get(call.id), states, inherited=inherited)


def _effect(call: Call, receipt: Receipt | None, states: Mapping[str, CallState], *, inherited: bool) -> Effect:
    external = _external(call, receipt)
    again = call.decision is Decision.STORED or states.get(call.original or "") in _CAME_TO_NOTHING
    evidence = _evidence(receipt)
    if call.state is not CallState.DONE:
        return Effect(call, IN_DOUBT, external, "", None, inherited)
    if call.door == _STREAM:
        status = UNGATED
    elif again:
        status = REPLAYED
    else:
        status = CONFIRMED if evidence not in {"", "agent"} else CLAIMED
    return Effect(call, status, external, evidence, call.original if again else None, inherited)


def _evidence(receipt: Receipt | None) -> str:
    if receipt is None:
        return ""
    if receipt.origin in _CHECKED:
        return receipt.origin
    return "external id" if receipt.external_id else "agent"


def _external(call: Call, receipt: Receipt | None) -> dict[str, str]:
    """By the names of the rule; what a receipt has besides is `id`."""
    try:
        found = json.loads(call.external) if call.external else {}
    except ValueError:
        found = {}
    named = {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
    if receipt is not None and receipt.external_id and receipt.external_id not in named.values():
        named["id"] = receipt.external_id
    return named


def _effect_values(one: Effect) -> dict[str, Any]:
    return {
        "status": one.status,
        "evidence": one.evidence or None,
        "original": one.original,
        "inherited": one.inherited,
        "external": dict(one.external),
        **_call_values(one.call),
    }


def _call_values(call: Call) -> dict[str, Any]:
    return {
        "run": call.run_id,
        "call": call.id,
        "at": format_rfc3339(to_datetime(call.prepared_at)),
        "finished_at": None if call.finished_at is None else format_rfc3339(to_datetime(call.finished_at)),
        "duration_ms": call.duration_ms,
        "tool": call.tool,
        "rule": call.rule,
        "key": call.key,
        "target": call.target or None,
        "door": call.door,
        "state": call.state.value,
        "attempt": call.attempt,
        "turn": call.turn,
        "step": call.step,
    }


def _cells(one: Effect) -> list[str]:
    call = one.call
    status = f"{one.status} {one.original}" if one.original else one.status
    if call.state is CallState.PREPARED:
        status = f"{status} (no outcome yet)"
    return [
        _time(call.prepared_at),
        f"{status} (inherited from {call.run_id})" if one.inherited else status,
        call.tool,
        call.rule,
        call.target or "-",
        " ".join(f"{name}={value}" for name, value in one.external.items()) or "-",
        "-" if call.duration_ms is None else f"{call.duration_ms / 1000:.1f} s",
        f"attempt {call.attempt}, turn {call.turn}",
        call.key[:_KEY_SHOWN],
        call.id,
    ]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[_cell(text) for text in row] for row in (titles, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(titles))]
    lines = [f"| {' | '.join(f'{text:<{width}}' for text, width in zip(row, widths, strict=True))} |" for row in cells]
    return [lines[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *lines[1:]]


def _cell(text: str) -> str:
    """One line that ends no column and is nothing but text, no link, no picture and no HTML: an agent wrote it."""
    return _MARKS.sub(r"\\\g<0>", format_line(text, _CELL))


def _legend(effects: Sequence[Effect]) -> list[str]:
    used = {one.status for one in effects}
    return [*(f"- **{status}**: {meaning}" for status, meaning in MEANINGS.items() if status in used), ""]


def _time(at: int) -> str:
    return format_rfc3339(to_datetime(at))
