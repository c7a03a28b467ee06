"""Which notice goes to which channel, on both stores: planned once, claimed before it is sent."""

from __future__ import annotations

from collections.abc import Callable

from jackline.domain.records import SubjectNotice
from jackline.features.notify.delivery_store import (
    BACKOFF,
    CLAIM_MS,
    GIVE_UP_AFTER_MS,
    PENDING,
    SENT,
    Delivery,
    DeliveryStore,
    OutboxNotice,
    build_fire_ping,
)
from jackline.store import rows
from jackline.store.parts import PING_CHANNEL, PingEvent
from jackline.store.store import Store
from tests.support.stores import AT, by_hand

Open = Callable[..., Store]
SINCE = {"phone": AT}


def add_notice(store: Store, name: str, at: int = AT, kind: str = "test") -> str:
    notice = SubjectNotice(id=name, subject="home", kind=kind, title=f"title of {name}", body="", created_at=at)
    store.notices.add(notice)
    return name


def plan(store: Store, since: dict[str, int] | None = None, at: int = AT) -> DeliveryStore:
    deliveries = DeliveryStore(store)
    deliveries.plan(SINCE if since is None else since, at, lambda _channel, _notice: True)
    return deliveries


def list_due(deliveries: DeliveryStore, channel: str = "phone", at: int = AT) -> list[str]:
    return [one.notice_id for one in deliveries.list_due(channel, at, at)]


def claim(deliveries: DeliveryStore, owner: str = "one", at: int = AT) -> Delivery:
    delivery = deliveries.list_due("phone", at, at)[0]
    claimed = deliveries.claim(delivery, owner, at)
    assert claimed is not None
    return claimed


def read_delivered_at(store: Store, name: str) -> int | None:
    return next(one.delivered_at for one in store.notices.list_newest() if one.id == name)


def test_a_channel_is_known_since_it_was_first_seen(store: Store) -> None:
    deliveries = DeliveryStore(store)
    assert deliveries.register_channels(["phone"], AT) == {"phone": AT}
    assert deliveries.register_channels(["phone", "desk"], AT + 5) == {"phone": AT, "desk": AT + 5}


def test_a_start_in_the_future_is_that_of_a_clock_which_was_set_back(store: Store) -> None:
    deliveries = DeliveryStore(store)
    deliveries.register_channels(["phone"], AT + 86_400_000)
    add_notice(store, "now", AT)
    assert deliveries.has_work(["phone"], AT)
    assert deliveries.register_channels(["phone"], AT) == {"phone": AT}


def test_a_channel_that_was_removed_begins_anew(store: Store) -> None:
    deliveries = DeliveryStore(store)
    deliveries.register_channels(["phone", "desk"], AT)
    deliveries.skip_removed(["desk"], AT + 1)
    add_notice(store, "between", AT + 5)
    add_notice(store, "after", AT + 10)
    assert deliveries.has_work(["phone"], AT + 10)
    starts = deliveries.register_channels(["phone", "desk"], AT + 10)
    assert starts == {"phone": AT + 10, "desk": AT}
    assert list_due(plan(store, {"phone": starts["phone"]}), "phone", AT + 20) == ["after"]


def test_a_notice_older_than_its_channel_is_not_sent(store: Store) -> None:
    add_notice(store, "old", AT - 1)
    add_notice(store, "new", AT)
    deliveries = plan(store)
    assert list_due(deliveries) == ["new"]
    assert read_delivered_at(store, "old") is None


def test_of_two_channels_only_the_older_gets_a_notice_between_them(store: Store) -> None:
    add_notice(store, "between", AT + 5)
    deliveries = plan(store, {"phone": AT, "desk": AT + 10})
    assert list_due(deliveries, "phone", AT + 20) == ["between"]
    assert list_due(deliveries, "desk", AT + 20) == []


def test_each_channel_gets_a_row_and_one_that_does_not_want_it_a_skipped_one(store: Store) -> None:
    add_notice(store, "a", kind="run.failed")
    add_notice(store, "b", kind="run.succeeded")
    deliveries = DeliveryStore(store)

    def is_wanted(channel: str, notice: OutboxNotice) -> bool:
        return channel == "desk" or notice.kind == "run.failed"

    assert deliveries.plan({"phone": AT, "desk": AT}, AT, is_wanted) == 2
    assert deliveries.plan({"phone": AT, "desk": AT}, AT, is_wanted) == 0
    assert list_due(deliveries, "phone") == ["a"]
    assert list_due(deliveries, "desk") == ["a", "b"]


def test_a_notice_is_done_when_all_its_channels_are(store: Store) -> None:
    add_notice(store, "a")
    deliveries = plan(store, {"phone": AT, "desk": AT})
    deliveries.close(claim(deliveries), SENT, AT + 1)
    assert read_delivered_at(store, "a") is None
    (desk,) = deliveries.list_due("desk", AT, AT)
    claimed = deliveries.claim(desk, "one", AT)
    assert claimed is not None
    deliveries.close(claimed, SENT, AT + 2)
    assert read_delivered_at(store, "a") == AT + 2


def test_a_notice_that_no_channel_wants_is_done_at_once(store: Store) -> None:
    add_notice(store, "a")
    DeliveryStore(store).plan(SINCE, AT + 1, lambda _channel, _notice: False)
    assert read_delivered_at(store, "a") == AT + 1


