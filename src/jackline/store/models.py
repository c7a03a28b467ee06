"""Requests to the store and small results of it: new runs, changes, settlements, queries, rows of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.agent_health import AgentHealth
    from jackline.domain.changes import Changes
    from jackline.domain.events import Fact
    from jackline.domain.pull_request import Feedback, PullRequest
    from jackline.domain.records import Attempt, Check, Checkpoint, Notice, RunStatus, SessionUse, Turn
    from jackline.domain.review_records import Finding, Iteration, Verdict
    from jackline.domain.spec import Spec
    from jackline.domain.states import RunState, WaitReason


JOURNAL = "journal:"  # the stream of events that belong to no run, item or case


class NewRun(NamedTuple):
    """A run to create; the same id with the same request is the same run."""

    id: str
    repository: str  # its path
    spec: Spec
    request: str  # a digest of the request, to tell a repeated call from a conflicting one
    parent: str | None = None
    forked_at: int | None = None  # the step of the parent's checkpoint that it starts from
    old_requests: tuple[str, ...] = ()  # the digests that earlier versions would have written
    ping: str = ""  # an address that is requested when it starts and ends


class QueueOptions(NamedTuple):
    """How a service starts a queued run."""

    priority: int = 0  # a higher one starts earlier
    not_before: int = 0  # a time
    dedupe: str = ""  # a key: no second run with it is created before the first has ended
    depends_on: tuple[str, ...] = ()  # ids of runs that must succeed first
    batch: str = ""
    batch_slots: int = 0  # how many runs of the batch may be worked on at once; 0: any number
    held: bool = False  # it does not start until a person releases it


@stored_as("run_id priority not_before batch batch_slots held_at added_at position")
class QueueEntry(NamedTuple):
    """The entry of a run in the queue; it stays after the run has started."""

    run_id: str
    priority: int
    not_before: int
    batch: str
    batch_slots: int
    held_at: int | None
    added_at: int
    position: int = 0  # among those that were added together


class QueueWait(NamedTuple):
    """A queued run that has not started, with the dependencies that have not succeeded."""

    entry: QueueEntry
    earlier: tuple[tuple[str, str], ...] = ()  # each with its state


class RunMark(NamedTuple):
    """The part of a run's row that shows whether something has happened to it."""

    state: RunState
    reason: WaitReason | None
    event_seq: int
    attempt: int
    wake_at: int | None


class RunChange(NamedTuple):
    """Everything that one fenced transaction of a worker may write."""

    at: int
    facts: tuple[Fact, ...] = ()
    status: RunStatus | None = None
    turn: Turn | None = None  # inserted, or updated if its number exists
    check: Check | None = None  # inserted, or updated if its step exists
    session: SessionUse | None = None  # SessionTaken if another run that has not ended owns it
    health: AgentHealth | None = None
    checkpoint: Checkpoint | None = None
    notice: Notice | None = None
    actor: str = "engine"
    changes: Changes | None = None  # in the repository, over all attempts; replaces the known changes
    last_message: int = 0  # the turn's prompt has the messages up to this number
    asks: bool = False  # written only while a question of the run's agent is open
    day_budget: int = 0  # in millionths of a dollar; a notice is written when what the turn spent uses it up
    iteration: Iteration | None = None  # that is over
    verdict: Verdict | None = None
    findings: tuple[Finding, ...] = ()  # new ones, and those that have changed
    pull_request: PullRequest | None = None  # inserted, or updated
    feedback: tuple[Feedback, ...] = ()  # one whose origin is stored already is left out


class Settlement(NamedTuple):
    """The outcome of a call. `change` is a word of the call's transition table."""

    call_id: str
    change: str
    at: int
    output: str = ""
    exit_code: int | None = None
    external_id: str = ""
    origin: str = "agent"
    reason: str = ""
    duration_ms: int | None = None
    external: str = ""  # JSON: the values found for the names of the rule
    reason_code: str = ""  # a `ReasonCode`, or empty


@stored_as("events calls receipts contents heads uncovered chain_head problems missing_head")
class VerificationResult(NamedTuple):
    """The result of verifying one run: how much was compared, and the problems."""

    events: int = 0
    calls: int = 0
    receipts: int = 0
    contents: int = 0
    heads: int = 0  # in notices
    uncovered: int = 0  # rows that an older jackline wrote, without a digest
    chain_head: str = ""
    problems: tuple[str, ...] = ()
    missing_head: str = ""  # the head that was kept, if only it is missing, which a power cut can cause


class TmuxSession(NamedTuple):
    """A session of tmux in which a run was started; the socket is that of its server."""

    session: str
    socket: str
    host: str
    started_at: int


class Holder(NamedTuple):
    """The attempt that holds a run, or held it last."""

    attempt: Attempt
    is_lease_over: bool


class RunQuery(NamedTuple):
    """Which runs to list, newest first."""

    states: tuple[str, ...] = ()
    agent: str | None = None  # without an account: those of its accounts, too
    task: str | None = None
    repository: str | None = None  # its id
    session: str | None = None
    since: int | None = None
    before: tuple[int, str] | None = None  # the (created_at, id) of the last row of the page before
    limit: int = 50


class RunSummary(NamedTuple):
    """A row of a list: cheap columns only, never the whole spec."""

    id: str
    number: int
    repository: str
    path: str
    agent: str
    task: str
    prompt: str  # its first 200 characters
    state: str
    reason: str | None
    wake_at: int | None
    phase: str | None
    failure: str | None
    proof: str
    attempt: int
    iteration: int
    tokens: int
    usd_micros: int
    created_at: int
    updated_at: int
    started_at: int | None
    finished_at: int | None
    usd_estimated: int = 0  # the part of `usd_micros` that was estimated


@stored_as("backend place schema known_schema pending counts size")
class DatabaseStatus(NamedTuple):
    """The status of the database."""

    backend: str
    place: str  # a path, or an address without its password
    schema: int
    known_schema: int
    pending: tuple[str, ...] = ()
    counts: Mapping[str, int] = NOTHING
    size: int | None = None


class TimelineQuery(NamedTuple):
    """Which events of the timeline to read: all except the `agent.*` and `call.*` of runs."""

    after: tuple[int, str, int] | None = None  # (at, stream, seq): only later ones, oldest first
    since: int | None = None  # a time: only from then on
    before: tuple[int, str, int] | None = None  # the page before this event, newest first
    kind: str = ""  # its beginning
    actor: str = ""
    stream: str = ""
    text: str = ""  # in kind, actor or data; the case of ASCII letters is ignored
    limit: int = 50
    newest_first: bool = True
    whole: bool = False  # with a stream: also the events that the timeline leaves out
