"""Writes of the queue of work items: each change with its event. The transition table decides what may change.

The events hold notes in full, because an item keeps only the newest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import GENESIS, Fact, place
from jackline.domain.states import WORK_ENDED, WorkStatus
from jackline.domain.transitions import TransitionRefused, next_work
from jackline.errors import ItemConflict, ItemRefused, NoItem, UsageError
from jackline.features.work.item_notices import build_death_notice, build_question_notice
from jackline.features.work.item_queries import ITEM, ITEM_COLUMNS, WORDS, build_item, build_item_values
from jackline.features.work.run_questions import find_asking_run
from jackline.features.work.work_item import LONGEST_NAME, WorkItem, get_item_stream, is_item_name
from jackline.named import NamedTuple
from jackline.store import redaction
from jackline.store.driver import RetryTransaction, Statements, clean
from jackline.store.parts import ChainEnd, StorePart, append_events, write_event
from jackline.store.record_digests import cover, digest_row, digest_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.features.work.work_item import Hold, NewItem

RESOLUTIONS = ("succeed", "fail", "cancel")
_MOST = 1_000_000_000  # the greatest priority and number of attempts
_LONGEST_LEASE_MS = 100 * 365 * 86_400_000  # more might not fit the database's integers


class WorkQueue(StorePart):
    """Writes of the queue of work items."""

    def enqueue(self, new: NewItem, at: int, actor: str) -> tuple[WorkItem, bool]:
        """The item and whether it is new; Conflict if the id has another kind or payload."""
        _refuse_name("id", new.id)
        _refuse_name("kind", new.kind)
        if not -_MOST <= new.priority <= _MOST:
            raise UsageError(f"a priority lies between {-_MOST} and {_MOST}")
        if not 1 <= new.max_attempts <= _MOST:
            raise UsageError(f"a work item has between 1 and {_MOST} attempts")
        wanted = _build_item(redaction.redact_new_item(self.redactor, new), at)

        def enqueue(statements: Statements) -> tuple[WorkItem, bool]:
            item, is_new = _enqueue(statements, wanted, at, actor)
            if is_new and item.question:
                self._ask(statements, item, at)
            return item, is_new

        return self._driver.write(enqueue)

    def claim(self, item_id: str, owner: str, lease_ms: int, at: int) -> WorkItem:
        """Claim one item that is pending or whose lease ran out; NotFound, or Refused with its holder.

        An item without attempts left is buried instead, and refused.
        """
        _refuse_name("owner", owner)

        def claim(statements: Statements) -> WorkItem:
            item = _claim(statements, _lock_claimable(statements, item_id), owner, lease_ms, at)
            return self._report_death(statements, item, at)

        item = self._driver.write(claim)
        if item.status is not WorkStatus.IN_FLIGHT:
            raise ItemRefused(f"work item {item_id} has used up its {item.max_attempts} attempts: it has failed now")
        return item

    def claim_next(self, kinds: Sequence[str], owner: str, lease_ms: int, at: int) -> WorkItem | None:
        """Claim the next item of one of these kinds (none: any): expired leases first, then priority, then age.

        Concurrent processes get different items. Items without attempts left are buried on the way.
        """
        _refuse_name("owner", owner)

        def take(statements: Statements) -> WorkItem | None:
            item = _pick_next(statements, kinds)
            if item is None:
                return None
            return self._report_death(statements, _claim(statements, item, owner, lease_ms, at), at)

        while True:  # a burial is committed before the next item is picked
            item = self._driver.write(take)
            if item is None or item.status is WorkStatus.IN_FLIGHT:
                return item

    def renew(self, hold: Hold, lease_ms: int, at: int) -> WorkItem:
        """Extend the lease; Refused unless the hold is still valid."""

        def move(statements: Statements) -> WorkItem:
            item = _lock_held(statements, hold)
            if item.status is not WorkStatus.IN_FLIGHT:
                raise ItemRefused(f"work item {item.id} is {item.status}: there is no lease to renew")
            _extend_lease(statements, item, lease_ms, at)
            return item._replace(updated_at=at)

        return self._driver.write(move)

    def resolve(self, hold: Hold, change: str, at: int, notes: str | None = None) -> WorkItem:
        """`succeed`, `fail` or `cancel` an item; one in flight only by its holder."""
        if change not in RESOLUTIONS:
            raise UsageError(f"'{change}' does not end a work item; use {', '.join(RESOLUTIONS)}")
        redacted = self._redact(notes)

        def resolve(statements: Statements) -> WorkItem:
            item = _lock_held(statements, hold)
            after = _apply_change(item, change)._replace(finished_at=at)
            after = _write(
                statements, item, _set_notes(after, redacted), build_resolved(after, redacted), at, hold.owner
            )
            self._wake_asking_run(statements, item, at)
            return after

        return self._driver.write(resolve)

    def release(self, hold: Hold, at: int, notes: str | None = None) -> WorkItem:
        """Return an item to the queue; after its last attempt it is buried: failed, and dead."""
        redacted = self._redact(notes)

        def release(statements: Statements) -> WorkItem:
            item = _release(statements, _lock_held(statements, hold), at, hold.owner, redacted)
            return self._report_death(statements, item, at)

        return self._driver.write(release)

    def requeue(self, item_id: str, older_than: int, at: int, actor: str) -> WorkItem | None:
        """Return an abandoned item to the queue; None if it is not in flight and abandoned.

        An item is abandoned if its lease ran out or it was not touched since `older_than`.
        """

        def requeue(statements: Statements) -> WorkItem | None:
            item = _lock_item(statements, item_id)
            held = item.status is WorkStatus.IN_FLIGHT
            given_up = held and (item.updated_at < older_than or _is_lease_over(statements, item_id))
            if not given_up:
                return None
            return self._report_death(statements, _release(statements, item, at, actor, None), at)

        return self._driver.write(requeue)

    def annotate(self, item_id: str, notes: str, at: int, actor: str) -> WorkItem:
        """Replace the notes, in any status; the old ones stay in the events."""
        redacted = self._redact(notes)

        def annotate(statements: Statements) -> WorkItem:
            item = _lock_item(statements, item_id)
            return _write(statements, item, _set_notes(item, redacted), build_annotated(redacted or ""), at, actor)

        return self._driver.write(annotate)

    def park(self, hold: Hold, question: str, at: int) -> WorkItem:
        """Let an item wait for a person's answer; one in flight only by its holder."""
        asked = self._redact(question) or ""

        def park(statements: Statements) -> WorkItem:
            item = _lock_held(statements, hold)
            after = _apply_change(item, "wait")._replace(question=asked, answer="")
            after = _write(statements, item, after, build_waiting(asked), at, hold.owner)
            self._ask(statements, after, at)
            return after

        return self._driver.write(park)

    def answer(self, item_id: str, answer: str, at: int, actor: str) -> WorkItem:
        """Answer an item: it is pending again, with its attempts unchanged."""
        return self._driver.write(lambda statements: self.answer_within(statements, item_id, answer, at, actor))

    def answer_within(
        self, statements: Statements, item_id: str, answer: str, at: int, actor: str, via: str = ""
    ) -> WorkItem:
        """The same in a transaction of the caller; refused before anything is written. `via`: how the answer came."""
        redacted = self._redact(answer) or ""
        item = _lock_item(statements, item_id)
        after = _apply_change(item, "answer")._replace(answer=redacted)
        after = _write(statements, item, after, build_answered(redacted, via), at, actor)
        self._wake_asking_run(statements, item, at)
        return after

    def _ask(self, statements: Statements, item: WorkItem, at: int) -> None:
        """Write the notice of an item that waits for a person."""
        run_id = find_asking_run(item)
        if run_id and statements.one("get_run", {"id": clean(run_id)}) is None:  # of another home
            run_id = ""
        spec = self._store.load_spec(statements, run_id) if run_id else None
        self._store.notices.add_within(statements, build_question_notice(item, run_id, spec, at))

    def _report_death(self, statements: Statements, item: WorkItem, at: int) -> WorkItem:
        """Write the notice of an item that was buried just now."""
        if item.dead:
            self._store.notices.add_within(statements, build_death_notice(item, at))
        return item

    def _wake_asking_run(self, statements: Statements, before: WorkItem, at: int) -> None:
        """Let the run continue whose agent asked, if that was its last open question."""
        run_id = find_asking_run(before) if before.status is WorkStatus.WAITING_HUMAN else ""
        if run_id:
            self._store.approvals.wake_asking_run(statements, run_id, at)

    def _redact(self, text: str | None) -> str | None:
        return None if text is None else clean(self.redactor.redact(text))


