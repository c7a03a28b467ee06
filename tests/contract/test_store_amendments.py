"""Messages of people and changes of runs: stored with their events, verified, refused where they do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from jackline.domain.amendment import Amendment
from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.records import Message, RunStatus, Turn
from jackline.domain.states import Decision, Phase, RunState, WaitReason
from jackline.errors import Busy, Refused
from jackline.store.models import RunChange
from jackline.store.store import Store
from tests.support.stores import AT, LEASE_MS, MAIL, FakeClock, begun, by_hand, claimed, intent, made, owner

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
HIGHER = Amendment(limits={"usd_micros": 9_000_000})


def _park(store: Store, reason: WaitReason = WaitReason.BUDGET, spent: Spent | None = None) -> None:
    status = RunStatus(RunState.WAITING, reason, spent=spent or Spent())
    store.leases.write_change(claimed(store), RunChange(AT, (Fact("run.waiting", {"reason": reason}),), status))


def _events(store: Store, kind: str) -> list[dict[str, object]]:
    found = store.records.list_events("run-1")
    assert all(event.actor == "person" for event in found if event.kind == kind)
    return [json.loads(event.data) for event in found if event.kind == kind]


def _problems(store: Store) -> tuple[str, ...]:
    return store.verify.verify_run("run-1").problems


def test_a_message_is_stored_redacted_with_its_event(store: Store) -> None:
    made(store)
    run = store.amendments.amend("run-1", Amendment(message=f"use {TOKEN}\0"), AT + 1)
    (message,) = store.amendments.list_messages("run-1")
    assert message == Message("run-1", 1, message.text, AT + 1)
    assert TOKEN not in message.text
    assert message.text.startswith("use ")
    (event,) = _events(store, "run.message")
    assert (event["message"], event["text"]) == (1, message.text)
    assert (run.status.state, run.event_seq, _problems(store)) == (RunState.QUEUED, 2, ())


def test_each_changed_setting_is_an_event_with_old_and_new_values(store: Store, opened: Callable[[], Store]) -> None:
    other = opened()
    made(store)
    assert other.runs.get("run-1") == store.runs.get("run-1")  # each has the old spec in memory
    amendment = Amendment(
        limits={"usd_micros": 30_000_000, "tokens": 5, "wall_ms": None},
        idle_timeout_ms=1_500,
        model="large",
        allow=("mails",),
    )
    run = store.amendments.amend("run-1", amendment, AT)
    assert {(event["name"], str(event["old"]), str(event["new"])) for event in _events(store, "run.changed")} == {
        ("max_usd", "20", "30"),
        ("max_tokens", "0", "5"),
        ("max_seconds", "28800", "0"),
        ("idle_seconds", "900", "1.5"),
        ("model", "", "large"),
        ("allow", "[]", "['mails']"),
    }
    assert (run.spec.limits.tokens, run.spec.limits.wall_ms, run.spec.allowed) == (5, None, ("mails",))
    assert run.spec.agent_options["scripted"].model == "large"
    seen = other.runs.get("run-1")
    assert seen is not None
    assert seen.spec == run.spec
    assert other.leases.claim("run-1", owner(), LEASE_MS, AT)[1].spec == run.spec
    assert _problems(store) == ()


def test_what_changes_nothing_writes_nothing(store: Store) -> None:
    run = made(store)
    assert store.amendments.amend("run-1", Amendment(limits={"steps": run.spec.limits.steps}), AT) == run


@pytest.mark.parametrize(
    ("limits", "spent", "words"),
    [
        ({"usd_micros": 1_000_000}, Spent(usd_micros=1_200_000), "--max-usd is a new total, and 1.2 is spent"),
        ({"tokens": 10}, Spent(tokens_input=6, tokens_output=4), "--max-tokens is a new total, and 10 is spent"),
        ({"steps": 6}, Spent(steps=5), "5 is spent already: use more than 6"),  # the recovery is a step
    ],
)
def test_a_total_that_is_spent_is_refused(store: Store, limits: dict[str, int], spent: Spent, words: str) -> None:
    made(store)
    _park(store, spent=spent)
    before = store.runs.get("run-1")
    with pytest.raises(Refused, match=words):
        store.amendments.amend("run-1", Amendment(message="hello", limits=limits), AT)
    assert (store.runs.get("run-1"), store.amendments.list_messages("run-1")) == (before, [])


def test_a_run_that_is_worked_on_is_refused_before_anything_is_written(store: Store, clock: FakeClock) -> None:
    begun(store)
    before = store.runs.get("run-1")
    for amendment in (HIGHER, Amendment(message="hello")):
        with pytest.raises(Busy):
            store.amendments.amend("run-1", amendment, AT)
    assert (store.runs.get("run-1"), store.amendments.list_messages("run-1")) == (before, [])
    if store.admin.get_status().backend == "sqlite":
        clock.now += LEASE_MS + 1
        assert store.amendments.amend("run-1", HIGHER, AT).spec.limits.usd_micros == 9_000_000
    assert store.amendments.amend("run-1", Amendment(message="hello"), AT, dead=1).status.state is RunState.RUNNING


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.CANCELLED])
def test_a_run_that_is_over_names_the_way_out(store: Store, state: RunState) -> None:
    lease = begun(store)
    store.leases.write_change(lease, RunChange(AT, (Fact(f"run.{state}"),), RunStatus(state=state)))
    with pytest.raises(Refused, match=f"(has|was) {state} and cannot be changed: `jackline fork run-1 PROMPT`"):
        store.amendments.amend("run-1", Amendment(message="hello"), AT)


def test_the_turn_that_has_a_message_is_stored_with_it(store: Store) -> None:
    made(store)
    for text in ("one", "two"):
        store.amendments.amend("run-1", Amendment(message=text), AT)
    lease = claimed(store)
    turn = Turn("run-1", 1, 2, lease.token, "work", "scripted", None, "prompt", AT)
    store.leases.write_change(lease, RunChange(AT, (Fact("turn.launched"),), turn=turn, last_message=1))
    store.leases.write_change(lease, RunChange(AT, turn=turn._replace(number=2), last_message=2))
    assert [(one.text, one.turn) for one in store.amendments.list_messages("run-1")] == [("one", 1), ("two", 2)]
    assert _problems(store) == ()


def test_a_message_sends_a_run_that_was_being_checked_back_to_work(store: Store) -> None:
    status = RunStatus(RunState.WAITING, WaitReason.IN_DOUBT, goal=Phase.PROVING)
    store.leases.write_change(begun(store), RunChange(AT, (Fact("run.waiting"),), status))
    assert store.amendments.amend("run-1", HIGHER, AT).status.goal is Phase.PROVING
    assert store.amendments.amend("run-1", Amendment(message="hello"), AT).status.goal is Phase.WORKING
    assert _problems(store) == ()


def test_a_rule_that_is_allowed_answers_what_waits_for_it(store: Store) -> None:
    lease = begun(store)
    for call_id, name in (("call-1", "mails"), ("call-2", "others")):
        rule = MAIL._replace(name=name, decision=Decision.ASK)
        store.ledger.admit(lease, intent(call_id, rule, key=name), decide_call, (1, 2), AT)
    status = RunStatus(RunState.WAITING, WaitReason.APPROVAL)
    store.leases.write_change(lease, RunChange(AT, (Fact("run.waiting"),), status))
    store.amendments.amend("run-1", Amendment(allow=("mails",)), AT)
    assert [call.answer for call in store.calls.list_all("run-1")] == ["allow", ""]
    assert _problems(store) == ()


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("UPDATE messages SET text = 'other'", "message 1 was altered after it had been written"),
        ("DELETE FROM messages", "message 1 is missing"),
        ("INSERT INTO messages VALUES ('run-1', 2, 'x', 1, NULL)", "message 2 exists, and no event records it"),
        ('UPDATE specs SET spec = \'{"prompt":"p","workspace":"/"}\'', "its spec was altered after the run had begun"),
    ],
)
def test_an_altered_message_or_spec_is_found(store: Store, sql: str, problem: str) -> None:
    made(store)
    store.amendments.amend("run-1", Amendment(message="one", limits={"tokens": 7}), AT)
    assert _problems(store) == ()
    by_hand(store, sql)
    if store.admin.get_status().backend == "postgres":
        by_hand(store, "COMMIT")
    assert _problems(store) == (f"run run-1: {problem}",)