def test_a_claimed_row_is_not_due_and_not_claimed_again(opened: Open) -> None:
    first, second = opened(), opened()
    add_notice(first, "a")
    one, other = plan(first), DeliveryStore(second)
    (seen,) = other.list_due("phone", AT, AT)
    claim(one)
    assert list_due(other) == []
    assert other.claim(seen, "two", AT) is None
    assert list_due(other, at=AT + CLAIM_MS) == ["a"]


def test_a_claim_that_ran_out_is_taken_over_and_a_late_failure_changes_nothing(store: Store) -> None:
    add_notice(store, "a")
    deliveries = plan(store)
    late = claim(deliveries)
    mine = claim(deliveries, "two", AT + CLAIM_MS)
    assert mine.attempts == late.attempts + 1
    deliveries.postpone(late, AT + CLAIM_MS, "no answer")
    assert list_due(deliveries, at=AT + CLAIM_MS) == []  # still the other's
    deliveries.close(late, SENT, AT + CLAIM_MS)  # it was sent after all
    assert read_delivered_at(store, "a") == AT + CLAIM_MS


def test_a_failed_attempt_is_repeated_later_and_given_up_in_the_end(store: Store) -> None:
    add_notice(store, "a")
    deliveries = plan(store)
    at, waits = AT, []
    while rows := deliveries.list_due("phone", at, at):
        claimed = deliveries.claim(rows[0], "one", at)
        assert claimed is not None
        next_at = deliveries.postpone(claimed, at, "refused")
        waits.append(next_at - at)
        at = next_at or at
    assert waits.pop() < 0
    assert len(waits) + 1 >= BACKOFF.most
    assert at - AT >= GIVE_UP_AFTER_MS
    assert all(15_000 <= wait <= 3_600_000 for wait in waits)
    assert read_delivered_at(store, "a") is None
    assert deliveries.retry("a", at) == 1
    assert list_due(deliveries, at=at) == ["a"]


def test_a_notice_is_stuck_only_after_an_attempt_has_failed(store: Store) -> None:
    """Also if its process was killed: then nothing else is written than the claim, which runs out."""
    add_notice(store, "a")
    deliveries = plan(store)
    ping = build_fire_ping(PingEvent.FAIL, "run", AT)
    store.driver.write(lambda statements: statements.run("add_delivery", rows.build_parameters(ping)))
    for known, channel in enumerate(("phone", PING_CHANNEL)):
        (row,) = deliveries.list_due(channel, AT, AT)
        claimed = deliveries.claim(row, "one", AT)
        assert claimed is not None
        assert len(deliveries.list_stuck(AT)) == known
        for late in (AT + CLAIM_MS, AT - GIVE_UP_AFTER_MS):  # the second: the clock was set back since
            assert [one.is_stuck(late) for one in deliveries.list_stuck(late)] == [True] * (known + 1)
        deliveries.postpone(claimed, AT, "no answer")
        assert [one.is_stuck(AT) for one in deliveries.list_stuck(AT)] == [True] * (known + 1)


def test_rows_of_an_ended_process_are_due_again(store: Store) -> None:
    add_notice(store, "a")
    deliveries = plan(store)
    claim(deliveries)
    assert deliveries.release("another", "no answer") == []
    assert deliveries.release("one", "no answer") == ["phone"]
    (row,) = deliveries.list_due("phone", AT, AT)
    assert (row.state, row.attempts, row.error) == (PENDING, 1, "no answer")


def test_times_of_a_clock_that_went_wrong_count_as_over(store: Store) -> None:
    """A claim and a wait that were set while the clock was a year ahead."""
    ahead = AT + 365 * 86_400_000
    add_notice(store, "a")
    add_notice(store, "b")
    deliveries = plan(store)
    claim(deliveries, at=ahead)
    deliveries.postpone(claim(deliveries, at=ahead), ahead, "refused")
    assert sorted(list_due(deliveries)) == ["a", "b"]


def test_the_rows_of_a_removed_channel_are_closed(store: Store) -> None:
    add_notice(store, "a")
    deliveries = plan(store, {"phone": AT, "gone": AT})
    assert deliveries.skip_removed(["phone"], AT + 1) == 1
    assert list_due(deliveries, "gone") == []
    assert list_due(deliveries, "phone") == ["a"]
    deliveries.close(claim(deliveries), SENT, AT + 2)
    assert read_delivered_at(store, "a") == AT + 2


def test_what_was_given_up_is_closed_with_its_channel(store: Store) -> None:
    """Otherwise a heartbeat would report it for ever."""
    add_notice(store, "a")
    deliveries = plan(store)
    late = AT + GIVE_UP_AFTER_MS
    claimed = claim(deliveries, at=late)._replace(attempts=BACKOFF.most)
    by_hand(store, f"UPDATE deliveries SET attempts = {BACKOFF.most}")
    assert deliveries.postpone(claimed, late, "refused") == 0
    assert len(deliveries.list_stuck(late)) == 1
    deliveries.skip_removed([], late)
    assert deliveries.list_stuck(late) == []
    assert read_delivered_at(store, "a") == late


def test_work_is_seen_before_and_after_it_is_planned(store: Store) -> None:
    deliveries = DeliveryStore(store)
    assert not deliveries.has_work(["phone"], AT)
    add_notice(store, "old", AT - 1)
    assert not deliveries.has_work(["phone"], AT)
    add_notice(store, "a", AT)
    assert deliveries.has_work(["phone"], AT)
    plan(store)
    assert deliveries.has_work(["phone"], AT)
    deliveries.close(claim(deliveries), SENT, AT)
    assert not deliveries.has_work(["phone"], AT)
