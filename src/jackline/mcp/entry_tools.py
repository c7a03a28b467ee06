"""MCP tools for the entries of a case: hypotheses, evidence, commands and learnings. `app.case` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from jackline.mcp.case_tools import CaseId
from jackline.mcp.kinds import ADDS, READS, SETS

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.case import Entry
    from jackline.mcp.desk import ToolContext
    from jackline.mcp.server import Server

HypothesisWord = Literal["open", "accepted", "blocked", "rejected", "superseded"]
CommandWord = Literal["pass", "fail", "blocked", "skipped"]
LearningWord = Literal[
    "benchmark-gap", "doc-gap", "intake-misroute", "lint-gap", "review-finding", "test-gap", "workflow-gap"
]
ActionWord = Literal["benchmark", "docs", "intake-signal", "lint", "skill", "test", "none"]


class EntryAnswer(TypedDict):
    """An entry of a case."""

    case: str
    id: str
    entry: dict[str, Any]
    warnings: list[str]


class ReviewAnswer(TypedDict):
    """The learnings of a case, and those that are not in the repository yet."""

    case: str
    learnings: list[dict[str, Any]]
    unresolved: list[str]


def register_entry_tools(server: Server, context: ToolContext) -> None:
    """Register the tools for entries of a case."""
    _register_hypotheses(server, context)
    _register_records(server, context)
    _register_learnings(server, context)


def _register_hypotheses(server: Server, context: ToolContext) -> None:
    @server.offer(ADDS)
    def case_hypothesis_add(
        text: Annotated[str, Field(description="a possible cause that can be confirmed or ruled out")],
        case: CaseId = "",
    ) -> EntryAnswer:
        """Add an open hypothesis; the answer has its id, such as H001."""
        from jackline.app.case.writing import add_hypothesis

        with context.open() as home:
            return _build_entry_answer(home, add_hypothesis(home, text, case_id=case or None))

    @server.offer(SETS)
    def case_hypothesis_resolve(
        hypothesis: Annotated[str, Field(description="its id, such as H001")],
        status: HypothesisWord,
        note: Annotated[str, Field(description="what settled it")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Set the status of a hypothesis. A case with an open hypothesis cannot be closed."""
        from jackline.app.case.writing import resolve_hypothesis

        with context.open() as home:
            return _build_entry_answer(home, resolve_hypothesis(home, hypothesis, status, note, case_id=case or None))


def _register_records(server: Server, context: ToolContext) -> None:
    @server.offer(ADDS)
    def case_evidence_add(
        text: Annotated[str, Field(description="what you observed, and where")],
        hypothesis: Annotated[
            str, Field(description="the hypothesis that it supports or contradicts, such as H001")
        ] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Add evidence: an observed fact, not an opinion."""
        from jackline.app.case.writing import add_evidence

        with context.open() as home:
            return _build_entry_answer(home, add_evidence(home, text, hypothesis or None, case_id=case or None))

    @server.offer(ADDS)
    def case_command_add(
        command: Annotated[str, Field(description="the command line")],
        status: CommandWord,
        note: Annotated[str, Field(description="what the result shows")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Record a command that YOU ran or could not run, and its result. This tool runs nothing."""
        from jackline.app.case.writing import add_command

        with context.open() as home:
            return _build_entry_answer(home, add_command(home, command, status, note, case_id=case or None))


def _register_learnings(server: Server, context: ToolContext) -> None:
    @server.offer(ADDS)
    def case_learning_add(
        summary: Annotated[str, Field(description="what the next agent should know")],
        kind: LearningWord,
        repo_action: Annotated[ActionWord, Field(description="what records it in the repository; none needs a reason")],
        path: Annotated[str, Field(description="the file in the repository that records it")] = "",
        reason: Annotated[str, Field(description="why no file records it")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Add a learning, with the file that records it or the reason why no file does.

        Git must track the file before the case can be closed.
        """
        from jackline.app.case.writing import add_learning

        with context.open() as home:
            entry = add_learning(
                home, summary, kind=kind, repo_action=repo_action, path=path, reason=reason, case_id=case or None
            )
            return _build_entry_answer(home, entry)

    @server.offer(READS)
    def case_learning_review(case: CaseId = "") -> ReviewAnswer:
        """List the learnings of a case, and those that name neither a file tracked by git nor a reason."""
        with context.open() as home:
            return _build_review(home, case)


def _build_review(home: Home, case: str) -> ReviewAnswer:
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


def _build_entry_answer(home: Home, entry: Entry) -> EntryAnswer:
    from jackline.views.case_lines import entry_values

    values = entry_values(entry)
    return EntryAnswer(case=entry.case_id, id=entry.id, entry=values, warnings=list(home.warnings))
