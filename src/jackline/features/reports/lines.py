"""Rows of the reports: runs, work items, events, learnings, spending, state changes, turns and checks. Pure data."""

from __future__ import annotations

from jackline.named import NamedTuple, stored_as


@stored_as(
    "id number path agent task prompt state reason wake_at phase failure detail proof tokens usd_micros created_at "
    "started_at finished_at event_seq archived_at usd_estimated"
)
class RunLine(NamedTuple):
    """A run in a report."""

    id: str
    number: int
    path: str  # of its repository
    agent: str
    task: str
    prompt: str  # its beginning
    state: str
    reason: str | None
    wake_at: int | None
    phase: str | None
    failure: str | None
    detail: str  # its beginning
    proof: str
    tokens: int
    usd_micros: int
    created_at: int
    started_at: int | None
    finished_at: int | None
    event_seq: int
    archived_at: int | None  # when its events left the store
    usd_estimated: int = 0  # the part of `usd_micros` that was estimated


@stored_as("id kind status owner priority attempts max_attempts question notes created_at updated_at finished_at")
class ItemLine(NamedTuple):
    """A work item in a report."""

    id: str
    kind: str
    status: str
    owner: str | None
    priority: int
    attempts: int
    max_attempts: int
    question: str  # its beginning
    notes: str  # their beginning
    created_at: int
    updated_at: int
    finished_at: int | None


@stored_as("stream seq at kind actor data")
class EventLine(NamedTuple):
    """An event in a report."""

    stream: str
    seq: int
    at: int
    kind: str
    actor: str
    data: str  # its beginning


@stored_as("case_id number at kind summary action path reason")
class Learning(NamedTuple):
    """A learning of a case; without a path or a reason it is unresolved."""

    case_id: str
    number: int
    at: int
    kind: str
    summary: str
    action: str
    path: str = ""
    reason: str = ""

    @property
    def id(self) -> str:
        """Its id in the case, such as L001."""
        return f"L{self.number:03}"

    @property
    def resolved(self) -> bool:
        """Whether it names a file or a reason; only the gate checks that git tracks the file."""
        return bool(self.path or self.reason)

    @property
    def has_artifact(self) -> bool:
        """Whether a file in the repository records it."""
        return bool(self.path) and self.action != "none"


@stored_as("day agent usd_micros tokens")
class Spending(NamedTuple):
    """The spending of an agent on one day (UTC)."""

    day: str
    agent: str
    usd_micros: int
    tokens: int


class Move(NamedTuple):
    """A state change of a run."""

    run_id: str
    seq: int
    at: int
    kind: str  # run.claimed, run.waiting, run.succeeded, …
    reason: str = ""  # of run.waiting


@stored_as("step agent started_at ended_at failure")
class TurnLine(NamedTuple):
    """A turn in a report."""

    step: int
    agent: str
    started_at: int
    ended_at: int | None
    failure: str | None


@stored_as("step command started_at exit_code tree attempt")
class CheckLine(NamedTuple):
    """A check in a report."""

    step: int
    command: str
    started_at: int
    exit_code: int | None
    tree: str
    attempt: int = 1