def _refuse_name(what: str, text: str) -> None:
    if not is_item_name(text):
        shown = text[:40].encode("unicode_escape").decode()
        rule = f"1 to {LONGEST_NAME} printable characters, no space at its ends"
        raise UsageError(f"'{shown}' cannot be the {what} of a work item: {rule}")


def _build_item(new: NewItem, at: int) -> WorkItem:
    status = WorkStatus.WAITING_HUMAN if new.question else WorkStatus.PENDING
    item = WorkItem(
        id=clean(new.id),
        kind=clean(new.kind),
        payload=clean(new.payload),
        status=status,
        owner_agent=None,
        created_at=at,
        updated_at=at,
        notes=clean(new.notes),
    )
    item = item._replace(priority=new.priority, max_attempts=new.max_attempts)
    return item._replace(question=clean(new.question), chain_head=GENESIS)


def _enqueue(statements: Statements, wanted: WorkItem, at: int, actor: str) -> tuple[WorkItem, bool]:
    row = statements.one("get_item", {"id": wanted.id})
    if row is not None:
        known = build_item(row)
        if (known.kind, known.payload) != (wanted.kind, wanted.payload):
            raise ItemConflict(wanted.id)
        return known, False
    (fact,) = cover((build_created(wanted),), digest_item(wanted))
    event = place(fact, get_item_stream(wanted.id), 1, at, clean(actor), GENESIS)
    made = wanted._replace(event_seq=event.seq, chain_head=event.hash)
    if statements.run("add_item", build_item_values(made)) == 0:
        raise RetryTransaction  # another process created the same id since we looked
    write_event(statements, event)
    return made, True


