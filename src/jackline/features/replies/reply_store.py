"""Takes replies: each in one transaction with its code, the position in the topic, and a notice of the result.

Two services that read the same topic, or one that dies and reads a message again, take an answer once.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING

from jackline.domain.events import PERSON
from jackline.domain.records import SubjectNotice
from jackline.domain.states import CallState, Decision, RunState, WorkStatus
from jackline.errors import NotFound, Refused
from jackline.features.notify.delivery_store import PENDING, Delivery
from jackline.features.replies.reply_code import (
    DENY_ONLY,
    ON_APPROVAL,
    ReplyCode,
    digest_code,
    digest_cut_input,
    digest_question,
    is_signed,
    may_answer,
    parse_reply,
    read_verdict,
)
from jackline.features.work.item_queries import build_item
from jackline.features.work.item_store import WorkQueue
from jackline.formatting import format_local
from jackline.named import NamedTuple
from jackline.store import rows
from jackline.store.driver import RetryTransaction
from jackline.store.ledger import read_call
from jackline.store.parts import StorePart
from jackline.store.record_digests import digest_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jackline.domain.records import Call
    from jackline.features.replies.reply_code import PhoneReply
    from jackline.store.driver import Statements

VIA = "ntfy"
MOST_WRONG = 5
MOST_PER_MINUTE = 60
TAKEN, LATE, UNKNOWN, REFUSED, BUSY = "taken", "late", "unknown", "refused", "busy"
CLOSED = "replies.closed"
_KEPT_MS = 30 * 86_400_000  # how long a code is remembered after it expired: until then a late reply is named as such
_OVERLAP_S = 60
_MOST_SEEN = 10_000
_FASTEST_CLOCK_S = 300  # how far ahead the server's clock may be; a later time would skip what follows


class ReplyMessage(NamedTuple):
    """A message of the reply topic."""

    id: str
    time: int  # seconds, of the server's clock
    text: str


class ReadPosition(NamedTuple):
    """The messages of the topic that were read. Times are seconds of the server's clock.

    A server may show a message live before an earlier one, and stores both in some order: reading begins a minute
    before the newest message, and the ids of that minute say which were read.
    """

    start: int  # messages before it are ignored
    newest: int = 0
    seen: tuple[tuple[str, int], ...] = ()  # ids and times of the last minute

    @property
    def since(self) -> int:
        """From when on the server is asked for messages."""
        return max(self.start, self.newest - _OVERLAP_S)

    def is_read(self, message_id: str, time: int) -> bool:
        """Whether a message was read before, or is older than the channel."""
        return time < self.start or any(message_id == known for known, _ in self.seen)

    def add(self, message_id: str, time: int, now: int) -> ReadPosition:
        """The position after this message; `now` is this machine's time."""
        newest = max(self.newest, min(time, now + _FASTEST_CLOCK_S))
        # By the message's own time, however far ahead: the server returns it again until `since` has passed it.
        seen = [(known, at) for known, at in self.seen if at >= newest - _OVERLAP_S]
        return self._replace(newest=newest, seen=(*seen, (message_id, max(time, newest - _OVERLAP_S)))[-_MOST_SEEN:])


class ReplyChannel(NamedTuple):
    """What a channel remembers about its replies."""

    position: ReadPosition
    wrong_codes: int
    closed_at: int | None


class ReplyOutcome(NamedTuple):
    """The result of a reply: a word, and a sentence for the phone."""

    kind: str
    text: str
    code: ReplyCode | None = None
    run_id: str = ""


