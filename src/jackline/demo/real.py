"""The demo with the user's own CLI: it works, then it is killed in a shell call. Only the model is played.

It tells no more than it looked up: what the store wrote down, what the model was sent, what runs on this host.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from jackline.demo import commanding
from jackline.demo.expecting import expect
from jackline.demo.place import REPOSITORY, Place, build
from jackline.demo.seen import Seen, left_running, look
from jackline.fake.script import Reply, Script
from jackline.fake.server import FakeModel
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

AGENTS = ("claude", "codex", "gemini", "kilo", "opencode", "qwen")
_ONE, _TWO = "act-one", "act-two"
_NOTE, _EFFECT = "greeting.txt", "deliveries.txt"
# By a program that no rule knows: of what stays in the workspace the agent would be told to make it again.
_DELIVERY = f"""python3 -c "open('{_EFFECT}', 'a').write('delivered\\n')"; sleep 600"""
_HELLO = "Say hello, leave a greeting in a file and commit it."
_DELIVER = "Deliver the parcel, and write down that you did."
_ENDS = ("crashed: killed by SIGKILL", "ok")
_AT_ONCE = ("--retries", "2", "--retry-seconds", "0.1")


class Cast(NamedTuple):
    """Who plays: the CLI as it is on this machine, and what its adapter declares of its gate."""

    agent: str
    binary: str
    version: str
    gate: str
    gate_reason: str


class RealPlay:
    """Both acts, in folders that are the caller's to remove."""

    def __init__(self, cast: Cast, folder: str, temporary: str, say: Callable[[str], None]) -> None:
        self._cast, self._folder, self._temporary, self._say = cast, folder, temporary, say
        self.home = os.path.join(folder, "home")

    def play(self) -> list[Seen]:
        """One after the other; DemoFailed at the first thing that is not as promised."""
        cast = self._cast
        self._say(f"\n{cast.agent} {cast.version}, {cast.binary}".rstrip())
        self._say(
            "The CLI is real; the model is played by jackline on 127.0.0.1. No key of yours, no provider, its own HOME."
        )
        acts = [self._work(), self._be_killed()]
        self._close()
        return acts

    def _work(self) -> Seen:
        self._say(f"\n— act one: {self._cast.agent} works —\n")
        self._typed(_HELLO, _ONE)
        note = os.path.join(self._folder, _ONE, REPOSITORY, _NOTE)
        with FakeModel(_script_of_work(note)) as model:
            place = self._built(_ONE, model)
            commanding.run_to_end(place, "run", _HELLO, *self._words(_ONE))
            expect(len(model.asked) > 1, "the model was never sent what a tool had answered")
        seen = self._ended(place, _ONE)
        expect(len(seen.commits) == 1, f"expected one commit of the run, found {len(seen.commits)}")
        self._say(f"    it said: {seen.said}")
        self._tell_calls(seen)
        self._say(f"    commit {seen.commits[0][:9]} {seen.commits[0].partition(' ')[2]}")
        self._tell_cost(seen)
        return seen

    def _be_killed(self) -> Seen:
        self._say(f"\n— act two: {self._cast.agent} is killed in the middle of a shell call —\n")
        self._typed(_DELIVER, _TWO, *_AT_ONCE)
        with FakeModel(_script_of_delivery()) as model:
            place = self._built(_TWO, model)
            words = ("run", _DELIVER, *self._words(_TWO), *_AT_ONCE)
            killed = commanding.run_and_kill(place, _TWO, _EFFECT, *words)
            sent = [asked.text for asked in model.asked]
        seen = self._ended(place, _TWO)
        self._say(f"    its shell had written {_EFFECT} and hung; then process {killed.pid} got SIGKILL")
        self._tell_resumed(seen, sent, noted=killed.noted)
        lines = len(place.read(_EFFECT).splitlines())
        expect(lines == 1, f"expected one line in {_EFFECT}, found {lines}")
        self._say(f"    {_EFFECT} has 1 line: it happened once")
        self._tell_calls(seen)
        self._tell_cost(seen)
        return seen

    # --- what both acts do

    def _built(self, act: str, model: FakeModel) -> Place:
        folder = os.path.join(self._folder, act)
        place = Place(folder, self.home, self._temporary, self._cast.agent, self._cast.binary, model.address)
        build(place)
        return place

    def _words(self, run_id: str) -> tuple[str, ...]:
        return ("--agent", self._cast.agent, "--run-id", run_id)

    def _ended(self, place: Place, run_id: str) -> Seen:
        store = commanding.open_state(place)
        try:
            left = left_running(store, place, run_id)
            seen = look(store, run_id)
        finally:
            store.close()
        expect(not left, f"still running: {'; '.join(left)}")
        expect(bool(seen.session), "no session was written down")
        expect(seen.tokens_input > 0, "no tokens were written down")
        return seen

    # --- what is said

    def _typed(self, prompt: str, run_id: str, *more: str) -> None:
        self._say(f"  $ {shlex.join(('jackline', 'run', prompt, *self._words(run_id), *more))}")

    def _tell_calls(self, seen: Seen) -> None:
        self._say("    calls, as jackline wrote them down:")
        for call in seen.calls:
            self._say(f"      {call}")

    def _tell_cost(self, seen: Seen) -> None:
        self._say(f"    session {seen.session}, {seen.tokens_input} tokens in, {seen.tokens_output} out")
        self._say("    nothing of it is left running")

    def _tell_resumed(self, seen: Seen, sent: list[str], *, noted: bool) -> None:
        expect(seen.ends == _ENDS, f"expected these ends of its turns: {_ENDS}, found {seen.ends}")
        expect(len(set(seen.sessions)) == 1, f"expected one session, found {', '.join(seen.sessions)}")
        expect(
            any(seen.told.splitlines()[0] in text for text in sent), "the resumed model was not told what had happened"
        )
        self._say("    jackline ended what was left of it, hung shell included, and resumed the session")
        self._say("    the resumed model was told:")
        for line in seen.told.splitlines():
            self._say(f"      | {line}".rstrip())
        if not noted:
            self._say(f"    ({self._cast.agent} had not told of its call by then, so nobody could name it)")

    def _close(self) -> None:
        cast = self._cast
        self._say(
            "\nReal: the CLI, its tools, its session, the commit, the kill. Played: the model. That it looked instead"
        )
        self._say("of repeating its call is in its script; that it was told is jackline's doing.")
        if cast.gate == "enforced":
            self._say(f"Every call of {cast.agent} asked jackline's gate first.")
        else:
            self._say(f"Of {cast.agent} jackline is an onlooker today: {cast.gate_reason}.")


def _script_of_work(note: str) -> Script:
    return Script(
        (
            Reply(say="Hello! I look around first.", shell="git log --oneline"),  # noqa: S604 - the agent's, not ours
            Reply(write=(note, "Hello from the demo.\n")),
            Reply(shell=f"git add {_NOTE} && git commit --quiet --message 'Add a greeting'"),  # noqa: S604
            Reply(say="Hello! The greeting is committed."),
        )
    )


def _script_of_delivery() -> Script:
    return Script(
        (
            Reply(say="I deliver it.", shell=_DELIVERY),
            Reply(say="I was cut off, so I look first.", shell=f"cat {_EFFECT}"),  # noqa: S604
            Reply(say="It was delivered already: I do not deliver it again."),
        )
    )
