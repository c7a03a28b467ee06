"""Work items: units of work in a queue. Pure data; `domain.transitions` defines the allowed changes."""

from __future__ import annotations

from jackline.domain.states import WorkStatus
from jackline.named import NamedTuple, stored_as

LEASE_MS = 15 * 60_000
MOST_ATTEMPTS = 5
LONGEST_NAME = 200


@stored_as(
    "id kind payload status owner_agent created_at updated_at notes priority attempts max_attempts token question "
    "answer dead finished_at event_seq chain_head"
)
class WorkItem(NamedTuple):
    """A work item; its events are the stream `work:ID`."""

    id: str  # chosen by the caller: enqueueing it again changes nothing
    kind: str
    payload: str  # canonical JSON
    status: WorkStatus
    owner_agent: str | None  # the current or last holder
    created_at: int
    updated_at: int
    notes: str = ""
    priority: int = 0  # higher values are claimed first
    attempts: int = 0
    max_attempts: int = MOST_ATTEMPTS
    token: int = 0  # of the newest claim; a write with an older token is refused
    question: str = ""  # for a person
    answer: str = ""
    dead: bool = False  # it failed because no attempts were left
    finished_at: int | None = None
    event_seq: int = 0
    chain_head: str = ""


class Hold(NamedTuple):
    """A claim to hold an item; without a token only the name is compared."""

    item_id: str
    owner: str
    token: int | None = None


def is_item_name(text: str) -> bool:
    """Whether a text can be the id, kind or owner of an item."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()


def get_item_stream(item_id: str) -> str:
    """The stream of an item's events; a run's id has no colon."""
    return f"work:{item_id}"


def build_answer_command(item_id: str) -> tuple[str, ...]:
    """Build the command that answers an item; an id that looks like a flag must not become one."""
    named = f"--id={item_id}" if item_id.startswith("-") else item_id
    return ("work", "answer", named, "YOUR ANSWER")


class NewItem(NamedTuple):
    """An item to enqueue."""

    id: str
    kind: str
    payload: str = "{}"  # canonical JSON
    priority: int = 0
    max_attempts: int = MOST_ATTEMPTS
    notes: str = ""
    question: str = ""  # with a question, the item waits for a person from the beginning


class ItemQuery(NamedTuple):
    """Which items to list, newest first."""

    statuses: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    owner: str | None = None
    before: tuple[int, str] | None = None  # the (created_at, id) of the last row of the page before
    limit: int = 50
