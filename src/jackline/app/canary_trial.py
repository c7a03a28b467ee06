"""The trial of a gate: the real program with the fake model, away from the user's home. It decides about no run.

The model calls two commands. The first must be denied. Before the model calls the second, the gate is closed: without
an answer that command must not run either. The program is started with arguments that let commands run without asking,
so that hooks that do not work are detected.
"""

from __future__ import annotations

import os
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from jackline.domain.states import Decision
from jackline.engine.call_ledger import GateAnswer
from jackline.engine.command_runner import CommandResult, run_command
from jackline.engine.gate_http import HttpGate
from jackline.engine.launch import write_files
from jackline.fake_model.pointing import point
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter, Hooks, TurnRequest
    from jackline.engine.call_ledger import CallRequest, CallResult
    from jackline.fake_model.wire import ModelRequest

_TIMEOUT_S = 90.0
_REASON = "the canary is not to be fed"
_REQUESTS = 3  # one before each of the two commands, and one with the result of the second
_FILES = ("first", "second")


def find_gate_fault(adapter: Adapter, hooks: Hooks, request: TurnRequest) -> str:
    """The fault of the gate, as a phrase that follows the program's name; empty if the gate holds."""
    # A killed program may leave a child that still writes there for a moment.
    with TemporaryDirectory(prefix="jackline-", ignore_cleanup_errors=True) as folder:
        return _find_fault(_Trial(adapter, hooks, request, folder).run())


class _TrialResult(NamedTuple):
    """What the program did in the trial."""

    ended: CommandResult
    is_asked: bool  # before the first command
    is_explained: bool  # the model got the reason of the denial
    requests: int
    files: tuple[str, ...]  # created by commands that ran


def _find_fault(result: _TrialResult) -> str:
    if "first" in result.files:
        return "ran a command that was denied" if result.is_asked else "ran a command without asking"
    if "second" in result.files:
        return "ran a command without an answer from the gate"
    if result.ended.timed_out:
        return f"did not finish a trial of its hooks within {_TIMEOUT_S:g} s"
    if not result.is_asked:
        return f"did not ask before a command in a trial of its hooks ({_describe_exit(result.ended)})"
    if not result.is_explained:
        return "did not give the model the reason of a denial"
    return "" if result.requests >= _REQUESTS else f"exited in a trial of its hooks ({_describe_exit(result.ended)})"


def _describe_exit(ended: CommandResult) -> str:
    words = " ".join(ended.stderr_tail.decode("utf-8", "replace").split())
    return words[-200:] or f"exit code {ended.exit_code}"


class _DenyingLedger:
    """The ledger of the trial, which denies every call."""

    def __init__(self) -> None:
        self.requests: list[CallRequest] = []

    def prepare(self, request: CallRequest) -> GateAnswer:
        self.requests.append(request)
        return GateAnswer(decision=Decision.DENY, call_id="", reason=_REASON)

    def finish(self, result: CallResult) -> None:
        """The trial records nothing."""

    def stop_for_other_input(self, call_id: str, made: object) -> None:
        """The trial has no other hooks."""


class _ClosingScript(Script):
    """The model's replies; calls `close_gate` before the last one."""

    def __init__(self, commands: tuple[Reply, ...], close_gate: Callable[[], None]) -> None:
        super().__init__(commands)
        self._last, self._close_gate = commands[-1], close_gate

    def next_reply(self, asked: ModelRequest) -> Reply:
        reply = super().next_reply(asked)
        if reply is self._last:
            self._close_gate()
        return reply


class _Trial:
    """One run of the program."""

    def __init__(self, adapter: Adapter, hooks: Hooks, request: TurnRequest, folder: str) -> None:
        self._adapter, self._hooks, self._request, self._folder = adapter, hooks, request, folder
        self._workspace, self._user, self._own = (os.path.join(folder, name) for name in ("workspace", "user", "agent"))
        for path in (self._workspace, self._user, self._own):
            os.mkdir(path, 0o700)

    def run(self) -> _TrialResult:
        """Start the program, and observe what it does."""
        ledger, token = _DenyingLedger(), os.urandom(16).hex()
        gate = HttpGate(ledger, token, self._hooks, on_error=lambda _error: None)
        commands = tuple(Reply(shell=f"touch {quote(self._build_path(one))}") for one in _FILES)  # noqa: S604 - the agent's
        gate.open()
        with FakeModel(_ClosingScript(commands, gate.close)) as model:
            try:
                ended = self._run_agent(model.address, gate.address, token)
            finally:
                gate.close()
            texts = [one.text for one in model.asked if one.tools]
        is_asked = any(self._build_path("first") in str(request.input) for request in ledger.requests)
        files = tuple(name for name in _FILES if os.path.exists(self._build_path(name)))
        return _TrialResult(
            ended=ended,
            is_asked=is_asked,
            is_explained=any(_REASON in text for text in texts),
            requests=len(texts),
            files=files,
        )

    def _run_agent(self, model: str, gate: str, token: str) -> CommandResult:
        request = self._request._replace(workspace=self._workspace, folder=self._own, gate=gate, token=token)
        launch = self._adapter.launch(request)
        pointed = point(self._adapter.declaration.agent, model, self._user)
        write_files({**pointed.files, **launch.files})
        env = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": self._folder, **pointed.env, **launch.env}
        return run_command(launch.argv, cwd=self._workspace, env=env, stdin=launch.stdin, timeout_s=_TIMEOUT_S)

    def _build_path(self, name: str) -> str:
        return os.path.join(self._workspace, name)
