"""What a person can ask an agent for by name: to open a case, to go on with one, to close it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from jackline.errors import JacklineError

if TYPE_CHECKING:
    from jackline.mcp.desk import Desk
    from jackline.mcp.server import Server

_START = """\
Open a case for this request with case_start: say your intent, what has to be true in the end, what is not part of it, \
the risks, and the commands that will show that it is done.

Then work in this order, and write down as you go:
1. case_hypothesis_add for every cause that you take to be possible, before you look for it.
2. case_evidence_add for what you saw, with the hypothesis that it speaks for or against; case_command_add for the \
commands that you ran.
3. case_hypothesis_resolve as soon as one is decided.
4. case_learning_add for what the next one should know, with the file of the repository that now keeps it.
5. case_close with a summary: it runs the verification.

The request:
"""
_CLOSE = """\
Bring this case to its end:
1. case_status says what is not met. Resolve every open hypothesis with case_hypothesis_resolve.
2. case_learning_review lists learnings that no tracked file keeps: write them into the repository, or say why not.
3. case_close with a summary of what came of it, and the risks that are left. It runs the verification commands; if \
one fails, mend it and close again. Do not force it unless a person told you to.
"""


def register(server: Server, desk: Desk) -> None:
    """Offer them."""

    @server.prompt(name="start", title="Start a case")
    def start(request: str) -> str:
        """Open a case for a request and investigate it, written down as it goes."""
        return f"{_START}{request}"

    @server.prompt(name="handoff", title="Go on with a case")
    def handoff(case: str = "") -> str:
        """What is known of a case (the active one, or by its id), to go on with it."""
        from jackline.app.case.handing_over import handoff as told
        from jackline.views.case_handoff import text_of

        try:
            with desk.open() as home:
                return f"Go on with this case.\n\n{text_of(told(home, case_id=case or None))}"
        except JacklineError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None

    @server.prompt(name="close", title="Close a case")
    def close(case: str = "") -> str:
        """Bring a case (the active one, or by its id) to its end."""
        return f"{_CLOSE}\nThe case: {case}\n" if case else _CLOSE
