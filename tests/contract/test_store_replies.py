"""Replies from a phone, on both stores: an answer is taken once, with its code, or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from jackline.domain.call_gate import decide_call
from jackline.domain.events import Fact
from jackline.domain.records import Call, Lease, RunStatus
from jackline.domain.states import CallState, Decision, RunState, WaitReason, WorkStatus
from jackline.features.notify.delivery_store import DeliveryStore
from jackline.features.replies.reply_code import (
    ReplyCode,
    digest_code,
    digest_cut_input,
    digest_question,
    format_button,
    sign_button,
)
from jackline.features.replies.reply_store import (
    BUSY,
    CLOSED,
    LATE,
    MOST_PER_MINUTE,
    MOST_WRONG,
    REFUSED,
    TAKEN,
    UNKNOWN,
    ReadPosition,
    ReplyMessage,
    ReplyStore,
    digest_input,
)
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.item_store import WorkQueue
from jackline.features.work.work_item import Hold, NewItem
from jackline.store.models import RunChange, Settlement
from jackline.store.store import Store
from tests.conftest import Open
from tests.support.stores import AT, MAIL, begun, by_hand, intent

ASKED = MAIL._replace(decision=Decision.ASK)
DENIED = MAIL._replace(decision=Decision.DENY)
PHONE = "phone"
CODE = "K7M3QXP"
EXPIRES = AT + 1000_000
NOW = AT + 10_000


def wait(store: Store, lease: Lease, reason: WaitReason = WaitReason.APPROVAL) -> None:
    fact = Fact("run.waiting", {"reason": reason})
    store.leases.write_change(lease, RunChange(AT, (fact,), RunStatus(state=RunState.WAITING, reason=reason)))


def ask(store: Store, run_id: str = "run-1") -> Call:
    """A run that waits for approval of its call."""
    lease = begun(store, run_id)
    call = store.ledger.admit(lease, intent("call-1", ASKED), decide_call, (1, 2), AT)[0]
    wait(store, lease)
    return call


def add_code(store: Store, call: Call | None = None, code: str = CODE, **more: Any) -> ReplyCode:
    DeliveryStore(store).register_channels([PHONE, "other"], AT)
    stored = ReplyCode(
        code_digest=digest_code(store.secret, more.get("channel", PHONE), code),
        channel=PHONE,
        notice_id="notice-1",
        run_id=call.run_id if call else "",
        call_id=call.id if call else "",
        item_id="",
        input_digest=digest_input(call) if call else "",
        created_at=AT,
        expires_at=EXPIRES,
    )
    stored = stored._replace(**more)
    ReplyStore(store).add_codes([stored], AT)
    return stored


def press(store: Store, code: ReplyCode, verdict: str, **changed: Any) -> str:
    """The text that a button sends, or a changed one."""
    replies = ReplyStore(store)
    signed = sign_button(changed.get("secret", store.secret), replies.instance, code, changed.get("signed", verdict))
    instance = changed.get("instance", replies.instance)
    return format_button(instance, changed.get("typed", CODE), verdict, changed.get("expires", EXPIRES), signed)


class Phone:
    """Sends messages with ids and times of their own."""

    def __init__(self, store: Store, mode: str = "all") -> None:
        self.store, self.mode, self.sent = store, mode, 0

    def send(self, text: str, at: int = NOW, mode: str = "", **more: Any) -> str | None:
        """What became of a message."""
        self.sent += 1
        message = ReplyMessage(**{"id": f"message-{self.sent}", "time": at // 1000, "text": text, **more})
        outcome = ReplyStore(self.store).take(PHONE, mode or self.mode, message, at)
        return None if outcome is None else outcome.kind


@pytest.fixture
def phone(store: Store) -> Phone:
    return Phone(store)


def test_a_call_that_was_shown_in_part_can_only_be_denied(store: Store, phone: Phone) -> None:
    call = ask(store)
    code = add_code(store, call, input_digest=digest_cut_input(digest_input(call)))
    for text in (f"{CODE} allow", f"{CODE} yes", press(store, code, "allow")):
        assert (phone.send(text), answer_of(store)) == (REFUSED, "")
    assert (phone.send(f"{CODE} deny"), answer_of(store)) == (TAKEN, "deny")


def answer_of(store: Store) -> str:
    call = store.calls.get("run-1", "call-1")
    assert call is not None
    return call.answer


def events_of(store: Store, kind: str) -> list[tuple[str, dict[str, Any]]]:
    events = store.records.list_events("run-1")
    return [(event.actor, json.loads(event.data)) for event in events if event.kind == kind]


@pytest.mark.parametrize("by", ["button", "typed"])
def test_an_answer_is_recorded_as_of_a_person_via_ntfy_and_queues_the_run(store: Store, phone: Phone, by: str) -> None:
    code = add_code(store, ask(store))
    text = press(store, code, "allow") if by == "button" else f" {CODE.lower()} Yes.\n"
    assert phone.send(text) == TAKEN
    ((actor, data),) = events_of(store, "call.answered")
    assert (actor, data["by"], data["via"], data["answer"]) == ("person", "person", "ntfy", "allow")
    run = store.runs.get("run-1")
    assert run is not None
    assert run.status.state is RunState.QUEUED
    assert store.verify.verify_run("run-1").problems == ()
    (notice,) = store.notices.list_newest()
    assert (notice.kind, notice.id) == ("reply.taken", "reply-phone-message-1")
    assert by_hand(store, "SELECT notice_id, channel, state FROM deliveries") == [(notice.id, PHONE, "pending")]


def test_a_code_is_used_once_and_its_message_is_read_once(store: Store, phone: Phone) -> None:
    code = add_code(store, ask(store))
    assert phone.send(press(store, code, "deny")) == TAKEN
    assert phone.send(press(store, code, "deny"), id="message-1") is None
    assert phone.send(press(store, code, "allow")) == LATE
    assert phone.send(f"{CODE} allow") == LATE
    assert answer_of(store) == "deny"
    assert by_hand(store, "SELECT used_at, verdict FROM reply_codes") == [(NOW, "deny")]


def test_codes_are_not_stored_in_clear(store: Store) -> None:
    add_code(store, ask(store))
    assert CODE not in str(by_hand(store, "SELECT * FROM reply_codes"))


@pytest.mark.parametrize(
    "changed",
    [{"signed": "deny"}, {"secret": b"another"}, {"expires": EXPIRES + 1}, {"typed": "K7M3QXQ"}],
    ids=["verdict", "secret", "expiry", "code"],
)
def test_a_changed_button_is_a_wrong_code(store: Store, phone: Phone, changed: dict[str, Any]) -> None:
    code = add_code(store, ask(store))
    assert phone.send(press(store, code, "allow", **changed)) == UNKNOWN
    assert answer_of(store) == ""
    state = ReplyStore(store).get_channel(PHONE)
    assert state is not None
    assert state.wrong_codes == 1
    assert phone.send(press(store, code, "allow")) == TAKEN, "the real button still works"


@pytest.mark.parametrize("field", ["run_id", "call_id", "input_digest", "channel"])
def test_a_button_of_another_call_is_a_wrong_code(store: Store, phone: Phone, field: str) -> None:
    code = add_code(store, ask(store))
    changed: dict[str, Any] = {field: "other"}
    assert phone.send(press(store, code._replace(**changed), "allow")) == UNKNOWN
    assert answer_of(store) == ""


def test_a_button_of_another_home_is_ignored_and_not_counted(store: Store, phone: Phone) -> None:
    code = add_code(store, ask(store))
    for _ in range(MOST_WRONG + 1):
        assert phone.send(press(store, code, "allow", instance="0123456789abcdef")) is None
    assert store.notices.list_newest() == []
    assert answer_of(store) == ""
    assert phone.send(press(store, code, "allow")) == TAKEN


def test_an_expired_code_is_too_late(store: Store, phone: Phone) -> None:
    code = add_code(store, ask(store))
    assert phone.send(press(store, code, "allow"), at=EXPIRES) == LATE
    assert phone.send(f"{CODE} allow", at=EXPIRES) == LATE
    assert answer_of(store) == ""
    assert phone.send(f"{CODE} allow", at=EXPIRES - 1, time=EXPIRES // 1000) == TAKEN


def test_a_call_whose_input_changed_is_not_answered(store: Store, phone: Phone) -> None:
    code = add_code(store, ask(store))
    by_hand(store, 'UPDATE calls SET input = \'{"to":"everybody"}\'')
    assert phone.send(press(store, code, "allow")) == LATE
    assert answer_of(store) == ""


def test_what_was_answered_elsewhere_is_too_late(store: Store, phone: Phone) -> None:
    add_code(store, ask(store))
    store.approvals.answer("run-1", "call-1", "deny", AT)
    assert phone.send(f"{CODE} allow") == LATE
    assert answer_of(store) == "deny"


def test_a_run_that_ended_is_too_late(store: Store, phone: Phone) -> None:
    add_code(store, ask(store))
    store.runs.request_cancel("run-1", AT, "notice-2")
    assert phone.send(f"{CODE} allow") == LATE


def test_a_rule_that_denies_cannot_be_lifted(store: Store, phone: Phone) -> None:
    lease = begun(store)
    call = store.ledger.admit(lease, intent("call-1", DENIED), decide_call, (1, 2), AT)[0]
    wait(store, lease)
    add_code(store, call)
    assert (call.state, phone.send(f"{CODE} allow")) == (CallState.DENIED, LATE)
    assert answer_of(store) == ""


def test_while_the_run_is_worked_on_the_code_stays_valid(store: Store, phone: Phone) -> None:
    lease = begun(store)
    call = store.ledger.admit(lease, intent("call-1", ASKED), decide_call, (1, 2), AT)[0]
    add_code(store, call)
    assert phone.send(f"{CODE} deny") == BUSY
    wait(store, lease)
    assert phone.send(f"{CODE} deny") == TAKEN


def test_the_mode_deny_refuses_approvals_and_takes_refusals(store: Store, phone: Phone) -> None:
    code = add_code(store, ask(store))
    assert phone.send(press(store, code, "allow"), mode="deny") == REFUSED
    assert phone.send(f"{CODE} allow", mode="deny") == REFUSED
    assert answer_of(store) == ""
    assert "only deny" in store.notices.list_newest()[0].body
    assert phone.send(f"{CODE} deny", mode="deny") == TAKEN
    assert answer_of(store) == "deny"


@pytest.mark.parametrize("text", ["always", "maybe", "allow it all"])
def test_only_the_words_for_a_phone_answer_a_call(store: Store, phone: Phone, text: str) -> None:
    add_code(store, ask(store))
    assert phone.send(f"{CODE} {text}") == REFUSED
    assert answer_of(store) == ""


def doubt(store: Store) -> Call:
    lease = begun(store)
    store.ledger.admit(lease, intent("call-1", MAIL), decide_call, (1, 2), AT)
    call = store.ledger.settle(lease, Settlement("call-1", "doubt", AT, origin="recovery", reason="cut off"))
    wait(store, lease, WaitReason.IN_DOUBT)
    return call


@pytest.mark.parametrize("verdict", ["happened", "did-not", "retry", "skip"])
def test_a_call_in_doubt_needs_the_mode_all(store: Store, phone: Phone, verdict: str) -> None:
    add_code(store, doubt(store))
    assert phone.send(f"{CODE} {verdict}", mode="deny") == REFUSED
    assert phone.send(f"{CODE} {verdict}") == TAKEN
    assert answer_of(store) == verdict
    vias = [data["via"] for _, data in (event for kind in ("done", "failed", "abandoned", "void")
            for event in events_of(store, f"call.{kind}"))]  # fmt: skip
    assert vias == ["ntfy"]


@pytest.mark.parametrize(("make", "wrong", "right"), [(ask, "skip", "deny"), (doubt, "allow", "skip")])
def test_a_word_that_does_not_fit_the_call_is_not_too_late(
    store: Store, phone: Phone, make: Callable[[Store], Call], wrong: str, right: str
) -> None:
    add_code(store, make(store))
    assert phone.send(f"{CODE} {wrong}") == REFUSED
    assert f"'{wrong}' does not answer a call that" in store.notices.list_newest()[0].body
    assert phone.send(f"{CODE} {right}") == TAKEN


def test_a_question_of_an_agent_gets_a_text(store: Store, phone: Phone) -> None:
    queue = WorkQueue(store)
    queue.enqueue(NewItem(id="q", kind="question", payload="{}", question="merge?"), AT, "agent")
    add_code(store, item_id="q", input_digest=digest_question("merge?"))
    assert phone.send(f"{CODE}: yes, but\nsquash it ", mode="deny") == TAKEN
    answered = WorkItems(store).get("q")
    assert answered is not None
    assert answered.answer == "yes, but\nsquash it"
    ((actor, data),) = by_hand(store, "SELECT actor, data FROM events WHERE kind = 'work.answered'")
    assert (actor, json.loads(data)["via"]) == ("person", "ntfy")
    assert phone.send(f"{CODE} no") == LATE


def test_a_used_code_does_not_answer_the_same_question_when_it_is_asked_again(store: Store, phone: Phone) -> None:
    queue = WorkQueue(store)
    queue.enqueue(NewItem(id="q", kind="question", payload="{}", question="merge?"), AT, "agent")
    add_code(store, item_id="q", input_digest=digest_question("merge?"))
    assert phone.send(f"{CODE} yes") == TAKEN
    queue.park(Hold("q", "agent"), "merge?", AT)
    assert phone.send(f"{CODE} no") == LATE
    asked = WorkItems(store).get("q")
    assert asked is not None
    assert (asked.status, asked.answer) == (WorkStatus.WAITING_HUMAN, "")


def test_the_answer_to_its_agents_question_queues_the_run(store: Store, phone: Phone) -> None:
    lease = begun(store)
    item = NewItem(id="q", kind="question", payload='{"run":"run-1"}', question="merge?")
    WorkQueue(store).enqueue(item, AT, "agent")
    wait(store, lease, WaitReason.HUMAN)
    add_code(store, item_id="q", input_digest=digest_question("merge?"))
    assert phone.send(f"{CODE} yes") == TAKEN
    run = store.runs.get("run-1")
    assert run is not None
    assert run.status.state is RunState.QUEUED


def test_a_question_that_was_asked_anew_is_not_answered_by_the_old_code(store: Store, phone: Phone) -> None:
    WorkQueue(store).enqueue(NewItem(id="q", kind="question", payload="{}", question="delete it?"), AT, "agent")
    add_code(store, item_id="q", input_digest=digest_question("merge?"))
    assert phone.send(f"{CODE} yes") == LATE


@pytest.mark.parametrize("wrong", ["2222222 allow", "hello", "", "jackline-reply-1 x", f"{CODE}", "\x00 \ud800 x"])
def test_five_wrong_codes_close_the_channel_until_a_person_opens_it(store: Store, phone: Phone, wrong: str) -> None:
    add_code(store, ask(store))
    for _ in range(MOST_WRONG):
        assert phone.send(wrong) == UNKNOWN
    assert phone.send(f"{CODE} allow") is None
    state = ReplyStore(store).get_channel(PHONE)
    assert state is not None
    assert state.closed_at == NOW
    closed = next(notice for notice in store.notices.list_newest() if notice.kind == CLOSED)
    assert "jackline channel reopen phone" in closed.body
    assert by_hand(store, "SELECT COUNT(*) FROM deliveries WHERE notice_id LIKE 'replies-closed%'") == [(0,)]
    assert ReplyStore(store).reopen(PHONE, NOW + 5000)
    assert not ReplyStore(store).reopen(PHONE, NOW + 5000)
    assert phone.send(f"{CODE} allow", at=NOW + 4000) is None, "from before it was opened again"
    assert phone.send(f"{CODE} allow", at=NOW + 6000) == TAKEN


def test_only_an_answer_that_was_taken_ends_the_count_of_wrong_codes(store: Store, phone: Phone) -> None:
    add_code(store, ask(store))
    assert phone.send(f"{CODE} deny") == TAKEN
    for _ in range(MOST_WRONG - 1):
        assert phone.send("2222222 allow") == UNKNOWN
        assert phone.send(f"{CODE} deny") == LATE
    assert phone.send("2222222 allow") == UNKNOWN
    assert phone.send("2222222 allow") is None


def test_a_flood_closes_the_channel(store: Store, phone: Phone) -> None:
    code = add_code(store, ask(store))
    for _ in range(MOST_PER_MINUTE + 1):
        phone.send(press(store, code, "allow", instance="0123456789abcdef"))
    assert phone.send(press(store, code, "allow")) is None
    assert [notice.kind for notice in store.notices.list_newest()] == [CLOSED]


def test_messages_from_before_the_channel_are_ignored(store: Store, phone: Phone) -> None:
    add_code(store, ask(store))
    assert phone.send(f"{CODE} allow", time=AT // 1000 - 1) is None
    assert phone.send(f"{CODE} allow", time=AT // 1000) == TAKEN


def test_a_channel_without_a_row_takes_nothing(store: Store, phone: Phone) -> None:
    assert phone.send(f"{CODE} allow") is None


def test_two_processes_that_read_the_same_message_take_it_once(store: Store, opened: Open) -> None:
    code = add_code(store, ask(store))
    text = press(store, code, "allow")
    outcomes = [Phone(one).send(text) for one in (store, opened())]
    assert outcomes == [TAKEN, None]
    assert len(events_of(store, "call.answered")) == 1


def test_old_codes_are_forgotten(store: Store) -> None:
    call = ask(store)
    add_code(store, call, created_at=0, expires_at=1)
    add_code(store, call, code="2222222")
    assert by_hand(store, "SELECT expires_at FROM reply_codes") == [(EXPIRES,)]


def test_a_position_reads_a_minute_again_and_keeps_its_ids() -> None:
    position = ReadPosition(start=100).add("a", 150, 1000).add("b", 160, 1000)
    assert (position.since, position.is_read("a", 150), position.is_read("c", 155)) == (100, True, False)
    assert position.is_read("c", 99)
    later = position.add("d", 215, 1000)
    assert (later.since, [known for known, _ in later.seen]) == (155, ["b", "d"])
    assert later.add("late", 120, 1000).is_read("late", 120)
    assert later.add("far", 10**10, 1000).since == 1000 + 300 - 60


def test_a_message_of_a_server_whose_clock_is_ahead_is_read_once() -> None:
    position, ahead = ReadPosition(start=0), 600
    for now in range(1000, 2000, 50):
        position = position.add(f"message-{now}", now + ahead, now)
        returned = [one for one in range(1000, now + 1, 50) if one + ahead >= position.since]
        assert all(position.is_read(f"message-{one}", one + ahead) for one in returned)
