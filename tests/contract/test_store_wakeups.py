"""Which waiting runs are due, and which answered ones nobody has continued; on every backend."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jackline.app.home import Home, open_home
from jackline.app.wakeups import LimitGate, find_next_wake, list_due
from jackline.clock import boot_id, host_name, wall_ms
from jackline.domain.agent_health import AgentHealth
from jackline.domain.amendment import Amendment
from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.limit_gate import LimitProbe
from jackline.domain.records import Owner, RunStatus
from jackline.domain.states import Decision, RunState, WaitReason
from jackline.engine.owner_lock import hold_waiter
from jackline.formatting import DAY_MS
from jackline.store.models import RunChange, RunQuery
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, begun, intent, made

WAKES = {WaitReason.LIMIT, WaitReason.RETRY, WaitReason.APPROVAL, WaitReason.BUDGET, WaitReason.DEPENDENCY}


def park(store: Store, run_id: str, reason: WaitReason, wake_at: int | None, *, pid: int = 0, host: str = "") -> None:
    made(store, run_id)
    here = Owner(f"worker-{run_id}", host or host_name(), boot_id(), pid)
    lease = store.leases.claim(run_id, here, LEASE_MS, AT)[0]
    status = RunStatus(state=RunState.WAITING, reason=reason, wake_at=wake_at)
    store.leases.write_change(lease, RunChange(AT, (Fact("run.waiting"),), status))


def due(store: Store, at: int = AT) -> list[str]:
    return [one.run_id for one in store.wakeups.list_due(at)]


@pytest.fixture
def home(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("home")
    environ = {"HOME": str(folder), "JACKLINE_HOME": str(folder), "JACKLINE_DATABASE": database}
    with open_home(environ=environ) as opened:
        yield opened


@pytest.mark.parametrize("reason", WaitReason)
def test_only_what_ends_without_a_person_is_due(store: Store, reason: WaitReason) -> None:
    park(store, "run-1", reason, AT)
    assert due(store) == (["run-1"] if reason in WAKES else [])
    assert store.wakeups.find_next_wake(AT - 1) == (AT if reason in WAKES else None)


def test_runs_are_due_at_their_time_the_longest_first(store: Store) -> None:
    park(store, "late", WaitReason.LIMIT, AT + 20)
    park(store, "early", WaitReason.BUDGET, AT + 10)
    park(store, "never", WaitReason.BUDGET, None)
    assert (due(store, AT + 9), due(store, AT + 10), due(store, AT + 20)) == ([], ["early"], ["early", "late"])
    assert [store.wakeups.find_next_wake(AT + after) for after in (0, 10, 20)] == [AT + 10, AT + 20, None]


def answered(store: Store, run_id: str = "run-1", windows: int = 0) -> None:
    """A run that has begun, asked for approval, and got it."""
    made(store, run_id)
    lease = store.leases.claim(run_id, Owner(f"worker-{run_id}", host_name(), boot_id(), 0), LEASE_MS, AT)[0]
    asked = intent(f"call-{run_id}", MAIL._replace(decision=Decision.ASK), key=run_id, target="")
    store.ledger.admit(lease, asked, decide_call, (1, 2), AT)
    status = RunStatus(state=RunState.WAITING, reason=WaitReason.APPROVAL, windows=windows)
    store.leases.write_change(lease, RunChange(AT, (Fact("run.waiting"),), status))
    assert store.wakeups.list_answered() == []
    store.approvals.answer(run_id, f"call-{run_id}", "allow", AT)


def test_an_answered_run_is_due_until_a_process_takes_it(store: Store) -> None:
    made(store, "fresh")
    answered(store)
    assert [(one.run_id, one.reason) for one in store.wakeups.list_answered()] == [("run-1", None)]
    store.leases.claim("run-1", Owner("service", "host", "boot", 1), LEASE_MS, AT)
    assert store.wakeups.list_answered() == []


def test_a_home_lists_both_kinds(home: Home, store: Store) -> None:
    answered(store, "answered")
    park(store, "limited", WaitReason.LIMIT, AT)
    park(store, "later", WaitReason.LIMIT, AT + 1)
    assert [(one.run_id, one.reason) for one in list_due(home, AT)] == [
        ("limited", WaitReason.LIMIT),
        ("answered", None),
    ]
    assert find_next_wake(home, AT) == AT + 1


def test_a_run_whose_process_waits_for_the_answer_is_left_to_it(home: Home, store: Store) -> None:
    answered(store, "answered")
    park(store, "approval", WaitReason.APPROVAL, AT)
    with hold_waiter(home.folder("answered")), hold_waiter(home.folder("approval")):
        assert list_due(home, AT) == []
    assert [one.run_id for one in list_due(home, AT)] == ["approval", "answered"]


def test_a_retry_is_left_to_its_process_for_as_long_as_that_lives_and_is_in_time(home: Home, store: Store) -> None:
    parent, now = os.getppid(), wall_ms()
    park(store, "in-time", WaitReason.RETRY, now, pid=parent)
    park(store, "overdue", WaitReason.RETRY, now - 60_000, pid=parent)
    park(store, "orphan", WaitReason.RETRY, now, pid=2**22 + 1)  # above the largest pid
    park(store, "limit", WaitReason.LIMIT, now, pid=parent)  # its process does not wait that long
    assert {one.run_id for one in list_due(home, now)} == {"overdue", "orphan", "limit"}


def test_a_run_of_another_host_in_a_shared_database_is_left_to_that_host(home: Home, store: Store) -> None:
    park(store, "theirs", WaitReason.LIMIT, AT, host="another-host")
    assert bool(list_due(home, AT)) == ("://" not in home.database), "a file belongs to this host, whatever its name is"


def test_a_new_home_has_nothing_due(tmp_path: Path) -> None:
    fresh = open_home(environ={"HOME": str(tmp_path), "JACKLINE_HOME": str(tmp_path / "none")})
    assert (list_due(fresh, AT), find_next_wake(fresh, AT)) == ([], None)


# limits


def limit(store: Store, agent: str, until: int, run_id: str = "run-1") -> None:
    """A turn of the agent meets a limit."""
    made(store, run_id)
    lease = store.leases.claim(run_id, Owner(f"worker-{run_id}", "host", "boot", 1), LEASE_MS, AT)[0]
    health = AgentHealth(agent, "limit" if until else "", "why", until, AT)
    status = RunStatus(state=RunState.WAITING, reason=WaitReason.LIMIT, wake_at=until, agent=agent, windows=1)
    store.leases.write_change(lease, RunChange(AT, (Fact("run.waiting"),), status, health=health))


def test_only_one_run_is_let_through_after_a_limit(store: Store) -> None:
    limit(store, "claude", AT + 9)
    assert not store.wakeups.take_probe("claude", AT + 8, "run-1", AT + 10, None), "another limit than the one seen"
    assert not store.wakeups.take_probe("codex", AT + 9, "run-1", AT + 10, None)
    assert store.wakeups.take_probe("claude", AT + 9, "run-1", AT + 10, None)
    assert not store.wakeups.take_probe("claude", AT + 9, "run-2", AT + 11, None), "two services saw that it was free"
    (probe,) = store.wakeups.list_probes()
    assert probe == LimitProbe("claude", AT + 9, "run-1", AT + 10)
    assert store.wakeups.take_probe("claude", AT + 9, "run-2", AT + 12, probe)
    assert not store.wakeups.take_probe("claude", AT + 9, "run-3", AT + 13, probe)


def test_a_probe_shows_whether_its_run_works(store: Store) -> None:
    limit(store, "claude", AT + 9)
    store.wakeups.take_probe("claude", AT + 9, "run-1", AT + 10, None)
    lease = store.leases.claim("run-1", Owner("service", "host", "boot", 1), LEASE_MS, AT + 11, from_queue=True)[0]
    (probe,) = store.wakeups.list_probes()
    assert (probe.is_running, probe.has_stopped) == (True, False)
    status = RunStatus(state=RunState.WAITING, reason=WaitReason.PAUSED, agent="claude")
    store.leases.write_change(lease, RunChange(AT + 12, (Fact("run.waiting"),), status))
    (probe,) = store.wakeups.list_probes()
    assert (probe.is_running, probe.has_stopped) == (False, True)


def test_ten_runs_of_an_agent_do_not_each_meet_its_limit(home: Home, store: Store) -> None:
    limit(store, "claude", AT + 9)
    runs = [made(store, f"queued-{number}", spec={"agent": "claude"}) for number in range(10)]
    other = made(store, "other", spec={"agent": "codex"})
    hopeful = made(store, "hopeful", spec={"agent": "claude", "fallback": ("codex",)})
    early = LimitGate(home, AT + 1)
    assert [run.id for run in (other, hopeful, *runs) if early.lets_start(run)] == ["other", "hopeful"]
    assert early.again_at == AT + 9
    late = AT + 9
    gates = [LimitGate(home, late), LimitGate(home, late)]  # of two services at the same moment
    assert len([run.id for gate in gates for run in runs if gate.lets_start(run)]) == 1
    assert not any(LimitGate(home, late + 1).lets_start(run) for run in runs[1:])


def test_a_claim_by_a_person_counts_limits_anew_and_that_of_a_service_does_not(store: Store) -> None:
    limit(store, "claude", AT)
    service = Owner("service", "host", "boot", 1)
    lease, run = store.leases.claim("run-1", service, LEASE_MS, AT, from_queue=True)
    assert run.status.windows == 1
    store.leases.write_change(
        lease,
        RunChange(
            AT,
            (Fact("run.waiting"),),
            run.status._replace(state=RunState.WAITING, reason=WaitReason.LIMIT, wake_at=AT, phase=None, windows=2),
        ),
    )
    assert store.leases.claim("run-1", service, LEASE_MS, AT)[1].status.windows == 0


def test_an_answer_or_a_change_by_a_person_counts_limits_anew(store: Store) -> None:
    limit(store, "claude", AT)
    amended = store.amendments.amend("run-1", Amendment(message="go on"), AT)
    assert amended.status.windows == 0
    answered(store, "asked", windows=3)
    asked = store.runs.get("asked")
    assert asked is not None
    assert asked.status.windows == 0


def test_one_reset_time_is_shown(store: Store) -> None:
    """Another run finds that the agent rests longer than was known when the first one began to wait."""
    limit(store, "claude", AT + 5)
    limit(store, "claude", AT + 9, "run-2")
    scripted = store.runs.get("run-1")
    assert scripted is not None
    assert store.wakeups.adjust_wake_time(scripted) == scripted, "another agent may work on it"
    claude = made(store, "run-3", spec={"agent": "claude"})
    waiting = claude._replace(status=RunStatus(RunState.WAITING, WaitReason.LIMIT, AT + 5, agent="claude"))
    assert store.wakeups.adjust_wake_time(waiting).status.wake_at == AT + 9
    rows = store.wakeups.adjust_wake_times(store.runs.list_page(RunQuery()))
    assert {row.id: row.wake_at for row in rows} == {"run-1": AT + 5, "run-2": AT + 9, "run-3": None}


@pytest.mark.parametrize("budget", [1.0, 1e-7])
def test_runs_that_wait_for_the_day_stay_until_something_is_left_of_its_budget(
    home: Home, store: Store, budget: float
) -> None:
    home.config = home.config._replace(values={**home.config.values, "max_usd_per_day": budget})
    park(store, "waiting", WaitReason.BUDGET, AT)
    worker = begun(store, "working")
    store.spending.reserve(worker, 1_000_000, None, AT)
    assert list_due(home, AT) == []
    assert [one.run_id for one in list_due(home, AT + DAY_MS)] == ["waiting"]
    fact, status = Fact("run.failed"), RunStatus(state=RunState.FAILED)
    store.leases.write_change(worker, RunChange(AT, (fact,), status))
    assert [one.run_id for one in list_due(home, AT)] == ["waiting"], "the turn has given back what it had reserved"
