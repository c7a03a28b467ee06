"""What adapters return to the engine (an agent's events, how a turn ended), and the meter that sums up usage. Pure."""

from __future__ import annotations

import operator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.limits import Spent
    from jackline.domain.states import Failure, WaitReason


class Exit(NamedTuple):
    """How a process ended. Its whole tree is dead by then, except `survivors`, which no signal could end."""

    code: int | None
    signal: int | None = None
    leftovers: int = 0  # descendants that did not end by themselves
    lost: bool = False  # its exit is unknown: the warden was gone
    survivors: int = 0


class Outcome(NamedTuple):
    """The outcome of a turn: without a failure and a wait it ended well."""

    failure: Failure | None = None
    detail: str = ""
    resets_at: int | None = None
    waits: WaitReason | None = None
    session_lost: bool = False  # the agent does not know the session to resume
    deferred: bool = False  # the session resumes by itself with the call that needs approval
    asks: bool = False  # it waits for a person's answers to the agent's questions

    @property
    def ended_well(self) -> bool:
        """Whether the agent has done its work."""
        return self.failure is None and self.waits is None and not self.session_lost


class Usage(NamedTuple):
    """The usage that an agent reported, summed over the turns of a run. Input includes cached tokens."""

    tokens_input: int = 0
    tokens_output: int = 0
    tokens_cached: int = 0
    usd_micros: int = 0
    usd_estimated: int = 0  # the part of `usd_micros` that jackline estimated; adapters leave it 0


class Scope(StrEnum):
    """What a usage figure covers: CLIs differ, and adding up a running total would count it twice."""

    STEP = "step"  # one more request to the model
    MESSAGE = "message"  # the same message may be repeated, with the same `message_id`
    TURN = "turn"  # everything since the process started
    SESSION = "session"  # everything since the session began, earlier turns included


class AgentEvent(NamedTuple):
    """One event of an agent's output, in the vocabulary that all agents share.

    kind: message, thinking, call.started, call.finished, usage, session, limit, retry, compacted,
    error, end, raw.
    """

    kind: str
    text: str = ""
    data: Mapping[str, Any] = NOTHING
    usage: Usage | None = None
    scope: Scope = Scope.STEP
    message_id: str = ""
    priced: bool = False  # the usage includes its cost, even if that is 0


# --- usage of a turn

_NOTHING = Usage()
_MOST_MESSAGES = 100
_TOTALS = frozenset({Scope.TURN, Scope.SESSION})


class UsageMeter:
    """Computes the usage of one turn from figures of different scopes: steps add up, running totals replace.

    Tokens without a cost are estimated, until a total with its cost replaces the estimate.
    """

    def __init__(
        self, before: Usage = _NOTHING, price: Callable[[str, Usage], float] = lambda _model, _usage: 0
    ) -> None:
        """`before` is the usage that earlier turns of the same session were charged; `price` estimates a cost.

        An estimate of an earlier turn is not subtracted from the session's cost: the session may not include it.
        """
        self._before = before._replace(usd_micros=before.usd_micros - before.usd_estimated, usd_estimated=0)
        self._price = price
        self._estimate = 0.0
        self._steps = _NOTHING
        self._counted = _NOTHING  # the steps that the total includes
        self._messages: dict[str, Usage] = {}
        self._total = _NOTHING  # of the turn, if the agent reports it

    def add(self, event: AgentEvent) -> Usage:
        """Add one figure; returns the turn's usage so far."""
        usage, reported = event.usage or _NOTHING, self._reported
        match event.scope:
            case Scope.STEP:
                self._steps = add_usage(self._steps, usage)
            case Scope.MESSAGE:
                previous = self._messages.pop(event.message_id, _NOTHING) if event.message_id else _NOTHING
                merged = _merge(usage, previous)
                self._messages[event.message_id] = merged
                self._steps = add_usage(self._steps, subtract_usage(merged, previous))
                if len(self._messages) > _MOST_MESSAGES:  # the oldest is not repeated any more
                    del self._messages[next(iter(self._messages))]
            case Scope.TURN:
                self._set_total(usage)
            case Scope.SESSION:
                # Not below zero: a session that was lost and restarted counts from zero.
                self._set_total(Usage(*(max(0, amount) for amount in subtract_usage(usage, self._before))))
        if not event.priced and not usage.usd_micros:
            if event.scope not in _TOTALS or not self._total.usd_micros:  # else its cost was reported separately
                more = Usage(*(max(0, amount) for amount in subtract_usage(self._reported, reported)))
                self._estimate += self._price(str(event.data.get("model", "")), more)
        elif event.scope in _TOTALS:
            self._estimate = 0.0
        return self.total

    @property
    def total(self) -> Usage:
        """The turn's usage: its own total if the agent reported one, else the sum of its steps."""
        reported, estimate = self._reported, round(self._estimate)
        return reported._replace(usd_micros=reported.usd_micros + estimate, usd_estimated=estimate)

    @property
    def _reported(self) -> Usage:
        """Steps after a total add to it."""
        later = subtract_usage(self._steps, self._counted)
        return Usage(
            *(
                whole + more if whole else all_
                for whole, more, all_ in zip(self._total, later, self._steps, strict=True)
            )
        )

    def _set_total(self, usage: Usage) -> None:
        self._total = _merge(usage, self._total)
        self._counted = Usage(
            *(
                steps if whole else counted
                for whole, steps, counted in zip(usage, self._steps, self._counted, strict=True)
            )
        )


def get_usage(spent: Spent) -> Usage:
    """The reported part of an account."""
    return Usage(
        tokens_input=spent.tokens_input,
        tokens_output=spent.tokens_output,
        tokens_cached=spent.tokens_cached,
        usd_micros=spent.usd_micros,
        usd_estimated=spent.usd_estimated,
    )


def add_usage(one: Usage, other: Usage) -> Usage:
    """The sum of both."""
    return Usage(*map(operator.add, one, other))


def subtract_usage(one: Usage, other: Usage) -> Usage:
    """The difference, which may be negative."""
    return Usage(*map(operator.sub, one, other))


def _merge(usage: Usage, otherwise: Usage) -> Usage:
    """Replace each figure that is 0, because 0 means that it was not reported."""
    return Usage(*(amount or other for amount, other in zip(usage, otherwise, strict=True)))
