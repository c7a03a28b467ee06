"""What an ACP agent asks of us: leave to make a call, and files. All of it goes through the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from . import files
from .borrowed import Stop, tell
from .conversation import INTERNAL_ERROR, METHOD_NOT_FOUND, NOT_FOUND, Refusal
from .turn import Place
from .updates import Call, Updates

ALLOWING = ("allow_once", "allow_always")
REJECTING = ("reject_once", "reject_always")
CANCELLED: Mapping[str, Any] = {"outcome": {"outcome": "cancelled"}}
Params = dict[str, Any]


class Permission:
    """Answers the agent; a call that a person must agree to ends the turn, and `is_deferred` says so."""

    def __init__(self, place: Place, updates: Updates, cancel: Callable[[], None]) -> None:
        self._place, self._updates, self._cancel = place, updates, cancel
        self._files = 0
        self.is_deferred = False

    def serve(self, method: str, params: Params) -> Mapping[str, Any]:
        match method:
            case "session/request_permission":
                return self._permit(params)
            case "fs/read_text_file":
                return self._read(params)
            case "fs/write_text_file":
                return self._write(params)
        raise Refusal(METHOD_NOT_FOUND, f"{method} is not supported here")

    def _permit(self, params: Params) -> Mapping[str, Any]:
        asked, options = params.get("toolCall"), params.get("options")
        if self.is_deferred or not isinstance(asked, dict):
            return CANCELLED
        return self._decided(self._updates.call(asked), options)

    def _decided(self, call: Call, options: object) -> Mapping[str, Any]:
        self._updates.flush()
        answer = self._place.gate.prepare(call.word, call.given, call.id)
        match answer["decision"]:
            case "allow":
                call.admitted = str(answer["call"])
                self._updates.start(call)
                return _choice(options, ALLOWING)
            case "ask":
                call.is_refused = True
                self._defer()
                return CANCELLED
            case "stored":
                tell("message", text=f"{call.word} was done before, and is not done again: {answer.get('output')}")
            case _:
                tell(
                    "message", text=f"{call.word} was denied: {answer.get('reason')}"
                )  # the protocol carries no reason
        call.is_refused = True
        return _choice(options, REJECTING)

    def _defer(self) -> None:
        self.is_deferred = True
        self._cancel()

    def _read(self, params: Params) -> Mapping[str, Any]:
        path, first, count = str(params.get("path")), params.get("line"), params.get("limit")
        first = first if isinstance(first, int) and first > 0 else 1
        count = count if isinstance(count, int) and count > 0 else None
        work = partial(files.read, self._place.workspace, path, first, count)
        return {"content": self._through_gate("read", {"path": path}, work)}

    def _write(self, params: Params) -> Mapping[str, Any]:
        path, content = str(params.get("path")), str(params.get("content"))
        work = partial(files.write, self._place.workspace, path, content)
        self._through_gate("write", {"path": path, "content": content}, work)
        return {}

    def _through_gate(self, word: str, given: Params, work: Callable[[], str | None]) -> str | None:
        """Do it here, if the gate allows; this way the model reads the reason if it does not."""
        self._files += 1
        gate = self._place.gate
        answer = gate.prepare(word, given, f"fs{self._files}")
        if answer["decision"] == "ask":
            self._defer()
        if answer["decision"] != "allow":
            raise Refusal(INTERNAL_ERROR, f"denied: {answer.get('reason') or answer['decision']}")
        try:
            result = work()
        except (OSError, ValueError) as error:
            gate.finish(call=answer["call"], ok=False, output=str(error))
            # Agents look before they write: a file that is not there yet must not look like a failure.
            missing = isinstance(error, FileNotFoundError)
            raise Refusal(NOT_FOUND if missing else INTERNAL_ERROR, str(error)) from None
        gate.finish(call=answer["call"], ok=True, output="")
        return result

    def deferred(self) -> Stop:
        """How such a turn ends."""
        return Stop(0, "end", reason="deferred")


def _choice(options: object, kinds: tuple[str, ...]) -> Mapping[str, Any]:
    """Once before always: with `always` it would not ask again."""
    offered = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
    for kind in kinds:
        for one in offered:
            if one.get("kind") == kind:
                return {"outcome": {"outcome": "selected", "optionId": one.get("optionId")}}
    return CANCELLED
