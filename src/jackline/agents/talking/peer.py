"""An agent's process and the JSON lines to and from it. It knows no method and answers nothing."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from .borrowed import failed

CHUNK_BYTES = 2**18
LINE_BYTES = 2**26
CLOSE_SECONDS = 2.0
Message = dict[str, Any]


class Gone(Exception):
    """The agent has ended, or does not listen any more."""


class Peer:
    """Lines are read while lines are written, so that neither side waits for the other without end."""

    def __init__(self, argv: Sequence[str], workspace: str, environ: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - starting the agent is the purpose
                argv, cwd=workspace, env=dict(environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        except (OSError, ValueError) as error:
            raise failed("unavailable", f"cannot start {argv[0]}: {error}: is it installed, and on the PATH?") from None
        assert self._process.stdin is not None  # noqa: S101 - for the type checker: it was started with pipes
        assert self._process.stdout is not None  # noqa: S101 - as above
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        self._begun = b""
        self._lines: list[bytes] = []
        self._is_over = False
        self._terms, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGTERM, self._terminate)
        self.is_told_to_end = False

    def send(self, message: Mapping[str, object]) -> None:
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            readable, writable, _ = select.select([] if self._is_over else [self._from], [self._to], [])
            if readable:
                self._read()
            if writable:
                try:
                    rest = rest[os.write(self._to, rest) :]
                except BrokenPipeError:
                    raise Gone from None

    def receive(self, deadline: float | None) -> Message | None:
        """The next message; None when the time is up, or when we are told to end."""
        while True:
            message = self._next()
            if message is not None:
                return message
            if self._is_over:
                raise Gone
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            ready, _, _ = select.select([self._from, self._terms], [], [], left)
            if self._from in ready:
                self._read()
            elif self._terms in ready:
                os.read(self._terms, 1)
                return None

    def close(self) -> int:
        """End it: by the end of its input, which agents understand, then by force. Gives back its exit code."""
        assert self._process.stdin is not None  # noqa: S101 - as above
        with suppress(OSError):
            self._process.stdin.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(CLOSE_SECONDS)
            self._process.send_signal(number)
        return self._process.wait()

    def _terminate(self, *_: object) -> None:
        self.is_told_to_end = True
        with suppress(BlockingIOError):
            os.write(self._wake, b"x")

    def _read(self) -> None:
        chunk = os.read(self._from, CHUNK_BYTES)
        self._is_over = not chunk
        *whole, self._begun = (self._begun + chunk).split(b"\n")
        self._lines += whole
        if len(self._begun) > LINE_BYTES:
            raise failed("agent_error", f"the agent printed a line of more than {LINE_BYTES} bytes")

    def _next(self) -> Message | None:
        while self._lines:
            line = self._lines.pop(0)
            with suppress(ValueError, RecursionError):
                message = json.loads(line)
                if isinstance(message, dict):
                    return message
            # Some agents greet on standard output: no message, but a person may want to see it.
            sys.stderr.buffer.write(line + b"\n" if line.strip() else b"")
            sys.stderr.buffer.flush()
        return None
