"""The dashboard: everything that a person wants to see at a glance, as data and as Markdown. Pure.

Whatever an agent or a caller wrote stands in spans of code, so that it cannot become a link, HTML or a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jackline.domain.states import RunState, WaitReason, WorkStatus
from jackline.domain.work import answer_command
from jackline.formatting import (
    format_code,
    format_command,
    format_cost,
    format_count,
    format_duration,
    format_table,
    format_utc,
    pluralize,
    quote_code,
)
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from jackline.domain.reporting import EventLine, ItemLine, Learning, RunLine, Spending

SHOWN = 10  # of each kind of thing
KINDS = 20  # of work items, of each status
COUNTED = 100  # further than this nobody counts
FOR_PEOPLE = (WaitReason.IN_DOUBT, WaitReason.APPROVAL, WaitReason.HUMAN)
PARKED = tuple(reason for reason in WaitReason if reason not in FOR_PEOPLE)
LIVE = (WorkStatus.PENDING, WorkStatus.IN_FLIGHT, WorkStatus.WAITING_HUMAN)


@stored_as("call_id tool target said verdicts")
class Question(NamedTuple):
    """A call that waits for a person's word, with the words that fit."""

    call_id: str
    tool: str
    target: str
    said: str
    verdicts: tuple[str, ...]


@stored_as("run questions older")
class Waiting(NamedTuple):
    """A run that waits for a person."""

    run: RunLine
    questions: tuple[Question, ...]
    older: bool = False  # whether it waits for calls from before those that were looked at


@stored_as("kind status items")
class KindCount(NamedTuple):
    """How many items of a kind have a status; no further than COUNTED."""

    kind: str
    status: str
    items: int


@stored_as(
    "at words program note waiting items_waiting running failed imported queued queued_count parked kinds spending "
    "today in_flight dead events learnings"
)
class Dashboard(NamedTuple):
    """All of it, as it stood at one moment. A list may hold one more than is shown, which says that there are more."""

    at: int
    words: tuple[str, ...] = ()  # what every command to type needs at its end
    program: tuple[str, ...] = ("jackline",)  # and at its beginning
    note: str = ""  # and otherwise
    waiting: Sequence[Waiting] = ()
    items_waiting: Sequence[ItemLine] = ()
    running: Sequence[RunLine] = ()
    failed: Sequence[RunLine] = ()
    imported: Sequence[str] = ()  # ids of those that cannot be carried on
    queued: Sequence[RunLine] = ()
    queued_count: int = 0
    parked: Sequence[RunLine] = ()
    kinds: Sequence[KindCount] = ()
    spending: Sequence[Spending] = ()  # of the last seven days
    today: str = ""
    in_flight: Sequence[ItemLine] = ()
    dead: Sequence[ItemLine] = ()
    events: Sequence[EventLine] = ()
    learnings: Sequence[Learning] = ()


def to_markdown(board: Dashboard) -> str:
    """The text of dashboard.md."""
    parts = (
        _waiting(board),
        _running(board),
        _failed(board),
        _queue(board),
        _schedules(),
        _spend(board),
        _work(board),
        _events(board),
        _learnings(board),
    )
    head = [
        "# Dashboard",
        "",
        f"As of {format_utc(board.at)} UTC, like all times here. Written again at every change.",
        "",
    ]
    if board.note:
        head += [board.note, ""]
    return "\n".join((*head, *(line for part in parts for line in part)))


def _waiting(board: Dashboard) -> Iterator[str]:
    yield from ("## Waiting for you", "")
    for one in board.waiting[:SHOWN]:
        yield from _waiting_run(board, one)
    for item in board.items_waiting[:SHOWN]:
        yield f"- item {format_code(item.id)} ({format_code(item.kind)}) asks: {format_code(item.question, 400)}"
        yield f"  - {_command(board, *answer_command(item.id))}"
    if not board.waiting and not board.items_waiting:
        yield "Nothing."
    yield from _more(board, board.waiting, "list", "--state", "waiting", "--all-repos")
    yield from _more(board, board.items_waiting, "work", "list", "--status", "waiting_human")
    yield ""


def _waiting_run(board: Dashboard, one: Waiting) -> Iterator[str]:
    run = one.run
    yield f"- {_named(run)} waits: **{run.reason}**: {format_code(run.detail, 300)}"
    for question in one.questions[:SHOWN]:
        touched = f" → {format_code(question.target)}" if question.target else ""
        yield f"  - call {format_code(question.call_id)} {format_code(question.tool)}{touched} {question.said}"
        for verdict in question.verdicts:
            yield f"    - {_command(board, 'answer', run.id, question.call_id, verdict)}"
    if len(one.questions) > SHOWN or one.older:
        yield f"  - {'for older calls' if one.older else 'and more'}: {_command(board, 'show', run.id)}"
    yield f"  - {'then' if one.questions else 'go on:'} {_command(board, 'resume', run.id)}"


def _running(board: Dashboard) -> Iterator[str]:
    yield from ("## Running", "")
    rows = [
        [
            format_code(run.id),
            run.phase or "-",
            format_code(run.agent),
            format_code(run.task),
            format_utc(run.started_at),
            format_duration(board.at - (run.started_at or board.at)),
            format_cost(run.usd_micros),
            format_code(run.prompt, 60),
        ]
        for run in board.running[:SHOWN]
    ]
    yield from _table("run|phase|agent|task|since|elapsed|cost|prompt", rows)
    yield from _more(board, board.running, "list", "--state", "running", "--all-repos")


