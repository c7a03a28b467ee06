"""MCP tools for a whole case: start it, read it, hand it over, close it. `app.case` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from jackline.mcp.kinds import ADDS, READS, RUNS

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.case import Case
    from jackline.mcp.desk import ToolContext
    from jackline.mcp.server import Server

CaseId = Annotated[str, Field(description="a case id or a unique prefix of one; empty: the active case")]
Texts = list[str]


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


def register_case_tools(server: Server, context: ToolContext) -> None:
    """Register the tools for whole cases."""
    _register_start(server, context)
    _register_status(server, context)
    _register_close(server, context)


def _register_start(server: Server, context: ToolContext) -> None:
    @server.offer(ADDS)
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
        from jackline.app.case.beginning import Opening, start

        with context.open() as home:
            opening = Opening(request, intent, targets, non_goals, risks, verify)
            return _build_case_answer(home, start(home, opening, skip_intake=skip_intake))


def _register_status(server: Server, context: ToolContext) -> None:
    @server.offer(READS)
    def case_status(case: CaseId = "") -> StatusAnswer:
        """The status of a case: its problem, its hypotheses, and the reasons why it cannot be closed yet."""
        with context.open() as home:
            return _build_status(home, case)

    @server.offer(READS)
    def case_handoff(case: CaseId = "") -> HandoffAnswer:
        """A case as Markdown for the next agent. Read it after you lost your context."""
        from jackline.app.case.handing_over import handoff
        from jackline.views.case_handoff import text_of

        with context.open() as home:
            found = handoff(home, case_id=case or None)
            return HandoffAnswer(case=found.case.id, text=text_of(found))


def _register_close(server: Server, context: ToolContext) -> None:
    @server.offer(RUNS)
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
        from jackline.app.case.closing import Closeout, close

        with context.open() as home:
            wanted = Closeout(summary, tuple(verification), tuple(risks), force)
            return _build_case_answer(home, close(home, wanted, case_id=case or None))


def _build_status(home: Home, case: str) -> StatusAnswer:
    from jackline.app.case import closing, place
    from jackline.domain.case import EntryKind
    from jackline.views.case_lines import case_values, entry_values

    found = place.chosen(home, case or None)
    entries = home.store().entries(found.id, EntryKind.HYPOTHESIS)
    return StatusAnswer(
        case=case_values(found),
        hypotheses=[entry_values(one) for one in entries],
        unmet=closing.unmet(home, found),
    )


def _build_case_answer(home: Home, case: Case) -> CaseAnswer:
    from jackline.app.case.files import folder_of
    from jackline.views.case_lines import case_values

    return CaseAnswer(case=case_values(case), folder=folder_of(case), warnings=list(home.warnings))
