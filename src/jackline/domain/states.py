"""Enumerations: states, reasons, classes and failures, and the exit code of each outcome. Pure values."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class OpenWord(StrEnum):
    """A word of a set to which a newer version may have added: an unknown one is read, and shown as text."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_, word._value_ = value, value
        return word


class RunState(StrEnum):
    """The state of a run; the last three are terminal."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})
ACTIVE = frozenset({RunState.QUEUED, RunState.RUNNING, RunState.WAITING})
_ENDINGS = {RunState.SUCCEEDED: "has succeeded", RunState.FAILED: "has failed", RunState.CANCELLED: "was cancelled"}


def format_run_state(state: RunState) -> str:
    """What a run is or has done, in a sentence whose subject is the run."""
    return _ENDINGS.get(state, f"is {state}")


class WaitReason(OpenWord):
    """What a waiting run waits for."""

    HUMAN = "human"
    APPROVAL = "approval"
    IN_DOUBT = "in_doubt"
    LIMIT = "limit"
    BUDGET = "budget"
    RETRY = "retry"
    DEPENDENCY = "dependency"
    PAUSED = "paused"
    CI = "ci"  # the checks or the reviews of its pull request


PERSON_NEEDED = frozenset({WaitReason.HUMAN, WaitReason.APPROVAL, WaitReason.IN_DOUBT})


class Phase(OpenWord):
    """What a running run is doing."""

    RECOVERING = "recovering"
    PLANNING = "planning"
    WORKING = "working"
    REVIEWING = "reviewing"
    PROVING = "proving"
    PUBLISHING = "publishing"


class Role(StrEnum):
    """What a turn is for."""

    PLAN = "plan"
    WORK = "work"
    REVIEW = "review"


class StepKind(StrEnum):
    """The kind of a numbered step of a run."""

    RECOVERY = "recovery"
    TURN = "turn"
    CHECK = "check"
    VERDICT = "verdict"
    PUBLICATION = "publication"


class CallState(StrEnum):
    """The state of a call in the ledger."""

    PREPARED = "prepared"
    DONE = "done"
    FAILED = "failed"
    DENIED = "denied"
    IN_DOUBT = "in_doubt"
    VOID = "void"
    ABANDONED = "abandoned"


class CallClass(StrEnum):
    """What a call can change: nothing, the workspace, the world outside, or it is unknown."""

    READ = "read"
    LOCAL = "local"
    EFFECT = "effect"
    UNKNOWN = "unknown"


class Replay(StrEnum):
    """What recovery does with a call that a crash interrupted."""

    REPORT = "report"  # the agent is told once, and decides
    EXACT = "exact"  # the agent has to make it again, before anything else
    IDEMPOTENT = "idempotent"
    RELAUNCH = "relaunch"
    ASK = "ask"


INSISTED = frozenset({Replay.EXACT, Replay.IDEMPOTENT, Replay.RELAUNCH})  # the agent has to make the call again


class Decision(StrEnum):
    """The gate's decision about a call; `stored` returns an earlier result instead of a second effect."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    STORED = "stored"


class ReasonCode(StrEnum):
    """Why a call was settled, if that decides what happens next; the call's reason explains it to people."""

    GAVE_UP = "gave_up"  # the turn timed out: the agent is not made to repeat the call
    SEND_AGAIN = "send_again"  # the outcome is unknown, and the same key may be sent again
    NOT_NOW = "not_now"  # it needs approval, and the command does not wait for any: a later attempt may ask


class Proof(StrEnum):
    """What the host's own check showed about the final tree."""

    PROVED = "proved"
    UNVERIFIED = "unverified"
    REFUTED = "refuted"


class WorkStatus(StrEnum):
    """The status of a work item; the last three are terminal."""

    PENDING = "pending"
    IN_FLIGHT = "in_flight"
    WAITING_HUMAN = "waiting_human"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


WORK_ENDED = frozenset({WorkStatus.DONE, WorkStatus.FAILED, WorkStatus.CANCELLED})


class Failure(OpenWord):
    """Why a turn or a run failed."""

    AGENT_ERROR = "agent_error"
    LIMIT = "limit"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    IDLE = "idle"
    CONNECTIVITY = "connectivity"
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    MODEL_NOT_FOUND = "model_not_found"
    CONTEXT_TOO_LONG = "context_too_long"
    CRASHED = "crashed"
    NO_COMMIT = "no_commit"
    NO_TERMINAL_EVENT = "no_terminal_event"
    UNAVAILABLE = "unavailable"
    BUDGET = "budget"
    PROOF = "proof"
    LEARNINGS = "learnings"  # a learning of an open case of the run is in no tracked file, and has no reason why not
    UNGATED = "ungated"
    REVIEW = "review"
    UNFINISHED = "unfinished"  # the agent did not print the done signal
    NO_PROGRESS = "no_progress"  # an iteration ended like the one before
    WORKTREE = "worktree"  # the run's own worktree could not be prepared
    PULL_REQUEST = "pull_request"


# What begins the next iteration, as long as the run has one left.
ENDS_ITERATION = frozenset({Failure.PROOF, Failure.LEARNINGS, Failure.REVIEW, Failure.UNFINISHED, Failure.PULL_REQUEST})
TRANSIENT = frozenset({Failure.OVERLOADED, Failure.CONNECTIVITY, Failure.CRASHED})

DEFERRED = "deferred"  # the stored detail of a turn whose session resumes with the call that needs approval

NOT_STARTED = frozenset({126, 127})  # a shell's exit codes for a program that it could not start
EXIT_OK = 0
EXIT_USAGE = 2
EXIT_PERSON = 14
EXIT_CANCELLED = 17
EXIT_CI = 19
EXIT_INTERRUPTED = 130

_FAILURE_EXIT = {
    Failure.LIMIT: 10,
    Failure.TIMEOUT: 11,
    Failure.IDLE: 11,
    Failure.CONNECTIVITY: 12,
    Failure.OVERLOADED: 12,
    Failure.UNAVAILABLE: 13,
    Failure.BUDGET: 15,
    Failure.PROOF: 16,
    Failure.LEARNINGS: 16,
    Failure.UNGATED: 18,
    Failure.REVIEW: 16,
    Failure.UNFINISHED: 16,
    Failure.NO_PROGRESS: 16,
}
_WAIT_EXIT = {
    WaitReason.HUMAN: EXIT_PERSON,
    WaitReason.APPROVAL: EXIT_PERSON,
    WaitReason.IN_DOUBT: EXIT_PERSON,
    WaitReason.LIMIT: 10,
    WaitReason.BUDGET: 15,
    WaitReason.RETRY: 12,
    WaitReason.DEPENDENCY: EXIT_PERSON,
    WaitReason.PAUSED: EXIT_INTERRUPTED,
    WaitReason.CI: EXIT_CI,
}


def exit_code(state: RunState, reason: WaitReason | None, failure: Failure | None) -> int:
    """The exit code of the command that leaves a run in this state; never 0 for anything but success."""
    match state:
        case RunState.SUCCEEDED:
            return EXIT_OK
        case RunState.CANCELLED:
            return EXIT_CANCELLED
        case RunState.WAITING if reason is not None:
            return _WAIT_EXIT.get(reason, EXIT_PERSON)
        case _:
            return _FAILURE_EXIT.get(failure, 1) if failure else 1
