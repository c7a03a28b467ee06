"""MCP prompts: open a case, continue one, close one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from jackline.errors import JacklineError

if TYPE_CHECKING:
    from jackline.mcp.desk import ToolContext
    from jackline.mcp.server import Server

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


def register_prompts(server: Server, context: ToolContext) -> None:
    """Register the prompts."""

    @server.prompt(name="start", title="Start a case")
    def start(request: str) -> str:
        """Open a case for a request and investigate it."""
        return f"{_START}{request}"

    @server.prompt(name="handoff", title="Continue a case")
    def handoff(case: str = "") -> str:
        """Continue a case: the active one, or the one with this id."""
        from jackline.app.case.handing_over import handoff as build_handoff
        from jackline.views.case_handoff import text_of

        try:
            with context.open() as home:
                return f"Continue this case.\n\n{text_of(build_handoff(home, case_id=case or None))}"
        except JacklineError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None

    @server.prompt(name="close", title="Close a case")
    def close(case: str = "") -> str:
        """Close a case: the active one, or the one with this id."""
        return f"{_CLOSE}\nThe case: {case}\n" if case else _CLOSE
