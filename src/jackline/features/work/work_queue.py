"""The queue of work items, for the command line, the MCP server and programs. It prints nothing.

The actor is the argument, else JACKLINE_ACTOR, else the user. Reading creates no home.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.text_files import LONGEST_JSON, parse_json_text, shorten_name
from jackline.domain.events import canonical
from jackline.domain.states import WorkStatus
from jackline.errors import ItemRefused, NoItem, UsageError
from jackline.features.work.item_queries import WorkItems
from jackline.features.work.work_item import LEASE_MS, MOST_ATTEMPTS, Hold, ItemQuery, NewItem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.features.work.item_store import WorkQueue
    from jackline.features.work.work_item import WorkItem
    from jackline.store.store import Store

RESOLUTIONS = {"done": "succeed", "failed": "fail", "cancelled": "cancel"}
_FOR_A_PERSON = "an agent cannot {do} a work item that waits for a person: a person must do it, outside of any run"
_EXAMPLE = '{"to": "bob"}'


def enqueue_item(  # noqa: PLR0913 - what an item has
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
    value, name = parse_json_text(payload, "the payload", _EXAMPLE), _choose_actor(actor)
    if item_id is None:
        from jackline.domain import ids

        item_id = ids.make(clock.wall_ms(), os.urandom(ids.RANDOM_BYTES))
    asked = "" if question is None else _check_question(question)
    new = NewItem(
        id=item_id,
        kind=kind,
        payload=canonical(value),
        priority=priority,
        max_attempts=max_attempts,
        notes=_check_length(notes),
        question=asked,
    )
    from jackline.features.work import item_schemas

    path = item_schemas.find_schema(home.path, os.getcwd() if folder is None else folder, kind)
    # An existing item is not checked again.
    if path is not None and (home.is_new or WorkItems(home.store(create=True)).get(item_id) is None):
        item_schemas.refuse_invalid(path, value)
    made = _open_queue(home.store(create=True)).enqueue(new, clock.wall_ms(), name)
    _notify_change(home)
    home.wake_services()  # a trigger may wait for such an item, and a question has a notice
    return made


def claim_next(home: Home, kinds: Sequence[str] = (), owner: str = "", lease_ms: int = LEASE_MS) -> WorkItem | None:
    """Claim the next item of one of these kinds (none: any); None if there is nothing to claim."""
    if "" in kinds:
        raise UsageError("a kind is empty: no item has an empty kind")
    if home.is_new:
        return None
    item = _open_queue(home.store(create=True)).claim_next(kinds, _choose_actor(owner), lease_ms, clock.wall_ms())
    _notify_change(home)  # also without an item: items without attempts left may have failed
    return item


def claim_item(home: Home, item_id: str, owner: str = "", lease_ms: int = LEASE_MS) -> WorkItem:
    """Claim one item."""
    try:
        return _open_queue(_open_store(home, item_id)).claim(item_id, _choose_actor(owner), lease_ms, clock.wall_ms())
    finally:
        _notify_change(home)  # also when it is refused: the item may have failed


def renew_item(
    home: Home, item_id: str, owner: str = "", token: int | None = None, lease_ms: int = LEASE_MS
) -> WorkItem:
    """Extend the lease of an item."""
    return _open_queue(_open_store(home, item_id)).renew(
        Hold(item_id=item_id, owner=_choose_actor(owner), token=token), lease_ms, clock.wall_ms()
    )


def resolve_item(
    home: Home,
    item_id: str,
    status: str = "done",
    owner: str = "",
    token: int | None = None,
    notes: str | None = None,
    *,
    is_agent: bool = False,
) -> WorkItem:
    """End an item as done, failed or cancelled. Only the holder ends an item in flight, only a person a waiting one."""
    if status not in RESOLUTIONS:
        raise UsageError(f"a work item cannot end as '{shorten_name(status)}': use {', '.join(RESOLUTIONS)}")
    if (is_agent or _is_inside_run(home)) and get_item(home, item_id).status is WorkStatus.WAITING_HUMAN:
        raise ItemRefused(_FOR_A_PERSON.format(do="end"))
    hold = Hold(item_id=item_id, owner=_choose_actor(owner), token=token)
    item = _open_queue(_open_store(home, item_id)).resolve(
        hold, RESOLUTIONS[status], clock.wall_ms(), _check_notes(notes)
    )
    _notify_change(home)
    return item


def release_item(
    home: Home, item_id: str, owner: str = "", token: int | None = None, notes: str | None = None
) -> WorkItem:
    """Return an item to the queue; after its last attempt it fails."""
    hold = Hold(item_id=item_id, owner=_choose_actor(owner), token=token)
    item = _open_queue(_open_store(home, item_id)).release(hold, clock.wall_ms(), _check_notes(notes))
    _notify_change(home)
    return item


def annotate_item(home: Home, item_id: str, notes: str, actor: str = "") -> WorkItem:
    """Replace the notes of an item."""
    item = _open_queue(_open_store(home, item_id)).annotate(
        item_id, _check_length(notes), clock.wall_ms(), _choose_actor(actor)
    )
    _notify_change(home)
    return item


def wait_for_human(home: Home, item_id: str, question: str, owner: str = "", token: int | None = None) -> WorkItem:
    """Let an item wait for a person's answer."""
    asked, hold = _check_question(question), Hold(item_id=item_id, owner=_choose_actor(owner), token=token)
    item = _open_queue(_open_store(home, item_id)).park(hold, asked, clock.wall_ms())
    _notify_change(home)
    home.wake_services()
    return item


