"""Cases: notebooks of investigations. Pure data, and the enumerations of their fields."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jackline.domain.events import NOTHING
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Mapping


class CaseStatus(StrEnum):
    """Whether a case accepts entries."""

    OPEN = "open"
    CLOSED = "closed"


class EntryKind(StrEnum):
    """The kind of an entry."""

    HYPOTHESIS = "hypothesis"
    EVIDENCE = "evidence"
    COMMAND = "command"
    LEARNING = "learning"


class HypothesisStatus(StrEnum):
    """The status of a hypothesis."""

    OPEN = "open"
    ACCEPTED = "accepted"
    BLOCKED = "blocked"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


class CommandStatus(StrEnum):
    """The result of a command."""

    PASS = "pass"  # noqa: S105 - a word, not a password
    FAIL = "fail"
    BLOCKED = "blocked"
    SKIPPED = "skipped"


class LearningKind(StrEnum):
    """The kind of a learning: what was missing."""

    BENCHMARK_GAP = "benchmark-gap"
    DOC_GAP = "doc-gap"
    INTAKE_MISROUTE = "intake-misroute"
    LINT_GAP = "lint-gap"
    REVIEW_FINDING = "review-finding"
    TEST_GAP = "test-gap"
    WORKFLOW_GAP = "workflow-gap"


class RepoAction(StrEnum):
    """How the repository records a learning; `none` needs a reason."""

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
    """The problem that a case starts with."""

    intent: str = ""
    target_properties: tuple[str, ...] = ()
    intake_plan: Any = None  # JSON or text from the project's intake command
    expected_verification: tuple[str, ...] = ()
    risks: tuple[str, ...] = ()
    non_goals: tuple[str, ...] = ()
    dirty_worktree: tuple[str, ...] = ()  # lines of `git status --porcelain`


@stored_as(
    "id repository path user_name run_id status request problem created_at updated_at counts closeout closed_at "
    "event_seq chain_head"
)
class Case(NamedTuple):
    """A case; its events are the stream `case:ID`."""

    id: str  # a UTC stamp and a slug; also the folder's name
    repository: str  # the id of `domain.ids`
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
class CaseEntry(NamedTuple):
    """An entry: `text` is the hypothesis, the evidence, the command or the summary of the learning.

    `status` is a status of its kind (of a learning: the repo action). `data` has the rest: `note`,
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


def get_case_stream(case_id: str) -> str:
    """The stream of a case's events; a run's id has no colon."""
    return f"case:{case_id}"


def build_active_key(repository: str, user_name: str, run_id: str | None) -> str:
    """The key under which a case is active: its run, or a repository and a user."""
    return f"run:{run_id}" if run_id else f"{repository}:{user_name}"


def parse_entry_id(text: str) -> tuple[EntryKind, int] | None:
    """Parse an entry id such as `H001` or `h1`."""
    digits = text[1:]
    kind = {letter: kind for kind, letter in LETTERS.items()}.get(text[:1].upper())
    well_formed = digits.isascii() and digits.isdigit() and len(digits) < _MOST_DIGITS
    return (kind, int(digits)) if kind is not None and well_formed else None


class NewCase(NamedTuple):
    """A case to start; if the id is taken, the store adds a number to it."""

    id: str
    repository: str
    path: str
    user_name: str
    request: str
    problem: Problem
    run_id: str | None = None


class CaseQuery(NamedTuple):
    """Which cases to list, newest first."""

    repository: str | None = None
    status: str = ""
    run_id: str | None = None
    before: tuple[int, str] | None = None
    limit: int = 50
