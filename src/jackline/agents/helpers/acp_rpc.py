"""JSON-RPC with an ACP agent: its process, the lines to and from it, our requests and the agent's own in between.

What a method means is decided elsewhere.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ..scripted.playback.agent_io import build_failure

CHUNK_BYTES = 2**18
LINE_BYTES = 2**26
CLOSE_SECONDS = 2.0
CANCEL_SECONDS = 3.0
SETTLE_SECONDS = 0.2
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
NOT_FOUND = -32002
RpcMessage = dict[str, Any]


class AgentGone(Exception):
    """The agent has exited, or reads no more."""


class RpcError(Exception):
    """A JSON-RPC error, the agent's or ours."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Interrupted(Exception):
    """We were asked to terminate, and so was the agent."""


class AgentProcess:
    """The agent's process. Reads lines while it writes lines, so that neither side blocks the other forever."""

    def __init__(self, argv: Sequence[str], workspace: str, environ: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - starting the agent is the purpose
                argv, cwd=workspace, env=dict(environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except (OSError, ValueError) as error:
            detail = f"cannot start {argv[0]}: {error}: is it installed, and on the PATH?"
            raise build_failure("unavailable", detail) from None
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: it was started with pipes
        assert self._process.stdout is not None  # noqa: S101 - as above
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        self._partial_line = b""
        self._lines: list[bytes] = []
        self._is_over = False
        self._terms, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGTERM, self._on_terminate)
        self.is_terminating = False

    def send(self, message: Mapping[str, object]) -> None:
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            readable, writable, _ = select.select([] if self._is_over else [self._from], [self._to], [])
            if readable:
                self._read_chunk()
            if writable:
                try:
                    rest = rest[os.write(self._to, rest) :]
                except BrokenPipeError:
                    raise AgentGone from None

    def receive(self, deadline: float | None) -> RpcMessage | None:
        """The next message; None at the deadline, or if we are asked to terminate."""
        while True:
            message = self._pop_message()
            if message is not None:
                return message
            if self._is_over:
                raise AgentGone
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            ready, _, _ = select.select([self._from, self._terms], [], [], left)
            if self._from in ready:
                self._read_chunk()
            elif self._terms in ready:
                os.read(self._terms, 1)
                return None

    def close(self) -> int:
        """End the process: close its input, which agents understand, then kill it. Returns its exit code."""
        assert self._process.stdin is not None  # noqa: S101 - as above
        with suppress(OSError):
            self._process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(CLOSE_SECONDS)
            self._process.send_signal(number)
        return self._process.wait()

    def _on_terminate(self, *_: object) -> None:
        self.is_terminating = True
        with suppress(BlockingIOError):
            os.write(self._wake, b"x")

    def _read_chunk(self) -> None:
        chunk = os.read(self._from, CHUNK_BYTES)
        self._is_over = not chunk
        *complete, self._partial_line = (self._partial_line + chunk).split(b"\n")
        self._lines += complete
        if len(self._partial_line) > LINE_BYTES:
            raise build_failure("agent_error", f"the agent printed a line of more than {LINE_BYTES} bytes")

    def _pop_message(self) -> RpcMessage | None:
        while self._lines:
            line = self._lines.pop(0)
            with suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message
            # Some agents print a greeting on standard output: not a message, but worth showing.
            sys.stderr.buffer.write(line + b"\n" if line.strip() else b"")
            sys.stderr.buffer.flush()
        return None


class Settle(Protocol):
    """Whether calls wait to be reported; reports them if `quiet`."""

    def __call__(self, *, quiet: bool) -> bool: ...


class RpcConnection:
    """One request of ours at a time; meanwhile `serve` answers the agent's requests and `notify` gets notifications."""

    def __init__(
        self,
        process: AgentProcess,
        serve: Callable[[str, RpcMessage], Mapping[str, Any]],
        notify: Callable[[str, RpcMessage], None],
        settle: Settle,
    ) -> None:
        self._process, self._serve, self._notify, self._settle = process, serve, notify, settle
        self._number = 0
        self._session = ""
        self._deadline: float | None = None
        self.is_cancelled = False

    def request(self, method: str, params: Mapping[str, object], seconds: float | None) -> RpcMessage:
        """Send a request and wait for its result; messages before it are handled first."""
        self._number += 1
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._send(id=self._number, method=method, params=params)
        while True:
            message = self._receive_or_settle()
            if message is None:
                self._handle_timeout(method, seconds)
            elif "method" in message:
                self._handle(message)
            elif message.get("id") == self._number:
                if isinstance(error := message.get("error"), dict):
                    code = error.get("code")
                    number = code if isinstance(code, int) else INTERNAL_ERROR
                    raise RpcError(number, str(error.get("message")), error.get("data"))
                result = message.get("result")
                return result if isinstance(result, dict) else {}

    def prompt(self, session: str, text: str) -> RpcMessage:
        """Run the whole turn; if we are asked to terminate meanwhile, cancel it."""
        self._session = session
        blocks = [{"type": "text", "text": text}]
        return self.request("session/prompt", {"sessionId": session, "prompt": blocks}, None)

    def cancel(self) -> None:
        """Cancel the turn, which also kills the agent's shells; the agent has a moment to answer."""
        if not self.is_cancelled:
            self.is_cancelled = True
            self._deadline = time.monotonic() + CANCEL_SECONDS
            self._send(method="session/cancel", params={"sessionId": self._session})

    def drain(self, seconds: float) -> None:
        """Handle messages until none arrives for this long."""
        while (message := self._process.receive(time.monotonic() + seconds)) is not None:
            if "method" in message:
                self._handle(message)

    def _receive_or_settle(self) -> RpcMessage | None:
        """The next message; if none arrives for a moment, settle waiting calls."""
        if self._settle(quiet=False):
            moment = time.monotonic() + SETTLE_SECONDS
            limit = moment if self._deadline is None else min(moment, self._deadline)
            message = self._process.receive(limit)
            if message is not None or self._process.is_terminating:
                return message
            self._settle(quiet=True)
        return self._process.receive(self._deadline)

    def _handle_timeout(self, method: str, seconds: float | None) -> None:
        if self._process.is_terminating and self._session and not self.is_cancelled:
            self.cancel()
        elif self._process.is_terminating or self.is_cancelled:
            raise Interrupted
        else:
            raise build_failure("agent_error", f"the agent did not answer {method} within {seconds:g} s")

    def _handle(self, message: RpcMessage) -> None:
        method, params = str(message["method"]), message.get("params")
        fields = params if isinstance(params, dict) else {}
        if "id" not in message:
            self._notify(method, fields)
            return
        try:
            answer: dict[str, Any] = {"result": dict(self._serve(method, fields))}
        except RpcError as error:
            answer = {"error": {"code": error.code, "message": error.message}}
        self._send(id=message["id"], **answer)

    def _send(self, **fields: object) -> None:
        self._process.send({"jsonrpc": "2.0", **fields})
