"""The totals that are suggested when a budget is spent."""

from __future__ import annotations

from jackline.domain.amendment import suggest_totals
from jackline.domain.limits import Limits, Spent


def test_a_suggested_sum_is_in_whole_cents() -> None:
    limits, spent = Limits(usd_micros=100_000), Spent(usd_micros=401_234)
    assert suggest_totals(limits, spent) == [("max_usd", "0.81")]


def test_a_small_excess_doubles_the_limit() -> None:
    assert suggest_totals(Limits(usd_micros=1_000_000), Spent(usd_micros=1_050_000)) == [("max_usd", "2")]
    assert suggest_totals(Limits(calls=10), Spent(calls=11)) == [("max_calls", "20")]
