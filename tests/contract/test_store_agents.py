"""What the store knows of agents: whose session is whose, and who is resting. On both stores."""

from __future__ import annotations

import pytest

from jackline.domain.agent_health import AgentHealth
from jackline.domain.events import Fact
from jackline.domain.records import Lease, SessionUse
from jackline.domain.states import RunState
from jackline.errors import SessionTaken
from jackline.store.models import RunChange
from jackline.store.store import Store
from tests.support.stores import AT, begun


def takes(store: Store, lease: Lease, session: str, agent: str = "claude") -> None:
    store.leases.write_change(lease, RunChange(AT, (Fact("turn.launched"),), session=SessionUse(agent, session)))


def ends(store: Store, lease: Lease, state: RunState) -> None:
    run = store.runs.get(lease.run_id)
    assert run is not None
    life = run.status._replace(state=state, phase=None)
    store.leases.write_change(lease, RunChange(AT, (Fact(f"run.{state}"),), status=life))


def test_a_session_belongs_to_one_run(store: Store) -> None:
    first, second = begun(store, "run-1"), begun(store, "run-2")
    takes(store, first, "s")
    with pytest.raises(SessionTaken, match="session s belongs to run run-1"):
        takes(store, second, "s")
    assert store.records.get_sessions("run-2") == {}
    assert store.records.list_events("run-2")[-1].kind != "turn.launched"


def test_the_owner_may_take_its_session_again(store: Store) -> None:
    lease = begun(store)
    takes(store, lease, "s")
    takes(store, lease, "s")
    assert store.records.get_sessions("run-1") == {"claude": "s"}


def test_the_same_id_of_another_agent_is_another_session(store: Store) -> None:
    takes(store, begun(store, "run-1"), "s")
    takes(store, begun(store, "run-2"), "s", "codex")


def test_a_run_that_waits_keeps_its_session(store: Store) -> None:
    first, second = begun(store, "run-1"), begun(store, "run-2")
    takes(store, first, "s")
    ends(store, first, RunState.WAITING)
    with pytest.raises(SessionTaken):
        takes(store, second, "s")


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED])
def test_the_session_of_a_run_that_ended_may_be_adopted(store: Store, state: RunState) -> None:
    first, second = begun(store, "run-1"), begun(store, "run-2")
    takes(store, first, "s")
    ends(store, first, state)
    takes(store, second, "s")
    assert store.records.get_sessions("run-2") == {"claude": "s"}


def test_a_lost_session_is_remembered_as_lost_and_owned_by_nobody(store: Store) -> None:
    for name in ("run-1", "run-2"):
        takes(store, begun(store, name), "")
    assert store.records.get_sessions("run-1") == {"claude": ""}


def test_health_is_the_last_word_on_each_agent(store: Store) -> None:
    lease = begun(store)
    for health in (
        AgentHealth("codex", "limit", "d", AT + 9, AT),
        AgentHealth("claude", at=AT),
        AgentHealth("codex", at=AT + 1),
    ):
        store.leases.write_change(lease, RunChange(AT, (Fact("turn.ended"),), health=health))
    assert store.records.list_health() == [AgentHealth("claude", at=AT), AgentHealth("codex", at=AT + 1)]


def test_the_agent_of_a_run_is_who_works_on_it_now(store: Store) -> None:
    lease = begun(store)
    run = store.runs.get("run-1")
    assert run is not None
    assert run.agent == run.spec.agent
    store.leases.write_change(
        lease, RunChange(AT, (Fact("agent.switched"),), status=run.status._replace(agent="codex"))
    )
    run = store.runs.get("run-1")
    assert run is not None
    assert (run.agent, run.status.agent) == ("codex", "codex")
    assert store.runs.find_matching("run-1", None)[0].agent == "codex"
