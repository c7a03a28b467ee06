"""The player's side of the gate: one connection, kept open, questions and answers in turn.

Fails closed: without a clear answer it ends the turn, so that no call is made that nobody wrote down.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn, cast

from .lines import failed

ANSWER_BYTES = 2**24


class Gate:
    """Connects at the first question; a script without calls needs no gate."""

    def __init__(self, address: str, token: str, seconds: float) -> None:
        self._address, self._token, self._seconds = address, token, seconds
        self._stream: BinaryIO | None = None

    def prepare(self, tool: str, given: Mapping[str, object], agent_call: str) -> dict[str, Any]:
        """The decision about a call; `allow` always names the call, for the outcome has to."""
        answer = self._ask("prepare", tool=tool, input=given, agent_call=agent_call)
        decision = answer.get("decision")
        if decision not in ("allow", "deny", "stored", "ask") or (decision == "allow" and not answer.get("call")):
            raise failed("ungated", f"the gate gave no decision: {answer.get('reason') or json.dumps(answer)}")
        return answer

    def finish(self, **outcome: object) -> None:
        answer = self._ask("finish", **outcome)
        if answer.get("ok") is not True:
            raise failed("agent_error", f"the gate refused the outcome: {answer.get('reason')}")

    def _ask(self, op: str, **fields: object) -> dict[str, Any]:
        question = json.dumps({"op": op, "token": self._token, **fields}).encode() + b"\n"
        try:
            stream = self._stream = self._stream or self._connect()
            stream.write(question)
            stream.flush()
            answer = json.loads(stream.readline(ANSWER_BYTES) or b"null")
        except (OSError, ValueError) as error:
            _closed(f"the gate does not answer: {error}")
        return answer if isinstance(answer, dict) else _closed("the gate closed the connection without an answer")

    def _connect(self) -> BinaryIO:
        if not self._address:
            _closed("there is no gate: JACKLINE_GATE is not set")
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(self._seconds)
        connection.connect(self._address)
        return cast("BinaryIO", connection.makefile("rwb"))


def _closed(detail: str) -> NoReturn:
    raise failed("ungated", detail) from None
