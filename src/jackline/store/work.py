"""The queue of work items: claimed by one, never by two; each change with its event. What may change: the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import GENESIS, Fact, place
from jackline.domain.states import WORK_ENDED, WorkStatus
from jackline.domain.transitions import TransitionRefused, next_work
from jackline.domain.work import LONGEST_NAME, WorkItem, is_name, stream_of
from jackline.errors import ItemConflict, ItemRefused, NoItem, UsageError
from jackline.store import redacting, work_events
from jackline.store.base import Base, Chain, append, write_event
from jackline.store.driver import Again, Statements, clean
from jackline.store.record_digests import cover
from jackline.store.work_next import pick_next
from jackline.store.work_reading import item_values, to_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.work import Hold
    from jackline.store.state_contract import NewItem

RESOLUTIONS = ("succeed", "fail", "cancel")
_MOST = 1_000_000_000  # of a priority, of attempts
_LONGEST_LEASE_MS = 100 * 365 * 86_400_000  # more might not fit the database's integers


class WorkQueue(Base):
    """The part of the store that workers of the queue write through."""

    def enqueue(self, new: NewItem, at: int, actor: str) -> tuple[WorkItem, bool]:
        """The item and whether it is new; Conflict if the id has another kind or payload."""
        _refuse_odd(new)
        wanted = _new_item(redacting.new_item(self.redactor, new), at)
        return self._driver.write(lambda statements: _enqueue(statements, wanted, at, actor))

    def claim(self, item_id: str, owner: str, lease_ms: int, at: int) -> WorkItem:
        """Take one item, pending or with a lease that ran out; one whose attempts are used up is buried instead."""
        _refuse_name("owner", owner)
        item = self._driver.write(lambda one: _claim(one, _free(one, item_id), owner, lease_ms, at))
        if item.status is not WorkStatus.IN_FLIGHT:
            raise ItemRefused(f"work item {item_id} has used up its {item.max_attempts} attempts: it has failed now")
        return item

    def claim_next(self, kinds: Sequence[str], owner: str, lease_ms: int, at: int) -> WorkItem | None:
        """Take the next item of one of these kinds: expired leases first, then priority, then age."""
        _refuse_name("owner", owner)

        def take(statements: Statements) -> WorkItem | None:
            item = pick_next(statements, kinds)
            return None if item is None else _claim(statements, item, owner, lease_ms, at)

        while True:  # what is buried on the way is written down before the next one is looked at
            item = self._driver.write(take)
            if item is None or item.status is WorkStatus.IN_FLIGHT:
                return item

    def renew(self, hold: Hold, lease_ms: int, at: int) -> WorkItem:
        """Move the lease on; Refused unless it is still held so."""

        def move(statements: Statements) -> WorkItem:
            item = _held(statements, hold)
            if item.status is not WorkStatus.IN_FLIGHT:
                raise ItemRefused(f"work item {item.id} is {item.status}: there is no lease to renew")
            _move_lease(statements, item, lease_ms, at)
            return item._replace(updated_at=at)

        return self._driver.write(move)

    def resolve(self, hold: Hold, change: str, at: int, notes: str | None = None) -> WorkItem:
        """`succeed`, `fail` or `cancel`; one that is in flight only by who holds it."""
        if change not in RESOLUTIONS:
            raise UsageError(f"'{change}' does not end a work item: say {', '.join(RESOLUTIONS)}")
        told = self._redact(notes)

        def resolve(statements: Statements) -> WorkItem:
            item = _held(statements, hold)
            after = _moved(item, change)._replace(finished_at=at)
            return _write(
                statements, item, _noted(after, told), work_events.build_resolved(after, told), at, hold.owner
            )

        return self._driver.write(resolve)

    def release(self, hold: Hold, at: int, notes: str | None = None) -> WorkItem:
        """Give it back to the queue; after its last attempt it is buried: failed, and dead."""
        told = self._redact(notes)
        return self._driver.write(lambda one: _release(one, _held(one, hold), at, hold.owner, told))

    def requeue(self, item_id: str, older_than: int, at: int, actor: str) -> WorkItem | None:
        """Give back to the queue what is in flight but given up; None if it is not, or not any more."""

        def requeue(statements: Statements) -> WorkItem | None:
            item = _locked(statements, item_id)
            held = item.status is WorkStatus.IN_FLIGHT
            given_up = held and (item.updated_at < older_than or _lease_over(statements, item_id))
            return _release(statements, item, at, actor, None) if given_up else None

        return self._driver.write(requeue)

    def annotate(self, item_id: str, notes: str, at: int, actor: str) -> WorkItem:
        """Put these notes in place of the old ones, which stay in the events; in any status."""
        told = self._redact(notes)

        def annotate(statements: Statements) -> WorkItem:
            item = _locked(statements, item_id)
            return _write(statements, item, _noted(item, told), work_events.build_annotated(told or ""), at, actor)

        return self._driver.write(annotate)

    def park(self, hold: Hold, question: str, at: int) -> WorkItem:
        """Let it wait for a person; one in flight only by who holds it."""
        asked = self._redact(question) or ""

        def park(statements: Statements) -> WorkItem:
            item = _held(statements, hold)
            after = _moved(item, "wait")._replace(question=asked, answer="")
            return _write(statements, item, after, work_events.build_waiting(asked), at, hold.owner)

        return self._driver.write(park)

    def answer(self, item_id: str, answer: str, at: int, actor: str) -> WorkItem:
        """A person's answer: it is pending again, with its attempts as they were."""
        said = self._redact(answer) or ""

        def hear(statements: Statements) -> WorkItem:
            item = _locked(statements, item_id)
            after = _moved(item, "answer")._replace(answer=said)
            return _write(statements, item, after, work_events.build_answered(said), at, actor)

        return self._driver.write(hear)

    def _redact(self, text: str | None) -> str | None:
        return None if text is None else clean(self.redactor.redact(text))


