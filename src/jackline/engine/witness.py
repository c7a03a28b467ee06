"""Compares the calls in the output of an agent with hooks with the calls that the gate was asked about.

The result of a call that never asked means that the gate was bypassed; a call that was blocked because the hook failed
means that the gate cannot be reached. A call that the gate allowed and the agent did not run did not happen. The end of
a background call is known only from the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.signals import Stop
from jackline.engine.ledger import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.outcome import Heard
    from jackline.engine.ledger import Ledger


class Witness:
    """Audits the calls of one turn."""

    def __init__(self, ledger: Ledger, stop: Callable[[Stop, str], None]) -> None:
        """`stop` requests a stop of the run."""
        self._ledger, self._stop = ledger, stop
        self._background: set[str] = set()

    def see(self, heard: Heard) -> None:
        """Compare one event of the output."""
        if heard.kind == "call.finished":
            self._check_result(heard, str(heard.data.get("call", "")))
        elif heard.kind == "end" and heard.data.get("deferred") is True:
            # An agent with work in the background would continue, and forget the call that waits.
            self._stop(Stop.APPROVAL, "a call needs approval")

    def _check_result(self, heard: Heard, name: str) -> None:
        call_id = self._ledger.call_of(name)
        if heard.data.get("task") is True:
            if call_id is not None and name in self._background:
                self._background.discard(name)
                self._ledger.finish_open(
                    _build_task_report(heard, call_id)
                )  # the hook of a subagent may have reported more
        elif heard.data.get("ran") is False:
            self._handle_blocked(heard, call_id)
        elif call_id is None:
            self._stop(Stop.UNGATED, f"call {name or 'without an id'} ran without asking the gate")
        elif heard.data.get("background") is True:
            self._background.add(name)

    def _handle_blocked(self, heard: Heard, call_id: str | None) -> None:
        """The agent did not run the call: by its own rules, or because it could not reach the gate."""
        if call_id is not None:
            self._ledger.not_run(call_id, "the agent did not run it")
        elif unreached := heard.data.get("unreached"):
            self._stop(Stop.UNGATED, f"the agent cannot reach the gate, so none of its calls can run: {unreached}")


def _build_task_report(heard: Heard, call_id: str) -> Report:
    code = heard.data.get("exit_code")
    return Report(
        call_id=call_id,
        ok=heard.data.get("ok") is True,
        exit_code=code if isinstance(code, int) else None,
        output=str(heard.data.get("output", "")),
    )
