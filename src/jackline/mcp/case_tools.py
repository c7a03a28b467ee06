"""The tools for a whole case: begin it, look at it, hand it over, close it. Thin: `app.case` does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from jackline.mcp.kinds import ADDS, READS, RUNS

if TYPE_CHECKING:
    from jackline.app.home import Home
    from jackline.domain.case import Case
    from jackline.mcp.desk import Desk
    from jackline.mcp.server import Server

CaseId = Annotated[str, Field(description="a case's id, or the beginning of one; empty: the active one")]
Texts = list[str]


class CaseAnswer(TypedDict):
    """A case, and the folder of its files."""

    case: dict[str, Any]
    folder: str
    warnings: list[str]


class StatusAnswer(TypedDict):
    """A case and what keeps it from being closed."""

    case: dict[str, Any]
    hypotheses: list[dict[str, Any]]
    unmet: list[str]


class HandoffAnswer(TypedDict):
    """What the next agent needs, as a page to read."""

    case: str
    text: str


def register(server: Server, desk: Desk) -> None:
    """Offer them."""
    _register_start(server, desk)
    _register_looking(server, desk)
    _register_close(server, desk)


def _register_start(server: Server, desk: Desk) -> None:
    @server.offer(ADDS)
    def case_start(
        request: Annotated[str, Field(description="what was asked for, in the words of who asked")],
        intent: Annotated[str, Field(description="what you take it to mean")] = "",
        targets: Annotated[Texts, Field(description="what has to be true in the end")] = [],  # noqa: B006 - never changed
        non_goals: Annotated[Texts, Field(description="what is not part of it")] = [],  # noqa: B006
        risks: Annotated[Texts, Field(description="what may go wrong")] = [],  # noqa: B006
        verify: Annotated[Texts, Field(description="shell commands that will show it; case_close runs them")] = [],  # noqa: B006
        skip_intake: Annotated[bool, Field(description="do not run the project's own intake command")] = False,  # noqa: FBT002 - by name only
    ) -> CaseAnswer:
        """Open a case: the notebook of an investigation, with hypotheses, evidence, commands and learnings.

        It becomes the active one of this run (or, outside of a run, of this repository and user): every other case
        tool writes to it. Refused while another one is active. Open none for a change that needs no investigation.
        """
        from jackline.app.case.beginning import Opening, start

        with desk.open() as home:
            told = Opening(request, intent, targets, non_goals, risks, verify)
            return _answer(home, start(home, told, skip_intake=skip_intake))


def _register_looking(server: Server, desk: Desk) -> None:
    @server.offer(READS)
    def case_status(case: CaseId = "") -> StatusAnswer:
        """How a case stands: its capsule, its hypotheses, and what keeps it from being closed."""
        with desk.open() as home:
            return _status(home, case)

    @server.offer(READS)
    def case_handoff(case: CaseId = "") -> HandoffAnswer:
        """All that the next agent needs to go on with a case, as markdown: read it after a context was lost."""
        from jackline.app.case.handing_over import handoff
        from jackline.views.case_handoff import text_of

        with desk.open() as home:
            told = handoff(home, case_id=case or None)
            return HandoffAnswer(case=told.case.id, text=text_of(told))


def _register_close(server: Server, desk: Desk) -> None:
    @server.offer(RUNS)
    def case_close(
        summary: Annotated[str, Field(description="what came of it")],
        verification: Annotated[
            Texts, Field(description="shell commands; empty: those that the case was started with")
        ] = [],  # noqa: B006
        risks: Annotated[Texts, Field(description="what is left")] = [],  # noqa: B006
        force: Annotated[str, Field(description="a reason to close it although something is not met")] = "",
        case: CaseId = "",
    ) -> CaseAnswer:
        """Close a case. This RUNS the verification commands in the root of its repository and records how they end.

        Refused while a hypothesis is open, while a learning names neither a file tracked by git nor a reason, and if
        a verification fails. A closed case takes no more entries.
        """
        from jackline.app.case.closing import Closeout, close

        with desk.open() as home:
            wanted = Closeout(summary, tuple(verification), tuple(risks), force)
            return _answer(home, close(home, wanted, case_id=case or None))


def _status(home: Home, case: str) -> StatusAnswer:
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


def _answer(home: Home, case: Case) -> CaseAnswer:
    from jackline.app.case.files import folder_of
    from jackline.views.case_lines import case_values

    return CaseAnswer(case=case_values(case), folder=folder_of(case), warnings=list(home.warnings))
