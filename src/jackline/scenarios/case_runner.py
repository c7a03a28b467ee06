"""Runs one case in its sandbox: start, wait, kill, resume, collect the evidence, judge it. The evidence stays."""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING

from jackline.clock import boot_ms
from jackline.errors import JacklineError, UsageError
from jackline.files import is_unlocked
from jackline.scenarios import verdicts
from jackline.scenarios.command_session import CommandSession, wait_until
from jackline.scenarios.drill_cases import PROMPT, DrillFailed, Kill
from jackline.scenarios.sandbox import find_processes, is_alive, is_stopped, list_running, send_signal, write_text
from jackline.scenarios.verdicts import Expectation

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.scenarios.command_session import FinishedCommand, StartedCommand
    from jackline.scenarios.drill_cases import DrillCase
    from jackline.scenarios.players import CasePlayer
    from jackline.scenarios.sandbox import CaseProcesses, Sandbox
    from jackline.scenarios.verdicts import CaseVerdict

KILLED = 137
# The predecessor made every interrupted call again.
_RUN_FLAGS = ("--retries", "3", "--retry-seconds", "0.1", "--replay", "insist")
_LEASE_S = "1.5"  # the warden's deadline is at two thirds of it


def require_linux() -> None:
    """Refuse other systems: processes are identified through /proc."""
    if sys.platform != "linux":
        raise UsageError("the drill finds the processes that it kills through /proc, so it runs on Linux only")


def run_case(
    case: DrillCase, player: CasePlayer, sandbox: Sandbox, after_kill: Callable[[], None] = lambda: None
) -> CaseVerdict:
    """Run a case from its first file to its verdict; anything that goes wrong on the way is part of the verdict."""
    started = boot_ms()
    sandbox.build(case.halts)
    with (
        player.prepare(case, sandbox) as setup,
        CommandSession(sandbox, {**sandbox.environment, **setup.environment}) as commands,
    ):
        run, problem = _CaseRun(case, sandbox, commands, ("--agent", player.name, *setup.words), after_kill), ""
        try:
            run.play()
        except (JacklineError, OSError) as error:  # OSError: a process was gone before it could be killed
            problem = str(error)
        evidence = verdicts.collect_evidence(sandbox, commands, case.name, tuple(run.expectations), problem)
    verdict = verdicts.judge_case(case, evidence, (boot_ms() - started) / 1000, sandbox.folder)
    record = verdicts.build_record(verdict, player.name)
    write_text(sandbox.at("verdict.json"), json.dumps(record, indent=2) + "\n")
    return verdict