def _lock_item(statements: Statements, item_id: str) -> WorkItem:
    row = statements.one("lock_item", {"id": clean(item_id)})
    if row is None:
        raise NoItem(item_id)
    return build_item(row)


def _lock_claimable(statements: Statements, item_id: str) -> WorkItem:
    """The item, locked; Refused unless it may be claimed."""
    item = _lock_item(statements, item_id)
    if item.status is WorkStatus.IN_FLIGHT and not _is_lease_over(statements, item_id):
        raise ItemRefused(f"work item {item_id} is held by {item.owner_agent}: wait for it, or take another one")
    _apply_change(item, "claim")
    return item


def _is_lease_over(statements: Statements, item_id: str) -> bool:
    row = statements.one("item_lease_over", {"id": clean(item_id), **statements.clock()})
    return row is not None and bool(row[0])


def _lock_held(statements: Statements, hold: Hold) -> WorkItem:
    """The item, locked; Refused if another worker holds it, or if the hold's claim is over."""
    item = _lock_item(statements, hold.item_id)
    if item.status is WorkStatus.IN_FLIGHT:
        if item.owner_agent != clean(hold.owner):
            raise ItemRefused(f"work item {item.id} is held by {item.owner_agent}, not by {hold.owner}")
        if hold.token not in {None, item.token}:
            raise ItemRefused(f"work item {item.id} is held with token {item.token}: token {hold.token} is over")
    elif hold.token is not None:
        raise ItemRefused(f"work item {item.id} is {item.status}: the claim with token {hold.token} is over")
    return item


def _apply_change(item: WorkItem, change: str) -> WorkItem:
    """The item in its next status; Refused unless the transition table allows it."""
    try:
        return item._replace(status=next_work(item.status, change))
    except TransitionRefused:
        if item.status in WORK_ENDED:
            hint = "it has ended, and only its notes can be changed"
        elif item.status is WorkStatus.WAITING_HUMAN:
            hint = "it needs an answer first: `jackline work answer`"
        else:
            hint = "claim it first" if change == "release" else "it is not waiting for a person"
        raise ItemRefused(f"work item {item.id} is {item.status}: {hint}") from None


def _set_notes(item: WorkItem, notes: str | None) -> WorkItem:
    return item if notes is None else item._replace(notes=notes)


def _claim(statements: Statements, item: WorkItem, owner: str, lease_ms: int, at: int) -> WorkItem:
    takeover = item.status is WorkStatus.IN_FLIGHT
    if takeover and item.attempts >= item.max_attempts:
        return _bury(statements, item, at, owner, build_buried(item, "lease"))
    after = _apply_change(item, "claim")._replace(
        owner_agent=clean(owner), attempts=item.attempts + 1, token=item.token + 1
    )
    after = _write(statements, item, after, build_claimed(after, takeover=takeover), at, owner)
    _extend_lease(statements, after, lease_ms, at)
    return after


def _release(statements: Statements, item: WorkItem, at: int, actor: str, notes: str | None) -> WorkItem:
    after = _set_notes(_apply_change(item, "release"), notes)
    released = build_released(item, notes)
    if item.attempts >= item.max_attempts:
        dead = item._replace(notes=after.notes)
        return _bury(statements, dead, at, actor, released, build_buried(item, "release"))
    return _write(statements, item, after, released, at, actor)


def _bury(statements: Statements, item: WorkItem, at: int, actor: str, *facts: Fact) -> WorkItem:
    after = _apply_change(item, "bury")._replace(dead=True, finished_at=at)
    return _write(statements, item, after, facts, at, actor)


def _extend_lease(statements: Statements, item: WorkItem, lease_ms: int, at: int) -> None:
    if not 0 <= lease_ms <= _LONGEST_LEASE_MS:
        raise UsageError("a lease lasts between 0 and 100 years")
    values = {"id": item.id, "token": item.token, "lease_ms": lease_ms, "at": at}
    statements.run("move_item_lease", {**values, **statements.clock()})


