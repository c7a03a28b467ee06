"""The queue of work items, for the command line, the MCP server and programs. It prints nothing.

The actor is the argument, else JACKLINE_ACTOR, else the user. Reading creates no home.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.json_texts import LONGEST, value_of
from jackline.app.texts import named
from jackline.domain.events import canonical
from jackline.domain.states import WorkStatus
from jackline.domain.work import LEASE_MS, MOST_ATTEMPTS, Hold, ItemQuery, NewItem
from jackline.errors import ItemRefused, NoItem, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.domain.work import WorkItem
    from jackline.store.contract import Store

RESOLUTIONS = {"done": "succeed", "failed": "fail", "cancelled": "cancel"}
_FOR_A_PERSON = "inside a run, a work item that waits for a person cannot be {done}: a person must do it outside"
_EXAMPLE = '{"to": "bob"}'


def enqueue(  # noqa: PLR0913 - what an item has
    home: Home,
    item_id: str | None,
    kind: str,
    payload: str = "{}",
    *,
    priority: int = 0,
    max_attempts: int = MOST_ATTEMPTS,
    notes: str = "",
    question: str | None = None,
    actor: str = "",
    folder: str | None = None,
) -> tuple[WorkItem, bool]:
    """Enqueue an item; returns whether it is new. Enqueueing the same id, kind and payload again changes nothing.

    Without an id it gets a new one. With a question it waits for a person from the start. `payload` is JSON; it must
    fit the schema of its kind, if the home or the project around `folder` has one.
    """
    value, name = value_of(payload, "the payload", _EXAMPLE), _choose_actor(actor)
    item_id = _build_id() if item_id is None else item_id
    asked = "" if question is None else _check_question(question)
    new = NewItem(item_id, kind, canonical(value), priority, max_attempts, _check_length(notes), asked)
    _refuse_invalid(home, new, value, folder)
    made = home.store(create=True).enqueue(new, clock.wall_ms(), name)
    _notify_change(home)
    return made


def next_item(home: Home, kinds: Sequence[str] = (), owner: str = "", lease_ms: int = LEASE_MS) -> WorkItem | None:
    """Claim the next item of one of these kinds (none: any); None if there is nothing to claim."""
    if "" in kinds:
        raise UsageError("a kind is empty: no item has an empty kind")
    if home.is_new:
        return None
    item = home.store(create=True).claim_next(kinds, _choose_actor(owner), lease_ms, clock.wall_ms())
    _notify_change(home)  # also without an item: items without attempts left may have failed
    return item


def claim(home: Home, item_id: str, owner: str = "", lease_ms: int = LEASE_MS) -> WorkItem:
    """Claim one item."""
    try:
        return _store(home, item_id).claim_item(item_id, _choose_actor(owner), lease_ms, clock.wall_ms())
    finally:
        _notify_change(home)  # also when it is refused: the item may have failed


def renew(home: Home, item_id: str, owner: str = "", token: int | None = None, lease_ms: int = LEASE_MS) -> WorkItem:
    """Extend the lease of an item."""
    return _store(home, item_id).renew_item(Hold(item_id, _choose_actor(owner), token), lease_ms, clock.wall_ms())


def resolve(
    home: Home,
    item_id: str,
    status: str = "done",
    owner: str = "",
    token: int | None = None,
    notes: str | None = None,
) -> WorkItem:
    """End an item as done, failed or cancelled. Only the holder ends an item in flight, only a person a waiting one."""
    if status not in RESOLUTIONS:
        raise UsageError(f"a work item cannot end as '{named(status)}': use {', '.join(RESOLUTIONS)}")
    if _is_inside_run() and get(home, item_id).status is WorkStatus.WAITING_HUMAN:
        raise ItemRefused(_FOR_A_PERSON.format(done="ended"))
    hold = Hold(item_id, _choose_actor(owner), token)
    item = _store(home, item_id).resolve_item(hold, RESOLUTIONS[status], clock.wall_ms(), _check_notes(notes))
    _notify_change(home)
    return item


def release(home: Home, item_id: str, owner: str = "", token: int | None = None, notes: str | None = None) -> WorkItem:
    """Return an item to the queue; after its last attempt it fails."""
    hold = Hold(item_id, _choose_actor(owner), token)
    item = _store(home, item_id).release_item(hold, clock.wall_ms(), _check_notes(notes))
    _notify_change(home)
    return item


def annotate(home: Home, item_id: str, notes: str, actor: str = "") -> WorkItem:
    """Replace the notes of an item."""
    item = _store(home, item_id).annotate_item(item_id, _check_length(notes), clock.wall_ms(), _choose_actor(actor))
    _notify_change(home)
    return item


def wait_human(home: Home, item_id: str, question: str, owner: str = "", token: int | None = None) -> WorkItem:
    """Let an item wait for a person's answer."""
    asked, hold = _check_question(question), Hold(item_id, _choose_actor(owner), token)
    item = _store(home, item_id).park_item(hold, asked, clock.wall_ms())
    _notify_change(home)
    return item


