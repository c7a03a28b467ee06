"""How long an agent may be idle: the clock that calls stop, and the turns that count."""

from __future__ import annotations

import pytest

from jackline.domain.limits import Limits
from jackline.domain.records import Attempt, Turn
from jackline.domain.run_inputs import StopReason
from jackline.domain.run_totals import count_idle_turns
from jackline.domain.spec import Spec
from jackline.engine.timeouts import Timeouts

HOUR_MS = 3_600_000
NOW = 50 * HOUR_MS
SPEC = Spec(prompt="x", workspace="/", idle_timeout_ms=900_000, limits=Limits(wall_ms=None))


def attempt(token: int, outcome: str | None) -> Attempt:
    return Attempt(
        run_id="run", token=token, owner="o", host="h", boot="b", pid=1, warden_pid=None, warden_started=None,
        started_at=1, ended_at=None, outcome=outcome,
    )  # fmt: skip


def turn(number: int, failure: str | None = "idle", message: str = "", token: int = 1) -> Turn:
    return Turn(
        run_id="run", number=number, step=number, attempt=token, role="work", agent="claude", session="s", prompt="x",
        started_at=1, failure=failure, last_message=message,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("turns", "with_calls", "count"),
    [
        ([turn(1)], (), 1),
        ([turn(1), turn(2), turn(3)], (), 3),
        ([turn(1, message="hello"), turn(2)], (), 2),
        ([turn(1), turn(2, message="hello")], (), 1),
        ([turn(1), turn(2), turn(3)], (3,), 1),
        ([turn(1), turn(2), turn(3)], (1, 2), 2),
        ([turn(1), turn(2, None), turn(3)], (), 1),
        ([turn(1), turn(2, "crashed"), turn(3)], (), 2),
        ([turn(1), turn(2, "crashed", "hello"), turn(3)], (), 1),
    ],
)
def test_only_turns_without_a_call_or_message_add_up(
    turns: list[Turn], with_calls: tuple[int, ...], count: int
) -> None:
    assert count_idle_turns(turns, [attempt(1, None)], with_calls) == count


@pytest.mark.parametrize(("outcome", "count"), [("lost", 2), ("failed", 1), ("paused", 1)])
def test_a_crash_keeps_the_count_and_a_person_starts_again(outcome: str, count: int) -> None:
    turns = [turn(1), turn(2, token=2)]
    assert count_idle_turns(turns, [attempt(1, outcome), attempt(2, None)], ()) == count


def find_next(
    monkeypatch: pytest.MonkeyPatch, last_output: int, calls_until: int = 0, spec: Spec = SPEC
) -> tuple[float, StopReason] | None:
    monkeypatch.setattr("jackline.engine.timeouts.boot_ms", lambda: NOW)
    timeouts = Timeouts(spec, 0, lambda: calls_until)
    timeouts.start(lambda: last_output)
    return timeouts.find_next()


def test_a_running_call_stops_the_idle_clock_for_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = NOW - HOUR_MS
    assert find_next(monkeypatch, quiet) == (0, StopReason.IDLE)
    assert find_next(monkeypatch, quiet, NOW + 1) == (900, StopReason.IDLE)
    assert find_next(monkeypatch, quiet, NOW - 400_000) == (500, StopReason.IDLE), "it ended a while ago"
    assert find_next(monkeypatch, quiet, NOW - 900_000) == (0, StopReason.IDLE)


def test_without_a_named_timeout_only_the_budget_ends_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = SPEC._replace(idle_timeout_ms=0)
    assert find_next(monkeypatch, 0, spec=unlimited) is None
    assert find_next(monkeypatch, 0, spec=unlimited._replace(limits=Limits(wall_ms=7_000))) == (7, StopReason.BUDGET)
    assert find_next(monkeypatch, 0, spec=unlimited._replace(turn_timeout_ms=3_000)) == (3, StopReason.WALL)
