"""What an agent is told when its work goes on after an end it did not see: facts only, never claims. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.states import CallClass, CallState, Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import Call, Check, Receipt, Turn

HEAD = "Your work on this task was interrupted and goes on now. What follows was recorded by the host; trust it."
_AGAIN = "These calls were cut off. Make each of them again now, exactly so, before anything else:"
# Without it a model that sees the list again after the next interruption makes them a second time.
_REFUSED = "Any other call is refused until they are made. "
_NOTE = "Once made they are done: do not make them a second time."
_AGREED = "Agreed to since you asked; make it now, if it is still wanted:"
_MOST = 50
_MOST_OUTPUT = 4_000  # characters of a check's output, of which the end says most


def prompt_of(turn: int, prompt: str, packet: str, *, resumes: bool) -> str:
    """The task itself for a first turn, the packet for a session that knows the task, both for a fresh one."""
    if turn == 1:
        return prompt
    return packet if resumes else f"{prompt}\n\n{packet}"


def packet(
    calls: Sequence[Call],
    receipts: Sequence[Receipt],
    commits: Sequence[str] = (),
    forced: Sequence[Call] = (),
    head: str = HEAD,
    *,
    held: bool = True,
    refused: Check | None = None,
    sections: Sequence[tuple[str, Sequence[str]]] = (),
) -> str:
    """Build the resume prompt: what to redo, what is done, what is unknown, what a person decided.

    `held`: the gate can refuse a call that comes too early. `refused`: the host check that failed last.
    `sections`: titled lists that host checks add at the end.
    """
    lines = [head, *_refusal(refused)]
    if forced:
        lines += _section(_AGAIN, [_call(one) for one in forced])
        lines += ["", f"{_REFUSED if held else ''}{_NOTE}"]
    lines += _section("Commits that you made already:", list(commits))
    lines += _section("Already done, do not do again:", [_done(one) for one in receipts])
    unknown = [call for call in calls if call.state is CallState.IN_DOUBT]
    lines += _section("Cut off, outcome unknown; look before you repeat:", [_brief(one) for one in unknown])
    settled = {*(receipt.key for receipt in receipts), *(call.key for call in forced)}
    void = [call for call in calls if call.state is CallState.VOID and _is_told(call) and call.key not in settled]
    lines += _section("Known not to have happened:", [_void(one) for one in void])
    lines += _section(_AGREED, [_brief(one) for one in _agreed(calls)])
    skipped = [call for call in calls if call.answer in {"skip", "deny"}]
    lines += _section("A person said: leave it out:", [_brief(one) for one in skipped])
    for title, items in sections:
        lines += _section(title, list(items))
    return "\n".join(lines)


def refusal(checks: Sequence[Check], turns: Sequence[Turn]) -> Check | None:
    """The check that failed since the last turn: its agent has not heard of it. One that was killed says nothing."""
    last = max(checks, key=lambda check: check.step, default=None)
    since = max((turn.step for turn in turns), default=0)
    return last if last is not None and last.exit_code and last.step > since else None


def _refusal(check: Check | None) -> list[str]:
    if check is None:
        return []
    said = f"After you had ended, the host ran `{check.command}`, and it failed (exit code {check.exit_code})."
    words = check.output.strip()[-_MOST_OUTPUT:].splitlines()
    shown = ["It said at its end:", *(f"    {word}".rstrip() for word in words)] if words else []
    return ["", f"{said} The task is done when it passes.", *shown]


def _agreed(calls: Sequence[Call]) -> list[Call]:
    """What was asked for and allowed, and was not made since; an agent that was stopped there does not know it."""
    agreed: dict[str, Call] = {}
    for call in calls:
        if call.answer == "allow":
            agreed[call.key] = call
        elif call.decision is Decision.ALLOW:
            agreed.pop(call.key, None)
    return list(agreed.values())


def _is_told(call: Call) -> bool:
    """Whether the agent is to know that it did not happen: of what repeats freely, only if a person said so."""
    return call.call_class is CallClass.EFFECT or bool(call.answer)


def _section(title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    more = [f"- and {len(items) - _MOST} more"] if len(items) > _MOST else []
    return ["", title, *(f"- {item}" for item in items[:_MOST]), *more]


def _done(receipt: Receipt) -> str:
    known = f" ({receipt.external_id})" if receipt.external_id else ""
    return f"{receipt.rule} → {receipt.target or receipt.call_id}{known}"


def _brief(call: Call) -> str:
    return f"{call.tool} {call.input[:200]}"


def _call(call: Call) -> str:
    """Whole, because it is to be made exactly so; the ledger keeps only the beginning of a very long one."""
    return f"{call.tool} {call.input}"


def _void(call: Call) -> str:
    return f"{_brief(call)}; a person said: do it again" if call.answer == "retry" else _brief(call)
