"""The line that ends a run."""

from __future__ import annotations

from jackline.domain.run_totals import NO_CALLS, Tally, completion


def test_a_run_without_calls_says_so() -> None:
    assert completion(NO_CALLS) == "no tool calls"


def test_every_outcome_that_occurred_is_counted() -> None:
    tally = Tally(calls=9, tools=1, failed=1, replayed=2, abandoned=3, denied=4, asked=5, in_doubt=6, steps=1)
    told = "1 tool call, 1 failed, 2 replayed, 3 abandoned, 4 denied, 5 needed approval, 6 in doubt, 1 step"
    assert completion(tally) == told
