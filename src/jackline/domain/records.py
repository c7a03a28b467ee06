"""The records that the layers exchange: runs, attempts, turns, checks, calls and receipts. Pure data.

They are NamedTuples because every command imports them: a frozen dataclass takes four times as long to define.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.domain.limits import Limits, RetryPolicy, Spent
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
from jackline.named import NamedTuple, split_stored, stored_as, stored_changes, stored_dict
from jackline.policy.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping


@stored_as("model effort arguments passes tells_cost")
class AgentOptions(NamedTuple):
    """The options of one agent; empty ones are left to the CLI's own defaults."""

    model: str = ""
    effort: str = ""
    arguments: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()  # environment variables it may see besides those that it declares
    tells_cost: bool = True  # otherwise a cost of 0 means unknown


REPORT, INSIST = "report", "insist"  # what a run does with a read or a local call that a crash interrupted


@stored_as("name branch base base_branch copy setup setup_timeout_ms path source")
class WorktreeSpec(NamedTuple):
    """The worktree that jackline makes for a run. Without a name, the run works in an existing folder."""

    name: str = ""
    branch: str = ""
    base: str = ""  # the commit that the branch starts from
    base_branch: str = ""  # checked out where the run was created; empty if none was
    copy: tuple[str, ...] = ()  # untracked files, relative to the root of the repository
    setup: str = ""
    setup_timeout_ms: int = 600_000
    path: str = ""  # its root, without links
    source: str = ""  # the root of the checkout where the run was created: files are copied from there


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


ALL_PASS, ANY_PASS = "all", "any"  # review modes: which of the reviewers have to pass
READY, DRAFT = "ready", "draft"  # kinds of pull requests
GREEN, APPROVED, MERGED = "green", "approved", "merged"  # what a run may wait for


