"""Compares the calls in the output of an agent with hooks with the calls that the gate was asked about.

The result of a call that never asked means that the gate was bypassed; a call that was blocked because the hook failed
means that the gate cannot be reached. A call that the gate allowed and the agent did not run did not happen. The end of
a background call is known only from the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.run_inputs import StopReason
from jackline.engine.call_ledger import CallRequest, CallResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.outcome import AgentEvent
    from jackline.engine.call_ledger import CallLedger


DOOR = "stream"
_EXIT_CODE_LIMIT = 1 << 31
_OUTPUT = 20_000  # characters; the transcript has all of them


class CallObserver:
    """Records the calls of one turn."""

    def __init__(self, ledger: CallLedger) -> None:
        """Start with no open calls."""
        self._ledger = ledger
        self._open: dict[str, str] = {}  # the agent's id of a call → ours

    def observe_event(self, heard: AgentEvent) -> None:
        """Record the start or the end of a call."""
        name = str(heard.data.get("call", ""))
        if heard.kind == "call.started" and name not in self._open and not self._ledger.has_allowed(name):
            wish = CallRequest(
                tool=str(heard.data.get("tool", "")), input=heard.data.get("input"), door=DOOR, agent_call=name
            )
            self._open[name] = self._ledger.observe(wish)
        if heard.kind == "call.finished" and name in self._open:
            self._ledger.finish(_build_observed_report(self._open.pop(name), heard))


def _build_observed_report(call_id: str, heard: AgentEvent) -> CallResult:
    code = heard.data.get("exit_code")
    return CallResult(
        call_id=call_id,
        ok=heard.data.get("ok") is True,
        exit_code=code if type(code) is int and abs(code) < _EXIT_CODE_LIMIT else None,
        output=str(heard.data.get("output", ""))[:_OUTPUT],
    )


class HookAudit:
    """Audits the calls of one turn."""

    def __init__(self, ledger: CallLedger, stop: Callable[[StopReason, str], None]) -> None:
        """`stop` requests a stop of the run."""
        self._ledger, self._stop = ledger, stop
        self._background: set[str] = set()

    def observe_event(self, heard: AgentEvent) -> None:
        """Compare one event of the output."""
        if heard.kind == "call.finished":
            self._check_result(heard, str(heard.data.get("call", "")))
        elif heard.kind == "end" and heard.data.get("deferred") is True:
            # An agent with work in the background would continue, and forget the call that waits.
            self._stop(StopReason.APPROVAL, "a call needs approval")

    def _check_result(self, heard: AgentEvent, name: str) -> None:
        call_id = self._ledger.find_call_id(name)
        if heard.data.get("task") is True:
            if call_id is not None and name in self._background:
                self._background.discard(name)
                self._ledger.finish_open(
                    _build_task_report(heard, call_id)
                )  # the hook of a subagent may have reported more
        elif heard.data.get("ran") is False:
            self._handle_blocked(heard, call_id)
        elif call_id is None:
            self._stop(StopReason.UNGATED, f"call {name or 'without an id'} ran without asking the gate")
        elif heard.data.get("background") is True:
            self._background.add(name)

    def _handle_blocked(self, heard: AgentEvent, call_id: str | None) -> None:
        """The agent did not run the call: by its own rules, or because it could not reach the gate."""
        if call_id is not None:
            self._ledger.settle_not_run(call_id, "the agent did not run it")
        elif unreached := heard.data.get("unreached"):
            self._stop(
                StopReason.UNGATED, f"the agent cannot reach the gate, so none of its calls can run: {unreached}"
            )


def _build_task_report(heard: AgentEvent, call_id: str) -> CallResult:
    code = heard.data.get("exit_code")
    return CallResult(
        call_id=call_id,
        ok=heard.data.get("ok") is True,
        exit_code=code if isinstance(code, int) else None,
        output=str(heard.data.get("output", "")),
    )
