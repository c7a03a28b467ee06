"""Reads calls from an agent's output: records those of an agent without a gate, audits those of one with hooks.

It blocks nothing. The audit compares the calls in the output with those that the gate was asked about. The result of a
call that never asked means that the gate was bypassed; a call that was blocked because the hook failed means that the
gate cannot be reached. A call that the gate allowed and the agent did not run did not happen. The end of a background
call is known only from the output.
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

    def observe_event(self, event: AgentEvent) -> None:
        """Record the start or the end of a call."""
        name = str(event.data.get("call", ""))
        if event.kind == "call.started" and name not in self._open and not self._ledger.has_allowed(name):
            tool = str(event.data.get("tool", ""))
            request = CallRequest(tool=tool, input=event.data.get("input"), door=DOOR, agent_call=name)
            self._open[name] = self._ledger.observe(request)
        if event.kind == "call.finished" and name in self._open:
            code = event.data.get("exit_code")
            result = CallResult(
                call_id=self._open.pop(name),
                ok=event.data.get("ok") is True,
                exit_code=code if type(code) is int and abs(code) < _EXIT_CODE_LIMIT else None,
                output=str(event.data.get("output", ""))[:_OUTPUT],
            )
            self._ledger.finish(result)


class HookAudit:
    """Audits the calls of one turn."""

    def __init__(self, ledger: CallLedger, stop: Callable[[StopReason, str], None]) -> None:
        """`stop` requests a stop of the run."""
        self._ledger, self._stop = ledger, stop
        self._background: set[str] = set()

    def observe_event(self, event: AgentEvent) -> None:
        """Compare one event of the output."""
        if event.kind == "call.finished":
            self._check_result(event, str(event.data.get("call", "")))
        elif event.kind == "end" and event.data.get("deferred") is True:
            # An agent with work in the background would continue, and forget the call that waits.
            self._stop(StopReason.APPROVAL, "a call needs approval")

    def _check_result(self, event: AgentEvent, name: str) -> None:
        call_id = self._ledger.find_call_id(name)
        if event.data.get("task") is True:
            if call_id is not None and name in self._background:
                self._background.discard(name)
                code = event.data.get("exit_code")
                result = CallResult(
                    call_id=call_id,
                    ok=event.data.get("ok") is True,
                    exit_code=code if isinstance(code, int) else None,
                    output=str(event.data.get("output", "")),
                )
                self._ledger.finish_open(result)  # the hook of a subagent may have reported more
        elif event.data.get("ran") is False:
            self._handle_blocked(event, call_id)
        elif call_id is None:
            self._stop(StopReason.UNGATED, f"call {name or 'without an id'} ran without asking the gate")
        elif event.data.get("background") is True:
            self._background.add(name)

    def _handle_blocked(self, event: AgentEvent, call_id: str | None) -> None:
        """The agent did not run the call: by its own rules, or because it could not reach the gate."""
        if call_id is not None:
            self._ledger.settle_not_run(call_id, "the agent did not run it")
        elif unreached := event.data.get("unreached"):
            self._stop(
                StopReason.UNGATED, f"the agent cannot reach the gate, so none of its calls can run: {unreached}"
            )