@stored_as(
    "prompt workspace agent task mode proof turn_timeout_ms idle_timeout_ms grace_ms limits retry rules options "
    "fallback manners session requires_commit job strict approval_timeout_ms approval_answer ungated preface "
    "fork_of allowed replay share_workspace policy_version unmatched own_remotes profile labels "
    "review review_mode review_rounds plan done_signal proof_must_fail_first commit_work worktree pr pr_base until "
    "pr_branch pr_remote"
)
class Spec(NamedTuple):
    """The request, frozen when the run starts: later changes of the settings must not affect a resume.

    Only a person changes it, between two attempts (see `domain.amendment`).
    """

    prompt: str
    workspace: str
    agent: str = "scripted"
    task: str = "adhoc"
    mode: str = "job"
    proof: str = ""
    turn_timeout_ms: int = 0  # 0: only the budget of the run limits a turn
    idle_timeout_ms: int = 900_000  # 0: no limit
    grace_ms: int = 5_000
    limits: Limits = Limits()
    retry: RetryPolicy = RetryPolicy()
    rules: tuple[Rule, ...] = ()
    options: Mapping[str, str] = NOTHING
    fallback: tuple[str, ...] = ()  # the agents that take over, in this order, when the agent cannot continue
    agent_options: Mapping[str, AgentOptions] = NOTHING
    session: str = ""  # an existing session of the agent to continue
    requires_commit: bool = False
    job: str = ""  # the text of the job file
    strict: bool = False  # an unknown call that a crash interrupted is in doubt, like an effect
    approval_timeout_ms: int = 0  # after which `approval_answer` applies; 0: no timeout
    approval_answer: str = "deny"
    ungated: bool = False  # a person accepts that an agent without an enforced gate is not held back
    preface: str = ""  # what the agent of a fork reads about the parent run
    fork_of: str = ""  # the session of the parent's agent, if this run's session starts as a copy of it
    allowed: tuple[str, ...] = ()  # what was approved in advance: RULE, RULE=PATTERN or RULE=any
    replay: str = REPORT  # `insist`: an interrupted read or local call has to be made again
    share_workspace: bool = False  # it may work while another run works in the same worktree
    policy_version: int = 1  # under which the run began; its keys, classes and agreements stay the same
    unmatched: str = "allow"  # the decision for calls that no rule matches
    own_remotes: Mapping[str, str] = NOTHING  # addresses of the repository's remotes → default branch, if known
    profile: str = ""  # see `policy.profiles`
    labels: tuple[str, ...] = ()  # a person's words, by which channels select notices
    review: tuple[str, ...] = ()  # the agents that review the work, one for each seat
    review_mode: str = ALL_PASS
    review_rounds: int = 3  # without a pass, before a person decides
    plan: bool = False  # the agent plans before it works
    done_signal: str = ""  # the last line of an agent that is done; empty: the end of its turn is enough
    proof_must_fail_first: bool = False
    commit_work: bool = False  # the host commits what the agent did not commit
    worktree: WorktreeSpec = WorktreeSpec()
    pr: str = ""  # the kind of the pull request to open; empty: none
    pr_base: str = ""
    until: str = ""  # what the run waits for once the pull request is open; empty: nothing
    pr_branch: str = ""  # the only branch that the host may push
    pr_remote: str = ""  # the only address that it may push to, in normal form; empty in runs of earlier versions
    unknown: tuple[str, ...] = ()  # stored names of a newer version; not stored again, because such a run is refused

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents that may work on it, in order."""
        return (self.agent, *self.fallback)

    @property
    def imported(self) -> str:
        """The program that the run was imported from; such a run has no policy, and is never continued."""
        return self.options.get("imported", "")

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as plain JSON values, by stored name."""
        return {
            **stored_dict(self),
            "limits": stored_dict(self.limits),
            "retry": stored_dict(self.retry),
            "rules": [stored_dict(rule) for rule in self.rules],
            "options": dict(self.options),
            "manners": {agent: stored_dict(options) for agent, options in self.agent_options.items()},
            "own_remotes": dict(self.own_remotes),
            "worktree": stored_dict(self.worktree),
        }

    def changes(self) -> dict[str, Any]:
        """Return the values of `to_dict` that differ from the defaults, so that a later field does not change it."""
        nested = {
            "limits": stored_changes(self.limits),
            "retry": stored_changes(self.retry),
            "rules": [stored_changes(rule) for rule in self.rules],
            "options": dict(self.options),
            "manners": {agent: stored_changes(options) for agent, options in self.agent_options.items()},
            "own_remotes": dict(self.own_remotes),
            "worktree": stored_changes(self.worktree),
        }
        plain = {name: value for name, value in stored_changes(self).items() if name not in nested}
        return plain | {name: value for name, value in nested.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Spec:
        """Build a spec from the values of `to_dict`; missing names get their defaults, unknown ones go to `unknown`."""
        values, unknown = split_stored(cls, data)

        def known_values(record: type, place: str, inner: Mapping[str, Any]) -> dict[str, Any]:
            known, others = split_stored(record, inner)
            unknown.extend(f"{place}.{name}" for name in others)
            return known

        spec = cls(**values)
        rules = data.get("rules", ())
        for rule in rules:
            known_values(Rule, f"rules.{rule['name']}", rule)
        agent_options: dict[str, AgentOptions] = {}
        for name, stored in data.get("manners", {}).items():
            options = AgentOptions(**known_values(AgentOptions, f"manners.{name}", stored))
            agent_options[name] = options._replace(arguments=tuple(options.arguments), passes=tuple(options.passes))
        worktree = WorktreeSpec(**known_values(WorktreeSpec, "worktree", data.get("worktree", {})))
        spec = spec._replace(
            worktree=worktree._replace(copy=tuple(worktree.copy)),
            review=tuple(spec.review),
            limits=Limits(**known_values(Limits, "limits", data.get("limits", {}))),
            retry=RetryPolicy(**known_values(RetryPolicy, "retry", data.get("retry", {}))),
            rules=tuple(Rule.from_dict(rule) for rule in rules),
            fallback=tuple(spec.fallback),
            allowed=tuple(spec.allowed),
            labels=tuple(spec.labels),
            agent_options=agent_options,
            own_remotes=dict(spec.own_remotes),
        )
        return spec._replace(unknown=tuple(unknown))


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


@stored_as("run_id number tree failure digest detail at")
class Iteration(NamedTuple):
    """An iteration that is over, and what was wrong at its end."""

    run_id: str
    number: int
    tree: str
    failure: str
    digest: str  # equal for equal failures
    detail: str
    at: int

    @property
    def result(self) -> tuple[str, str, str]:
        """What two iterations have in common if nothing has moved between them."""
        return self.tree, self.failure, self.digest


@stored_as("run_id turn iteration review_round seat agent tree outcome resolved summary at")
class Verdict(NamedTuple):
    """What a reviewer said about one tree."""

    run_id: str
    turn: int
    iteration: int
    review_round: int
    seat: int
    agent: str
    tree: str
    outcome: str  # pass or fail
    resolved: int  # earlier findings that it calls resolved
    summary: str
    at: int


@stored_as("run_id number review_round seat agent severity file line text state settled_round reason")
class Finding(NamedTuple):
    """Something that a reviewer wants to be changed."""

    run_id: str
    number: int
    review_round: int
    seat: int
    agent: str
    severity: str
    file: str
    line: int  # 0: the whole file
    text: str
    state: str = "open"
    settled_round: int = 0
    reason: str = ""  # why a person dismissed it

    @property
    def id(self) -> str:
        """Its name in prompts and commands."""
        return f"F{self.number}"


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
