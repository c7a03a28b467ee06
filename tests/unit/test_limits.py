"""Retry, backoff and budgets: finite by default, exact at the boundary, cumulative."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackline.domain.limits import (
    Limits,
    RetryPolicy,
    Spent,
    compute_backoff_ms,
    compute_wait,
    count_units,
    find_exhausted_limit,
)

UNHURRIED = settings(deadline=None)  # a busy machine is no reason to fail

POLICIES = st.builds(RetryPolicy, most=st.integers(0, 9), base_ms=st.integers(0, 10**6), cap_ms=st.integers(0, 10**8))
RETRIES = st.integers(0, 10_000)
AMOUNTS = st.fixed_dictionaries({name: st.integers(0, 10**9) for name in Spent._fields})
COUNTED = ("wall_ms", "iterations", "steps", "calls", "usd_micros")
NO_LIMITS = Limits(wall_ms=None, iterations=None, steps=None, calls=None, tokens=None, usd_micros=None)


def test_the_smallest_budget_is_a_budget_and_only_0_is_none() -> None:
    amounts = (0, 1e-9, 4e-7, 1.4e-6, 0.5)
    assert [count_units(one, 1_000_000) for one in amounts] == [0, 1, 1, 1, 500_000]
    assert count_units(-1e-9, 1_000_000) == 0


@UNHURRIED
@given(POLICIES, RETRIES, st.text("abc123é"))
def test_the_wait_is_capped_and_jitter_takes_off_a_quarter_at_most(
    policy: RetryPolicy, retries: int, seed: str
) -> None:
    whole = min(policy.cap_ms, policy.base_ms * 2 ** max(0, min(retries, 40) - 1))
    wait = compute_backoff_ms(policy, retries, seed)
    assert whole - whole // 4 <= wait <= whole
    assert wait == compute_backoff_ms(policy, retries, seed)


@UNHURRIED
@given(st.text("abc123"))
def test_waits_grow_until_the_cap_and_stay_there(seed: str) -> None:
    policy = RetryPolicy(base_ms=1_000, cap_ms=64_000)
    waits = [compute_backoff_ms(policy, retry, seed) for retry in range(1, 60)]
    assert waits[:7] == sorted(waits[:7])
    assert all(48_000 <= wait <= 64_000 for wait in waits[6:])


def test_a_wait_doubles_from_the_first_to_the_longest() -> None:
    assert [compute_wait(60, doublings, 600) for doublings in (-1, 0, 1, 2, 3, 4, 10**6)] == [
        60, 60, 120, 240, 480, 600, 600,
    ]  # fmt: skip
    assert [compute_wait(0.5, doublings, 3.0) for doublings in (0, 1, 2, 3)] == [0.5, 1.0, 2.0, 3.0]


def test_parked_runs_do_not_wake_at_one_instant() -> None:
    waits = {compute_backoff_ms(RetryPolicy(), 5, f"run-{number}") for number in range(10)}
    assert len(waits) == 10


@UNHURRIED
@given(AMOUNTS, AMOUNTS)
def test_what_is_spent_adds_up(one: dict[str, int], other: dict[str, int]) -> None:
    total = Spent(**one).plus(**other)
    assert total._asdict() == {name: one[name] + other[name] for name in one}
    assert total == Spent(**other).plus(**one)


def test_an_account_that_does_not_exist_is_refused() -> None:
    with pytest.raises(TypeError, match="dollars"):
        Spent().plus(dollars=1)


@pytest.mark.parametrize("name", COUNTED)
def test_a_limit_is_spent_exactly_at_its_number(name: str) -> None:
    limits = Limits(**{**NO_LIMITS._asdict(), name: 10})
    assert find_exhausted_limit(limits, Spent(**{name: 9})) is None
    assert find_exhausted_limit(limits, Spent(**{name: 10}))
    assert find_exhausted_limit(limits, Spent(**{name: 11}))
    assert find_exhausted_limit(Limits(**{**NO_LIMITS._asdict(), name: 0}), Spent())


@pytest.mark.parametrize(
    ("name", "used", "limit", "text"),
    [
        ("usd_micros", 1_024_000, 1_000_000, "$1.02 of $1.00"),
        ("wall_ms", 28_800_400, 28_800_000, "8h 00m of 8h 00m of work"),
        ("steps", 500, 500, "500 of 500 steps"),
        ("tokens_input", 1_234_567, 1_000_000, "1,234,567 of 1,000,000 tokens"),
    ],
)
def test_a_person_reads_money_time_and_counts(name: str, used: int, limit: int, text: str) -> None:
    limits = NO_LIMITS._replace(**{name.removesuffix("_input"): limit})
    assert find_exhausted_limit(limits, Spent(**{name: used})) == text


def test_tokens_count_in_and_out_but_cached_ones_only_once() -> None:
    limits = Limits(tokens=10)
    assert find_exhausted_limit(limits, Spent(tokens_input=5, tokens_output=4, tokens_cached=5)) is None
    assert find_exhausted_limit(limits, Spent(tokens_input=5, tokens_output=5)) == "10 of 10 tokens"


@UNHURRIED
@given(AMOUNTS)
def test_without_limits_nothing_is_ever_spent(amounts: dict[str, int]) -> None:
    assert find_exhausted_limit(NO_LIMITS, Spent(**amounts)) is None


def test_time_iterations_steps_calls_and_money_are_finite_by_default() -> None:
    assert all(getattr(Limits(), name) for name in COUNTED)
