"""Work items for programs: what the command line and the MCP server do with the queue. It prints nothing.

Whoever acts is the caller's word, else JACKLINE_ACTOR, else the user. Looking makes no home.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.json_texts import LONGEST, value_of
from jackline.app.texts import named
from jackline.domain.events import canonical
from jackline.domain.states import WorkStatus
from jackline.domain.work import LEASE_MS, MOST_ATTEMPTS, Hold
from jackline.errors import ItemRefused, NoItem, UsageError
from jackline.store.state_contract import ItemQuery, NewItem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.domain.work import WorkItem
    from jackline.store.contract import Store

RESOLUTIONS = {"done": "succeed", "failed": "fail", "cancelled": "cancel"}
_FOR_A_PERSON = "this is asked from inside a run: a work item that waits is for a person to {what}, elsewhere"
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
    """Put an item into the queue, and whether it is new: the same id, kind and payload are the same item.

    Without an id it gets a fresh one. With a question it waits for a person from the beginning. `payload` is JSON; it
    has to fit the schema of its kind that the home, or the project around `folder`, may have.
    """
    value, who = value_of(payload, "the payload", _EXAMPLE), _who(actor)
    item_id = _fresh() if item_id is None else item_id
    asked = "" if question is None else _asked(question)
    new = NewItem(item_id, kind, canonical(value), priority, max_attempts, _short(notes), asked)
    _refuse_unfitting(home, new, value, folder)
    made = home.store(create=True).enqueue(new, clock.wall_ms(), who)
    _changed(home)
    return made


def next_item(home: Home, kinds: Sequence[str] = (), owner: str = "", lease_ms: int = LEASE_MS) -> WorkItem | None:
    """Claim the next item of one of these kinds (none: any); None if there is nothing to claim."""
    if "" in kinds:
        raise UsageError("which kind? an empty one has no items")
    if home.is_new:
        return None
    item = home.store(create=True).claim_next(kinds, _who(owner), lease_ms, clock.wall_ms())
    _changed(home)  # also without an item: others may have been buried on the way
    return item


def claim(home: Home, item_id: str, owner: str = "", lease_ms: int = LEASE_MS) -> WorkItem:
    """Claim this very item."""
    try:
        return _store(home, item_id).claim_item(item_id, _who(owner), lease_ms, clock.wall_ms())
    finally:
        _changed(home)  # also when it is refused: it may have been buried


def renew(home: Home, item_id: str, owner: str = "", token: int | None = None, lease_ms: int = LEASE_MS) -> WorkItem:
    """Keep what is held for longer."""
    return _store(home, item_id).renew_item(Hold(item_id, _who(owner), token), lease_ms, clock.wall_ms())


def resolve(
    home: Home,
    item_id: str,
    status: str = "done",
    owner: str = "",
    token: int | None = None,
    notes: str | None = None,
) -> WorkItem:
    """End an item: done, failed or cancelled. One in flight only by who holds it, one that waits only by a person."""
    if status not in RESOLUTIONS:
        raise UsageError(f"a work item cannot end as '{named(status)}': say {', '.join(RESOLUTIONS)}")
    if _is_inside() and get(home, item_id).status is WorkStatus.WAITING_HUMAN:
        raise ItemRefused(_FOR_A_PERSON.format(what="end"))
    hold = Hold(item_id, _who(owner), token)
    item = _store(home, item_id).resolve_item(hold, RESOLUTIONS[status], clock.wall_ms(), _noted(notes))
    _changed(home)
    return item


def release(home: Home, item_id: str, owner: str = "", token: int | None = None, notes: str | None = None) -> WorkItem:
    """Give an item back to the queue; after its last attempt it has failed."""
    hold = Hold(item_id, _who(owner), token)
    item = _store(home, item_id).release_item(hold, clock.wall_ms(), _noted(notes))
    _changed(home)
    return item


def annotate(home: Home, item_id: str, notes: str, actor: str = "") -> WorkItem:
    """Put these notes in place of the old ones."""
    item = _store(home, item_id).annotate_item(item_id, _short(notes), clock.wall_ms(), _who(actor))
    _changed(home)
    return item


def wait_human(home: Home, item_id: str, question: str, owner: str = "", token: int | None = None) -> WorkItem:
    """Let an item wait for a person's answer."""
    asked, hold = _asked(question), Hold(item_id, _who(owner), token)
    item = _store(home, item_id).park_item(hold, asked, clock.wall_ms())
    _changed(home)
    return item


