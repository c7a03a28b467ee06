"""The dashboard as data and as Markdown. Pure.

Text of agents and callers is in code spans, so that it cannot become a link, HTML or a table column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from jackline.domain.states import RunState, WaitReason, WorkStatus
from jackline.features.reports.unattended_page import UnattendedStatus, render_unattended
from jackline.features.work.work_item import build_answer_command
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
    from jackline.features.reports.lines import EventLine, ItemLine, Learning, RunLine, Spending

_CALL_CHARS = 300
SHOWN = 10  # of each kind of thing
KINDS = 20  # of work items, of each status
COUNTED = 100  # the highest count
FOR_PEOPLE = (WaitReason.IN_DOUBT, WaitReason.APPROVAL, WaitReason.HUMAN, WaitReason.BUDGET)
PARKED = tuple(reason for reason in WaitReason if reason not in FOR_PEOPLE)
LIVE = (WorkStatus.PENDING, WorkStatus.IN_FLIGHT, WorkStatus.WAITING_HUMAN)


@stored_as("call_id tool target said verdicts what")
class CallQuestion(NamedTuple):
    """A call that waits for a person, and the possible answers."""

    call_id: str
    tool: str
    target: str
    said: str
    verdicts: tuple[str, ...]
    what: str = ""  # the call in one line, with its target


@stored_as("run questions older resume")
class WaitingRun(NamedTuple):
    """A run that waits for a person."""

    run: RunLine
    questions: tuple[CallQuestion, ...]
    older: bool = False  # whether it waits for older calls than those that were read
    resume: tuple[str, ...] = ()  # the command that continues it, with higher limits if its budget is spent


@stored_as("run why")
class LostRun(NamedTuple):
    """A run that is stored as running, but no process works on it."""

    run: RunLine
    why: str


@stored_as("kind status items")
class KindCount(NamedTuple):
    """How many items of a kind have a status, up to COUNTED."""

    kind: str
    status: str
    items: int


@stored_as(
    "at words program note waiting items_waiting running failed imported queued queued_count parked kinds spending "
    "today in_flight dead events learnings lost unattended worktrees"
)
class Dashboard(NamedTuple):
    """The dashboard at one moment. A list may have one more element than is shown, which means that there are more."""

    at: int
    words: tuple[str, ...] = ()  # the end of every command
    program: tuple[str, ...] = ("jackline",)  # the beginning of every command
    note: str = ""  # what else the commands need
    waiting: Sequence[WaitingRun] = ()
    items_waiting: Sequence[ItemLine] = ()
    running: Sequence[RunLine] = ()
    failed: Sequence[RunLine] = ()
    imported: Sequence[str] = ()  # ids of runs that cannot be resumed
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
    lost: Sequence[LostRun] = ()
    unattended: UnattendedStatus = UnattendedStatus()
    worktrees: Mapping[str, str] = {}  # the names of the worktrees of runs, by run


def render_dashboard(board: Dashboard) -> str:
    """Render dashboard.md."""
    parts = (
        _render_waiting(board),
        _render_running(board),
        _render_failed(board),
        _render_queue(board),
        render_unattended(board.unattended),
        _render_spend(board),
        _render_work(board),
        _render_events(board),
        _render_learnings(board),
    )
    head = [
        "# Dashboard",
        "",
        f"As of {format_utc(board.at)} UTC; all times are in UTC. Updated at every change.",
        "",
    ]
    if board.note:
        head += [board.note, ""]
    return "\n".join((*head, *(line for part in parts for line in part)))


def _render_waiting(board: Dashboard) -> Iterator[str]:
    yield from ("## Waiting for you", "")
    for one in board.waiting[:SHOWN]:
        run = one.run
        yield (
            f"- run {format_code(run.id)} (#{run.number}, {format_code(run.agent)}, {format_code(run.task)}) "
            f"waits: **{run.reason}**: {format_code(run.detail, 300)}"
        )
        for question in one.questions[:SHOWN]:
            what = format_code(question.what or question.tool, _CALL_CHARS)
            yield f"  - {what}: call {format_code(question.call_id)} {question.said}"
            for verdict in question.verdicts:
                yield f"    - {_format_board_command(board, 'answer', run.id, question.call_id, verdict)}"
        if len(one.questions) > SHOWN or one.older:
            text = "for older calls" if one.older else "and more"
            yield f"  - {text}: {_format_board_command(board, 'show', run.id)}"
        resume = _format_board_command(board, *(one.resume or ("resume", run.id)))
        yield f"  - {'then' if one.questions else 'resume:'} {resume}"
    for run, why in board.lost[:SHOWN]:
        what = f"run {format_code(run.id)} (#{run.number}, {format_code(run.agent)}, {format_code(run.task)})"
        yield f"- {what} is **lost**: {format_code(why, 300)}"
        yield f"  - resume: {_format_board_command(board, 'resume', run.id)}"
    for item in board.items_waiting[:SHOWN]:
        yield f"- item {format_code(item.id)} ({format_code(item.kind)}) asks: {format_code(item.question, 400)}"
        yield f"  - {_format_board_command(board, *build_answer_command(item.id))}"
    if not (board.waiting or board.items_waiting or board.lost):
        yield "Nothing."
    yield from _render_more(board, board.waiting, "list", "--state", "waiting", "--all-repos")
    yield from _render_more(board, board.lost, "list", "--state", "lost", "--all-repos")
    yield from _render_more(board, board.items_waiting, "work", "list", "--status", "waiting_human")
    yield ""


def _render_running(board: Dashboard) -> Iterator[str]:
    yield from ("## Running", "")
    rows = [
        [
            format_code(run.id),
            run.phase or "-",
            format_code(run.agent),
            format_code(run.task)
            + (f" in {format_code(board.worktrees[run.id])}" if run.id in board.worktrees else ""),
            format_utc(run.started_at),
            format_duration(board.at - (run.started_at or board.at)),
            format_cost(run.usd_micros, run.usd_estimated),
            format_code(run.prompt, 60),
        ]
        for run in board.running[:SHOWN]
    ]
    yield from _render_table("run|phase|agent|task|since|elapsed|cost|prompt", rows)
    yield from _render_more(board, board.running, "list", "--state", "running", "--all-repos")


def _render_failed(board: Dashboard) -> Iterator[str]:
    yield from ("## Failed since yesterday", "")
    rows = [
        [
            format_code(run.id),
            format_utc(run.finished_at),
            format_code(run.agent),
            format_code(run.task),
            run.failure or "-",
            format_code(run.detail, 80),
            "imported" if run.id in board.imported else _format_board_command(board, "resume", run.id),
        ]
        for run in board.failed[:SHOWN]
    ]
    yield from _render_table("run|when|agent|task|failure|detail|try again", rows)
    yield from _render_more(board, board.failed, "list", "--state", "failed", "--all-repos")


def _render_queue(board: Dashboard) -> Iterator[str]:
    count = f" ({_format_limited(board.queued_count)} queued)" if board.queued_count else ""
    yield from (f"## Queue{count}", "")
    rows = [
        [
            format_code(run.id),
            f"waiting: {run.reason}" if run.state == RunState.WAITING else run.state,
            format_code(run.agent),
            format_code(run.task),
            format_utc(run.created_at),
            format_utc(run.wake_at) if run.wake_at else board.unattended.waits.get(run.id, "-"),
            _format_board_command(board, "resume", run.id),
        ]
        for run in (*board.queued[:SHOWN], *board.parked[:SHOWN])
    ]
    yield from _render_table("run|state|agent|task|since|not before|resume", rows)
    yield from _render_more(board, board.queued, "list", "--queue")
    yield from _render_more(board, board.parked, "list", "--state", "waiting", "--all-repos")
    shown = [one for status in LIVE for one in [each for each in board.kinds if each.status == status][:KINDS]]
    if shown:
        rows = [[format_code(one.kind), one.status, _format_limited(one.items)] for one in shown]
        yield from format_table("kind of work item|status|how many", rows)
    if len(shown) < len(board.kinds):
        yield from (f"More kinds: {_format_board_command(board, 'work', 'list')}", "")


def _render_spend(board: Dashboard) -> Iterator[str]:
    yield from ("## Spend", "")
    agents = sorted({one.agent for one in board.spending})
    rows = [
        [format_code(agent), *_sum_spending([one for one in board.spending if one.agent == agent], board)]
        for agent in agents
    ]
    total = [["all", *_sum_spending(board.spending, board)]] if len(agents) > 1 else []
    yield from _render_table("agent|today|last 7 days|tokens today|tokens in 7 days", rows + total)


def _sum_spending(spending: Sequence[Spending], board: Dashboard) -> list[str]:
    today = [one for one in spending if one.day == board.today]
    return [
        format_cost(sum(one.usd_micros for one in today)),
        format_cost(sum(one.usd_micros for one in spending)),
        format_count(sum(one.tokens for one in today)),
        format_count(sum(one.tokens for one in spending)),
    ]


def _render_work(board: Dashboard) -> Iterator[str]:
    yield from ("## Work items", "")
    rows = [
        _build_item_row(item, f"in flight, attempt {item.attempts} of {item.max_attempts}", item.updated_at)
        for item in board.in_flight[:SHOWN]
    ]
    dead = [
        _build_item_row(item, f"**dead** after {pluralize(item.attempts, 'attempt')}", item.finished_at)
        for item in board.dead[:SHOWN]
    ]
    yield from _render_table("item|kind|status|owner|since|notes", rows + dead)
    yield from _render_more(board, board.in_flight, "work", "list", "--status", "in_flight")
    yield from _render_more(board, board.dead, "work", "list", "--status", "failed")


def _build_item_row(item: ItemLine, status: str, since: int | None) -> list[str]:
    return [
        format_code(item.id),
        format_code(item.kind),
        status,
        format_code(item.owner or ""),
        format_utc(since),
        format_code(item.notes, 80),
    ]


def _render_events(board: Dashboard) -> Iterator[str]:
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
    yield from _render_table("when|stream|event|by|data", rows)


def _render_learnings(board: Dashboard) -> Iterator[str]:
    yield from ("## Newest learnings", "")
    rows = [
        [
            format_utc(one.at),
            format_code(one.case_id),
            one.id,
            format_code(one.kind),
            format_code(one.summary),
            f"{format_code(one.action)} {format_code(one.path or one.reason, 80)}"
            if one.resolved
            else "**unresolved**",
        ]
        for one in board.learnings
    ]
    yield from _render_table("when|case|learning|kind|summary|came to", rows)


def _render_table(titles: str, rows: list[list[str]]) -> list[str]:
    return format_table(titles, rows) if rows else ["None.", ""]


def _format_limited(count: int) -> str:
    return f"{COUNTED} or more" if count >= COUNTED else str(count)


def _format_board_command(board: Dashboard, *words: str) -> str:
    text = format_command(*board.program, *words, *board.words)
    return quote_code(text) if text.isprintable() else format_code(text)


def _render_more(board: Dashboard, found: Sequence[object], *words: str) -> list[str]:
    return [f"More: {_format_board_command(board, *words)}", ""] if len(found) > SHOWN else []
