"""The case: the notebook of an investigation. Pure data, and the closed sets of words in it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping


class CaseStatus(StrEnum):
    """Whether anything may still be written."""

    OPEN = "open"
    CLOSED = "closed"


class EntryKind(StrEnum):
    """What an entry of a case is."""

    HYPOTHESIS = "hypothesis"
    EVIDENCE = "evidence"
    COMMAND = "command"
    LEARNING = "learning"


class HypothesisStatus(StrEnum):
    """What became of a hypothesis."""

    OPEN = "open"
    ACCEPTED = "accepted"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


class CommandStatus(StrEnum):
    """How a command came out."""

    PASS = "pass"  # noqa: S105 - a word, not a password
    FAIL = "fail"
    BLOCKED = "blocked"
    SKIPPED = "skipped"


class LearningKind(StrEnum):
    """What was missing."""

    BENCHMARK_GAP = "benchmark-gap"
    DOC_GAP = "doc-gap"
    INTAKE_MISROUTE = "intake-misroute"
    LINT_GAP = "lint-gap"
    REVIEW_FINDING = "review-finding"
    TEST_GAP = "test-gap"
    WORKFLOW_GAP = "workflow-gap"


class RepoAction(StrEnum):
    """What became of it in the repository; `none` needs a reason."""

    BENCHMARK = "benchmark"
    DOCS = "docs"
    INTAKE_SIGNAL = "intake-signal"
    LINT = "lint"
    SKILL = "skill"
    TEST = "test"
    NONE = "none"


LETTERS = {EntryKind.HYPOTHESIS: "H", EntryKind.EVIDENCE: "E", EntryKind.COMMAND: "C", EntryKind.LEARNING: "L"}
COUNTERS = {  # the columns of a case that count its entries
    EntryKind.HYPOTHESIS: "hypotheses",
    EntryKind.EVIDENCE: "evidence",
    EntryKind.COMMAND: "commands",
    EntryKind.LEARNING: "learnings",
}
_MOST_DIGITS = 18  # what both databases hold


@stored_as("intent target_properties intake_plan expected_verification risks non_goals dirty_worktree")
class Problem(NamedTuple):
    """The capsule that a case begins with."""

    intent: str = ""
    target_properties: tuple[str, ...] = ()
    intake_plan: Any = None  # JSON, or text, of the project's own intake command
    expected_verification: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    non_goals: tuple[str, ...] = ()
    dirty_worktree: tuple[str, ...] = ()  # what `git status --porcelain` said


@stored_as(
    "id repository path user_name run_id status request problem created_at updated_at counts closeout closed_at "
    "event_seq chain_head"
)
class Case(NamedTuple):
    """A case as it stands; its events are the stream `case:ID`."""

    id: str  # a UTC stamp and a slug; also the folder's name
    repository: str  # the id of `domain.repository`
    path: str  # the repository's root
    user_name: str
    run_id: str | None
    status: CaseStatus
    request: str
    problem: Problem
    created_at: int
    updated_at: int
    counts: Mapping[str, int] = NOTHING  # entries of each kind
    closeout: Mapping[str, Any] = NOTHING
    closed_at: int | None = None
    event_seq: int = 0
    chain_head: str = ""


@stored_as("case_id kind number at updated_at text status data")
class Entry(NamedTuple):
    """One line of the notebook: `text` is the hypothesis, the evidence, the command or the learning's summary.

    `status` is one of the kind's own words (a learning's is its repo action). `data` has the rest: `note`,
    `hypothesis`, `exit_code`, `output`, `kind`, `path`, `reason`.
    """

    case_id: str
    kind: EntryKind
    number: int
    at: int
    updated_at: int
    text: str
    status: str = ""
    data: Mapping[str, Any] = NOTHING

    @property
    def id(self) -> str:
        """H001, E001, C001 or L001."""
        return f"{LETTERS[self.kind]}{self.number:03}"


def stream_of(case_id: str) -> str:
    """The stream of a case's events; a run's id has no colon."""
    return f"case:{case_id}"


def place_of(repository: str, user_name: str, run_id: str | None) -> str:
    """Where a case is the active one: in its run, or for a user in a repository."""
    return f"run:{run_id}" if run_id else f"{repository}:{user_name}"


def numbered(text: str) -> tuple[EntryKind, int] | None:
    """The kind and number that `H001`, or `h1`, names."""
    digits = text[1:]
    kind = {letter: kind for kind, letter in LETTERS.items()}.get(text[:1].upper())
    well_formed = digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS
    return (kind, int(digits)) if kind is not None and well_formed else None
