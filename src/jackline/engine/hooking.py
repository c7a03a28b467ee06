"""What an agent's hooks mean to the ledger: calls that are asked for, calls that ended, subagents. It knows no http.

The agent's own name of a call ties its hooks together. A hook may come twice, and is then answered as before.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from jackline.domain.adapter import Asked, Helper, Told
from jackline.domain.states import Decision
from jackline.engine.ledger import Report, Wish
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackline.domain.adapter import Hooks
    from jackline.engine.ledger import Answer

DOOR = "http"
_SECOND = "a person must agree to this, too: make this call again when the other one is answered"


class Book(Protocol):
    """What the desk needs of the ledger."""

    def prepare(self, wish: Wish) -> Answer:
        """Write a wish down with the decision about it."""
        ...

    def finish(self, report: Report) -> object:
        """Write down what came of it."""
        ...

    def strayed(self, call_id: str, made: object) -> None:
        """Something else ran in the place of a call."""
        ...


class _Answered(NamedTuple):
    asked: Asked
    answer: Answer


class Desk:
    """The hooks of one attempt, from whatever threads they come."""

    def __init__(self, ledger: Book, hooks: Hooks) -> None:
        """Nothing was asked yet."""
        self._ledger, self._hooks = ledger, hooks
        self._lock = threading.Lock()
        self._answered: dict[str, _Answered] = {}  # not yet over, by the agent's name of the call
        self._deferred = ""  # the call before which the agent ends; there can be only one
        self._background: set[str] = set()
        self._launching: list[str] = []  # calls that may start a subagent, and whose subagent is not known
        self._parents: dict[str, str] = {}  # subagent → the call that started it

    def reply(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """What the agent is told; ValueError for what cannot be understood."""
        match self._hooks.read(fields):
            case Asked() as asked:
                with self._lock:
                    return self._ask(asked)
            case Told() as told:
                return self._tell(told)
            case Helper() as helper:
                self._follow(helper)
                return {}
            case None:
                raise ValueError("it is no hook that the gate knows")

    def _ask(self, asked: Asked) -> dict[str, Any]:
        before = self._answered.get(asked.agent_call)
        if before is not None and before.asked == asked:  # the same request once more: our answer was lost
            return self._said(before)
        answer = self._ledger.prepare(self._wish(asked))
        if answer.decision is Decision.ASK:
            return self._hold(asked, answer)
        if self._deferred == asked.agent_call:
            self._deferred = ""
        answered = self._answered[asked.agent_call] = _Answered(asked, answer)
        if asked.launches and answer.decision is Decision.ALLOW:
            self._launching.append(asked.agent_call)
        return self._said(answered)

    def _wish(self, asked: Asked) -> Wish:
        return Wish(
            tool=asked.tool,
            input=asked.input,
            door=DOOR,
            agent_call=asked.agent_call,
            folder=asked.folder,
            parent=self._parents.get(asked.helper, ""),
            defers=not asked.helper,  # a subagent that is told to wait simply ends: there the engine has to stop
        )

    def _hold(self, asked: Asked, answer: Answer) -> dict[str, Any]:
        """A person is asked. Only one call of a message can wait for the word: of two, the agent forgets the first."""
        if asked.helper:
            return self._hooks.answer(asked, Decision.DENY, answer.reason, "")
        if self._deferred not in {"", asked.agent_call}:
            return self._hooks.answer(asked, Decision.DENY, f"{answer.reason}; {_SECOND}", "")
        self._deferred = asked.agent_call
        return self._hooks.answer(asked, Decision.ASK, answer.reason, "")

    def _said(self, answered: _Answered) -> dict[str, Any]:
        asked, answer = answered
        return self._hooks.answer(asked, answer.decision, answer.reason, answer.output)

    def _tell(self, told: Told) -> dict[str, Any]:
        with self._lock:
            if told.helper:
                self._know(told.helper, told.agent_call)
            answered = self._answered.get(told.agent_call)
            if answered is None:  # it never asked, or was over before: the witness looks after the first
                return {}
            if self._is_another(answered, told):
                del self._answered[told.agent_call]
                self._ledger.strayed(answered.answer.call_id, told.input)
                return {}
            if answered.answer.decision is not Decision.ALLOW:
                del self._answered[told.agent_call]
                return self._hooks.stored(answered.asked, answered.answer.output)
            if not told.is_over:
                self._background.add(told.agent_call)
                return {}
            report = self._report(told)
        self._ledger.finish(report)  # without the lock: a probe may take a minute
        return {}

    def _is_another(self, answered: _Answered, told: Told) -> bool:
        """Whether something else ran than what we let run: a hook of the user's own, slower than ours, can do that."""
        meant = self._hooks.meant(answered.asked, answered.answer.decision)
        if meant is None:
            return told.ok
        if not isinstance(meant, dict) or not isinstance(told.input, dict):
            return False
        return any(told.input.get(name) != value for name, value in meant.items())

    def _follow(self, helper: Helper) -> None:
        with self._lock:
            if not helper.ended:
                if helper.name not in self._parents and self._launching:
                    self._know(helper.name, self._launching[0])  # they begin in the order in which they were allowed
                return
            call = self._parents.get(helper.name, "")
            if call not in self._background:  # the call itself is told of when it ends
                return
            report = self._report(Told(call, ok=True, output=helper.output))
        self._ledger.finish(report)

    def _report(self, told: Told) -> Report:
        """The end of a call that was allowed; it is told once."""
        answered = self._answered.pop(told.agent_call)
        self._background.discard(told.agent_call)
        return Report(
            call_id=answered.answer.call_id,
            ok=told.ok,
            exit_code=told.exit_code,
            output=told.output,
            duration_ms=told.duration_ms,
        )

    def _know(self, helper: str, call: str) -> None:
        self._parents[helper] = call
        if call in self._launching:
            self._launching.remove(call)
