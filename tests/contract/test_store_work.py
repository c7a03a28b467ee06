"""Work items: enqueued once, held by one, given back, buried, answered; every change with its event."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from jackline.domain.events import broken_at
from jackline.domain.states import WorkStatus
from jackline.errors import Conflict, NotFound, Refused, UsageError
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import MOST_ATTEMPTS, Hold, ItemQuery, NewItem, WorkItem, get_item_stream
from jackline.secrets.redactor import REDACTED, Redactor
from jackline.store.open import open_store
from jackline.store.store import Store
from tests.support.secrets import TOKENS
from tests.support.stores import AT, LEASE_MS, FakeClock, by_hand, data_of

ENDS = {"succeed": "done", "fail": "failed", "cancel": "cancelled"}


def put(store: Store, item_id: str = "item-1", kind: str = "mail", at: int = AT, **more: Any) -> WorkItem:
    return WorkQueue(store).enqueue(NewItem(item_id, kind, **more), at, "host")[0]


def taken(store: Store, item_id: str = "item-1", owner: str = "one") -> WorkItem:
    return WorkQueue(store).claim(item_id, owner, LEASE_MS, AT + 1)


def held(store: Store, **more: Any) -> WorkItem:
    put(store, **more)
    return taken(store)


def hold(item: WorkItem) -> Hold:
    return Hold(item.id, item.owner_agent or "", item.token)


def kinds(store: Store, item_id: str = "item-1") -> list[str]:
    """The kinds of an item's events, whose chain must hold up to the head in the item's row."""
    events = store.records.list_events(get_item_stream(item_id))
    item = WorkItems(store).get(item_id)
    assert item is not None
    assert broken_at(events) is None
    assert (item.event_seq, item.chain_head) == (len(events), events[-1].hash)
    return [event.kind for event in events]


def data(store: Store, item_id: str = "item-1") -> Any:
    """What the newest event says."""
    return data_of(store.records.list_events(get_item_stream(item_id))[-1])


def test_an_item_is_put_into_the_queue(store: Store) -> None:
    item, new = WorkQueue(store).enqueue(NewItem("item-1", "mail", '{"to":"bob"}', 3, 2, "a note"), AT, "host")
    assert new
    assert WorkItems(store).get("item-1") == item
    assert (item.status, item.kind, item.payload) == (WorkStatus.PENDING, "mail", '{"to":"bob"}')
    assert (item.priority, item.max_attempts, item.notes, item.attempts, item.token) == (3, 2, "a note", 0, 0)
    assert (item.created_at, item.updated_at, item.owner_agent, item.finished_at) == (AT, AT, None, None)
    assert kinds(store) == ["work.created"]
    assert store.records.list_events("work:item-1")[0].actor == "host"


def test_the_same_item_is_put_in_once(store: Store) -> None:
    first = put(store, payload='{"a":1}')
    again, new = WorkQueue(store).enqueue(NewItem("item-1", "mail", '{"a":1}', priority=9), AT + 5, "host")
    assert (again, new) == (first, False)
    assert kinds(store) == ["work.created"]


@pytest.mark.parametrize("other", [NewItem("item-1", "mail", '{"a":2}'), NewItem("item-1", "post", '{"a":1}')])
def test_another_item_of_the_same_id_is_a_conflict(store: Store, other: NewItem) -> None:
    before = put(store, payload='{"a":1}')
    with pytest.raises(Conflict, match="work item item-1 already exists with another kind or payload"):
        WorkQueue(store).enqueue(other, AT, "host")
    assert WorkItems(store).get("item-1") == before


def test_an_item_with_a_question_waits_from_the_beginning(store: Store) -> None:
    item = put(store, question="really?")
    assert (item.status, item.question) == (WorkStatus.WAITING_HUMAN, "really?")
    assert WorkQueue(store).claim_next((), "one", LEASE_MS, AT) is None
    assert data(store)["question"] == "really?"


@pytest.mark.parametrize("odd", ["", " ", " a", "a\n", "a\tb", "a\x00b", "\x1b[31m", "a\u200bb", "\ud800", "x" * 201])
def test_ids_kinds_and_owners_are_printable(store: Store, odd: str) -> None:
    with pytest.raises(UsageError, match="cannot be the id of a work item: 1 to 200 printable characters"):
        put(store, odd)
    with pytest.raises(UsageError, match="cannot be the kind"):
        put(store, kind=odd)
    put(store)
    with pytest.raises(UsageError, match="cannot be the owner"):
        taken(store, owner=odd)
    with pytest.raises(UsageError, match="cannot be the owner"):
        WorkQueue(store).claim_next((), odd, LEASE_MS, AT)
    assert kinds(store) == ["work.created"]


@pytest.mark.parametrize("name", ["x" * 200, "grüße/an den #1", "a:b", "work:item", "日本語", "%_'\";--"])
def test_any_printable_text_is_an_id(store: Store, name: str) -> None:
    put(store, name, kind=name)
    item = WorkQueue(store).claim_next((name,), name, LEASE_MS, AT)
    assert item is not None
    assert (item.id, item.kind, item.owner_agent) == (name, name, name)
    assert kinds(store, name) == ["work.created", "work.claimed"]


@pytest.mark.parametrize("more", [{"priority": 2**63}, {"priority": -(10**10)}, {"max_attempts": 0}])
def test_numbers_have_their_limits(store: Store, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"between"):
        put(store, **more)
    assert WorkItems(store).get("item-1") is None


@pytest.mark.parametrize("lease_ms", [-1, 2**63])
def test_a_lease_has_its_limits(store: Store, lease_ms: int) -> None:
    put(store)
    with pytest.raises(UsageError, match="a lease lasts between"):
        WorkQueue(store).claim("item-1", "one", lease_ms, AT)
    with pytest.raises(UsageError, match="between 0 and 100 years"):
        WorkQueue(store).claim_next((), "one", lease_ms, AT)
    assert kinds(store) == ["work.created"]


def test_a_claim_holds_the_item(store: Store) -> None:
    item = held(store)
    assert (item.status, item.owner_agent, item.token, item.attempts) == (WorkStatus.IN_FLIGHT, "one", 1, 1)
    assert WorkItems(store).get("item-1") == item
    assert kinds(store) == ["work.created", "work.claimed"]
    assert data(store) == {"attempt": 1, "kind": "mail", "owner": "one", "takeover": False, "token": 1}
    assert store.records.list_events("work:item-1")[-1].actor == "one"


def test_a_live_lease_keeps_others_out(store: Store, clock: FakeClock) -> None:
    """The predecessor's claim had no guard: it silently took over another owner's item."""
    before = held(store)
    clock.now += LEASE_MS - 1
    for owner in ("two", "one"):
        with pytest.raises(Refused, match="work item item-1 is held by one"):
            taken(store, owner=owner)
    assert WorkQueue(store).claim_next((), "two", LEASE_MS, AT) is None
    assert WorkItems(store).get("item-1") == before


def test_a_lease_that_ran_out_is_taken_over(store: Store, clock: FakeClock) -> None:
    held(store)
    clock.now += LEASE_MS
    item = taken(store, owner="two")
    assert (item.owner_agent, item.token, item.attempts) == ("two", 2, 2)
    assert data(store)["takeover"] is True


def test_a_reboot_frees_every_lease(store: Store, clock: FakeClock) -> None:
    held(store)
    clock.boot, clock.now = "boot-2", 5
    assert taken(store, owner="two").token == 2


def test_a_renewed_lease_does_not_run_out(store: Store, clock: FakeClock) -> None:
    item = held(store)
    clock.now += LEASE_MS - 1
    assert WorkQueue(store).renew(hold(item), LEASE_MS, AT + 9).updated_at == AT + 9
    clock.now += LEASE_MS - 1
    with pytest.raises(Refused, match="held by one"):
        taken(store, owner="two")
    assert kinds(store) == ["work.created", "work.claimed"]  # renewals would flood the events


def test_what_has_no_lease_is_free(store: Store) -> None:
    """As an item that came from elsewhere, in flight and without one."""
    held(store)
    by_hand(store, "UPDATE work_items SET lease_boot = NULL, lease_until = NULL")
    item = WorkQueue(store).claim_next((), "two", LEASE_MS, AT)
    assert item is not None
    assert item.token == 2


def test_a_zombie_is_refused_everywhere(store: Store, clock: FakeClock) -> None:
    old = held(store)
    clock.now += LEASE_MS
    item = taken(store, owner="one")  # the same name, started again
    writes: list[Callable[[Hold], object]] = [
        lambda stale: WorkQueue(store).renew(stale, LEASE_MS, AT),
        lambda stale: WorkQueue(store).resolve(stale, "succeed", AT),
        lambda stale: WorkQueue(store).release(stale, AT),
        lambda stale: WorkQueue(store).park(stale, "what now?", AT),
    ]
    for write in writes:
        with pytest.raises(Refused, match="is held with token 2: token 1 is over"):
            write(hold(old))
        with pytest.raises(Refused, match="held by one, not by two"):
            write(Hold("item-1", "two"))
    assert WorkItems(store).get("item-1") == item
    WorkQueue(store).release(hold(item), AT)
    for write in writes:
        with pytest.raises(Refused, match="is pending: the claim with token 1 is over"):
            write(hold(old))


def test_a_holder_that_is_late_but_not_replaced_may_finish(store: Store, clock: FakeClock) -> None:
    item = held(store)
    clock.now += 10 * LEASE_MS
    assert WorkQueue(store).resolve(hold(item), "succeed", AT + 2).status is WorkStatus.DONE


@pytest.mark.parametrize(("change", "status"), ENDS.items())
def test_the_holder_resolves_an_item(store: Store, change: str, status: str) -> None:
    done = WorkQueue(store).resolve(hold(held(store)), change, AT + 2, "as wished")
    assert (done.status, done.notes, done.finished_at, done.dead) == (status, "as wished", AT + 2, False)
    assert WorkItems(store).get("item-1") == done
    assert kinds(store) == ["work.created", "work.claimed", "work.resolved"]
    assert data(store) == {"kind": "mail", "notes": "as wished", "status": status, "token": 1}
    assert by_hand(store, "SELECT lease_boot, lease_until FROM work_items") == [(None, None)]


def test_a_name_is_enough_to_hold(store: Store) -> None:
    held(store)
    assert WorkQueue(store).resolve(Hold("item-1", "one"), "succeed", AT).status is WorkStatus.DONE


def test_a_question_about_a_run_of_another_home_is_asked_all_the_same(store: Store) -> None:
    put(store, kind="question", payload='{"run":"elsewhere"}', question="really?")
    (notice,) = store.notices.list_newest()
    assert (notice.subject, "jackline work answer item-1 TEXT" in notice.body) == ("work:item-1", True)


@pytest.mark.parametrize("change", ENDS)
@pytest.mark.parametrize("question", ["", "really?"])
def test_a_person_tidies_what_nobody_holds(store: Store, change: str, question: str) -> None:
    put(store, question=question, notes="old")
    done = WorkQueue(store).resolve(Hold("item-1", "person"), change, AT + 1)
    assert (done.status, done.notes) == (ENDS[change], "old")


def test_what_has_ended_stays_so(store: Store) -> None:
    done = WorkQueue(store).resolve(hold(held(store)), "succeed", AT)
    loose = Hold("item-1", "one")
    attempts: list[Callable[[], object]] = [
        lambda: taken(store),
        lambda: WorkQueue(store).renew(loose, LEASE_MS, AT),
        lambda: WorkQueue(store).resolve(loose, "fail", AT),
        lambda: WorkQueue(store).release(loose, AT),
        lambda: WorkQueue(store).park(loose, "?", AT),
        lambda: WorkQueue(store).answer("item-1", "yes", AT, "person"),
    ]
    for attempt in attempts:
        with pytest.raises(Refused, match="work item item-1 is done"):
            attempt()
    assert WorkQueue(store).claim_next((), "one", LEASE_MS, AT) is None
    assert WorkItems(store).get("item-1") == done


def test_an_end_has_to_be_one(store: Store) -> None:
    item = held(store)
    for change in ("claim", "bury", "", "wait"):
        with pytest.raises(UsageError, match="does not end a work item; use succeed, fail, cancel"):
            WorkQueue(store).resolve(hold(item), change, AT)


def test_an_item_is_given_back(store: Store) -> None:
    item = WorkQueue(store).release(hold(held(store, notes="old")), AT + 2, "not today")
    assert (item.status, item.notes, item.attempts, item.owner_agent) == (WorkStatus.PENDING, "not today", 1, "one")
    assert kinds(store) == ["work.created", "work.claimed", "work.released"]
    assert taken(store, owner="two").token == 2


def test_only_what_is_held_is_given_back_or_renewed(store: Store) -> None:
    put(store)
    with pytest.raises(Refused, match="is pending: claim it first"):
        WorkQueue(store).release(Hold("item-1", "one"), AT)
    with pytest.raises(Refused, match="is pending: there is no lease to renew"):
        WorkQueue(store).renew(Hold("item-1", "one"), LEASE_MS, AT)


def test_the_last_attempt_that_is_given_back_is_buried(store: Store) -> None:
    put(store, max_attempts=2)
    assert WorkQueue(store).release(hold(taken(store)), AT).status is WorkStatus.PENDING
    item = WorkQueue(store).release(hold(taken(store)), AT + 3, "it never works")
    assert (item.status, item.dead, item.finished_at, item.notes) == (WorkStatus.FAILED, True, AT + 3, "it never works")
    assert WorkItems(store).get("item-1") == item
    assert kinds(store)[-3:] == ["work.claimed", "work.released", "work.buried"]
    assert data(store) == {"attempts": 2, "by": "release", "kind": "mail", "owner": "one"}
    assert by_hand(store, "SELECT lease_until FROM work_items") == [(None,)]


def test_the_last_lease_that_runs_out_is_buried(store: Store, clock: FakeClock) -> None:
    put(store, max_attempts=1)
    taken(store)
    clock.now += LEASE_MS
    with pytest.raises(Refused, match="has used up its 1 attempts: it has failed now"):
        taken(store, owner="two")
    item = WorkItems(store).get("item-1")
    assert item is not None
    assert (item.status, item.dead, item.owner_agent, item.token) == (WorkStatus.FAILED, True, "one", 1)
    assert kinds(store) == ["work.created", "work.claimed", "work.buried"]


def test_dead_letters_do_not_stop_the_queue(store: Store, clock: FakeClock) -> None:
    for number in range(3):
        put(store, f"dead-{number}", max_attempts=1)
        taken(store, f"dead-{number}")
    put(store, "alive")
    clock.now += LEASE_MS
    item = WorkQueue(store).claim_next((), "two", LEASE_MS, AT)
    assert item is not None
    assert item.id == "alive"
    found = WorkItems(store).list_page(ItemQuery(statuses=("failed",)))
    assert [(one.id, one.dead) for one in found] == [("dead-2", True), ("dead-1", True), ("dead-0", True)]
    assert WorkQueue(store).claim_next((), "two", LEASE_MS, AT) is None


def test_the_next_is_what_was_dropped_then_what_matters_then_the_oldest(store: Store, clock: FakeClock) -> None:
    put(store, "dropped", at=AT + 9, priority=-5)
    taken(store, "dropped")
    clock.now += LEASE_MS
    put(store, "young", at=AT + 3)
    put(store, "old", at=AT)
    put(store, "urgent", at=AT + 5, priority=1)
    put(store, "old, too", at=AT)
    order = []
    while item := WorkQueue(store).claim_next((), "two", LEASE_MS, AT + 10):
        order.append(item.id)
    assert order == ["dropped", "urgent", "old", "old, too", "young"]


def test_the_next_is_of_one_of_the_kinds(store: Store, clock: FakeClock) -> None:
    put(store, "m1", kind="mail", at=AT)
    put(store, "p1", kind="post", at=AT + 1, priority=1)
    put(store, "m2", kind="mail", at=AT + 2, priority=2)
    put(store, "c1", kind="call", at=AT + 3, priority=9)
    put(store, "p2", kind="post", at=AT + 4)
    taken(store, "p2")
    clock.now += LEASE_MS
    order = []
    while item := WorkQueue(store).claim_next(("post", "mail", "post", "none such"), "two", LEASE_MS, AT + 10):
        order.append(item.id)
    assert order == ["p2", "m2", "p1", "m1"]
    assert WorkQueue(store).claim_next(("post",), "two", LEASE_MS, AT) is None
    item = WorkQueue(store).claim_next(("call",), "two", LEASE_MS, AT)
    assert item is not None
    assert item.id == "c1"


def test_notes_are_replaced_and_the_old_ones_stay_in_the_events(store: Store) -> None:
    item = held(store, notes="first")
    noted = WorkQueue(store).annotate("item-1", "second", AT + 2, "person")
    assert noted == WorkItems(store).get("item-1")
    assert (noted.notes, noted.status, noted.token, noted.updated_at) == ("second", item.status, 1, AT + 2)
    WorkQueue(store).resolve(hold(item), "succeed", AT + 3)
    assert WorkQueue(store).annotate("item-1", "", AT + 4, "person").notes == ""
    told = [json.loads(event.data).get("notes") for event in store.records.list_events("work:item-1")]
    assert told == ["first", None, "second", None, ""]
    assert kinds(store)[-1] == "work.annotated"


def test_notes_leave_the_lease_alone(store: Store, clock: FakeClock) -> None:
    held(store)
    clock.now += LEASE_MS - 1
    WorkQueue(store).annotate("item-1", "hm", AT, "person")
    with pytest.raises(Refused, match="held by one"):
        taken(store, owner="two")
    clock.now += 1
    assert taken(store, owner="two").notes == "hm"


def test_a_person_is_asked_and_answers(store: Store) -> None:
    waiting = WorkQueue(store).park(hold(held(store)), "which one?", AT + 2)
    assert (waiting.status, waiting.question, waiting.answer) == (WorkStatus.WAITING_HUMAN, "which one?", "")
    with pytest.raises(Refused, match="is waiting_human: it needs an answer first: `jackline work answer`"):
        taken(store)
    answered = WorkQueue(store).answer("item-1", "the left one", AT + 3, "person")
    assert (answered.status, answered.question, answered.answer) == (WorkStatus.PENDING, "which one?", "the left one")
    assert (answered.attempts, answered.token) == (1, 1)
    assert kinds(store)[2:] == ["work.waiting", "work.answered"]
    assert store.records.list_events("work:item-1")[-1].actor == "person"
    again = taken(store)
    assert (again.answer, again.attempts) == ("the left one", 2)
    assert WorkQueue(store).park(hold(again), "and now?", AT + 4).answer == ""


def test_an_answer_after_the_last_attempt_gives_one_more(store: Store, clock: FakeClock) -> None:
    """A person has looked at it: it is not buried before their answer was of use."""
    waiting = WorkQueue(store).park(hold(held(store, max_attempts=1)), "how?", AT)
    WorkQueue(store).answer(waiting.id, "so", AT, "person")
    assert taken(store).attempts == 2
    clock.now += LEASE_MS
    assert WorkQueue(store).claim_next((), "two", LEASE_MS, AT) is None
    item = WorkItems(store).get("item-1")
    assert item is not None
    assert item.dead


def test_what_waits_is_not_asked_again_and_what_does_not_is_not_answered(store: Store) -> None:
    put(store)
    with pytest.raises(Refused, match="is pending: it is not waiting for a person"):
        WorkQueue(store).answer("item-1", "yes", AT, "person")
    WorkQueue(store).park(Hold("item-1", "person"), "shall we?", AT)
    with pytest.raises(Refused, match="is waiting_human: it needs an answer first"):
        WorkQueue(store).park(Hold("item-1", "person"), "again?", AT)


def test_what_is_not_there_is_not_found(store: Store) -> None:
    loose = Hold("none", "one")
    attempts: list[Callable[[], object]] = [
        lambda: taken(store, "none"),
        lambda: WorkQueue(store).renew(loose, LEASE_MS, AT),
        lambda: WorkQueue(store).resolve(loose, "succeed", AT),
        lambda: WorkQueue(store).release(loose, AT),
        lambda: WorkQueue(store).requeue("none", AT, AT, "host"),
        lambda: WorkQueue(store).annotate("none", "x", AT, "person"),
        lambda: WorkQueue(store).park(loose, "?", AT),
        lambda: WorkQueue(store).answer("none", "x", AT, "person"),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound, match="no work item has the id 'none'"):
            attempt()
    assert WorkItems(store).get("none") is None
    assert WorkItems(store).get("nu\x00l\ud800") is None
    assert store.records.list_events("work:none") == []


def _many(store: Store) -> None:
    for number in range(6):
        kind = ("mail", "post")[number % 2]
        put(store, f"i{number}", kind=kind, at=AT + number // 2)
    taken(store, "i0", "one")
    taken(store, "i1", "two")
    WorkQueue(store).resolve(Hold("i1", "two"), "succeed", AT)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        (ItemQuery(), "i5 i4 i3 i2 i1 i0"),
        (ItemQuery(limit=2), "i5 i4"),
        (ItemQuery(limit=0), ""),
        (ItemQuery(before=(AT + 1, "i3")), "i2 i1 i0"),
        (ItemQuery(statuses=("pending",)), "i5 i4 i3 i2"),
        (ItemQuery(statuses=("in_flight", "done", "done")), "i1 i0"),
        (ItemQuery(statuses=("pending", "in_flight"), limit=4), "i5 i4 i3 i2"),
        (ItemQuery(statuses=("pending",), before=(AT + 2, "i4")), "i3 i2"),
        (ItemQuery(kinds=("post",)), "i5 i3 i1"),
        (ItemQuery(kinds=("post", "mail"), limit=3), "i5 i4 i3"),
        (ItemQuery(kinds=("post",), statuses=("done", "pending")), "i5 i3 i1"),
        (ItemQuery(owner="two"), "i1"),
        (ItemQuery(owner="two", statuses=("in_flight",)), ""),
        (ItemQuery(owner="one", statuses=("in_flight",), kinds=("mail",)), "i0"),
        (ItemQuery(kinds=("none\x00",)), ""),
    ],
)
def test_items_are_listed_newest_first(store: Store, query: ItemQuery, ids: str) -> None:
    _many(store)
    assert [item.id for item in WorkItems(store).list_page(query)] == ids.split()


def test_many_kinds_are_listed_but_not_any_number(store: Store) -> None:
    _many(store)
    some = tuple(f"k{number}" for number in range(299))
    assert [item.id for item in WorkItems(store).list_page(ItemQuery(kinds=(*some, "post")))] == ["i5", "i3", "i1"]
    with pytest.raises(UsageError, match="too many kinds: name at most 150"):
        WorkItems(store).list_page(ItemQuery(statuses=("done", "failed"), kinds=some))


def test_the_unfinished_are_counted(store: Store) -> None:
    _many(store)
    put(store, "q", question="well?")
    counts = {("mail", "pending", 2), ("mail", "in_flight", 1), ("post", "pending", 2), ("mail", "waiting_human", 1)}
    assert set(WorkItems(store).count_open()) == counts
    assert len(WorkItems(store).count_open()) == len(counts)


def test_a_host_replays_what_was_left_undone(store: Store, clock: FakeClock) -> None:
    """Pending, in flight with a lease that ran out, in flight and not touched for long; oldest first."""
    _many(store)
    put(store, "q", question="well?")
    assert [item.id for item in WorkItems(store).list_unfinished(0)] == ["i2", "i3", "i4", "i5"]
    assert [item.id for item in WorkItems(store).list_unfinished(AT + 1)] == ["i2", "i3", "i4", "i5"]
    assert [item.id for item in WorkItems(store).list_unfinished(AT + 2)] == ["i0", "i2", "i3", "i4", "i5"]
    clock.now += LEASE_MS
    assert [item.id for item in WorkItems(store).list_unfinished(0, limit=3)] == ["i0", "i2", "i3"]
    assert WorkItems(store).list_unfinished(0, limit=0) == []
    assert [item.id for item in WorkItems(store).list_unfinished(0, limit=1, given_up_only=True)] == ["i0"]


def test_what_was_given_up_is_put_back(store: Store, clock: FakeClock) -> None:
    item = held(store, max_attempts=2)
    assert WorkQueue(store).requeue("item-1", 0, AT + 5, "host") is None  # its holder is at work
    clock.now += LEASE_MS
    WorkQueue(store).renew(hold(item), LEASE_MS, AT + 5)
    assert WorkQueue(store).requeue("item-1", AT + 5, AT + 6, "host") is None  # it has come back meanwhile
    back = WorkQueue(store).requeue("item-1", AT + 6, AT + 7, "host")
    assert back is not None
    assert (back.status, back.attempts) == (WorkStatus.PENDING, 1)
    assert WorkQueue(store).requeue("item-1", AT + 9, AT + 9, "host") is None
    assert store.records.list_events("work:item-1")[-1].actor == "host"
    taken(store)
    clock.now += LEASE_MS
    buried = WorkQueue(store).requeue("item-1", 0, AT + 9, "host")
    assert buried is not None
    assert buried.dead
    assert kinds(store)[-2:] == ["work.released", "work.buried"]


KNOWN, TOKEN = "a value of ours", TOKENS["github p"]
SAID = f"it is {KNOWN}, or {TOKEN}"


@pytest.fixture
def hushed(database: str, clock: FakeClock) -> Iterator[Store]:
    opened = open_store(database, create=False, lease_clock=clock, redactor=Redactor([KNOWN]))
    yield opened
    opened.close()


def test_no_secret_of_an_item_is_written(hushed: Store) -> None:
    payload = json.dumps({"text": SAID, "password": "hunter22"})
    item = put(hushed, payload=payload, notes=SAID)
    assert json.loads(item.payload) == {"password": REDACTED, "text": f"it is {REDACTED}, or {REDACTED}"}
    assert WorkQueue(hushed).enqueue(NewItem("item-1", "mail", payload), AT, "host")[1] is False
    WorkQueue(hushed).annotate("item-1", SAID, AT, "person")
    WorkQueue(hushed).park(hold(taken(hushed)), SAID, AT)
    WorkQueue(hushed).answer("item-1", SAID, AT, "person")
    WorkQueue(hushed).release(hold(taken(hushed)), AT, SAID)
    WorkQueue(hushed).resolve(hold(taken(hushed)), "fail", AT, SAID)
    put(hushed, "item-2", question=SAID)
    rows = [*by_hand(hushed, "SELECT * FROM work_items"), *by_hand(hushed, "SELECT * FROM events")]
    assert len([row for row in rows if REDACTED in str(row)]) >= 9
    assert [row for row in rows if KNOWN in str(row) or TOKEN in str(row) or "hunter22" in str(row)] == []
    assert kinds(hushed)[-1] == "work.resolved"


def test_text_that_cannot_be_stored_is_stored_all_the_same(store: Store) -> None:
    put(store, notes="a\x00b\ud800c", payload='"\ud800"')
    item = WorkQueue(store).annotate("item-1", "\x00", AT, "who\x00")
    assert WorkItems(store).get("item-1") == item
    assert item.notes == "\N{REPLACEMENT CHARACTER}"
    assert WorkQueue(store).resolve(Hold("item-1", "who\x00"), "cancel", AT, "\udfff").status is WorkStatus.CANCELLED
    assert kinds(store)[-1] == "work.resolved"


def _together(actions: list[Callable[[], Any]]) -> list[Any]:
    """Run the actions at the same moment; what each returned, or how it was refused."""
    results: list[Any] = [None] * len(actions)
    begin = threading.Barrier(len(actions))

    def act(place: int) -> None:
        begin.wait()
        try:
            results[place] = actions[place]()
        except Refused as error:
            results[place] = error

    threads = [threading.Thread(target=act, args=(place,)) for place in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_eight_threads_get_every_item_once(opened: Callable[..., Store]) -> None:
    stores = [opened() for _ in range(8)]
    for number in range(40):
        put(stores[0], f"i{number}", kind=("mail", "post")[number % 2], priority=number % 3)

    def work(store: Store, name: str, wanted: tuple[str, ...]) -> list[str]:
        got = []
        while item := WorkQueue(store).claim_next(wanted, name, LEASE_MS, AT):
            WorkQueue(store).resolve(hold(item), "succeed", AT)
            got.append(item.id)
        return got

    wanted = [(), ("mail", "post"), ("post", "mail"), ()] * 2
    results = _together([lambda n=n, s=s: work(s, f"w{n}", wanted[n]) for n, s in enumerate(stores)])  # type: ignore[misc]
    assert sorted(one for got in results for one in got) == sorted(f"i{number}" for number in range(40))
    for number in range(40):
        assert kinds(stores[0], f"i{number}") == ["work.created", "work.claimed", "work.resolved"]
    assert WorkItems(stores[0]).count_open() == []


def test_one_of_many_gets_the_item_and_one_takes_it_over(opened: Callable[..., Store], clock: FakeClock) -> None:
    stores = [opened() for _ in range(4)]
    put(stores[0], max_attempts=MOST_ATTEMPTS)
    for token in range(1, MOST_ATTEMPTS + 1):
        results = _together([lambda s=s: taken(s) for s in stores])  # type: ignore[misc]
        winners = [one.token for one in results if isinstance(one, WorkItem)]
        assert winners == [token]
        clock.now += LEASE_MS
    results = _together([lambda s=s: WorkQueue(s).claim_next((), "late", LEASE_MS, AT) for s in stores])  # type: ignore[misc]
    assert results == [None] * 4
    assert kinds(stores[0]).count("work.buried") == 1


def test_one_item_is_put_in_once_by_many(opened: Callable[..., Store]) -> None:
    stores = [opened() for _ in range(6)]
    results = _together([lambda s=s: WorkQueue(s).enqueue(NewItem("item-1", "mail"), AT, "x") for s in stores])  # type: ignore[misc]
    assert sorted(new for _, new in results) == [False] * 5 + [True]
    assert kinds(stores[0]) == ["work.created"]


def test_a_claim_waits_for_who_only_notes_something(opened: Callable[..., Store]) -> None:
    """A row that is locked for a moment is passed over; an item that nobody claims is still not missed."""
    noting, claiming = opened(), opened()
    for number in range(20):
        put(noting, f"i{number}", at=AT + number)
        results = _together(
            [
                lambda n=number: WorkQueue(noting).annotate(f"i{n}", "hm", AT, "person"),  # type: ignore[misc]
                lambda: WorkQueue(claiming).claim_next((), "one", LEASE_MS, AT),
            ]
        )
        assert results[1] is not None
        assert kinds(noting, f"i{number}")[0] == "work.created"


def test_everything_at_once_keeps_the_chain_whole(opened: Callable[..., Store]) -> None:
    stores = [opened() for _ in range(4)]
    put(stores[0], max_attempts=1000)

    def claim_and_release(store: Store, name: str) -> None:
        for _ in range(10):
            item = WorkQueue(store).claim_next((), name, LEASE_MS, AT)
            if item is not None:
                WorkQueue(store).release(hold(item), AT)

    def note(store: Store) -> None:
        for number in range(10):
            WorkQueue(store).annotate("item-1", str(number), AT, "person")

    results = _together(
        [
            lambda: claim_and_release(stores[0], "one"),
            lambda: claim_and_release(stores[1], "two"),
            lambda: note(stores[2]),
            lambda: note(stores[3]),
        ]
    )
    assert results == [None] * 4
    found = kinds(stores[0])
    assert found.count("work.annotated") == 20
    assert found.count("work.claimed") == found.count("work.released") > 0
