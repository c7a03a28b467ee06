"""Handles the hook requests of an agent: a call is requested, a call ended, a subagent starts or ends. Knows no HTTP.

The agent's id of a call connects its hooks. A repeated request gets the same answer.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.adapter import SubagentEvent, ToolFinished, ToolRequested
from jackline.domain.states import Decision
from jackline.engine.call_ledger import CallRequest, CallResult
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import Hooks
    from jackline.engine.call_ledger import GateAnswer

DOOR = "http"
_SECOND = "this needs approval, too: make this call again after the other one is answered"


class HookLedger(Protocol):
    """The part of the ledger that the handler uses."""

    def prepare(self, request: CallRequest) -> GateAnswer:
        """Store a request with its decision."""
        ...

    def finish(self, report: CallResult) -> object:
        """Store a result."""
        ...

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        """Stop the run: another input ran than the one that was allowed."""
        ...


class _AnsweredCall(NamedTuple):
    request: ToolRequested
    answer: GateAnswer


class HookHandler:
    """Handles the hooks of one attempt. Thread-safe."""

    def __init__(self, ledger: HookLedger, hooks: Hooks) -> None:
        """Start with no calls."""
        self._ledger, self._hooks = ledger, hooks
        self._lock = threading.Lock()
        self._answered: dict[str, _AnsweredCall] = {}  # calls without an end, by the agent's id
        self._deferred = ""  # the call before which the agent ends, at most one
        self._background: set[str] = set()
        self._launching: list[str] = []  # calls that may start a subagent, which is not known yet
        self._parents: dict[str, str] = {}  # subagent → the call that started it

    def handle(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Handle one request and return the answer; ValueError if it is not understood."""
        match self._hooks.parse(fields):
            case ToolRequested() as request:
                with self._lock:
                    return self._handle_request(request)
            case ToolFinished() as finished:
                return self._handle_result(finished)
            case SubagentEvent() as event:
                self._handle_subagent(event)
                return {}
            case None:
                raise ValueError("unknown hook")

    def _handle_request(self, request: ToolRequested) -> dict[str, Any]:
        before = self._answered.get(request.agent_call)
        if before is not None and before.request == request:  # the same request again: our answer was lost
            return self._render_answer(before)
        answer = self._ledger.prepare(
            CallRequest(
                tool=request.tool,
                input=request.input,
                door=DOOR,
                agent_call=request.agent_call,
                folder=request.folder,
                parent=self._parents.get(request.subagent, ""),
                defers=not request.subagent,  # a subagent that has to wait just ends, so the engine must stop the run
            )
        )
        if answer.decision is Decision.ASK:
            return self._answer_ask(request, answer)
        if self._deferred == request.agent_call:
            self._deferred = ""
        answered = self._answered[request.agent_call] = _AnsweredCall(request, answer)
        if request.starts_subagent and answer.decision is Decision.ALLOW:
            self._launching.append(request.agent_call)
        return self._render_answer(answered)

    def _answer_ask(self, request: ToolRequested, answer: GateAnswer) -> dict[str, Any]:
        """Answer a call that needs approval. Of two calls in a message the agent forgets the first."""
        if request.subagent:
            return self._hooks.build_answer(request, Decision.DENY, answer.reason, "")
        if self._deferred not in {"", request.agent_call}:
            return self._hooks.build_answer(request, Decision.DENY, f"{answer.reason}; {_SECOND}", "")
        self._deferred = request.agent_call
        return self._hooks.build_answer(request, Decision.ASK, answer.reason, "")

    def _render_answer(self, answered: _AnsweredCall) -> dict[str, Any]:
        request, answer = answered
        return self._hooks.build_answer(request, answer.decision, answer.reason, answer.output)

    def _handle_result(self, finished: ToolFinished) -> dict[str, Any]:
        with self._lock:
            if finished.subagent:
                self._set_parent(finished.subagent, finished.agent_call)
            answered = self._answered.get(finished.agent_call)
            if answered is None:  # it never asked, which the audit of the output detects, or it has ended before
                return {}
            if self._ran_another_input(answered, finished):
                del self._answered[finished.agent_call]
                self._ledger.stop_for_other_input(answered.answer.call_id, finished.input)
                return {}
            if answered.answer.decision is not Decision.ALLOW:
                del self._answered[finished.agent_call]
                return self._hooks.replay_result(answered.request, answered.answer.output)
            if not finished.is_over:
                self._background.add(finished.agent_call)
                return {}
            report = self._build_report(finished)
        self._ledger.finish(report)  # without the lock: a probe may take a minute
        return {}

    def _ran_another_input(self, answered: _AnsweredCall, finished: ToolFinished) -> bool:
        """Whether another input ran than the one we allowed: a hook of the user that ends after ours can change it."""
        approved = self._hooks.approved_input(answered.request, answered.answer.decision)
        if approved is None:
            return finished.ok
        if not isinstance(approved, dict) or not isinstance(finished.input, dict):
            return False
        return any(finished.input.get(name) != value for name, value in approved.items())

    def _handle_subagent(self, event: SubagentEvent) -> None:
        with self._lock:
            if not event.ended:
                if event.name not in self._parents and self._launching:
                    self._set_parent(event.name, self._launching[0])  # subagents start in the order of their calls
                return
            call = self._parents.get(event.name, "")
            if call not in self._background:  # the call itself is reported when it ends
                return
            report = self._build_report(ToolFinished(call, ok=True, output=event.output))
        self._ledger.finish(report)

    def _build_report(self, finished: ToolFinished) -> CallResult:
        """Build the report of an allowed call, and forget the call."""
        answered = self._answered.pop(finished.agent_call)
        self._background.discard(finished.agent_call)
        return CallResult(
            call_id=answered.answer.call_id,
            ok=finished.ok,
            exit_code=finished.exit_code,
            output=finished.output,
            duration_ms=finished.duration_ms,
        )

    def _set_parent(self, subagent: str, call: str) -> None:
        self._parents[subagent] = call
        if call in self._launching:
            self._launching.remove(call)
