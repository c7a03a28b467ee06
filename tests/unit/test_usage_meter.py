"""The meter: what a turn used, whatever its figures are the sum of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jackline.domain.outcome import AgentEvent, Scope, Usage, UsageMeter


def told(scope: Scope, *figures: int, of: str = "") -> AgentEvent:
    return AgentEvent("usage", usage=Usage(*figures), scope=scope, message_id=of)


def after(*heard: AgentEvent, before: Usage | None = None) -> Usage:
    meter = UsageMeter(before or Usage())
    for one in heard:
        meter.add(one)
    return meter.total


def test_steps_are_added() -> None:
    assert after(told(Scope.STEP, 10, 1, 4, 7), told(Scope.STEP, 20, 2, 0, 3)) == Usage(30, 3, 4, 10)


def test_a_message_that_is_told_again_counts_once() -> None:
    first, again = told(Scope.MESSAGE, 10, 1, of="m1"), told(Scope.MESSAGE, 10, 5, of="m1")
    assert after(first, again, told(Scope.MESSAGE, 20, 2, of="m2")) == Usage(30, 7)


def test_a_message_counts_once_even_with_another_in_between() -> None:
    first, other = told(Scope.MESSAGE, 10, 1, of="m1"), told(Scope.MESSAGE, 20, 2, of="m2")
    assert after(first, other, told(Scope.MESSAGE, 10, 5, of="m1")) == Usage(30, 7)


def test_the_memory_for_messages_is_bounded() -> None:
    heard = [told(Scope.MESSAGE, 1, 1, of=str(number)) for number in range(1000)]
    meter = UsageMeter()
    for one in heard:
        meter.add(one)
    assert meter.total == Usage(1000, 1000)
    assert len(meter._messages) <= 100


def test_messages_without_a_name_are_different_ones() -> None:
    assert after(told(Scope.MESSAGE, 10, 1), told(Scope.MESSAGE, 10, 1)) == Usage(20, 2)


def test_the_turns_own_total_replaces_the_sum_of_its_messages() -> None:
    assert after(told(Scope.MESSAGE, 10, 1, of="m"), told(Scope.TURN, 12, 3)) == Usage(12, 3)


def test_the_last_of_two_totals_counts() -> None:
    assert after(told(Scope.TURN, 12, 3), told(Scope.TURN, 20, 5)) == Usage(20, 5)


def test_a_total_of_the_session_is_charged_without_what_was_charged_before() -> None:
    assert after(told(Scope.SESSION, 100, 10, 50, 900), before=Usage(60, 4, 50, 400)) == Usage(40, 6, 0, 500)


def test_a_session_that_counts_from_zero_again_is_never_charged_less_than_nothing() -> None:
    assert after(told(Scope.SESSION, 5, 1), before=Usage(60, 4)) == Usage(0, 0)


def test_tokens_and_cost_may_come_in_different_scopes() -> None:
    cost = told(Scope.SESSION, 0, 0, 0, 900)
    assert after(told(Scope.TURN, 12, 3), cost, before=Usage(usd_micros=400)) == Usage(12, 3, 0, 500)


def test_a_zero_says_nothing() -> None:
    assert after(told(Scope.STEP, 10, 1), told(Scope.TURN, 0, 0)) == Usage(10, 1)


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_charges_of_the_turns_of_a_session_add_up_to_its_last_total(steps: list[int]) -> None:
    total, charged = 0, Usage()
    for one in steps:
        total += one
        used = after(told(Scope.SESSION, total), before=charged)
        charged = Usage(charged.tokens_input + used.tokens_input)
    assert charged.tokens_input == total


# --- estimates: a token costs one millionth of a dollar here


def estimated(*heard: AgentEvent, before: Usage | None = None) -> tuple[int, int]:
    """The cost, and the estimated part of it."""
    meter = UsageMeter(before or Usage(), lambda _model, usage: usage.tokens_input + usage.tokens_output)
    for one in heard:
        meter.add(one)
    return meter.total.usd_micros, meter.total.usd_estimated


def test_tokens_without_a_cost_are_estimated_until_the_cost_is_reported() -> None:
    messages = (told(Scope.MESSAGE, 10, 1, of="m1"), told(Scope.MESSAGE, 10, 5, of="m1"), told(Scope.STEP, 20))
    assert estimated(*messages) == (35, 35)
    assert estimated(*messages, told(Scope.TURN, 30, 6, 0, 900)) == (900, 0)


def test_a_cost_of_zero_is_a_cost_if_the_agent_says_so() -> None:
    free = told(Scope.STEP, 10, 1)._replace(priced=True)
    assert estimated(free) == (0, 0)
    assert estimated(told(Scope.MESSAGE, 10, 1), told(Scope.TURN, 10, 1)._replace(priced=True)) == (0, 0)


def test_messages_after_a_result_are_added_to_it() -> None:
    """A process with a task in the background continues after its first result."""
    result, later = told(Scope.TURN, 30, 6, 0, 900), told(Scope.MESSAGE, 7, 1, of="m2")
    assert estimated(told(Scope.MESSAGE, 10, 1, of="m1"), result, later) == (908, 8)
    assert after(told(Scope.MESSAGE, 10, 1, of="m1"), result, later) == Usage(37, 7, 0, 900)
    assert estimated(result, later, told(Scope.SESSION, 40, 8, 0, 950)) == (950, 0)


def test_a_cost_that_is_reported_apart_from_its_tokens_counts_once() -> None:
    cost, tokens = told(Scope.SESSION, 0, 0, 0, 900), told(Scope.TURN, 12, 3)
    assert estimated(cost, tokens) == (900, 0)
    assert estimated(tokens, cost) == (900, 0)


def test_an_estimate_of_an_earlier_turn_is_not_taken_off_the_sessions_cost() -> None:
    before = Usage(tokens_input=5, usd_micros=400, usd_estimated=300)
    assert estimated(told(Scope.SESSION, 9, 0, 0, 500), before=before) == (400, 0)