def answer(home: Home, item_id: str, text: str, actor: str = "") -> WorkItem:
    """A person's answer: the item is in the queue again. Refused inside a run, whose agents are no persons."""
    if _is_inside():
        raise ItemRefused(_FOR_A_PERSON.format(what="answer"))
    if not text.strip():
        raise UsageError("the answer is empty: say something")
    item = _store(home, item_id).answer_item(item_id, _short(text), clock.wall_ms(), _who(actor))
    _changed(home)
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
    """What nobody has taken yet, newest first."""
    return list_items(home, ItemQuery((str(WorkStatus.PENDING),), tuple(kinds), limit=limit))


def replay(
    home: Home, older_than_ms: int | None = None, limit: int = 1000, *, requeue: bool = False, actor: str = ""
) -> list[WorkItem]:
    """What was left undone, oldest first: what is pending, and what is in flight but given up.

    Given up: its lease ran out, or it was not touched for so long. With `requeue` such an item is put back into the
    queue, as if its holder had released it; these come first then, so that the limit leaves out what is only pending.
    """
    if home.is_new:
        return []
    now = clock.wall_ms()
    older_than = 0 if older_than_ms is None else now - older_than_ms
    store = home.store(create=requeue)
    if not requeue:
        return store.unfinished_items(older_than, limit)
    given_up = store.unfinished_items(older_than, limit, given_up_only=True)
    moved = [store.requeue_item(item.id, older_than, now, _who(actor)) for item in given_up]
    back = {item.id: item for item in moved if item is not None}  # one whose holder came back is left to it
    _changed(home)
    pending = [item for item in store.unfinished_items(older_than, limit) if item.id not in back]
    found = [*back.values(), *pending[: limit - len(back)]]
    return sorted(found, key=lambda item: (item.created_at, item.id))


def notes_of(text: str) -> str:
    """Notes that have to be JSON, with one spelling."""
    return canonical(value_of(text, "what --notes-json says", _EXAMPLE))


def _refuse_unfitting(home: Home, new: NewItem, value: object, folder: str | None) -> None:
    """UsageError if the payload does not fit its kind; an item that is there already is not judged again."""
    from jackline.app import work_schemas

    path = work_schemas.find_schema(home.path, os.getcwd() if folder is None else folder, new.kind)
    if path is not None and (home.is_new or home.store(create=True).item(new.id) is None):
        work_schemas.refuse_invalid(path, value)


def _store(home: Home, item_id: str) -> Store:
    if home.is_new:
        raise NoItem(named(item_id))
    return home.store(create=True)


def _is_inside() -> bool:
    """Whether this is done below a run, whose agents are no persons."""
    from jackline.app.inside_run import is_inside_run

    return is_inside_run()


def _who(given: str) -> str:
    from jackline.app import who

    name = given or who.actor(os.environ)
    if wrong := who.find_actor_problem(name):
        raise UsageError(wrong)
    return name


def _fresh() -> str:
    from jackline.domain import ids

    return ids.make(clock.wall_ms(), os.urandom(ids.RANDOM_BYTES))


def _short(text: str) -> str:
    if len(text) > LONGEST:
        raise UsageError(f"a text of a work item has at most {LONGEST:,} characters: write a file, and name it")
    return text


def _asked(question: str) -> str:
    if not question.strip():
        raise UsageError("what shall the person be asked? the question is empty")
    return _short(question)


def _noted(notes: str | None) -> str | None:
    return None if notes is None else _short(notes)


def _changed(home: Home) -> None:
    if not home.is_new:
        home.notify_change()
