"""Runs: made once, numbered, found, listed, cancelled; the same on every backend."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from jackline.domain.ids import repository_id
from jackline.domain.records import RunStatus, SessionUse
from jackline.domain.spec import Spec
from jackline.domain.states import RunState, WaitReason
from jackline.errors import Conflict, NotFound, Refused
from jackline.store.models import RunChange, RunQuery, TmuxSession
from jackline.store.store import Store
from tests.support.stores import AT, HERE, begun, by_hand, claimed, made, new_run


def test_a_run_comes_back_as_it_was_made(store: Store) -> None:
    run, new = store.runs.create(new_run(spec={"proof": "pytest -q", "options": {"a": "b"}}), AT)
    assert new
    assert run == store.runs.get("run-1")
    assert (run.number, run.repository, run.lineage, run.parent) == (1, repository_id(HERE), "run-1", None)
    assert (run.status, run.owner, run.created_at) == (RunStatus(agent="scripted"), None, AT)
    assert run.spec == Spec(prompt="mend it", workspace=HERE, proof="pytest -q", options={"a": "b"})


def test_the_same_request_makes_no_second_run(store: Store) -> None:
    first = made(store)
    again, new = store.runs.create(new_run(), AT + 5)
    assert (again, new) == (first, False)
    assert len(store.records.list_events("run-1")) == 1
    assert made(store, "run-2").number == 2


def test_another_request_under_the_same_id_is_a_conflict(store: Store) -> None:
    made(store)
    with pytest.raises(Conflict):
        store.runs.create(new_run(request="something else"), AT)


def test_numbers_count_per_repository(store: Store) -> None:
    paths = ("/a", "/b", "/a")
    assert [made(store, f"r{at}", repository=path).number for at, path in enumerate(paths)] == [1, 1, 2]
    assert [place.path for place in store.runs.list_repositories()] == ["/a", "/b"]


def test_a_fork_shares_its_lineage(store: Store) -> None:
    made(store)
    child = made(store, "run-2", parent="run-1")
    grandchild = made(store, "run-3", parent="run-2")
    assert (child.parent, child.lineage, grandchild.lineage) == ("run-1", "run-1", "run-1")


def test_a_fork_of_nothing_is_refused_and_takes_no_number(store: Store) -> None:
    with pytest.raises(NotFound):
        made(store, parent="nobody")
    assert made(store).number == 1


def test_an_unknown_run_is_none(store: Store) -> None:
    assert store.runs.get("nobody") is None
    assert store.runs.get("no\x00body") is None
    assert store.calls.list_all("nobody") == []


def test_runs_are_matched_by_id_then_number_then_beginning_or_end(store: Store) -> None:
    here = made(store, "ab12").repository
    made(store, "ab34")
    made(store, "2cd")

    def ids(text: str, repository: str | None = here) -> list[str]:
        return [row.id for row in store.runs.find_matching(text, repository)]

    assert ids("ab12") == ["ab12"]
    assert ids("ab") == ["ab12", "ab34"]
    assert ids("#2") == ids("2") == ["ab34"]
    assert ids("2", None) == ["2cd", "ab12"]
    assert ids("34") == ids("b34") == ["ab34"]
    assert ids("2c", None) == ids("cd", None) == ["2cd"]
    assert ids("#9") == ids("zz") == ids("") == ids("a\x00") == []


def test_a_prefix_is_never_a_pattern(store: Store) -> None:
    made(store, "a_b")
    made(store, "axb")
    assert [row.id for row in store.runs.find_matching("a_", None)] == ["a_b"]
    assert [row.id for row in store.runs.find_matching("_b", None)] == ["a_b"]
    assert store.runs.find_matching("%", None) == []


def test_matching_stops_at_the_limit(store: Store) -> None:
    for number in range(5):
        made(store, f"same{number}same")
    assert len(store.runs.find_matching("same", None, limit=3)) == 3
    assert len(store.runs.find_matching("same", None)) == 5  # each once


def test_the_list_shows_the_newest_first_with_their_cheap_columns(store: Store) -> None:
    made(store, "old", AT, spec={"agent": "codex", "task": "tidy", "prompt": "x" * 300})
    made(store, "new", AT + 1)
    newest, oldest = store.runs.list_page(RunQuery())
    assert (newest.id, oldest.id) == ("new", "old")
    assert (oldest.agent, oldest.task, oldest.prompt) == ("codex", "tidy", "x" * 200)
    assert (oldest.path, oldest.state, oldest.tokens) == (HERE, "queued", 0)


def _garden(store: Store) -> None:
    """Runs of every combination, some of them at the same millisecond."""
    states = (RunState.QUEUED, RunState.FAILED)
    choices = itertools.product(("codex", "claude"), ("tidy", "adhoc"), ("/a", "/b"), states)
    for place, (agent, task, path, state) in enumerate(choices):
        made(store, f"r{place:02d}", AT + place // 3, repository=path, spec={"agent": agent, "task": task})
        if state is RunState.FAILED:
            lease = claimed(store, f"r{place:02d}")
            store.leases.write_change(
                lease, RunChange(AT, status=RunStatus(state=state), session=SessionUse(agent, f"session-{agent}"))
            )


def test_every_filter_narrows_and_combines(store: Store) -> None:
    _garden(store)
    everything = store.runs.list_page(RunQuery(limit=100))
    assert [(row.created_at, row.id) for row in everything] == sorted(
        ((row.created_at, row.id) for row in everything), reverse=True
    )
    choices = itertools.product(
        ((), ("failed",), ("failed", "queued", "failed"), ("running",)),
        (None, "codex"),
        (None, "tidy"),
        (None, repository_id("/a")),
        (None, AT + 2),
        (None, "session-codex"),
    )
    for states, agent, task, repository, since, session in choices:
        expected = [
            row.id
            for row in everything
            if (not states or row.state in states)
            and agent in (None, row.agent)
            and task in (None, row.task)
            and repository in (None, row.repository)
            and row.created_at >= (since or 0)
            and (session is None or (row.state == "failed" and row.agent == "codex"))
        ]
        query = RunQuery(states, agent, task, repository, session, since, limit=100)
        assert [row.id for row in store.runs.list_page(query)] == expected, query


@pytest.mark.parametrize("states", [(), ("failed", "queued")])
def test_pages_follow_each_other_without_gap_or_repeat(store: Store, states: tuple[str, ...]) -> None:
    _garden(store)
    seen, before = [], None
    while page := store.runs.list_page(RunQuery(states=states, before=before, limit=3)):
        seen += [row.id for row in page]
        before = (page[-1].created_at, page[-1].id)
    assert seen == [row.id for row in store.runs.list_page(RunQuery(limit=100))]


def test_a_limit_below_one_lists_nothing(store: Store) -> None:
    made(store)
    assert store.runs.list_page(RunQuery(limit=0)) == store.runs.list_page(RunQuery(limit=-1)) == []


def test_cancel_ends_what_nobody_works_on(store: Store) -> None:
    made(store)
    run = store.runs.request_cancel("run-1", AT + 9, "notice-1")
    assert (run.status.state, run.finished_at) == (RunState.CANCELLED, AT + 9)
    assert [event.kind for event in store.records.list_events("run-1")] == ["run.created", "run.cancelled"]
    (notice,) = store.records.list_notices("run-1")
    assert (notice.id, notice.kind, notice.chain_head) == ("notice-1", "run.cancelled", run.chain_head)
    assert run == store.runs.get("run-1")


def test_cancel_ends_a_waiting_run(store: Store) -> None:
    lease = begun(store)
    waiting = RunStatus(state=RunState.WAITING, reason=WaitReason.LIMIT, wake_at=AT + 99)
    store.leases.write_change(lease, RunChange(AT, status=waiting))
    run = store.runs.request_cancel("run-1", AT + 9, "notice-1")
    assert (run.status.state, run.status.reason, run.status.wake_at) == (RunState.CANCELLED, None, None)


def test_cancel_of_a_running_run_is_a_request_made_once(store: Store) -> None:
    lease = begun(store)
    assert store.runs.request_cancel("run-1", AT + 9, "notice-1").status.state is RunState.RUNNING
    store.runs.request_cancel("run-1", AT + 10, "notice-1")
    assert store.leases.renew(lease, 1000, 0) is True
    assert [event.kind for event in store.records.list_events("run-1")].count("cancel.requested") == 1
    assert store.records.list_notices("run-1") == [], "the worker tells when it has really ended"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState.SUCCEEDED, "has succeeded"),
        (RunState.FAILED, "has failed"),
        (RunState.CANCELLED, "was cancelled"),
    ],
)
def test_a_terminal_state_refuses_to_be_cancelled(store: Store, state: RunState, said: str) -> None:
    store.leases.write_change(begun(store), RunChange(AT, status=RunStatus(state=state)))
    with pytest.raises(Refused, match=f"run-1 {said}"):
        store.runs.request_cancel("run-1", AT, "notice-1")


@pytest.mark.parametrize(
    "act",
    [
        lambda store: store.runs.request_cancel("nobody", AT, "notice-1"),
        lambda store: store.approvals.answer("nobody", "call-1", "allow", AT),
        lambda store: store.admin.drop_archived_events("nobody", "", AT),
        lambda store: claimed(store, "nobody"),
    ],
)
def test_what_does_not_exist_is_not_found(store: Store, act: Callable[[Store], object]) -> None:
    with pytest.raises(NotFound, match="no run matches 'nobody'"):
        act(store)


def test_a_run_with_settings_of_a_newer_version_can_be_read_but_not_claimed(opened: Callable[..., Store]) -> None:
    store = opened()
    made(store)
    by_hand(store, """UPDATE specs SET spec = '{"prompt":"p","workspace":"/w","sandbox":"on","limits":{"disk":1}}'""")
    later = opened()
    run = later.runs.get("run-1")
    assert run is not None
    assert (run.spec.prompt, run.spec.unknown) == ("p", ("sandbox", "limits.disk"))
    with pytest.raises(Refused, match=r"settings unknown to this one: sandbox, limits\.disk"):
        claimed(later)


def test_an_agent_is_listed_with_its_accounts(store: Store) -> None:
    names = ("claude", "claude@work", "claude@home", "claude-two", "claudia", "codex@work", "claude@work")
    for number, name in enumerate(names):
        store.runs.create(new_run(f"run-{number}", spec={"agent": name}), AT + number)

    def listed(agent: str, states: tuple[str, ...] = (), limit: int = 50) -> list[str]:
        return [row.agent for row in store.runs.list_page(RunQuery(agent=agent, states=states, limit=limit))]

    assert listed("claude") == ["claude@work", "claude@home", "claude@work", "claude"]
    assert listed("claude", limit=2) == ["claude@work", "claude@home"]
    assert listed("claude", states=("queued", "running")) == listed("claude")
    assert listed("claude@work") == ["claude@work", "claude@work"]
    assert listed("codex") == ["codex@work"]
    assert listed("claude-two") == ["claude-two"]
    assert listed("clau") == []


def test_the_newest_terminal_session_of_a_run(store: Store) -> None:
    made(store)
    assert store.records.get_tmux_session("run-1") is None
    first = TmuxSession(session="a", socket="/tmp/s", host="h", started_at=AT)
    for session in (first, first._replace(session="b", started_at=AT + 1)):
        store.runs.put_tmux_session("run-1", session)
        assert store.records.get_tmux_session("run-1") == session
