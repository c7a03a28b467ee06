"""The budget of a day: what a turn reserves, when it is given back, and on which day it counts."""

from __future__ import annotations

import pytest

from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.records import Lease, RunStatus, Turn
from jackline.domain.states import Phase, RunState, WaitReason
from jackline.errors import DayBudgetSpent, Fenced
from jackline.formatting import DAY_MS, format_date
from jackline.store.models import RunChange
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, FakeClock, begun, by_hand, claimed

LIMIT = 1_000_000
WORKING = RunStatus(state=RunState.RUNNING, phase=Phase.WORKING, turn=1, step=2)


def end_turn(store: Store, lease: Lease, spent: int, at: int = AT, day_budget: int = 0, **status: object) -> None:
    """Store the end of a turn that spent so much, as the attempt does."""
    turn = Turn(
        run_id=lease.run_id, number=1, step=2, attempt=lease.token, role="work", agent="claude", session=None,
        prompt="", started_at=at, ended_at=at, spent=Spent(usd_micros=spent),
    )  # fmt: skip
    values = {"spent": Spent(usd_micros=spent), **status}
    change = RunChange(at=at, facts=(Fact("turn.ended"),), status=WORKING._replace(**values), turn=turn)  # type: ignore[arg-type]
    change = change._replace(day_budget=day_budget)
    store.leases.write_change(lease, change)


def reservations(store: Store) -> list[tuple[str, int]]:
    return [
        tuple(row) for row in by_hand(store, "SELECT run_id, usd_micros FROM spending_reservations ORDER BY run_id")
    ]


def test_a_turn_reserves_the_smaller_rest(store: Store) -> None:
    one, two, three = (begun(store, f"run-{number}") for number in (1, 2, 3))
    assert store.spending.reserve(one, LIMIT, 700_000, AT) == 700_000
    assert store.spending.reserve(two, LIMIT, None, AT) == 300_000
    with pytest.raises(DayBudgetSpent, match=r"\$1.00 is reserved by turns of run-1, run-2;") as refused:
        store.spending.reserve(three, LIMIT, 1, AT)
    assert refused.value.wake_at == AT + 60_000
    assert reservations(store) == [("run-1", 700_000), ("run-2", 300_000)]


def test_a_run_replaces_its_own_reservation(store: Store) -> None:
    lease = begun(store)
    assert store.spending.reserve(lease, LIMIT, None, AT) == LIMIT
    assert store.spending.reserve(lease, LIMIT, 5, AT) == 5
    assert reservations(store) == [("run-1", 5)]


def test_the_end_of_a_turn_gives_the_rest_back(store: Store) -> None:
    one, two = begun(store), begun(store, "run-2")
    store.spending.reserve(one, LIMIT, None, AT)
    store.leases.write_change(one, RunChange(at=AT, facts=(Fact("agent.message"),)))
    assert reservations(store), "the turn goes on"
    end_turn(store, one, 200_000)
    assert reservations(store) == []
    assert store.spending.reserve(two, LIMIT, None, AT) == 800_000


def test_a_day_that_is_spent_says_when_the_next_one_starts(store: Store) -> None:
    lease = begun(store)
    store.spending.reserve(lease, LIMIT, None, AT)
    end_turn(store, lease, 1_020_000)
    with pytest.raises(DayBudgetSpent, match=r"\$1.02 of \$1.00; the next day starts at 00:00 UTC") as refused:
        store.spending.reserve(lease, LIMIT, None, AT)
    assert refused.value.wake_at == (AT // DAY_MS + 1) * DAY_MS
    assert store.spending.reserve(lease, LIMIT, None, AT + DAY_MS) == LIMIT


def test_a_turn_counts_on_the_day_on_which_it_started(store: Store) -> None:
    lease = begun(store)
    store.spending.reserve(lease, LIMIT, None, AT)
    end_turn(store, lease, 400_000, at=AT + DAY_MS)
    assert [tuple(row) for row in by_hand(store, "SELECT day, usd_micros FROM spending")] == [
        (format_date(AT), 400_000)
    ]


@pytest.mark.parametrize("phase", [Phase.PROVING, None])
def test_a_run_that_does_not_work_reserves_nothing(store: Store, phase: Phase | None) -> None:
    lease = begun(store)
    store.spending.reserve(lease, LIMIT, None, AT)
    status = WORKING._replace(phase=phase)
    if phase is None:
        status = status._replace(state=RunState.WAITING, reason=WaitReason.PAUSED)
    store.leases.write_change(lease, RunChange(at=AT, facts=(Fact("run.waiting"),), status=status))
    assert reservations(store) == []


def test_the_takeover_settles_what_a_dead_worker_reserved(store: Store, clock: FakeClock) -> None:
    old = begun(store)
    store.spending.reserve(old, LIMIT, None, AT)
    clock.now += LEASE_MS
    lease = claimed(store, name="worker-2")
    with pytest.raises(Fenced):
        store.spending.reserve(old, LIMIT, None, AT)
    recovering = WORKING._replace(phase=Phase.RECOVERING)
    store.leases.write_change(lease, RunChange(at=AT, facts=(Fact("recovery.started"),), status=recovering))
    with pytest.raises(DayBudgetSpent, match=r"reserved by turns of run-1;"):
        store.spending.reserve(begun(store, "run-2"), LIMIT, None, AT)  # its turn may have spent all of it
    end_turn(store, lease, 300_000)
    assert reservations(store) == []
    assert store.spending.reserve(lease, LIMIT, None, AT) == 700_000


def test_a_notice_is_written_once_when_the_day_is_nearly_spent_and_once_when_it_is(store: Store) -> None:
    lease, day = begun(store), format_date(AT)
    for spent in (790_000, 800_000, 900_000, 1_000_000, 1_100_000):
        end_turn(store, lease, spent, day_budget=LIMIT)
    found = [(one.kind, one.subject, one.title, one.body) for one in reversed(store.notices.list_newest())]
    assert sorted(found) == [
        (
            "budget.low",
            f"budget:{day}",
            f"the budget of {day} is nearly spent",
            "$0.80 of $1.00; a run that needs more waits until 00:00 UTC",
        ),
        (
            "budget.spent",
            f"budget:{day}",
            f"the budget of {day} is spent",
            "$1.00 of $1.00; a run that needs more waits until 00:00 UTC",
        ),
    ]


def test_without_a_budget_there_is_no_notice(store: Store) -> None:
    end_turn(store, begun(store), 10 * LIMIT)
    assert store.notices.list_newest() == []


def test_the_rest_of_a_day_is_what_is_neither_spent_nor_reserved(store: Store) -> None:
    one, two = begun(store), begun(store, "run-2")
    store.spending.reserve(one, LIMIT, 300_000, AT)
    assert store.spending.find_rest(LIMIT, AT) == 700_000
    end_turn(store, one, 100_000)
    store.spending.reserve(two, LIMIT, None, AT)
    assert (store.spending.find_rest(LIMIT, AT), store.spending.find_rest(LIMIT, AT + DAY_MS)) == (0, LIMIT)
