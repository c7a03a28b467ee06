"""Stores the messages of a run: sent in one order, given to each reader until it acknowledges them.

A message is committed before its sender gets an answer, and its event with it. A reader acknowledges a message and all
before it; until then it is given again, with the same number, also to a new process after a crash. A message in a
prompt is read once that turn has begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import Fact
from jackline.domain.states import TERMINAL, format_run_state
from jackline.errors import Refused, UsageError
from jackline.features.bridge.bridge_message import (
    ALL,
    LONGEST_CONTENT,
    MOST_MESSAGES,
    MOST_RECEIVED,
    MOST_UNREAD,
    PERSON,
    WORKER,
    BridgeMessage,
    BridgeReader,
    build_role_name,
    find_recipient,
    list_seats,
    refuse_member_name,
    refuse_message,
)
from jackline.formatting import make_readable
from jackline.named import NamedTuple, stored_dict
from jackline.store.driver import clean
from jackline.store.parts import StorePart, append_run_events

if TYPE_CHECKING:
    from jackline.domain.records import Run
    from jackline.features.bridge.bridge_message import NewMessage
    from jackline.store.driver import Statements

SENT = "bridge.sent"
MOST_MEMBERS = 20
_MOST_CHARACTERS = 24_000  # given at once, unless one message has more
_PAGE = 200


class ReceivedMessage(NamedTuple):
    """A message for its reader."""

    message: BridgeMessage
    is_repeated: bool  # it was given before, and not acknowledged


class UnreadMessages(NamedTuple):
    """What a reader gets: the oldest unread messages, and how many more there are."""

    messages: tuple[ReceivedMessage, ...]
    left: int


class Participant(NamedTuple):
    """A name on the bridge."""

    name: str
    agent: str  # empty for a person, and for an agent from outside
    unread: int


class BridgeStore(StorePart):
    """The part of the store with the messages of runs."""

    def send(self, run_id: str, sender: str, new: NewMessage, at: int) -> tuple[BridgeMessage, bool]:
        """Store a message and return it, and whether it is new: the same key of a sender is one message.

        Refused if the run has ended, or if a limit is reached; UsageError if the message or the recipient is wrong.
        """
        refuse_message(new)
        content = clean(make_readable(self.redactor.redact(new.content)))[:LONGEST_CONTENT]
        wanted = new._replace(content=content, dedupe_key=clean(new.dedupe_key))
        return self._driver.write(lambda statements: self._send(statements, run_id, sender, wanted, at))

    def receive(self, run_id: str, name: str, ack: int, at: int) -> UnreadMessages:
        """Acknowledge all messages up to `ack` (0: none), and give the oldest unread ones.

        UsageError if `ack` was never given to this reader.
        """

        def receive(statements: Statements) -> UnreadMessages:
            reader = _lock_reader(statements, run_id, name, at)
            if ack > max(reader.given, reader.prompted):
                raise UsageError(f"message {ack} was not delivered to {name}: acknowledge only what you received")
            done = max(reader.acknowledged, ack, _read_prompted(statements, reader))
            inflow = _read_unread(statements, reader, done)
            given = max(reader.given, *(one.message.number for one in inflow.messages), 0)
            _move_reader(statements, reader, reader._replace(acknowledged=done, given=given))
            return inflow

        return self._driver.write(receive)

    def mark_read(self, run_id: str, name: str, last: int, at: int) -> None:
        """Acknowledge the messages up to this number, for a person who has seen them."""

        def mark(statements: Statements) -> None:
            reader = _lock_reader(statements, run_id, name, at)
            last_read = max(reader.acknowledged, last)
            _move_reader(statements, reader, reader._replace(acknowledged=last_read, given=max(reader.given, last)))

        if self.count_unread(run_id, name):
            self._driver.write(mark)

    def give_in_prompt(self, run_id: str, name: str, turn: int, at: int) -> UnreadMessages:
        """Give the unread messages to the prompt of a turn; they are unread again if that turn never begins."""

        def give(statements: Statements) -> UnreadMessages:
            reader = _lock_reader(statements, run_id, name, at)
            done = max(reader.acknowledged, _read_prompted(statements, reader, must_have_begun=True))
            inflow = _read_unread(statements, reader, done)
            prompted = max((one.message.number for one in inflow.messages), default=0)
            moved = reader._replace(acknowledged=done, prompted=prompted, turn=turn if prompted else 0)
            _move_reader(statements, reader, moved)
            return inflow

        return self._driver.write(give) if self.count_messages(run_id) else UnreadMessages((), 0)

    def join(self, run_id: str, name: str, at: int) -> BridgeReader:
        """Add an agent from outside, who reads what is sent from now on; joining again changes nothing."""

        def join(statements: Statements) -> BridgeReader:
            run = self._lock_run(statements, run_id)
            refuse_member_name(name, list_seats(run.agent, run.spec))
            known = _read_reader(statements, run.id, name)
            if known is not None or run.status.state in TERMINAL:  # a run that has ended is only read
                return known or BridgeReader(run_id=run.id, name=name, joined_at=at)
            if len(_list_members(statements, run)) >= MOST_MEMBERS:
                raise Refused(f"{MOST_MEMBERS} agents have joined run {run.id}: use one of their names")
            reader = BridgeReader(run_id=run.id, name=name, joined_at=at, acknowledged=_read_last(statements, run.id))
            statements.run("add_bridge_reader", stored_dict(reader))
            return reader

        return self._driver.write(join)

    def list_messages(self, run_id: str, after: int = 0) -> list[BridgeMessage]:
        """A page of messages after this number, oldest first."""
        values = {"run_id": clean(run_id), "after": after, "limit": _PAGE}
        return [BridgeMessage(*row) for row in self._all("some_bridge_messages", values)]

    def count_messages(self, run_id: str) -> int:
        """How many messages the run has."""
        return self._driver.read(lambda statements: _read_last(statements, run_id))

    def count_unread(self, run_id: str, name: str) -> int:
        """How many messages a reader has not acknowledged."""
        return self._driver.read(lambda statements: _count_unread(statements, run_id, name))

    def list_participants(self, run: Run) -> list[Participant]:
        """Everyone who can get messages, with the number of unread ones."""

        def read(statements: Statements) -> list[Participant]:
            seats = list_seats(run.agent, run.spec)
            return [
                Participant(name=name, agent=seats.get(name, ""), unread=_count_unread(statements, run.id, name))
                for name in (*seats, *_list_members(statements, run), PERSON)
            ]

        return self._driver.snapshot(read)

    def find_speaker(self, run_id: str) -> str:
        """The name of the agent whose turn it is, or was last."""
        row = self._one("newest_turn_role", {"run_id": clean(run_id)})
        return build_role_name(*row) if row else WORKER

    def _send(
        self, statements: Statements, run_id: str, sender: str, new: NewMessage, at: int
    ) -> tuple[BridgeMessage, bool]:
        run = self._lock_run(statements, run_id)
        seats, members = list_seats(run.agent, run.spec), _list_members(statements, run)
        recipient = find_recipient(new.recipient, seats, members)
        known = statements.one("get_keyed_bridge_message", {**new._asdict(), "run_id": run.id, "sender": sender})
        if known is not None:
            return _refuse_other_message(BridgeMessage(*known), recipient, new), False
        if run.status.state in TERMINAL:
            ended = format_run_state(run.status.state)
            raise Refused(f"run {run.id} {ended}: its messages can be read, but none can be sent")
        everyone = [*seats, *members, PERSON]
        if recipient == sender:
            raise UsageError(f"you are {sender}: send to another one of {', '.join((*everyone, ALL))}")
        for name in everyone if recipient == ALL else [recipient]:
            if name != sender and _count_unread(statements, run.id, name) >= MOST_UNREAD:
                raise Refused(f"{name} has {MOST_UNREAD} unread messages: wait until some are read")
        message = _build_message(run, sender, recipient, new, _read_last(statements, run.id) + 1, at)
        if message.number > MOST_MESSAGES:
            raise Refused(f"run {run.id} has {MOST_MESSAGES:,} messages, which is the maximum: no more can be sent")
        statements.run("add_bridge_message", stored_dict(message))
        append_run_events(statements, run, (build_sent(message),), at, sender)
        return message, True


def build_sent(message: BridgeMessage) -> Fact:
    """The event of a message."""
    data = {"message": message.number, "type": message.kind, "from": message.sender, "to": message.recipient}
    signal = {"signal": message.signal} if message.signal else {}
    return Fact(SENT, {**data, **signal, "text": message.content})


def _build_message(run: Run, sender: str, recipient: str, new: NewMessage, number: int, at: int) -> BridgeMessage:
    return BridgeMessage(
        run_id=run.id,
        number=number,
        kind=new.kind,
        sender=sender,
        recipient=recipient,
        content=new.content,
        signal=new.signal,
        iteration=run.status.iteration,
        at=at,
        dedupe_key=new.dedupe_key,
    )


def _refuse_other_message(known: BridgeMessage, recipient: str, new: NewMessage) -> BridgeMessage:
    if (known.recipient, known.kind, known.content, known.signal) != (recipient, new.kind, new.content, new.signal):
        raise UsageError(f"message #{known.number} has this id and another text or recipient: use another id")
    return known


def _read_last(statements: Statements, run_id: str) -> int:
    row = statements.one("last_bridge_message", {"run_id": clean(run_id)})
    return int(row[0]) if row else 0


def _read_reader(statements: Statements, run_id: str, name: str) -> BridgeReader | None:
    row = statements.one("get_bridge_reader", {"run_id": clean(run_id), "reader": name})
    return BridgeReader(*row) if row else None


def _lock_reader(statements: Statements, run_id: str, name: str, at: int) -> BridgeReader:
    """The row of a reader, locked until the transaction ends; it is made if it is missing."""
    new = BridgeReader(run_id=clean(run_id), name=name, joined_at=at)
    values = {"run_id": new.run_id, "reader": name}
    row = statements.one("lock_bridge_reader", values)
    if row is None:
        statements.run("add_bridge_reader", stored_dict(new))
        row = statements.one("lock_bridge_reader", values)
    return BridgeReader(*row) if row else new


def _move_reader(statements: Statements, before: BridgeReader, after: BridgeReader) -> None:
    if after != before:
        statements.run("move_bridge_reader", stored_dict(after))


def _read_prompted(statements: Statements, reader: BridgeReader, *, must_have_begun: bool = False) -> int:
    """Up to which message the reader has read in a prompt: that of a turn that is stored, or that has begun."""
    row = statements.one("get_turn_progress", {"run_id": reader.run_id, "turn": reader.turn}) if reader.turn else None
    return reader.prompted if row and (row[0] or not must_have_begun) else 0


def _read_unread(statements: Statements, reader: BridgeReader, after: int) -> UnreadMessages:
    """The oldest unread messages after this number, as many as fit."""
    values = {"run_id": reader.run_id, "reader": reader.name, "after": after}
    rows = statements.all("unread_bridge_messages", {**values, "limit": MOST_RECEIVED})
    messages: list[ReceivedMessage] = []
    room = _MOST_CHARACTERS
    for message in (BridgeMessage(*row) for row in rows):
        room -= len(message.content)
        if messages and room < 0:
            break
        messages.append(ReceivedMessage(message, is_repeated=message.number <= max(reader.given, reader.prompted)))
    row = statements.one("count_unread_bridge_messages", values)
    return UnreadMessages(tuple(messages), (int(row[0]) if row else 0) - len(messages))


def _count_unread(statements: Statements, run_id: str, name: str) -> int:
    reader = _read_reader(statements, run_id, name)
    after = max(reader.acknowledged, _read_prompted(statements, reader)) if reader else 0
    row = statements.one("count_unread_bridge_messages", {"run_id": clean(run_id), "reader": name, "after": after})
    return int(row[0]) if row else 0


def _list_members(statements: Statements, run: Run) -> list[str]:
    """The agents from outside."""
    rows = statements.all("all_bridge_readers", {"run_id": run.id})
    inside = {*list_seats(run.agent, run.spec), PERSON}
    return [name for name in (BridgeReader(*row).name for row in rows) if name not in inside]
