"""Builds the prompt for an agent that continues interrupted work: recorded facts only. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.call_gate import APPROVALS, NOT_NOW
from jackline.domain.call_text import describe_ledger_call, find_kept_refs
from jackline.domain.states import CallClass, CallState, Decision, Role
from jackline.formatting import shorten_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jackline.domain.records import Call, Check, Message, Receipt, Turn

RESUME_HEADING = (
    "Your work on this task was interrupted and continues now. The host recorded the following facts; rely on them."
)
_CONTINUED_HEADING = (
    "An earlier turn worked on this task, and you continue it. The host recorded the following facts; rely on them."
)
_ONE_MESSAGE = "A person sent this message. Where it differs from earlier instructions, follow the message:"
_SEVERAL_MESSAGES = "A person sent these messages. Where they differ, follow the last one:"
_END_OF_MESSAGES = "(end of the person's message)"
_AGAIN = "These calls were interrupted. Make each of them again now, exactly as shown, before anything else:"
_REFUSED = "Any other call is denied until they are made. "
# Without this note a model that sees the list again after another interruption repeats the calls.
_NOTE = "Once made, a call is done: do not repeat it."
_INTERRUPTED = "Interrupted, outcome unknown; repeat a call only if you still need it:"
_APPROVED = "Approved since you asked; make the call now if it is still needed:"
_KEPT = "Work that you discarded is kept in commits; to get a file back, use `git restore --source=REF -- PATH`:"
_RETRY = "; a person decided: do it again"
_DONE = "Already done; do not repeat, in these or in other words:"
_MOST = 50
_SHOWN = 200  # columns of a command
_MOST_OUTPUT = 4_000  # characters of a check's output, from its end


def build_turn_prompt(turn: int, prompt: str, packet: str, *, resumes: bool, messages: Sequence[Message] = ()) -> str:
    """The task for a first turn, the resume prompt for a session that knows the task, both for a fresh session.

    `messages` are those of a person, which the resume prompt has in its heading.
    """
    if turn == 1:
        return "\n".join([prompt, *describe_messages(messages)])
    return packet if resumes else f"{prompt}\n\n{packet}"


def build_resume_prompt(
    calls: Sequence[Call],
    receipts: Sequence[Receipt],
    commits: Sequence[str] = (),
    forced: Sequence[Call] = (),
    head: str = RESUME_HEADING,
    *,
    held: bool = True,
    refused: Check | None = None,
    sections: Sequence[tuple[str, Sequence[str]]] = (),
) -> str:
    """Build the resume prompt: what to redo, what is done, what is unknown, what a person decided.

    `forced`: calls to make again first.
    `held`: the gate can refuse a call that comes too early. `refused`: the host check that failed last.
    `sections`: titled lists to add at the end.
    """
    lines = [head, *_describe_refusal(refused)]
    if forced:
        lines += _section(_AGAIN, [f"{call.tool} {call.input}" for call in forced])  # whole: to be made exactly so
        lines += ["", f"{_REFUSED if held else ''}{_NOTE}"]
    lines += _section("Commits you already made:", list(commits))
    made = {call.id: call for call in calls}
    lines += _section(_DONE, [_describe_receipt(receipt, made.get(receipt.call_id)) for receipt in receipts])
    unknown = [call for call in calls if call.state is CallState.IN_DOUBT]
    lines += _section("Interrupted, outcome unknown; check before you repeat:", [_describe(one) for one in unknown])
    settled = {*(receipt.key for receipt in receipts), *(call.key for call in forced)}
    void = [
        call
        for call in calls
        if call.state is CallState.VOID
        # A call that may be repeated freely is reported only if a person decided about it.
        and (call.call_class is CallClass.EFFECT or call.answer)
        and call.key not in settled
    ]
    lines += _section(
        "Known not to have happened:", [f"{_shorten(one)}{_RETRY if one.answer == 'retry' else ''}" for one in void]
    )
    lines += _section(_APPROVED, [_shorten(one) for one in _find_approved(calls)])
    lines += _section(_KEPT, [f"{ref} (before {_shorten(call)})" for call in calls for ref in find_kept_refs(call)])
    aside = [call for call in calls if call.answer == NOT_NOW]
    lines += _section("Not allowed now; continue with the rest of the task:", [_shorten(one) for one in aside])
    skipped = [call for call in calls if call.answer == "skip"]
    lines += _section("A person decided to skip:", [_shorten(one) for one in skipped])
    denied = [call for call in calls if call.answer == "deny"]  # by a person, or because no one answered in time
    lines += _section("Approval was denied; do not do:", [_shorten(one) for one in denied])
    for title, items in sections:
        lines += _section(title, list(items))
    return "\n".join(lines)


def build_heading(messages: Sequence[Message], *, was_interrupted: bool = True) -> str:
    """The heading of the resume prompt, with the messages of a person that the session does not know."""
    return "\n".join([RESUME_HEADING if was_interrupted else _CONTINUED_HEADING, *describe_messages(messages)])


def find_new_messages(messages: Sequence[Message], read_turns: Iterable[int]) -> list[Message]:
    """The messages that a session does not know; `read_turns` are its turns whose prompt the model has read."""
    last = max(read_turns, default=0)
    return [message for message in messages if message.turn is None or message.turn > last]


def build_interrupted_section(interrupted: Sequence[Call]) -> tuple[str, list[str]]:
    """The section about calls that the agent may make again."""
    return _INTERRUPTED, [_shorten(call) for call in interrupted]


def find_interrupted_calls(calls: Sequence[Call], turns: Sequence[Turn], forced: Sequence[Call] = ()) -> list[Call]:
    """The abandoned reads and local calls that no later prompt reported; not those that have to be repeated."""
    # A call of a reviewer, or of a turn that planned, is not the worker's; nor do their prompts tell the worker.
    readers = {turn.number for turn in turns if turn.role != Role.WORK}
    turns = [turn for turn in turns if turn.number not in readers]
    calls = [call for call in calls if call.turn not in readers]
    # A turn has begun, and its prompt was read, if the agent printed something, made a call, or ended.
    begun = {call.turn for call in calls}
    begun |= {turn.number for turn in turns if turn.stdout_bytes or turn.stderr_bytes or turn.exit_code is not None}
    last = max(begun, default=0)
    known = {*(call.id for call in forced), *(call.original for call in calls)}
    return [
        call
        for call in calls
        if call.state is CallState.ABANDONED
        and call.call_class in {CallClass.READ, CallClass.LOCAL}
        and call.turn >= last
        and call.parent_id is None  # otherwise it is part of a task that is started again
        and not call.answer
        and call.id not in known
    ]


def find_failed_check(checks: Sequence[Check], turns: Sequence[Turn]) -> Check | None:
    """The host check that failed after the last turn, which the agent does not know yet; not one that was killed."""
    last = max(checks, key=lambda check: check.step, default=None)
    since = max((turn.step for turn in turns), default=0)
    return last if last is not None and last.exit_code and last.step > since else None


def describe_messages(messages: Sequence[Message]) -> list[str]:
    """The messages of a person, as lines."""
    if not messages:
        return []
    texts = [line for message in messages for line in ("", *message.text.strip().splitlines())]
    return ["", _ONE_MESSAGE if len(messages) == 1 else _SEVERAL_MESSAGES, *texts, "", _END_OF_MESSAGES]


def _describe_refusal(check: Check | None) -> list[str]:
    if check is None:
        return []
    failed = f"After your last turn the host ran `{check.command}`, and it failed (exit code {check.exit_code})."
    lines = check.output.strip()[-_MOST_OUTPUT:].splitlines()
    output = ["The end of its output:", *(f"    {line}".rstrip() for line in lines)] if lines else []
    return ["", f"{failed} The task is done when it passes.", *output]


def _find_approved(calls: Sequence[Call]) -> list[Call]:
    """Calls that a person approved and that were not made since; an agent that was stopped does not know of it."""
    approved: dict[str, Call] = {}
    for call in calls:
        if call.answer in APPROVALS:
            approved[call.key] = call
        elif call.decision is Decision.ALLOW:
            approved.pop(call.key, None)
    return list(approved.values())


def _section(title: str, items: list[str]) -> list[str]:
    if not items:
        return []
    more = [f"- and {len(items) - _MOST} more"] if len(items) > _MOST else []
    return ["", title, *(f"- {item}" for item in items[:_MOST]), *more]


def _describe_receipt(receipt: Receipt, call: Call | None) -> str:
    """What was done, in one line: a model that reads only the target may do it again in other words."""
    found = f" ({receipt.external_id})" if receipt.external_id else ""
    command = f": {_describe_words(call)}" if call is not None else ""
    return f"{receipt.rule} → {receipt.target or receipt.call_id}{found}{command}"


def _describe(call: Call) -> str:
    target = f" → {call.target}" if call.target else ""
    return f"{_describe_words(call)}{target} (rule {call.rule})"


def _describe_words(call: Call) -> str:
    return shorten_text(describe_ledger_call(call), _SHOWN)


def _shorten(call: Call) -> str:
    return f"{call.tool} {call.input[:200]}"