def _refuse_odd(new: NewItem) -> None:
    _refuse_name("id", new.id)
    _refuse_name("kind", new.kind)
    if not -_MOST <= new.priority <= _MOST:
        raise UsageError(f"a priority lies between {-_MOST} and {_MOST}")
    if not 1 <= new.max_attempts <= _MOST:
        raise UsageError(f"a work item has between 1 and {_MOST} attempts")


def _refuse_name(what: str, text: str) -> None:
    if not is_name(text):
        shown = text[:40].encode("unicode_escape").decode()
        rule = f"1 to {LONGEST_NAME} printable characters, no space at its ends"
        raise UsageError(f"'{shown}' cannot be the {what} of a work item: {rule}")


def _new_item(new: NewItem, at: int) -> WorkItem:
    status = WorkStatus.WAITING_HUMAN if new.question else WorkStatus.PENDING
    item = WorkItem(clean(new.id), clean(new.kind), clean(new.payload), status, None, at, at, clean(new.notes))
    item = item._replace(priority=new.priority, max_attempts=new.max_attempts)
    return item._replace(question=clean(new.question), chain_head=GENESIS)


def _enqueue(statements: Statements, wanted: WorkItem, at: int, actor: str) -> tuple[WorkItem, bool]:
    row = statements.one("get_item", {"id": wanted.id})
    if row is not None:
        known = to_item(row)
        if (known.kind, known.payload) != (wanted.kind, wanted.payload):
            raise ItemConflict(wanted.id)
        return known, False
    (fact,) = cover((work_events.build_created(wanted),), work_events.digest_item(wanted))
    event = place(fact, stream_of(wanted.id), 1, at, clean(actor), GENESIS)
    made = wanted._replace(event_seq=event.seq, chain_head=event.hash)
    if statements.run("add_item", item_values(made)) == 0:
        raise Again  # the same id was made by somebody else since we looked
    write_event(statements, event)
    return made, True


def _locked(statements: Statements, item_id: str) -> WorkItem:
    row = statements.one("lock_item", {"id": clean(item_id)})
    if row is None:
        raise NoItem(item_id)
    return to_item(row)


def _free(statements: Statements, item_id: str) -> WorkItem:
    """The item, if it may be claimed."""
    item = _locked(statements, item_id)
    if item.status is WorkStatus.IN_FLIGHT and not _lease_over(statements, item_id):
        raise ItemRefused(f"work item {item_id} is held by {item.owner_agent}: wait for it, or take another one")
    _moved(item, "claim")
    return item


