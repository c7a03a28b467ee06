"""MCP tools and prompts for cases and their entries. `features.cases` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import Field
from typing_extensions import TypedDict

from jackline.errors import JacklineError
from jackline.features.cases.case_queries import Cases
from jackline.features.mcp.state_server import ADDS, READS, RUNS, SETS

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.features.cases.case_model import Case, CaseEntry
    from jackline.features.mcp.context import ToolContext
    from jackline.features.mcp.state_server import StateServer


CaseId = Annotated[str, Field(description="a case id or a unique prefix of one; empty: the active case")]
Texts = list[str]
HypothesisWord = Literal["open", "accepted", "blocked", "rejected", "superseded"]
CommandWord = Literal["pass", "fail", "blocked", "skipped"]
LearningWord = Literal[
    "benchmark-gap", "doc-gap", "intake-misroute", "lint-gap", "review-finding", "test-gap", "workflow-gap"
]
ActionWord = Literal["benchmark", "docs", "intake-signal", "lint", "skill", "test", "none"]


class CaseAnswer(TypedDict):
    """A case, and the folder of its files."""

    case: dict[str, Any]
    folder: str
    warnings: list[str]


class StatusAnswer(TypedDict):
    """A case, and the reasons why it cannot be closed yet."""

    case: dict[str, Any]
    hypotheses: list[dict[str, Any]]
    unmet: list[str]


class HandoffAnswer(TypedDict):
    """A case as a page for the next agent."""

    case: str
    text: str


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


def register_case_tools(server: StateServer, context: ToolContext) -> None:
    """Register the tools for whole cases."""
    _register_start(server, context)
    _register_status(server, context)
    _register_close(server, context)


def _register_start(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(ADDS)
    def case_start(
        request: Annotated[str, Field(description="the request, in the requester's words")],
        intent: Annotated[str, Field(description="what you understand it to mean")] = "",
        targets: Annotated[Texts, Field(description="properties that must hold at the end")] = [],  # noqa: B006 - never changed
        non_goals: Annotated[Texts, Field(description="what is out of scope")] = [],  # noqa: B006
        risks: Annotated[Texts, Field(description="risks")] = [],  # noqa: B006
        verify: Annotated[Texts, Field(description="shell commands that verify the result; case_close runs them")] = [],  # noqa: B006
        skip_intake: Annotated[bool, Field(description="skip the project's intake command")] = False,  # noqa: FBT002 - by name only
    ) -> CaseAnswer:
        """Open a case: the notebook of an investigation, with hypotheses, evidence, commands and learnings.

        It becomes the active case of this run (outside a run: of this repository and user), which all other case
        tools use. Refused while another case is active. Do not open a case for a change that needs no investigation.
        """
        from jackline.features.cases.lifecycle import Opening, start_case

        with context.open() as home:
            opening = Opening(
                request=request, intent=intent, targets=targets, non_goals=non_goals, risks=risks, verify=verify
            )
            return _build_case_answer(home, start_case(home, opening, skip_intake=skip_intake))


def _register_status(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(READS)
    def case_status(case: CaseId = "") -> StatusAnswer:
        """The status of a case: its problem, its hypotheses, and the reasons why it cannot be closed yet."""
        from jackline.features.cases import lifecycle, location
        from jackline.features.cases.case_model import EntryKind
        from jackline.features.cases.case_values import build_case_values, build_entry_values

        with context.open() as home:
            found = location.choose_case(home, case or None)
            entries = Cases(home.store()).list_entries(found.id, EntryKind.HYPOTHESIS)
            return StatusAnswer(
                case=build_case_values(found),
                hypotheses=[build_entry_values(one) for one in entries],
                unmet=lifecycle.list_unmet(home, found),
            )

    @server.add_described_tool(READS)
    def case_handoff(case: CaseId = "") -> HandoffAnswer:
        """A case as Markdown for the next agent. Read it after you lost your context."""
        from jackline.features.cases.handoff import build_handoff, render_handoff

        with context.open() as home:
            found = build_handoff(home, case_id=case or None)
            return HandoffAnswer(case=found.case.id, text=render_handoff(found))


def _register_close(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(RUNS)
    def case_close(
        summary: Annotated[str, Field(description="the result")],
        verification: Annotated[
            Texts, Field(description="shell commands; empty: the commands given to case_start")
        ] = [],  # noqa: B006
        risks: Annotated[Texts, Field(description="remaining risks")] = [],  # noqa: B006
        force: Annotated[str, Field(description="a reason to close the case although conditions are not met")] = "",
        case: CaseId = "",
    ) -> CaseAnswer:
        """Close a case. This RUNS the verification commands in the root of the repository and records the results.

        Refused while a hypothesis is open, while a learning names neither a file tracked by git nor a reason, and if
        a verification command fails. A closed case accepts no more entries.
        """
        from jackline.features.cases.lifecycle import Closeout, close_case

        with context.open() as home:
            wanted = Closeout(summary=summary, verification=tuple(verification), risks=tuple(risks), force=force)
            return _build_case_answer(home, close_case(home, wanted, case_id=case or None))


def _build_case_answer(home: Home, case: Case) -> CaseAnswer:
    from jackline.features.cases.case_files import get_case_folder
    from jackline.features.cases.case_values import build_case_values

    return CaseAnswer(case=build_case_values(case), folder=get_case_folder(case), warnings=list(home.warnings))


def register_entry_tools(server: StateServer, context: ToolContext) -> None:
    """Register the tools for entries of a case."""
    _register_hypotheses(server, context)
    _register_records(server, context)
    _register_learnings(server, context)


def _register_hypotheses(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(ADDS)
    def case_hypothesis_add(
        text: Annotated[str, Field(description="a possible cause that can be confirmed or ruled out")],
        case: CaseId = "",
    ) -> EntryAnswer:
        """Add an open hypothesis; the answer has its id, such as H001."""
        from jackline.features.cases.entries import add_hypothesis

        with context.open() as home:
            return _build_entry_answer(home, add_hypothesis(home, text, case_id=case or None))

    @server.add_described_tool(SETS)
    def case_hypothesis_resolve(
        hypothesis: Annotated[str, Field(description="its id, such as H001")],
        status: HypothesisWord,
        note: Annotated[str, Field(description="what settled it")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Set the status of a hypothesis. A case with an open hypothesis cannot be closed."""
        from jackline.features.cases.entries import resolve_hypothesis

        with context.open() as home:
            return _build_entry_answer(home, resolve_hypothesis(home, hypothesis, status, note, case_id=case or None))


