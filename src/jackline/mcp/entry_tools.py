"""The tools for the entries of a case: hypotheses, evidence, commands, learnings. Thin: `app.case` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from jackline.mcp.case_tools import CaseId
from jackline.mcp.kinds import ADDS, READS, SETS

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.case import Entry
    from jackline.mcp.desk import Desk
    from jackline.mcp.server import Server

HypothesisWord = Literal["open", "accepted", "blocked", "rejected", "superseded"]
CommandWord = Literal["pass", "fail", "blocked", "skipped"]
LearningWord = Literal[
    "benchmark-gap", "doc-gap", "intake-misroute", "lint-gap", "review-finding", "test-gap", "workflow-gap"
]
ActionWord = Literal["benchmark", "docs", "intake-signal", "lint", "skill", "test", "none"]


class EntryAnswer(TypedDict):
    """An entry as it stands in its case."""

    case: str
    id: str
    entry: dict[str, Any]
    warnings: list[str]


class ReviewAnswer(TypedDict):
    """The learnings of a case, and those that have not come to the repository."""

    case: str
    learnings: list[dict[str, Any]]
    unresolved: list[str]


def register(server: Server, desk: Desk) -> None:
    """Offer them."""
    _register_hypotheses(server, desk)
    _register_notes(server, desk)
    _register_learnings(server, desk)


def _register_hypotheses(server: Server, desk: Desk) -> None:
    @server.offer(ADDS)
    def case_hypothesis_add(
        text: Annotated[str, Field(description="what might be the cause, so that it can be shown or ruled out")],
        case: CaseId = "",
    ) -> EntryAnswer:
        """Write a hypothesis down, open; the answer has its id, such as H001."""
        from jackline.app.case.writing import add_hypothesis

        with desk.open() as home:
            return _answer(home, add_hypothesis(home, text, case_id=case or None))

    @server.offer(SETS)
    def case_hypothesis_resolve(
        hypothesis: Annotated[str, Field(description="its id, such as H001")],
        status: HypothesisWord,
        note: Annotated[str, Field(description="what decided it")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Say what became of a hypothesis. A case with an open one cannot be closed."""
        from jackline.app.case.writing import resolve_hypothesis

        with desk.open() as home:
            return _answer(home, resolve_hypothesis(home, hypothesis, status, note, case_id=case or None))


def _register_notes(server: Server, desk: Desk) -> None:
    @server.offer(ADDS)
    def case_evidence_add(
        text: Annotated[str, Field(description="what was seen, and where")],
        hypothesis: Annotated[str, Field(description="the one that it speaks for or against, such as H001")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Write evidence down: a fact that was seen, not an opinion."""
        from jackline.app.case.writing import add_evidence

        with desk.open() as home:
            return _answer(home, add_evidence(home, text, hypothesis or None, case_id=case or None))

    @server.offer(ADDS)
    def case_command_add(
        command: Annotated[str, Field(description="the command line as it was typed")],
        status: CommandWord,
        note: Annotated[str, Field(description="what it showed")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Record a command that YOU ran, or could not run, and how it came out. Nothing is run by this."""
        from jackline.app.case.writing import add_command

        with desk.open() as home:
            return _answer(home, add_command(home, command, status, note, case_id=case or None))


def _register_learnings(server: Server, desk: Desk) -> None:
    @server.offer(ADDS)
    def case_learning_add(
        summary: Annotated[str, Field(description="what the next one should know")],
        kind: LearningWord,
        repo_action: Annotated[ActionWord, Field(description="what of the repository keeps it; none needs a reason")],
        path: Annotated[str, Field(description="the file of the repository that keeps it")] = "",
        reason: Annotated[str, Field(description="why nothing in the repository keeps it")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Write down what was learned, with the file that keeps it, or with the reason why none does.

        The file has to be tracked by git before the case can be closed.
        """
        from jackline.app.case.writing import add_learning

        with desk.open() as home:
            entry = add_learning(
                home, summary, kind=kind, repo_action=repo_action, path=path, reason=reason, case_id=case or None
            )
            return _answer(home, entry)

    @server.offer(READS)
    def case_learning_review(case: CaseId = "") -> ReviewAnswer:
        """The learnings of a case, and which of them name neither a file tracked by git nor a reason."""
        with desk.open() as home:
            return _review(home, case)


def _review(home: Home, case: str) -> ReviewAnswer:
    from jackline.app.case import place, reviewing
    from jackline.domain.learning import line
    from jackline.views.case_lines import entry_values

    found = place.chosen(home, case or None)
    learnings = reviewing.learnings_of(home, found)
    lacking = reviewing.unresolved(found, learnings)
    return ReviewAnswer(
        case=found.id,
        learnings=[entry_values(one) for one in learnings],
        unresolved=[line(one) for one in lacking],
    )


def _answer(home: Home, entry: Entry) -> EntryAnswer:
    from jackline.views.case_lines import entry_values

    values = entry_values(entry)
    return EntryAnswer(case=entry.case_id, id=entry.id, entry=values, warnings=list(home.warnings))