class _CaseRun:
    """One case, from its start to the end of its last command."""

    def __init__(
        self,
        case: DrillCase,
        sandbox: Sandbox,
        commands: CommandSession,
        words: tuple[str, ...],
        after_kill: Callable[[], None],
    ) -> None:
        self._case, self._sandbox, self._commands, self._words = case, sandbox, commands, words
        self._after_kill = after_kill
        self.expectations: list[Expectation] = []

    def play(self) -> None:
        """Kill as the case says, and bring the run to its end."""
        match self._case.kill:
            case Kill.AGENT:
                command = self._start()
                send_signal([self._find_processes(command).agent], signal.SIGKILL)
                self._expect_code(command.wait(), 0, "the run continues without help")
            case Kill.SUPERVISOR:
                command = self._start()
                send_signal([self._find_processes(command).supervisor], signal.SIGKILL)
                self._expect_code(command.wait(), KILLED, "the supervisor is killed")
                self._wait_for_silence("the warden ends the agent and its tools, without a resume")
                self._resume()
            case Kill.EVERYTHING:
                self._kill_everything()
            case Kill.FREEZE:
                self._freeze_supervisor()
            case Kill.POINT:
                command = self._start(JACKLINE_CRASH_AT=self._case.point)
                self._expect_code(command.wait(), KILLED, f"the supervisor dies at {self._case.point}")
                self._resume()

    def _kill_everything(self) -> None:
        command = self._start()
        found = self._find_processes(command)
        doomed = (found.supervisor, found.warden, *found.guards, found.agent)
        # Stopped first: none of them may see another one die.
        send_signal((*doomed, *found.tools), signal.SIGSTOP)
        send_signal(doomed, signal.SIGKILL)
        self._expect_code(command.wait(), KILLED, "the supervisor is killed")
        wait_until(lambda: not any(map(is_alive, doomed)), "the death of supervisor, warden, guard and agent")
        self._expect(any(map(is_alive, found.tools)), "a tool outlives them all")
        send_signal(filter(is_alive, found.tools), signal.SIGCONT)
        self._resume()
        self._expect(not any(map(is_alive, found.tools)), "the resume has ended the tool")

    def _freeze_supervisor(self) -> None:
        command = self._start(JACKLINE_LEASE_SECONDS=_LEASE_S)
        supervisor = self._find_processes(command).supervisor
        wait_until(lambda: self._stop_between_writes(supervisor), "a moment between two writes of the supervisor")
        try:
            self._wait_for_silence("the warden ends the agent and its tools at its deadline", besides=command.pid)
            # Until the lease expires the run belongs to the frozen supervisor, and a resume is refused.
            wait_until(lambda: self._commands.run("resume", self._case.name).code == 0, "a resume that takes over")
        finally:
            send_signal([command.pid], signal.SIGCONT)
        ended = command.wait()
        self._expect_code(ended, 1, "the thawed supervisor gives up")
        is_refused = "belongs to another attempt" in ended.out + ended.err
        self._expect(is_refused, "it reports that another attempt owns the run")

    # --- steps

    def _start(self, **more: str) -> StartedCommand:
        """Start the run and wait until every tool has reached the point where it waits for the kill."""
        words = ("run", PROMPT, "--run-id", self._case.name, "--json", *_RUN_FLAGS, *self._words)
        command = self._commands.start(*words, **more)
        names = [name for _, name in self._case.halts]
        if names:
            waiting = f"the agent to reach {', '.join(names)}"
            wait_until(lambda: self._have_arrived(names) or not command.is_running, waiting)
            if not self._have_arrived(names):
                raise DrillFailed(f"the run ended before the agent reached {', '.join(names)}: {command.wait()}")
        return command

    def _have_arrived(self, names: list[str]) -> bool:
        return all(map(self._sandbox.has_arrived, names))

    def _find_processes(self, command: StartedCommand) -> CaseProcesses:
        attempt = self._commands.show(self._case.name)["attempts"][-1]
        return find_processes(self._sandbox, command.pid, attempt["warden_pid"])

    def _stop_between_writes(self, supervisor: int) -> bool:
        """Stop it, but not during a write: it would hold the database, and block a takeover (docs/promise.md)."""
        send_signal([supervisor], signal.SIGSTOP)
        wait_until(lambda: is_stopped(supervisor), "the supervisor to stop")
        if is_unlocked(self._sandbox.at("home", "state.sqlite.gate")):
            return True
        send_signal([supervisor], signal.SIGCONT)
        return False

    def _resume(self) -> None:
        self._after_kill()
        self._expect_code(self._commands.run("resume", self._case.name, "--json"), 0, "the resume succeeds")

    def _wait_for_silence(self, description: str, besides: int = 0) -> None:
        wait_until(lambda: not list_running(self._sandbox).keys() - {besides}, description)
        self._expect(True, description)  # noqa: FBT003 - it reads like an assertion

    def _expect_code(self, ended: FinishedCommand, code: int, description: str) -> None:
        met = ended.code == code
        self._expect(met, description if met else f"{description} (expected exit code {code}): {ended}")

    def _expect(self, met: bool, description: str) -> None:  # noqa: FBT001 - it reads like an assertion
        self.expectations.append(Expectation(description, met))
