"""Statistics: interleaved turns, medians and quartiles, compared round by round. It reads no clock.

Contenders take turns (A, B, C, A, B, C ...), so that a slow minute of the machine affects all of them. A ratio is
computed within each round, from two turns close to each other; its median and quartiles are reported.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to measure: a turn returns the seconds of one unit of work."""

    name: str
    turn: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the quartiles around it."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The seconds of one contender, one number for each round."""

    name: str
    seconds: tuple[float, ...]


def interleave(contenders: Sequence[Contender], rounds: int, warm_up: int = 1) -> dict[str, Sample]:
    """Run every contender once in every round; the warm-up rounds are dropped."""
    names = [contender.name for contender in contenders]
    if len(set(names)) < len(names):
        raise ValueError(f"two contenders share a name: {', '.join(names)}")
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(warm_up + rounds):
        for contender in contenders:
            took = contender.turn()
            if number >= warm_up:
                seconds[contender.name].append(took)
    return {name: Sample(name, tuple(taken)) for name, taken in seconds.items()}


def spread(values: Sequence[float]) -> Spread:
    """The inclusive quartiles; of a single value, that value."""
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def ratio(sample: Sample, yardstick: Sample) -> Spread:
    """How many times the yardstick, round by round."""
    return spread([one / other for one, other in zip(sample.seconds, yardstick.seconds, strict=True)])


def difference(sample: Sample, yardstick: Sample) -> Spread:
    """How many seconds more than the yardstick, round by round."""
    return spread([one - other for one, other in zip(sample.seconds, yardstick.seconds, strict=True)])