def _lease_over(statements: Statements, item_id: str) -> bool:
    row = statements.one("item_lease_over", {"id": clean(item_id), **statements.clock()})
    return row is not None and bool(row[0])


def _held(statements: Statements, hold: Hold) -> WorkItem:
    """The item, unless somebody else holds it; what nobody holds is anybody's, but for a claim that is over."""
    item = _locked(statements, hold.item_id)
    if item.status is WorkStatus.IN_FLIGHT:
        if item.owner_agent != clean(hold.owner):
            raise ItemRefused(f"work item {item.id} is held by {item.owner_agent}, not by {hold.owner}")
        if hold.token not in {None, item.token}:
            raise ItemRefused(f"work item {item.id} is held with token {item.token}: token {hold.token} is over")
    elif hold.token is not None:
        raise ItemRefused(f"work item {item.id} is {item.status}: the claim with token {hold.token} is over")
    return item


def _moved(item: WorkItem, change: str) -> WorkItem:
    """The item in its next status, if the table allows it."""
    try:
        return item._replace(status=next_work(item.status, change))
    except TransitionRefused:
        raise ItemRefused(f"work item {item.id} is {item.status}: {_advice(item, change)}") from None


def _advice(item: WorkItem, change: str) -> str:
    if item.status in WORK_ENDED:
        return "it has ended and cannot be changed any more, except by notes"
    if item.status is WorkStatus.WAITING_HUMAN:
        return "a person answers it first, with `jackline work answer`"
    return "claim it first" if change == "release" else "it does not wait for a person"


def _noted(item: WorkItem, notes: str | None) -> WorkItem:
    return item if notes is None else item._replace(notes=notes)


def _claim(statements: Statements, item: WorkItem, owner: str, lease_ms: int, at: int) -> WorkItem:
    takeover = item.status is WorkStatus.IN_FLIGHT
    if takeover and item.attempts >= item.max_attempts:
        return _bury(statements, item, at, owner, work_events.build_buried(item, "lease"))
    after = _moved(item, "claim")._replace(owner_agent=clean(owner), attempts=item.attempts + 1, token=item.token + 1)
    after = _write(statements, item, after, work_events.build_claimed(after, takeover=takeover), at, owner)
    _move_lease(statements, after, lease_ms, at)
    return after


def _release(statements: Statements, item: WorkItem, at: int, actor: str, notes: str | None) -> WorkItem:
    after = _noted(_moved(item, "release"), notes)
    released = work_events.build_released(item, notes)
    if item.attempts >= item.max_attempts:
        dead = item._replace(notes=after.notes)
        return _bury(statements, dead, at, actor, released, work_events.build_buried(item, "release"))
    return _write(statements, item, after, released, at, actor)


def _bury(statements: Statements, item: WorkItem, at: int, actor: str, *facts: Fact) -> WorkItem:
    after = _moved(item, "bury")._replace(dead=True, finished_at=at)
    return _write(statements, item, after, facts, at, actor)


def _move_lease(statements: Statements, item: WorkItem, lease_ms: int, at: int) -> None:
    if not 0 <= lease_ms <= _LONGEST_LEASE_MS:
        raise UsageError("a lease is not shorter than nothing, and not longer than a hundred years")
    values = {"id": item.id, "token": item.token, "lease_ms": lease_ms, "at": at}
    statements.run("move_item_lease", {**values, **statements.clock()})


def _write(
    statements: Statements, before: WorkItem, after: WorkItem, facts: Fact | tuple[Fact, ...], at: int, actor: str
) -> WorkItem:
    """Write the item as it is now, and the events that say why."""
    covered = cover((facts,) if isinstance(facts, Fact) else facts, work_events.digest_item(after))
    end = Chain(before.event_seq, before.chain_head)
    chain = append(statements, stream_of(before.id), end, covered, at, clean(actor))
    after = after._replace(updated_at=at, **chain._asdict())
    held = int(after.status is WorkStatus.IN_FLIGHT)
    values = {**item_values(after), "held": held, "after": before.event_seq}
    if statements.run("change_item", values) == 0:
        raise Again  # the row was changed since we looked at it
    return after