def _register_records(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(ADDS)
    def case_evidence_add(
        text: Annotated[str, Field(description="what you observed, and where")],
        hypothesis: Annotated[
            str, Field(description="the hypothesis that it supports or contradicts, such as H001")
        ] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Add evidence: an observed fact, not an opinion."""
        from jackline.features.cases.entries import add_evidence

        with context.open() as home:
            return _build_entry_answer(home, add_evidence(home, text, hypothesis or None, case_id=case or None))

    @server.add_described_tool(ADDS)
    def case_command_add(
        command: Annotated[str, Field(description="the command line")],
        status: CommandWord,
        note: Annotated[str, Field(description="what the result shows")] = "",
        case: CaseId = "",
    ) -> EntryAnswer:
        """Record a command that YOU ran or could not run, and its result. This tool runs nothing."""
        from jackline.features.cases.entries import add_command

        with context.open() as home:
            return _build_entry_answer(home, add_command(home, command, status, note, case_id=case or None))


def _register_learnings(server: StateServer, context: ToolContext) -> None:
    @server.add_described_tool(ADDS)
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
        from jackline.features.cases.entries import add_learning

        with context.open() as home:
            entry = add_learning(
                home, summary, kind=kind, repo_action=repo_action, path=path, reason=reason, case_id=case or None
            )
            return _build_entry_answer(home, entry)

    @server.add_described_tool(READS)
    def case_learning_review(case: CaseId = "") -> ReviewAnswer:
        """List the learnings of a case, and those that name neither a file tracked by git nor a reason."""
        from jackline.features.cases import git_hook, location
        from jackline.features.cases.case_values import build_entry_values
        from jackline.features.cases.learning import format_unresolved

        with context.open() as home:
            found = location.choose_case(home, case or None)
            learnings = git_hook.list_learnings(home, found)
            lacking = git_hook.find_unresolved(found, learnings)
            return ReviewAnswer(
                case=found.id,
                learnings=[build_entry_values(one) for one in learnings],
                unresolved=[format_unresolved(one) for one in lacking],
            )


def _build_entry_answer(home: Home, entry: CaseEntry) -> EntryAnswer:
    from jackline.features.cases.case_values import build_entry_values

    values = build_entry_values(entry)
    return EntryAnswer(case=entry.case_id, id=entry.id, entry=values, warnings=list(home.warnings))


_START = """\
Open a case for this request with case_start. Give your intent, the properties that must hold at the end, what is out \
of scope, the risks, and the commands that verify the result.

Then work in this order, and record each step:
1. case_hypothesis_add for every possible cause, before you investigate it.
2. case_evidence_add for each observation, with the hypothesis that it supports or contradicts; case_command_add for \
the commands that you ran.
3. case_hypothesis_resolve as soon as a hypothesis is settled.
4. case_learning_add for what the next agent should know, with the file in the repository that records it.
5. case_close with a summary. It runs the verification.

The request:
"""
_CLOSE = """\
Close this case:
1. case_status lists the conditions that are not met. Resolve every open hypothesis with case_hypothesis_resolve.
2. case_learning_review lists learnings that no tracked file records: add them to the repository, or give a reason.
3. case_close with a summary of the result and the remaining risks. It runs the verification commands. If one fails, \
fix the cause and close again. Do not use force unless a person told you to.
"""


def register_prompts(server: StateServer, context: ToolContext) -> None:
    """Register the prompts."""

    @server.prompt(name="start", title="Start a case")
    def start(request: str) -> str:
        """Open a case for a request and investigate it."""
        return f"{_START}{request}"

    @server.prompt(name="handoff", title="Continue a case")
    def handoff(case: str = "") -> str:
        """Continue a case: the active one, or the one with this id."""
        from jackline.features.cases.handoff import build_handoff, render_handoff

        try:
            with context.open() as home:
                return f"Continue this case.\n\n{render_handoff(build_handoff(home, case_id=case or None))}"
        except JacklineError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None

    @server.prompt(name="close", title="Close a case")
    def close(case: str = "") -> str:
        """Close a case: the active one, or the one with this id."""
        return f"{_CLOSE}\nThe case: {case}\n" if case else _CLOSE
