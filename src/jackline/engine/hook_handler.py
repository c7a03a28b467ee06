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

    def prepare(self, wish: CallRequest) -> GateAnswer:
        """Store a request with its decision."""
        ...

    def finish(self, report: CallResult) -> object:
        """Store a result."""
        ...

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        """Stop the run: another input ran than the one that was allowed."""
        ...


class _Answered(NamedTuple):
    asked: ToolRequested
    answer: GateAnswer


class HookHandler:
    """Handles the hooks of one attempt. Thread-safe."""

    def __init__(self, ledger: HookLedger, hooks: Hooks) -> None:
        """Start with no calls."""
        self._ledger, self._hooks = ledger, hooks
        self._lock = threading.Lock()
        self._answered: dict[str, _Answered] = {}  # calls without an end, by the agent's id
        self._deferred = ""  # the call before which the agent ends, at most one
        self._background: set[str] = set()
        self._launching: list[str] = []  # calls that may start a subagent, which is not known yet
        self._parents: dict[str, str] = {}  # subagent → the call that started it

    def handle(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Handle one request and return the answer; ValueError if it is not understood."""
        match self._hooks.parse(fields):
            case ToolRequested() as asked:
                with self._lock:
                    return self._handle_request(asked)
            case ToolFinished() as told:
                return self._handle_result(told)
            case SubagentEvent() as helper:
                self._handle_subagent(helper)
                return {}
            case None:
                raise ValueError("unknown hook")

    def _handle_request(self, asked: ToolRequested) -> dict[str, Any]:
        before = self._answered.get(asked.agent_call)
        if before is not None and before.asked == asked:  # the same request again: our answer was lost
            return self._render_answer(before)
        answer = self._ledger.prepare(self._build_wish(asked))
        if answer.decision is Decision.ASK:
            return self._answer_ask(asked, answer)
        if self._deferred == asked.agent_call:
            self._deferred = ""
        answered = self._answered[asked.agent_call] = _Answered(asked, answer)
        if asked.starts_subagent and answer.decision is Decision.ALLOW:
            self._launching.append(asked.agent_call)
        return self._render_answer(answered)

    def _build_wish(self, asked: ToolRequested) -> CallRequest:
        return CallRequest(
            tool=asked.tool,
            input=asked.input,
            door=DOOR,
            agent_call=asked.agent_call,
            folder=asked.folder,
            parent=self._parents.get(asked.subagent, ""),
            defers=not asked.subagent,  # a subagent that has to wait just ends, so the engine must stop the run
        )

    def _answer_ask(self, asked: ToolRequested, answer: GateAnswer) -> dict[str, Any]:
        """Answer a call that needs approval. Of two calls in a message the agent forgets the first."""
        if asked.subagent:
            return self._hooks.build_answer(asked, Decision.DENY, answer.reason, "")
        if self._deferred not in {"", asked.agent_call}:
            return self._hooks.build_answer(asked, Decision.DENY, f"{answer.reason}; {_SECOND}", "")
        self._deferred = asked.agent_call
        return self._hooks.build_answer(asked, Decision.ASK, answer.reason, "")

    def _render_answer(self, answered: _Answered) -> dict[str, Any]:
        asked, answer = answered
        return self._hooks.build_answer(asked, answer.decision, answer.reason, answer.output)

    def _handle_result(self, told: ToolFinished) -> dict[str, Any]:
        with self._lock:
            if told.subagent:
                self._set_parent(told.subagent, told.agent_call)
            answered = self._answered.get(told.agent_call)
            if answered is None:  # it never asked, which the audit of the output detects, or it has ended before
                return {}
            if self._ran_another_input(answered, told):
                del self._answered[told.agent_call]
                self._ledger.stop_for_other_input(answered.answer.call_id, told.input)
                return {}
            if answered.answer.decision is not Decision.ALLOW:
                del self._answered[told.agent_call]
                return self._hooks.replay_result(answered.asked, answered.answer.output)
            if not told.is_over:
                self._background.add(told.agent_call)
                return {}
            report = self._build_report(told)
        self._ledger.finish(report)  # without the lock: a probe may take a minute
        return {}

    def _ran_another_input(self, answered: _Answered, told: ToolFinished) -> bool:
        """Whether another input ran than the one we allowed: a hook of the user that ends after ours can change it."""
        meant = self._hooks.approved_input(answered.asked, answered.answer.decision)
        if meant is None:
            return told.ok
        if not isinstance(meant, dict) or not isinstance(told.input, dict):
            return False
        return any(told.input.get(name) != value for name, value in meant.items())

    def _handle_subagent(self, helper: SubagentEvent) -> None:
        with self._lock:
            if not helper.ended:
                if helper.name not in self._parents and self._launching:
                    self._set_parent(helper.name, self._launching[0])  # subagents start in the order of their calls
                return
            call = self._parents.get(helper.name, "")
            if call not in self._background:  # the call itself is reported when it ends
                return
            report = self._build_report(ToolFinished(call, ok=True, output=helper.output))
        self._ledger.finish(report)

    def _build_report(self, told: ToolFinished) -> CallResult:
        """Build the report of an allowed call, and forget the call."""
        answered = self._answered.pop(told.agent_call)
        self._background.discard(told.agent_call)
        return CallResult(
            call_id=answered.answer.call_id,
            ok=told.ok,
            exit_code=told.exit_code,
            output=told.output,
            duration_ms=told.duration_ms,
        )

    def _set_parent(self, helper: str, call: str) -> None:
        self._parents[helper] = call
        if call in self._launching:
            self._launching.remove(call)
