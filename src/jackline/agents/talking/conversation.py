"""JSON-RPC with an agent: questions of ours, and its own in between. What they mean is decided by others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from .borrowed import failed
from .peer import Message, Peer

CANCEL_SECONDS = 3.0
SETTLE_SECONDS = 0.2
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
NOT_FOUND = -32002


class Refusal(Exception):
    """An error, theirs or ours, as JSON-RPC tells it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Interrupted(Exception):
    """We were told to end, and the agent has been told so too."""


class Settle(Protocol):
    """Whether something waits to be told; when it is quiet it is."""

    def __call__(self, *, quiet: bool) -> bool: ...


class Conversation:
    """One question of ours is open at a time; meanwhile `serve` answers the agent's and `hear` takes its notices."""

    def __init__(
        self,
        peer: Peer,
        serve: Callable[[str, Message], Mapping[str, Any]],
        hear: Callable[[str, Message], None],
        settle: Settle,
    ) -> None:
        self._peer, self._serve, self._hear, self._settle = peer, serve, hear, settle
        self._number = 0
        self._session = ""
        self._deadline: float | None = None
        self.is_cancelled = False

    def ask(self, method: str, params: Mapping[str, object], seconds: float | None) -> Message:
        """Their answer, after everything they said before it."""
        self._number += 1
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._send(id=self._number, method=method, params=params)
        while True:
            message = self._next()
            if message is None:
                self._overdue(method, seconds)
            elif "method" in message:
                self._take(message)
            elif message.get("id") == self._number:
                return _result(message)

    def prompt(self, session: str, text: str) -> Message:
        """The whole turn; while it lasts, being told to end means to cancel it."""
        self._session = session
        blocks = [{"type": "text", "text": text}]
        return self.ask("session/prompt", {"sessionId": session, "prompt": blocks}, None)

    def cancel(self) -> None:
        """Ask for the end of the turn, which kills the agent's shells too; it has a moment to answer."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self._deadline = time.monotonic() + CANCEL_SECONDS
            self._send(method="session/cancel", params={"sessionId": self._session})

    def drain(self, seconds: float) -> None:
        """Take what comes until it has been quiet for so long."""
        while (message := self._peer.receive(time.monotonic() + seconds)) is not None:
            if "method" in message:
                self._take(message)

    def _next(self) -> Message | None:
        """The next message; when there is none for a moment, what waited for it is settled."""
        if self._settle(quiet=False):
            moment = time.monotonic() + SETTLE_SECONDS
            limit = moment if self._deadline is None else min(moment, self._deadline)
            message = self._peer.receive(limit)
            if message is not None or self._peer.is_told_to_end:
                return message
            self._settle(quiet=True)
        return self._peer.receive(self._deadline)

    def _overdue(self, method: str, seconds: float | None) -> None:
        if self._peer.is_told_to_end and self._session and not self.is_cancelled:
            self.cancel()
        elif self._peer.is_told_to_end or self.is_cancelled:
            raise Interrupted
        else:
            raise failed("agent_error", f"the agent did not answer {method} within {seconds:g} s")

    def _take(self, message: Message) -> None:
        method, params = str(message["method"]), message.get("params")
        fields = params if isinstance(params, dict) else {}
        if "id" not in message:
            self._hear(method, fields)
            return
        try:
            answer: dict[str, Any] = {"result": dict(self._serve(method, fields))}
        except Refusal as refusal:
            answer = {"error": {"code": refusal.code, "message": refusal.message}}
        self._send(id=message["id"], **answer)

    def _send(self, **fields: object) -> None:
        self._peer.send({"jsonrpc": "2.0", **fields})


def _result(message: Message) -> Message:
    error = message.get("error")
    if isinstance(error, dict):
        code = error.get("code")
        raise Refusal(code if isinstance(code, int) else INTERNAL_ERROR, str(error.get("message")), error.get("data"))
    result = message.get("result")
    return result if isinstance(result, dict) else {}
