"""The same call again and again: a turn that learns nothing is stopped, one that waits for a change is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from jackline.domain.limits import Limits
from jackline.domain.run_inputs import StopReason
from jackline.engine.call_ledger import CallLedger, CallRequest, CallResult
from jackline.engine.repeated_calls import RepeatedCalls
from jackline.store.store import Store
from tests.contract.test_guards import Stops, make_ledger

MOST = 3
NUMBERS = itertools.count()
pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
Make = Callable[..., None]


def gated(ledger: CallLedger, tool: str, given: object, output: str = "same") -> None:
    answer = ledger.prepare(CallRequest(tool=tool, input=given, door="http", agent_call=str(next(NUMBERS))))
    ledger.finish(CallResult(call_id=answer.call_id, ok=True, exit_code=0, output=output))


def observed(ledger: CallLedger, tool: str, given: object, output: str = "same") -> None:
    call_id = ledger.observe(CallRequest(tool=tool, input=given, door="stream", agent_call=str(next(NUMBERS))))
    ledger.finish(CallResult(call_id=call_id, ok=True, exit_code=0, output=output))


EITHER = pytest.mark.parametrize("make", [gated, observed])


def begin(store: Store, stops: Stops, most: int | None = MOST) -> CallLedger:
    return make_ledger(store, stops, limits=Limits(repeats=most))[0]


@EITHER
def test_the_same_call_with_the_same_result_stops_the_turn(store: Store, make: Make) -> None:
    stops: Stops = []
    ledger = begin(store, stops)
    for _ in range(MOST - 1):
        make(ledger, "Bash", {"command": "cat a.py"})
    assert stops == []
    make(ledger, "Bash", {"command": "cat a.py"})
    ((why, detail),) = stops
    assert why is StopReason.STUCK
    assert detail == 'the agent made the same call 3 times in a row, with the same result: Bash {"command":"cat a.py"}'


@EITHER
def test_a_result_that_changes_is_progress(store: Store, make: Make) -> None:
    stops: Stops = []
    ledger = begin(store, stops)
    for number in range(3 * MOST):
        make(ledger, "Bash", {"command": "gh pr checks"}, f"pending {number // (MOST - 1)}")
    assert stops == []


@EITHER
def test_another_call_between_counts_anew(store: Store, make: Make) -> None:
    stops: Stops = []
    ledger = begin(store, stops)
    for number in range(2 * MOST):
        make(ledger, "Bash", {"command": "make test"})
        make(ledger, "Bash", {"command": f"cat {number}.py"})
    assert stops == []


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_few_calls_again_and_again_stop_the_turn(store: Store, count: int) -> None:
    """Such as an edit, a test that fails, and the edit back."""
    stops: Stops = []
    ledger = begin(store, stops)
    commands = [f"cat {number}.py" for number in range(count)]
    gated(ledger, "Bash", {"command": "ls"})
    for command in (commands * MOST)[:-1]:
        gated(ledger, "Bash", {"command": command})
    assert stops == []
    gated(ledger, "Bash", {"command": commands[-1]})
    ((why, detail),) = stops
    assert why is StopReason.STUCK
    calls = "; ".join(f'Bash {{"command":"{command}"}}' for command in commands)
    assert detail == f"the agent made the same {count} calls 3 times in a row, with the same results: {calls}"


def test_a_call_that_is_denied_again_and_again_stops_the_turn(store: Store) -> None:
    stops: Stops = []
    ledger = begin(store, stops)
    for number in range(MOST):
        ledger.prepare(
            CallRequest(tool="Bash", input={"command": "jackline answer 1 allow"}, door="http", agent_call=str(number))
        )
    assert [why for why, _ in stops] == [StopReason.STUCK]


def test_a_new_turn_counts_anew(store: Store) -> None:
    stops: Stops = []
    ledger = begin(store, stops)
    for _ in range(MOST):
        ledger.repeats = RepeatedCalls()
        gated(ledger, "Bash", {"command": "cat a.py"})
    assert stops == []


@pytest.mark.parametrize("tool", ["BashOutput", "mcp__jackline__receive_messages"])
def test_waiting_is_not_repeating(store: Store, tool: str) -> None:
    stops: Stops = []
    ledger = begin(store, stops)
    for _ in range(MOST):
        gated(ledger, tool, {"id": 1})
    assert stops == []


def test_without_a_limit_nothing_stops_it(store: Store) -> None:
    stops: Stops = []
    ledger = begin(store, stops, most=None)
    for _ in range(MOST):
        gated(ledger, "Bash", {"command": "cat a.py"})
    assert stops == []
