"""Compares what the output of an agent with hooks tells of its calls with what the gate was asked. It decides nothing.

A result of a call that never asked means that the door was open; one that was blocked because nobody could be asked,
that it cannot be reached. What the agent itself held back, though the gate had allowed it, did not happen; and what
went on in the background ends where only the output tells of it.
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
    """Of one turn."""

    def __init__(self, ledger: Ledger, stop: Callable[[Stop, str], None]) -> None:
        """`stop` is how it asks for the end of the work."""
        self._ledger, self._stop = ledger, stop
        self._background: set[str] = set()

    def see(self, heard: Heard) -> None:
        """What one line tells."""
        if heard.kind == "call.finished":
            self._result(heard, str(heard.data.get("call", "")))
        elif heard.kind == "end" and heard.data.get("deferred") is True:
            # An agent with work in the background would go on, and forget the call that waits.
            self._stop(Stop.APPROVAL, "a call needs approval")

    def _result(self, heard: Heard, name: str) -> None:
        call_id = self._ledger.call_of(name)
        if heard.data.get("task") is True:
            if call_id is not None and name in self._background:
                self._background.discard(name)
                self._ledger.finish_open(_report(heard, call_id))  # of a subagent its hook may have told more
        elif heard.data.get("ran") is False:
            self._held_back(heard, call_id)
        elif call_id is None:
            self._stop(Stop.UNGATED, f"call {name or 'without a name'} ran without asking the gate")
        elif heard.data.get("background") is True:
            self._background.add(name)

    def _held_back(self, heard: Heard, call_id: str | None) -> None:
        """The agent ran nothing: by its own rules, or because it could not ask, and then no call of it ever runs."""
        if call_id is not None:
            self._ledger.not_run(call_id, "the agent itself did not run it")
        elif unreached := heard.data.get("unreached"):
            self._stop(Stop.UNGATED, f"the agent cannot ask the gate, so that no call of it runs: {unreached}")


def _report(heard: Heard, call_id: str) -> Report:
    code = heard.data.get("exit_code")
    return Report(
        call_id=call_id,
        ok=heard.data.get("ok") is True,
        exit_code=code if isinstance(code, int) else None,
        output=str(heard.data.get("output", "")),
    )