def answer(home: Home, item_id: str, text: str, actor: str = "") -> WorkItem:
    """Answer an item and return it to the queue. Refused inside a run: an agent must not answer for a person."""
    if _is_inside_run():
        raise ItemRefused(_FOR_A_PERSON.format(done="answered"))
    if not text.strip():
        raise UsageError("the answer is empty")
    item = _store(home, item_id).answer_item(item_id, _check_length(text), clock.wall_ms(), _choose_actor(actor))
    _notify_change(home)
    return item


def get(home: Home, item_id: str) -> WorkItem:
    """One item by its whole id."""
    item = None if home.is_new else home.store().item(item_id)
    if item is None:
        raise NoItem(named(item_id))
    return item


def list_items(home: Home, query: ItemQuery) -> list[WorkItem]:
    """Items, newest first."""
    return [] if home.is_new else home.store().items(query)


def pending(home: Home, kinds: Sequence[str] = (), limit: int = 50) -> list[WorkItem]:
    """Pending items, newest first."""
    return list_items(home, ItemQuery((str(WorkStatus.PENDING),), tuple(kinds), limit=limit))


def replay(
    home: Home, older_than_ms: int | None = None, limit: int = 1000, *, requeue: bool = False, actor: str = ""
) -> list[WorkItem]:
    """Unfinished items, oldest first: pending items, and items in flight that were abandoned.

    Abandoned: the lease has expired, or the item was not updated for so long. With `requeue`, abandoned items return
    to the queue as if their holder had released them; they come first, so that the limit cuts pending items only.
    """
    if home.is_new:
        return []
    now = clock.wall_ms()
    older_than = 0 if older_than_ms is None else now - older_than_ms
    store = home.store(create=requeue)
    if not requeue:
        return store.unfinished_items(older_than, limit)
    abandoned = store.unfinished_items(older_than, limit, given_up_only=True)
    moved = [store.requeue_item(item.id, older_than, now, _choose_actor(actor)) for item in abandoned]
    back = {item.id: item for item in moved if item is not None}  # an item whose holder came back stays with it
    _notify_change(home)
    pending = [item for item in store.unfinished_items(older_than, limit) if item.id not in back]
    found = [*back.values(), *pending[: limit - len(back)]]
    return sorted(found, key=lambda item: (item.created_at, item.id))


def notes_of(text: str) -> str:
    """Notes that must be JSON, in canonical form."""
    return canonical(value_of(text, "--notes-json", _EXAMPLE))


def _refuse_invalid(home: Home, new: NewItem, value: object, folder: str | None) -> None:
    """UsageError if the payload does not fit the schema; an existing item is not checked again."""
    from jackline.app import work_schemas

    path = work_schemas.find_schema(home.path, os.getcwd() if folder is None else folder, new.kind)
    if path is not None and (home.is_new or home.store(create=True).item(new.id) is None):
        work_schemas.refuse_invalid(path, value)


def _store(home: Home, item_id: str) -> Store:
    if home.is_new:
        raise NoItem(named(item_id))
    return home.store(create=True)


def _is_inside_run() -> bool:
    """Whether this process belongs to a run, whose agents must not act for a person."""
    from jackline.app.inside_run import is_inside_run

    return is_inside_run()


def _choose_actor(given: str) -> str:
    from jackline.app import who

    name = given or who.actor(os.environ)
    if wrong := who.find_actor_problem(name):
        raise UsageError(wrong)
    return name


def _build_id() -> str:
    from jackline.domain import ids

    return ids.make(clock.wall_ms(), os.urandom(ids.RANDOM_BYTES))


def _check_length(text: str) -> str:
    if len(text) > LONGEST:
        raise UsageError(f"a text of a work item has at most {LONGEST:,} characters: write a file and name the file")
    return text


def _check_question(question: str) -> str:
    if not question.strip():
        raise UsageError("the question is empty")
    return _check_length(question)


def _check_notes(notes: str | None) -> str | None:
    return None if notes is None else _check_length(notes)


def _notify_change(home: Home) -> None:
    if not home.is_new:
        home.notify_change()
