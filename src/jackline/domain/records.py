"""The records that the layers exchange: runs, attempts, turns, checks, calls and receipts. Pure data.

They are NamedTuples because every command imports them: a frozen dataclass takes four times as long to define.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.limits import Spent
from jackline.domain.states import (
    CallClass,
    CallState,
    Decision,
    Failure,
    Phase,
    Proof,
    Replay,
    RunState,
    WaitReason,
)
from jackline.named import NamedTuple, stored_as, stored_dict

if TYPE_CHECKING:
    from jackline.domain.spec import Spec


@stored_as(
    "state reason wake_at phase goal failure detail proof attempt step turn iteration retries cancel_requested "
    "spent agent windows review_round rounds_from tree"
)
class RunStatus(NamedTuple):
    """The part of a run that the run machine changes; `goal` is the phase that recovery returns to after a crash."""

    state: RunState = RunState.QUEUED
    reason: WaitReason | None = None
    wake_at: int | None = None
    phase: Phase | None = None
    goal: Phase = Phase.WORKING
    failure: Failure | None = None
    detail: str = ""
    proof: Proof = Proof.UNVERIFIED
    attempt: int = 0
    step: int = 0
    turn: int = 0
    iteration: int = 0
    retries: int = 0
    cancel_requested: bool = False
    spent: Spent = Spent()
    agent: str = ""  # the current agent; empty: the first
    windows: int = 0  # limits of a provider that it has waited for since a person last continued it
    review_round: int = 0
    rounds_from: int = 0  # the review round after which a person last continued it
    tree: str = ""  # the content of the workspace that `proof` and the verdicts of the round hold for, if known

    def to_dict(self) -> dict[str, Any]:
        """Return the status as plain JSON values, by stored name."""
        return {**stored_dict(self), "spent": stored_dict(self.spent)}


class Run(NamedTuple):
    """One durable run: its frozen request, its status and its position in the event stream."""

    id: str
    number: int
    repository: str
    lineage: str
    parent: str | None
    spec: Spec
    status: RunStatus
    owner: str | None
    event_seq: int
    chain_head: str
    created_at: int
    updated_at: int
    started_at: int | None = None
    finished_at: int | None = None
    forked_at: int | None = None  # the last step of the parent that this run knows

    @property
    def agent(self) -> str:
        """The current agent."""
        return self.status.agent or self.spec.agent


@stored_as("run_id repository name branch base base_branch path host made_at set_up_at merged_at removed_at")
class RunWorktree(NamedTuple):
    """What became of the worktree of a run."""

    run_id: str
    repository: str
    name: str
    branch: str
    base: str
    base_branch: str
    path: str
    host: str = ""  # where it was made
    made_at: int | None = None
    set_up_at: int | None = None  # it was ready for an agent
    merged_at: int | None = None
    removed_at: int | None = None


class Repository(NamedTuple):
    """A folder in which runs work; its id is the hash of its path."""

    id: str
    path: str
    created_at: int


@stored_as("name host boot pid")
class Owner(NamedTuple):
    """The owner of a lease: one supervisor process on one boot of one host."""

    name: str
    host: str
    boot: str
    pid: int


class Lease(NamedTuple):
    """The right to write for a run: every write compares owner and token."""

    run_id: str
    owner: str
    token: int


@stored_as("run_id token owner host boot pid warden_pid warden_started started_at ended_at outcome")
class Attempt(NamedTuple):
    """One leased execution of a run; its number is the fencing token."""

    run_id: str
    token: int
    owner: str
    host: str
    boot: str
    pid: int
    warden_pid: int | None
    warden_started: int | None
    started_at: int
    ended_at: int | None
    outcome: str | None


@stored_as(
    "run_id number step attempt role agent session prompt started_at ended_at exit_code failure detail last_message "
    "stdout_bytes stderr_bytes raw_lines iteration review_round seat spent"
)
class Turn(NamedTuple):
    """One invocation of an agent."""

    run_id: str
    number: int
    step: int
    attempt: int
    role: str
    agent: str
    session: str | None
    prompt: str
    started_at: int
    ended_at: int | None = None
    exit_code: int | None = None
    failure: str | None = None
    detail: str = ""
    last_message: str = ""
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    raw_lines: int = 0
    iteration: int = 0
    review_round: int = 0
    seat: int = 0  # of a reviewer
    spent: Spent = Spent()


class SessionUse(NamedTuple):
    """The session of an agent in a run, by the role and the seat that it was opened for; empty text: it is lost."""

    agent: str
    session: str
    role: str = "work"
    seat: int = 0
    review_round: int = 0


@stored_as("run_id step attempt command started_at ended_at exit_code output tree")
class Check(NamedTuple):
    """A command that the host ran to check the agent's work."""

    run_id: str
    step: int
    attempt: int
    command: str
    started_at: int
    ended_at: int | None = None
    exit_code: int | None = None
    output: str = ""
    tree: str = ""


@stored_as(
    "id run_id attempt turn step occurrence tool call_class replay decision rule door key target input state "
    "prepared_at agent_call reason answer original output exit_code finished_at parent_id input_ref output_ref "
    "duration_ms external reason_code"
)
class Call(NamedTuple):
    """One tool call in the ledger."""

    id: str
    run_id: str
    attempt: int
    turn: int
    step: int
    occurrence: int  # its number among the calls of its key; 0 for reads and locals, which are not counted
    tool: str
    call_class: CallClass
    replay: Replay
    decision: Decision
    rule: str
    door: str
    key: str
    target: str
    input: str
    state: CallState
    prepared_at: int
    agent_call: str = ""
    reason: str = ""
    answer: str = ""
    original: str | None = None
    output: str = ""
    exit_code: int | None = None
    finished_at: int | None = None
    parent_id: str | None = None  # the call that this one is part of: a subagent's task
    input_ref: str | None = None  # the digest of a large input; `input` has only its start
    output_ref: str | None = None
    duration_ms: int | None = None
    external: str = ""  # JSON: ids found in the output, by name (url, pr, commit, message)
    reason_code: str = ""  # a `ReasonCode`, or empty


@stored_as("call_id run_id key target rule output external_id origin at")
class Receipt(NamedTuple):
    """Proof of an effect's outcome; `origin` is its source: the agent, a probe or a person."""

    call_id: str
    run_id: str
    key: str
    target: str
    rule: str
    output: str
    external_id: str
    origin: str
    at: int


@stored_as("id run_id kind title body chain_head created_at delivered_at")
class Notice(NamedTuple):
    """A notification in the outbox, written in the same transaction as the state that it reports."""

    id: str
    run_id: str
    kind: str
    title: str
    body: str
    chain_head: str
    created_at: int
    delivered_at: int | None = None


@stored_as("id subject kind title body created_at delivered_at labels priority")
class SubjectNotice(NamedTuple):
    """A notification about anything but a run; `subject` is its kind and id, such as `schedule:nightly`."""

    id: str
    subject: str
    kind: str
    title: str
    body: str
    created_at: int
    delivered_at: int | None = None
    labels: str = ""  # words that channels select by, separated by spaces
    priority: str = ""  # empty: by its kind


@stored_as("run_id number text at turn")
class Message(NamedTuple):
    """A message of a person to the agent of a run."""

    run_id: str
    number: int
    text: str
    at: int
    turn: int | None = None  # the first turn whose prompt has it


@stored_as("run_id step kind life cursor at")
class Checkpoint(NamedTuple):
    """What a resume needs, at a step boundary or an interrupt."""

    run_id: str
    step: int
    kind: str
    status: str
    cursor: str
    at: int
