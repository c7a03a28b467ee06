"""What a turn used, from figures of different scopes: steps are added, running totals replace. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.outcome import Scope, Usage

if TYPE_CHECKING:
    from jackline.domain.outcome import Heard

_FIELDS = ("tokens_input", "tokens_output", "tokens_cached", "usd_micros")
_NOTHING = Usage()
_MOST_MESSAGES = 100


class Meter:
    """The account of one turn. `before` is what earlier turns of the same session were charged already."""

    def __init__(self, before: Usage = _NOTHING) -> None:
        """Nothing was used yet."""
        self._before = before
        self._steps = _NOTHING
        self._messages: dict[str, Usage] = {}
        self._total = _NOTHING  # of the turn, where the agent says it itself

    def hear(self, heard: Heard) -> Usage:
        """Take one figure; gives back what the turn has used so far."""
        usage = heard.usage or _NOTHING
        match heard.scope:
            case Scope.STEP:
                self._steps = plus(self._steps, usage)
            case Scope.MESSAGE:
                self._take_message(usage, heard.of)
            case Scope.TURN:
                self._total = _said(usage, self._total)
            case Scope.SESSION:
                self._total = _said(_at_least_nothing(minus(usage, self._before)), self._total)
        return self.value

    @property
    def value(self) -> Usage:
        """What the turn has used: its own total where one was said, else the sum of its steps."""
        return _said(self._total, self._steps)

    def _take_message(self, usage: Usage, of: str) -> None:
        told = self._messages.pop(of, _NOTHING) if of else _NOTHING
        self._messages[of] = _said(usage, told)
        self._steps = plus(self._steps, minus(self._messages[of], told))
        if len(self._messages) > _MOST_MESSAGES:  # the oldest will not be told again
            del self._messages[next(iter(self._messages))]


def plus(one: Usage, other: Usage) -> Usage:
    """Both together."""
    return Usage(*(getattr(one, name) + getattr(other, name) for name in _FIELDS))


def minus(one: Usage, other: Usage) -> Usage:
    """The difference, which may be negative."""
    return Usage(*(getattr(one, name) - getattr(other, name) for name in _FIELDS))


def _at_least_nothing(usage: Usage) -> Usage:
    """A session that was lost and begun again counts from zero."""
    return Usage(*(max(0, getattr(usage, name)) for name in _FIELDS))


def _said(usage: Usage, otherwise: Usage) -> Usage:
    """Figure by figure: a 0 says nothing."""
    return Usage(*(getattr(usage, name) or getattr(otherwise, name) for name in _FIELDS))
