"""Computes the usage of a turn from figures of different scopes: steps add up, running totals replace. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.outcome import Scope, Usage

if TYPE_CHECKING:
    from jackline.domain.outcome import Heard

_FIELDS = ("tokens_input", "tokens_output", "tokens_cached", "usd_micros")
_NOTHING = Usage()
_MOST_MESSAGES = 100


class Meter:
    """The usage of one turn. `before` is the usage that earlier turns of the same session were charged."""

    def __init__(self, before: Usage = _NOTHING) -> None:
        """Start at zero."""
        self._before = before
        self._steps = _NOTHING
        self._messages: dict[str, Usage] = {}
        self._total = _NOTHING  # of the turn, if the agent reports it

    def hear(self, event: Heard) -> Usage:
        """Add one figure; returns the turn's usage so far."""
        usage = event.usage or _NOTHING
        match event.scope:
            case Scope.STEP:
                self._steps = plus(self._steps, usage)
            case Scope.MESSAGE:
                self._add_message(usage, event.of)
            case Scope.TURN:
                self._total = _merge(usage, self._total)
            case Scope.SESSION:
                self._total = _merge(_clamp(minus(usage, self._before)), self._total)
        return self.value

    @property
    def value(self) -> Usage:
        """The turn's usage: its own total if the agent reported one, else the sum of its steps."""
        return _merge(self._total, self._steps)

    def _add_message(self, usage: Usage, of: str) -> None:
        previous = self._messages.pop(of, _NOTHING) if of else _NOTHING
        self._messages[of] = _merge(usage, previous)
        self._steps = plus(self._steps, minus(self._messages[of], previous))
        if len(self._messages) > _MOST_MESSAGES:  # the oldest is not repeated any more
            del self._messages[next(iter(self._messages))]


def plus(one: Usage, other: Usage) -> Usage:
    """The sum of both."""
    return Usage(*(getattr(one, name) + getattr(other, name) for name in _FIELDS))


def minus(one: Usage, other: Usage) -> Usage:
    """The difference, which may be negative."""
    return Usage(*(getattr(one, name) - getattr(other, name) for name in _FIELDS))


def _clamp(usage: Usage) -> Usage:
    """No less than zero: a session that was lost and restarted counts from zero."""
    return Usage(*(max(0, getattr(usage, name)) for name in _FIELDS))


def _merge(usage: Usage, otherwise: Usage) -> Usage:
    """Figure by figure: a 0 means that it was not reported."""
    return Usage(*(getattr(usage, name) or getattr(otherwise, name) for name in _FIELDS))