def _write(
    statements: Statements, before: WorkItem, after: WorkItem, facts: Fact | tuple[Fact, ...], at: int, actor: str
) -> WorkItem:
    """Write the item, and the events that explain the change."""
    covered = cover((facts,) if isinstance(facts, Fact) else facts, digest_item(after))
    end = ChainEnd(before.event_seq, before.chain_head)
    chain = append_events(statements, get_item_stream(before.id), end, covered, at, clean(actor))
    after = after._replace(updated_at=at, **chain._asdict())
    held = int(after.status is WorkStatus.IN_FLIGHT)
    values = {**build_item_values(after), "held": held, "after": before.event_seq}
    if statements.run("change_item", values) == 0:
        raise RetryTransaction  # the row was changed since we read it
    return after


# the next item


class _Front(NamedTuple):
    """The first item of one part of the queue; fronts sort in the order in which the parts are tried."""

    fresh: int  # 0: a lease ran out
    before: int  # the priority, turned round
    created_at: int
    id: str
    part: str
    kind: str | None


def _pick_next(statements: Statements, kinds: Sequence[str]) -> WorkItem | None:
    """The next item, locked; None only if the queue is empty, not if others hold the rows for a moment."""
    while fronts := sorted(_read_fronts(statements, kinds), key=lambda front: front[:4]):
        for front in fronts:
            row = statements.one(f"pick_{front.part}", _build_values(statements, front.kind))
            if row is not None:
                return build_item(row)
        # Others have locked all of them: wait for the first. Then it is ours, or another claim has taken it.
        statements.one("lock_item", {"id": fronts[0].id})
    return None


def _read_fronts(statements: Statements, kinds: Sequence[str]) -> Iterator[_Front]:
    for kind in dict.fromkeys(kinds) or (None,):
        pending = "pending" if kind is None else "pending_of_kind"
        for fresh, part in enumerate(("expired", pending)):
            row = statements.one(f"first_{part}", _build_values(statements, kind))
            if row is not None:
                yield _Front(fresh=fresh, before=-row[2], created_at=row[3], id=row[0], part=part, kind=kind)


def _build_values(statements: Statements, kind: str | None) -> dict[str, object]:
    return {**WORDS, **statements.clock(), "any": int(kind is None), "kind": clean(kind or "")}


# events


def digest_item(item: WorkItem) -> dict[str, str]:
    """The digest of an item's row as it is after the write."""
    return {ITEM: digest_row(build_item_values(item), ITEM_COLUMNS)}


def build_created(item: WorkItem) -> Fact:
    """A new item; of its payload, which never changes, only the digest."""
    data: dict[str, object] = {
        "kind": item.kind,
        "payload": digest_text(item.payload),
        "priority": item.priority,
        "max_attempts": item.max_attempts,
        "status": str(item.status),
    }
    optional = {"notes": item.notes, "question": item.question}
    return Fact("work.created", data | {name: text for name, text in optional.items() if text})


def build_claimed(item: WorkItem, *, takeover: bool) -> Fact:
    """A claim."""
    data = {"owner": item.owner_agent, "token": item.token, "attempt": item.attempts, "takeover": takeover}
    return Fact("work.claimed", {"kind": item.kind, **data})


def build_resolved(item: WorkItem, notes: str | None) -> Fact:
    """An item that has ended."""
    return Fact(
        "work.resolved", {"kind": item.kind, "status": str(item.status), "token": item.token, **_build_notes(notes)}
    )


def build_released(item: WorkItem, notes: str | None) -> Fact:
    """An item that was returned to the queue."""
    held = {"owner": item.owner_agent, "token": item.token, "attempt": item.attempts}
    return Fact("work.released", {**held, **_build_notes(notes)})


def build_buried(item: WorkItem, by: str) -> Fact:
    """A dead letter; `by` is what used up the last attempt."""
    return Fact("work.buried", {"kind": item.kind, "attempts": item.attempts, "owner": item.owner_agent, "by": by})


def build_annotated(notes: str) -> Fact:
    """New notes."""
    return Fact("work.annotated", {"notes": notes})


def build_waiting(question: str) -> Fact:
    """A question to a person."""
    return Fact("work.waiting", {"question": question})


def build_answered(answer: str, via: str = "") -> Fact:
    """The answer of a person; `via` is how it came, empty for a command."""
    return Fact("work.answered", {"answer": answer, **({"via": via} if via else {})})


def _build_notes(notes: str | None) -> dict[str, str]:
    return {} if notes is None else {"notes": notes}
