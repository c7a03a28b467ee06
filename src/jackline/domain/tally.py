"""How a run's calls came out, in numbers, and in the one line that ends a run. Pure."""

from __future__ import annotations

from jackline.formatting import pluralize
from jackline.named import NamedTuple, stored_as


@stored_as("calls tools effects failed replayed abandoned denied asked in_doubt receipts steps")
class Tally(NamedTuple):
    """The run-wide completion summary; every call of the ledger counts, over all attempts."""

    calls: int = 0  # everything that was asked for
    tools: int = 0  # let through
    effects: int = 0  # let through, and effects
    failed: int = 0
    replayed: int = 0  # a stored result was given, or a call made again that was cut off or came to nothing
    abandoned: int = 0
    denied: int = 0
    asked: int = 0  # a person's word was wanted first
    in_doubt: int = 0
    receipts: int = 0
    steps: int = 0


NO_CALLS = Tally()


def completion(tally: Tally) -> str:
    """What was done, in one line; what is rare is told only where it is there."""
    always = [
        pluralize(tally.tools, "tool call"),
        f"{tally.failed} failed",
        f"{tally.replayed} replayed",
        f"{tally.abandoned} abandoned",
    ]
    rare = ((tally.denied, "denied"), (tally.asked, "asked for"), (tally.in_doubt, "in doubt"))
    return ", ".join([*always, *(f"{count} {word}" for count, word in rare if count), pluralize(tally.steps, "step")])
