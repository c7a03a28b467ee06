"""The trial of a door: the real program and the fake model, away from the user's own home. It decides about no run.

The model wants two commands. The first one must be denied; before it says the second one the door is closed, and with
nobody to ask that one must not run either. The program is told to let a command run when it was not held: so an open
door is seen.
"""

from __future__ import annotations

import os
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from jackline.app.canary_request import request
from jackline.domain.states import Decision
from jackline.engine.command import CommandResult, run_command
from jackline.engine.http_door import HttpDoor
from jackline.engine.launch import write_files
from jackline.engine.ledger import Answer
from jackline.fake.pointing import point
from jackline.fake.script import Reply, Script
from jackline.fake.server import FakeModel
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter, Hooks
    from jackline.engine.ledger import Report, Wish
    from jackline.fake.wire import Asked

_TIMEOUT_S = 90.0
_REASON = "the canary is not to be fed"
_REQUESTS = 3  # the model speaks before each of the two commands, and hears what became of the second
_FILES = ("first", "second")


def prove(adapter: Adapter, hooks: Hooks, binary: str) -> str:
    """What is wrong with the door, in words that follow the program's name; nothing if it holds."""
    # A program that was ended may leave a child that still writes there for a moment.
    with TemporaryDirectory(prefix="jackline-", ignore_cleanup_errors=True) as folder:
        return _judged(_Trial(adapter, hooks, binary, folder).seen())


class _Seen(NamedTuple):
    """What the trial saw."""

    ended: CommandResult
    is_asked: bool  # before the first command
    is_heard: bool  # the model read why that was denied
    requests: int
    files: tuple[str, ...]  # made by commands that ran


def _judged(seen: _Seen) -> str:
    if "first" in seen.files:
        return "ran a command that was denied" if seen.is_asked else "ran a command and asked nobody"
    if "second" in seen.files:
        return "ran a command when nobody answered its question"
    if seen.ended.timed_out:
        return f"did not end a trial of its hooks within {_TIMEOUT_S:g} s"
    if not seen.is_asked:
        return f"did not ask before a command in a trial of its hooks ({_last_words(seen.ended)})"
    if not seen.is_heard:
        return "did not tell the model why a command was denied"
    return "" if seen.requests >= _REQUESTS else f"ended in a trial of its hooks ({_last_words(seen.ended)})"


def _last_words(ended: CommandResult) -> str:
    words = " ".join(ended.stderr_tail.decode("utf-8", "replace").split())
    return words[-200:] or f"exit code {ended.exit_code}"


class _Refuser:
    """The ledger of the trial: whatever is wished is denied."""

    def __init__(self) -> None:
        self.wishes: list[Wish] = []

    def prepare(self, wish: Wish) -> Answer:
        self.wishes.append(wish)
        return Answer(Decision.DENY, "", _REASON)

    def finish(self, report: Report) -> None:
        """Nothing is written down here."""

    def strayed(self, call_id: str, made: object) -> None:
        """There is no other hook here."""


class _Commands(Script):
    """What the model says; before the last command is said, `shut` is called."""

    def __init__(self, commands: tuple[Reply, ...], shut: Callable[[], None]) -> None:
        super().__init__(commands)
        self._last, self._shut = commands[-1], shut

    def take(self, asked: Asked) -> Reply:
        reply = super().take(asked)
        if reply is self._last:
            self._shut()
        return reply


class _Trial:
    """One start of the program."""

    def __init__(self, adapter: Adapter, hooks: Hooks, binary: str, folder: str) -> None:
        self._adapter, self._hooks, self._binary, self._folder = adapter, hooks, binary, folder
        self._workspace, self._user, self._own = (os.path.join(folder, name) for name in ("workspace", "user", "agent"))
        for place in (self._workspace, self._user, self._own):
            os.mkdir(place, 0o700)

    def seen(self) -> _Seen:
        """Start it, and look what it did."""
        refuser, token = _Refuser(), os.urandom(16).hex()
        door = HttpDoor(refuser, token, self._hooks, on_error=lambda _error: None)
        commands = tuple(Reply(shell=f"touch {quote(self._file(one))}") for one in _FILES)  # noqa: S604 - the agent's
        door.open()
        with FakeModel(_Commands(commands, door.close)) as model:
            try:
                ended = self._run(model.address, door.address, token)
            finally:
                door.close()
            texts = [one.text for one in model.asked if one.tools]
        is_asked = any(self._file("first") in str(wish.input) for wish in refuser.wishes)
        files = tuple(name for name in _FILES if os.path.exists(self._file(name)))
        return _Seen(ended, is_asked, any(_REASON in text for text in texts), len(texts), files)

    def _run(self, model: str, gate: str, token: str) -> CommandResult:
        turn = request(self._own, self._binary, gate, token, self._hooks.daring)
        launch = self._adapter.launch(turn._replace(workspace=self._workspace))
        pointed = point(self._adapter.declaration.name, model, self._user)
        write_files({**pointed.files, **launch.files})
        env = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": self._folder, **pointed.env, **launch.env}
        return run_command(launch.argv, cwd=self._workspace, env=env, stdin=launch.stdin, timeout_s=_TIMEOUT_S)

    def _file(self, name: str) -> str:
        return os.path.join(self._workspace, name)
