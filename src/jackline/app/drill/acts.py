"""What is done to a case: started, waited for, killed, resumed. It tells what it saw and judges nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.app.drill.cases import PROMPT, Kill
from jackline.app.drill.commands import until
from jackline.app.drill.failing import DrillFailed
from jackline.app.drill.processes import Crew, alive, crew, is_stopped, kill, running, stop, wake
from jackline.files import is_unlocked
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from jackline.app.drill.cases import Case
    from jackline.app.drill.commands import Commands, Ended, Typed
    from jackline.app.drill.place import Place
    from jackline.app.drill.playing import Part

KILLED = 137
_BY_ITSELF = ("--retries", "3", "--retry-seconds", "0.1")
_LEASE = "1.5"  # seconds; the warden's deadline is at two thirds of it
_GIVEN_UP = "belongs to another attempt"
_MOST = 300


class Fact(NamedTuple):
    """Something that had to be so while the case was played, and whether it was."""

    words: str
    held: bool


class Act:
    """One case, from its start to the end of its last command."""

    def __init__(self, case: Case, place: Place, commands: Commands, words: tuple[str, ...]) -> None:
        self._case, self._place, self._commands, self._words = case, place, commands, words
        self.facts: list[Fact] = []

    def play(self) -> None:
        """Kill as the case says, and bring the run to its end."""
        match self._case.kill:
            case Kill.AGENT:
                self._kill_agent()
            case Kill.SUPERVISOR:
                self._kill_supervisor()
            case Kill.EVERYTHING:
                self._kill_everything()
            case Kill.FREEZE:
                self._freeze()
            case Kill.POINT:
                self._die_at_point()

    # --- the five ways

    def _kill_agent(self) -> None:
        command = self._start()
        kill([self._crew(command).agent])
        self._expect(command.end(), 0, "the run goes on by itself")

    def _kill_supervisor(self) -> None:
        command = self._start()
        kill([self._crew(command).supervisor])
        self._expect(command.end(), KILLED, "the supervisor is killed")
        self._nothing_runs("the warden ends the agent and its tools, without a resume")
        self._resume()

    def _kill_everything(self) -> None:
        command = self._start()
        found = self._crew(command)
        doomed = (found.supervisor, found.warden, *found.guards, found.agent)
        stop((*doomed, *found.tools))
        kill(doomed)
        self._expect(command.end(), KILLED, "the supervisor is killed")
        until(lambda: not any(map(alive, doomed)), "the death of supervisor, warden, guard and agent")
        self._note("a tool outlives them all", any(map(alive, found.tools)))
        wake(pid for pid in found.tools if alive(pid))
        self._resume()
        self._note("the resume has ended the tool", not any(map(alive, found.tools)))

    def _stopped_between_writes(self, supervisor: int) -> bool:
        """Who is stopped in the middle of a write holds the database, and nobody can take over: docs/promise.md."""
        stop([supervisor])
        until(lambda: is_stopped(supervisor), "the supervisor to stand still")
        if is_unlocked(self._place.at("home", "state.sqlite.gate")):
            return True
        wake([supervisor])
        return False

    def _freeze(self) -> None:
        command = self._start(JACKLINE_LEASE_SECONDS=_LEASE)
        supervisor = self._crew(command).supervisor
        until(lambda: self._stopped_between_writes(supervisor), "a moment between two writes of the supervisor")
        try:
            self._nothing_runs("the warden ends the agent and its tools at its deadline", besides=command.pid)
            # Until the lease is over the run belongs to the one that is frozen, and a resume is refused.
            until(lambda: self._commands.type("resume", self._run).code == 0, "a resume that takes over")
        finally:
            wake([command.pid])
        ended = command.end()
        self._expect(ended, 1, "the thawed supervisor gives up")
        self._note("it says that the run is another's", _GIVEN_UP in ended.out + ended.err)

    def _die_at_point(self) -> None:
        command = self._start(JACKLINE_CRASH_AT=self._case.point)
        self._expect(command.end(), KILLED, f"the supervisor dies at {self._case.point}")
        self._resume()

    # --- what they have in common

    @property
    def _run(self) -> str:
        return self._case.name

    def _start(self, **more: str) -> Typed:
        """Start it and wait until every tool has come to where it waits for the kill."""
        words = ("run", PROMPT, "--run-id", self._run, "--json", *_BY_ITSELF, *self._words)
        command = self._commands.start(*words, **more)
        names = [name for _, name in self._case.halts]
        if names:
            until(lambda: self._arrived(names) or not command.running, f"the agent to come to {', '.join(names)}")
            if not self._arrived(names):
                raise DrillFailed(f"the run ended before the agent came to {', '.join(names)}: {_said(command.end())}")
        return command

    def _arrived(self, names: list[str]) -> bool:
        return all(map(self._place.arrived, names))

    def _crew(self, command: Typed) -> Crew:
        shown = json.loads(self._commands.type("show", self._run, "--json").out)
        return crew(self._place, command.pid, shown["attempts"][-1]["warden_pid"])

    def _resume(self) -> None:
        self._expect(self._commands.type("resume", self._run, "--json"), 0, "the resume succeeds")

    def _nothing_runs(self, words: str, besides: int = 0) -> None:
        until(lambda: not running(self._place).keys() - {besides}, words)
        self._note(words, held=True)

    def _expect(self, ended: Ended, code: int, words: str) -> None:
        held = ended.code == code
        self._note(words if held else f"{words} (expected exit code {code}): {_said(ended)}", held)

    def _note(self, words: str, held: bool) -> None:  # noqa: FBT001 - it reads like an assertion
        self.facts.append(Fact(words, held))


def _said(ended: Ended) -> str:
    """How a command ended, on one line."""
    words = " ".join((ended.err or _detail(ended.out)).split())[-_MOST:]
    return f"exit code {ended.code}" + (f", {words}" if words else "")


def _detail(out: str) -> str:
    """What a command that says all of it in JSON gives as the reason of its end."""
    try:
        told = json.loads(out)
    except ValueError:
        return ""
    return str(told.get("detail", "")) if isinstance(told, dict) else ""


def run(case: Case, place: Place, commands: Commands, part: Part, agent: str) -> Act:
    """The act of a case, ready to be played."""
    return Act(case, place, commands, ("--agent", agent, *part.words))
