"""The line that ends a run."""

from __future__ import annotations

from jackline.domain.run_totals import NO_CALLS, Tally, completion


def test_a_run_without_calls_says_so_in_numbers() -> None:
    assert completion(NO_CALLS) == "0 tool calls, 0 failed, 0 replayed, 0 abandoned, 0 steps"


def test_what_is_rare_is_told_where_it_is_there() -> None:
    tally = Tally(calls=9, tools=1, failed=1, replayed=2, abandoned=3, denied=4, asked=5, in_doubt=6, steps=1)
    told = "1 tool call, 1 failed, 2 replayed, 3 abandoned, 4 denied, 5 needed approval, 6 in doubt, 1 step"
    assert completion(tally) == told