class ReplyStore(StorePart):
    """The part of the store with the codes of notices and the replies to them."""

    def add_codes(self, codes: Iterable[ReplyCode], at: int) -> None:
        """Store new codes, before they are sent; and forget those that will no longer be sent."""

        def add(statements: Statements) -> None:
            statements.run("drop_reply_codes", {"before": at - _KEPT_MS})
            for code in codes:
                statements.run("add_reply_code", rows.build_parameters(code))

        self._driver.write(add)

    def get_channel(self, name: str) -> ReplyChannel | None:
        """What the channel remembers; None before its first use."""
        row = self._one("get_reply_channel", {"channel": name})
        return None if row is None else _build_channel(*row)

    def reopen(self, name: str, at: int) -> bool:
        """Open a closed channel; messages from before are ignored. False if it is not closed."""

        def open_again(statements: Statements) -> bool:
            row = statements.one("lock_reply_channel", {"channel": name})
            if row is None or row[3] is None:
                return False
            start = ReadPosition(at // 1000 + 1)  # messages have whole seconds: those of this one may be from before
            _move(statements, name, ReplyChannel(position=start, wrong_codes=0, closed_at=None))
            return True

        return self._driver.write(open_again)

    @cached_property
    def instance(self) -> str:
        """The id of the home, which tells its buttons from those of another one."""
        row = self._one("instance_value", {"name": "id"})
        return str(row[0]) if row else ""

    def take(self, channel: str, mode: str, message: ReplyMessage, at: int) -> ReplyOutcome | None:
        """Handle a message; None if it was handled before, is for another home, or if the channel is closed."""
        instance = self.instance  # read before the transaction
        return self._driver.write(lambda one: self._take(one, channel, mode, message, instance, at))

    def _take(
        self, statements: Statements, name: str, mode: str, message: ReplyMessage, instance: str, at: int
    ) -> ReplyOutcome | None:
        row = statements.one("lock_reply_channel", {"channel": name})
        channel = None if row is None else _build_channel(*row)
        if channel is None or channel.closed_at or channel.position.is_read(message.id, message.time):
            return None
        channel = channel._replace(position=channel.position.add(message.id, message.time, at // 1000))
        reply = parse_reply(message.text)
        if reply is not None and reply.is_button and reply.instance != instance:
            outcome = None
        else:
            outcome = self._answer(statements, name, mode, reply, instance, at)
            self._add_outcome(statements, name, message, outcome, at)
            channel = _count(channel, outcome)
        if channel.wrong_codes >= MOST_WRONG or len(channel.position.seen) > MOST_PER_MINUTE:
            channel = channel._replace(closed_at=at)
            self._store.notices.add_within(statements, _build_closed(name, channel, at))
        _move(statements, name, channel)
        return outcome

    def _answer(
        self, statements: Statements, channel: str, mode: str, reply: PhoneReply | None, instance: str, at: int
    ) -> ReplyOutcome:
        secret = self._store.secret
        if reply is None:
            return ReplyOutcome(UNKNOWN, "The reply has no code. Write the code of the notice, and your answer.")
        row = statements.one("lock_reply_code", {"code": digest_code(secret, channel, reply.code)})
        code = None if row is None else ReplyCode(*row)
        if code is None:
            return ReplyOutcome(UNKNOWN, "The code is unknown.")
        if reply.is_button and not is_signed(secret, instance, code, reply):
            return ReplyOutcome(UNKNOWN, "The button was not made by this home, or was changed.")
        if code.used_at is not None:
            return ReplyOutcome(LATE, f"Its code has already been used, for '{code.verdict}'.", code)
        if at >= code.expires_at:
            return ReplyOutcome(LATE, f"Its code expired at {format_local(code.expires_at, at)}.", code)
        apply = self._answer_item if code.item_id else self._answer_call
        try:
            outcome = apply(statements, code, reply.text, mode, at)
        except (Refused, NotFound) as error:  # raised before anything is written
            return ReplyOutcome(LATE, str(error), code)
        if outcome.kind == TAKEN:
            self._use(statements, code, "answered" if code.item_id else read_verdict(reply.text), at)
        return outcome

    def _use(self, statements: Statements, code: ReplyCode, verdict: str, at: int) -> None:
        """Use the code up; if another process did so meanwhile, everything is rolled back."""
        if statements.run("use_reply_code", {"code": code.code_digest, "verdict": verdict, "at": at}) == 0:
            raise RetryTransaction

    def _answer_call(self, statements: Statements, code: ReplyCode, text: str, mode: str, at: int) -> ReplyOutcome:
        verdict = read_verdict(text)
        if not verdict:
            return ReplyOutcome(REFUSED, "That is not an answer to a call that a phone can give.", code)
        if not may_answer(mode, verdict):
            return ReplyOutcome(REFUSED, f"This channel may only deny calls, not answer '{verdict}'.", code)
        run = self._lock_run(statements, code.run_id)
        call = read_call(statements, code.run_id, code.call_id)
        whole = digest_input(call)
        is_cut = code.input_digest == digest_cut_input(whole)
        if not is_cut and code.input_digest != whole:
            return ReplyOutcome(LATE, "The call has changed since the notice was sent.", code)
        if is_cut and not may_answer(DENY_ONLY, verdict):
            why = f"The notice showed only a part of the call, so '{verdict}' was not offered"
            return ReplyOutcome(REFUSED, f"{why}: answer it where you can read all of it.", code)
        if misfit := _find_misfit(call, verdict):
            return ReplyOutcome(REFUSED, f"'{verdict}' does not answer a call that {misfit}.", code)
        if run.status.state is RunState.RUNNING:
            return ReplyOutcome(BUSY, f"Run {run.id} is active: answer again when it waits.", code)
        self._store.approvals.answer_within(statements, run.id, call.id, verdict, at, VIA)
        return ReplyOutcome(TAKEN, f"'{verdict}' for {call.tool} of run {run.id}.", code, run.id)

    def _answer_item(self, statements: Statements, code: ReplyCode, text: str, _mode: str, at: int) -> ReplyOutcome:
        row = statements.one("lock_item", {"id": code.item_id})
        item = None if row is None else build_item(row)
        if item is None or item.status is not WorkStatus.WAITING_HUMAN:
            return ReplyOutcome(LATE, "The question was answered or withdrawn in the meantime.", code)
        if digest_question(item.question) != code.input_digest:
            return ReplyOutcome(LATE, "The question has changed since the notice was sent.", code)
        WorkQueue(self._store).answer_within(statements, item.id, text.strip(), at, PERSON, VIA)
        return ReplyOutcome(TAKEN, f"Your answer to '{item.question[:200]}'.", code, code.run_id)

    def _add_outcome(
        self, statements: Statements, channel: str, message: ReplyMessage, outcome: ReplyOutcome, at: int
    ) -> None:
        """Publish the result of a reply, on its channel only."""
        titles = {
            TAKEN: "answer accepted",
            LATE: "answer came too late",
            UNKNOWN: "reply not understood",
            REFUSED: "answer not permitted",
            BUSY: "answer not accepted yet",
        }
        notice = SubjectNotice(
            id=f"reply-{channel}-{message.id}",
            subject="home",
            kind=f"reply.{outcome.kind}",
            title=titles[outcome.kind],
            body=outcome.text,
            created_at=at,
        )
        self._store.notices.add_within(statements, notice)
        delivery = Delivery(notice_id=notice.id, channel=channel, state=PENDING, next_at=at, created_at=at)
        statements.run("add_delivery", rows.build_parameters(delivery))


def digest_input(call: Call) -> str:
    """The digest of a call's input, as a code covers it."""
    return call.input_ref or digest_text(call.input)


def _find_misfit(call: Call, verdict: str) -> str:
    """What the call needs, if it waits for another word than this one; its code stays valid."""
    if call.state is CallState.IN_DOUBT:
        return "is in doubt" if verdict in ON_APPROVAL else ""
    is_asked = call.state is CallState.DENIED and call.decision is Decision.ASK and not call.answer
    return "needs approval" if is_asked and verdict not in ON_APPROVAL else ""


def _count(channel: ReplyChannel, outcome: ReplyOutcome) -> ReplyChannel:
    """Count wrong codes; only an answer that was taken ends the count, not a replayed one."""
    if outcome.kind == UNKNOWN:
        return channel._replace(wrong_codes=channel.wrong_codes + 1)
    return channel._replace(wrong_codes=0) if outcome.kind == TAKEN else channel


def _build_closed(name: str, channel: ReplyChannel, at: int) -> SubjectNotice:
    many = channel.wrong_codes < MOST_WRONG
    reason = "too many messages arrived" if many else f"{MOST_WRONG} replies had a wrong code"
    return SubjectNotice(
        id=f"replies-closed-{name}-{at}",
        subject="home",
        kind=CLOSED,
        title=f"replies from '{name}' are switched off",
        body=f"{reason}. Someone else may know the topic. To accept replies again: jackline channel reopen {name}",
        created_at=at,
        priority="high",
    )


def _build_channel(since: int, cursor: str, wrong_codes: int, closed_at: int | None) -> ReplyChannel:
    return ReplyChannel(position=_parse_position(cursor, since // 1000), wrong_codes=wrong_codes, closed_at=closed_at)


def _parse_position(text: str, start: int) -> ReadPosition:
    """The stored position; a channel that never read begins at `start`."""
    if not text:
        return ReadPosition(start)
    values = json.loads(text)
    return ReadPosition(
        start=values["start"], newest=values["newest"], seen=tuple((one, at) for one, at in values["seen"])
    )


def _move(statements: Statements, name: str, channel: ReplyChannel) -> None:
    position = channel.position
    values = {
        "channel": name,
        "cursor": json.dumps({"start": position.start, "newest": position.newest, "seen": position.seen}),
        "wrong_codes": channel.wrong_codes,
        "closed_at": channel.closed_at,
    }
    statements.run("move_reply_channel", values)