def answer_item(home: Home, item_id: str, text: str, actor: str = "") -> WorkItem:
    """Answer an item and return it to the queue. Refused inside a run: an agent must not answer for a person."""
    if _is_inside_run(home):
        raise ItemRefused(_FOR_A_PERSON.format(do="answer"))
    if not text.strip():
        raise UsageError("the answer is empty")
    item = _open_queue(_open_store(home, item_id)).answer(
        item_id, _check_length(text), clock.wall_ms(), _choose_actor(actor)
    )
    _notify_change(home)
    home.wake_services()
    return item


def get_item(home: Home, item_id: str) -> WorkItem:
    """One item by its whole id."""
    item = None if home.is_new else WorkItems(home.store()).get(item_id)
    if item is None:
        raise NoItem(shorten_name(item_id))
    return item


def list_items(home: Home, query: ItemQuery) -> list[WorkItem]:
    """Items, newest first."""
    return [] if home.is_new else WorkItems(home.store()).list_page(query)


def list_pending(home: Home, kinds: Sequence[str] = (), limit: int = 50) -> list[WorkItem]:
    """Pending items, newest first."""
    return list_items(home, ItemQuery(statuses=(str(WorkStatus.PENDING),), kinds=tuple(kinds), limit=limit))


def list_unfinished(
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
        return WorkItems(store).list_unfinished(older_than, limit)
    abandoned = WorkItems(store).list_unfinished(older_than, limit, given_up_only=True)
    moved = [_open_queue(store).requeue(item.id, older_than, now, _choose_actor(actor)) for item in abandoned]
    back = {item.id: item for item in moved if item is not None}  # an item whose holder came back stays with it
    _notify_change(home)
    pending = [item for item in WorkItems(store).list_unfinished(older_than, limit) if item.id not in back]
    found = [*back.values(), *pending[: limit - len(back)]]
    return sorted(found, key=lambda item: (item.created_at, item.id))


def parse_notes(text: str) -> str:
    """Notes that must be JSON, in canonical form."""
    return canonical(parse_json_text(text, "--notes-json", _EXAMPLE))


def _open_queue(store: Store) -> WorkQueue:
    """The writes of the queue; imported here, because commands that only read do without them."""
    from jackline.features.work.item_store import WorkQueue

    return WorkQueue(store)


def _open_store(home: Home, item_id: str) -> Store:
    if home.is_new:
        raise NoItem(shorten_name(item_id))
    return home.store(create=True)


def _is_inside_run(home: Home) -> bool:
    """Whether this process belongs to a run of this home, whose agents must not act for a person."""
    from jackline.app.identity import is_inside_run

    return is_inside_run(home)


def _choose_actor(given: str) -> str:
    from jackline.app import identity

    name = given or identity.read_actor(os.environ)
    if wrong := identity.find_actor_problem(name):
        raise UsageError(wrong)
    return name


def _check_length(text: str) -> str:
    if len(text) > LONGEST_JSON:
        raise UsageError(
            f"a text of a work item has at most {LONGEST_JSON:,} characters: write a file and name the file"
        )
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