def _failed(board: Dashboard) -> Iterator[str]:
    yield from ("## Failed since yesterday", "")
    rows = [
        [
            format_code(run.id),
            format_utc(run.finished_at),
            format_code(run.agent),
            format_code(run.task),
            run.failure or "-",
            format_code(run.detail, 80),
            "imported" if run.id in board.imported else _command(board, "resume", run.id),
        ]
        for run in board.failed[:SHOWN]
    ]
    yield from _table("run|when|agent|task|failure|detail|try again", rows)
    yield from _more(board, board.failed, "list", "--state", "failed", "--all-repos")


def _queue(board: Dashboard) -> Iterator[str]:
    count = f" ({_counted(board.queued_count)} queued)" if board.queued_count else ""
    yield from (f"## Queue{count}", "")
    rows = [_queued(board, run) for run in (*board.queued[:SHOWN], *board.parked[:SHOWN])]
    yield from _table("run|state|agent|task|since|not before|go on", rows)
    yield from _more(board, board.queued, "list", "--state", "queued", "--all-repos")
    yield from _more(board, board.parked, "list", "--state", "waiting", "--all-repos")
    yield from _kinds(board)


def _kinds(board: Dashboard) -> Iterator[str]:
    shown = [one for status in LIVE for one in [each for each in board.kinds if each.status == status][:KINDS]]
    if shown:
        rows = [[format_code(one.kind), one.status, _counted(one.items)] for one in shown]
        yield from format_table("kind of work item|status|how many", rows)
    if len(shown) < len(board.kinds):
        yield from (f"More kinds: {_command(board, 'work', 'list')}", "")


def _queued(board: Dashboard, run: RunLine) -> list[str]:
    waits = run.state == RunState.WAITING
    return [
        format_code(run.id),
        f"waiting: {run.reason}" if waits else run.state,
        format_code(run.agent),
        format_code(run.task),
        format_utc(run.created_at),
        format_utc(run.wake_at),
        _command(board, "resume", run.id),
    ]


def _schedules() -> Iterator[str]:
    yield from ("## Schedules", "", "None: this version of jackline starts nothing by a schedule.", "")


def _spend(board: Dashboard) -> Iterator[str]:
    yield from ("## Spend", "")
    agents = sorted({one.agent for one in board.spending})
    rows = [
        [format_code(agent), *_spent([one for one in board.spending if one.agent == agent], board)] for agent in agents
    ]
    total = [["all", *_spent(board.spending, board)]] if len(agents) > 1 else []
    yield from _table("agent|today|last 7 days|tokens today|tokens in 7 days", rows + total)


def _spent(spending: Sequence[Spending], board: Dashboard) -> list[str]:
    today = [one for one in spending if one.day == board.today]
    return [
        format_cost(sum(one.usd_micros for one in today)),
        format_cost(sum(one.usd_micros for one in spending)),
        format_count(sum(one.tokens for one in today)),
        format_count(sum(one.tokens for one in spending)),
    ]


def _work(board: Dashboard) -> Iterator[str]:
    yield from ("## Work items", "")
    rows = [
        [
            format_code(item.id),
            format_code(item.kind),
            f"in flight, attempt {item.attempts} of {item.max_attempts}",
            format_code(item.owner or ""),
            format_utc(item.updated_at),
            format_code(item.notes, 80),
        ]
        for item in board.in_flight[:SHOWN]
    ]
    dead = [
        [
            format_code(item.id),
            format_code(item.kind),
            f"**dead** after {pluralize(item.attempts, 'attempt')}",
            format_code(item.owner or ""),
            format_utc(item.finished_at),
            format_code(item.notes, 80),
        ]
        for item in board.dead[:SHOWN]
    ]
    yield from _table("item|kind|status|owner|since|notes", rows + dead)
    yield from _more(board, board.in_flight, "work", "list", "--status", "in_flight")
    yield from _more(board, board.dead, "work", "list", "--status", "failed")


def _events(board: Dashboard) -> Iterator[str]:
    yield from ("## Newest events", "")
    rows = [
        [
            format_utc(one.at),
            format_code(one.stream, 80),
            format_code(one.kind),
            format_code(one.actor),
            format_code(one.data, 100),
        ]
        for one in board.events
    ]
    yield from _table("when|stream|event|by|data", rows)


def _learnings(board: Dashboard) -> Iterator[str]:
    yield from ("## Newest learnings", "")
    rows = [
        [
            format_utc(one.at),
            format_code(one.case_id),
            one.id,
            format_code(one.kind),
            format_code(one.summary),
            _came_to(one),
        ]
        for one in board.learnings
    ]
    yield from _table("when|case|learning|kind|summary|came to", rows)


def _came_to(one: Learning) -> str:
    if not one.resolved:
        return "**unresolved**"
    return f"{format_code(one.action)} {format_code(one.path or one.reason, 80)}"


def _table(titles: str, rows: list[list[str]]) -> list[str]:
    return format_table(titles, rows) if rows else ["None.", ""]


def _named(run: RunLine) -> str:
    return f"run {format_code(run.id)} (#{run.number}, {format_code(run.agent)}, {format_code(run.task)})"


def _counted(count: int) -> str:
    return f"{COUNTED} or more" if count >= COUNTED else str(count)


def _command(board: Dashboard, *words: str) -> str:
    text = format_command(*board.program, *words, *board.words)
    return quote_code(text) if text.isprintable() else format_code(text)


def _more(board: Dashboard, found: Sequence[object], *words: str) -> list[str]:
    return [f"More: {_command(board, *words)}", ""] if len(found) > SHOWN else []
