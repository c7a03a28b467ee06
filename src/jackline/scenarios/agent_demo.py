"""The demo with the user's own CLI: it works, then it is killed in a shell call. Only the model is played.

It reports only facts from jackline's records, the model's requests and the processes of this host.
"""

from __future__ import annotations

import os
import shlex
import signal
from typing import TYPE_CHECKING, Any

from jackline.domain.states import CallState
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from jackline.named import NamedTuple
from jackline.scenarios.command_session import CommandSession, wait_until
from jackline.scenarios.demo import DemoFailed, expect
from jackline.scenarios.drill_cases import DrillFailed
from jackline.scenarios.sandbox import Sandbox, find_processes, list_running, send_signal

if TYPE_CHECKING:
    from jackline.scenarios.command_session import FinishedCommand
    from jackline.scenarios.demo import Say
    from jackline.scenarios.model_player import ModelPlayer

_WORK, _DELIVERY = "act-one", "act-two"
_WORK_PROMPT = "Say hello, leave a greeting in a file and commit it."
_DELIVERY_PROMPT = "Deliver the parcel, and write down that you did."
_NOTE, _DELIVERIES = "greeting.txt", "deliveries.txt"
# A program that no rule knows: a call that stays in the workspace would simply be repeated.
_DELIVERY_COMMAND = f"""python3 -c "open('{_DELIVERIES}', 'a').write('delivered\\n')"; sleep 600"""
_DELIVERY_REPLIES = (
    Reply(say="I deliver it.", shell=_DELIVERY_COMMAND),
    Reply(say="I was interrupted, so I check first.", shell=f"cat {_DELIVERIES}"),  # noqa: S604 - the agent's shell, not ours
    Reply(say="It was delivered already: I do not deliver it again."),
)
_RETRY_FLAGS = ("--retries", "2", "--retry-seconds", "0.1")
_TURN_ENDS = ("crashed: killed by SIGKILL", "ok")
_RECORDING_SECONDS = 3.0  # a CLI that reports a call when it starts has reported it by then
_INPUT_LENGTH = 90
_OPEN = (CallState.PREPARED, CallState.IN_DOUBT)


class ActRecord(NamedTuple):
    """One act's run after its end, from `jackline show`; its fields are the JSON of the demo."""

    run: str
    state: str
    session: str
    sessions: tuple[str, ...]  # of each turn
    ends: tuple[str, ...]  # of each turn: ok, or its failure and the details
    tokens_input: int
    tokens_output: int
    calls: tuple[str, ...]
    commits: tuple[str, ...]
    told: str  # the prompt of the last turn
    said: str  # the last message of the last turn


def run_agent_demo(player: ModelPlayer, folder: str, temporary: str, say: Say) -> list[ActRecord]:
    """Play both acts in folders that the caller removes; DemoFailed at the first broken promise."""
    say(f"\n{player.name} {player.version}, {player.binary}".rstrip())
    say("The CLI is real; jackline plays the model on 127.0.0.1. No key of yours, no provider, its own HOME.")
    demo = _AgentDemo(player, folder, temporary, say)
    try:
        acts = [demo.work(), demo.be_killed()]
    except DrillFailed as error:
        raise DemoFailed(str(error)) from None
    say("\nReal: the CLI, its tools, its session, the commit, the kill. Played: the model. Its script makes it check")
    say("instead of repeating its call; jackline asked it to check.")
    if player.gate == "enforced":
        say(f"Every call of {player.name} asked jackline's gate first.")
    else:
        say(f"jackline only observes {player.name} today: {player.gate_reason}.")
    return acts


class _AgentDemo:
    """Both acts of one CLI."""

    def __init__(self, player: ModelPlayer, folder: str, temporary: str, say: Say) -> None:
        self._player, self._folder, self._temporary, self._say = player, folder, temporary, say

    def work(self) -> ActRecord:
        """The CLI writes a file and commits it."""
        self._say(f"\n— act one: {self._player.name} works —\n")
        sandbox = self._build_sandbox(_WORK)
        replies = (
            Reply(say="Hello! I look around first.", shell="git log --oneline"),  # noqa: S604 - the agent's shell, not ours
            Reply(write=(os.path.join(sandbox.repository, _NOTE), "Hello from the demo.\n")),
            Reply(shell=f"git add {_NOTE} && git commit --quiet --message 'Add a greeting'"),  # noqa: S604 - as above
            Reply(say="Hello! The greeting is committed."),
        )
        with (
            FakeModel(Script(replies)) as model,
            CommandSession(sandbox, {**sandbox.environment, **self._player.connect(model, sandbox)}) as commands,
        ):
            _expect_success(commands.run(*self._command(_WORK_PROMPT, _WORK)))
            expect(len(model.asked) > 1, "the model never received the result of a tool")
            record = self._check_end(sandbox, commands, _WORK)
        expect(len(record.commits) == 1, f"expected one commit of the run, found {len(record.commits)}")
        commit, _, subject = record.commits[0].partition(" ")
        self._say(f"    its last message: {record.said}")
        self._say_calls(record)
        self._say(f"    commit {commit[:9]} {subject}")
        self._say_cost(record)
        return record

    def be_killed(self) -> ActRecord:
        """The CLI receives SIGKILL during a shell call, and the run continues by itself."""
        self._say(f"\n— act two: {self._player.name} is killed in the middle of a shell call —\n")
        sandbox = self._build_sandbox(_DELIVERY)
        effect = os.path.join(sandbox.repository, _DELIVERIES)
        with (
            FakeModel(Script(_DELIVERY_REPLIES)) as model,
            CommandSession(sandbox, {**sandbox.environment, **self._player.connect(model, sandbox)}) as commands,
        ):
            command = commands.start(*self._command(_DELIVERY_PROMPT, _DELIVERY, *_RETRY_FLAGS))
            wait_until(lambda: _has_content(effect) or not command.is_running, "the agent's call")
            if not _has_content(effect):
                raise DemoFailed(f"the agent never started its call: {command.wait()}")
            recorded = _wait_for_open_call(commands, _DELIVERY)
            warden = commands.show(_DELIVERY)["attempts"][-1]["warden_pid"]
            pid = find_processes(sandbox, command.pid, warden).agent
            send_signal([pid], signal.SIGKILL)
            _expect_success(command.wait())
            requests = [asked.text for asked in model.asked]
            record = self._check_end(sandbox, commands, _DELIVERY)
        self._say(f"    its shell had written {_DELIVERIES} and hung; then process {pid} got SIGKILL")
        self._check_resume(record, requests, recorded=recorded)
        with open(effect, encoding="utf-8") as file:
            lines = len(file.readlines())
        expect(lines == 1, f"expected one line in {_DELIVERIES}, found {lines}")
        self._say(f"    {_DELIVERIES} has 1 line: it happened once")
        self._say_calls(record)
        self._say_cost(record)
        return record

    def _build_sandbox(self, act: str) -> Sandbox:
        folder, home = os.path.join(self._folder, act), os.path.join(self._folder, "home")
        sandbox = Sandbox(folder=folder, temporary=self._temporary, home=home)
        sandbox.build()
        return sandbox

    def _command(self, prompt: str, run_id: str, *more: str) -> tuple[str, ...]:
        words = ("run", prompt, "--agent", self._player.name, "--run-id", run_id, *more)
        self._say(f"  $ {shlex.join(('jackline', *words))}")
        return words

    def _check_end(self, sandbox: Sandbox, commands: CommandSession, run_id: str) -> ActRecord:
        still_running = [f"{pid} {command}" for pid, command in list_running(sandbox).items()]
        expect(not still_running, f"still running: {'; '.join(still_running)}")
        record = _build_record(run_id, commands.show(run_id))
        expect(bool(record.session), "no session was recorded")
        expect(record.tokens_input > 0, "no tokens were recorded")
        return record

    def _check_resume(self, record: ActRecord, requests: list[str], *, recorded: bool) -> None:
        expect(record.ends == _TURN_ENDS, f"expected these ends of its turns: {_TURN_ENDS}, found {record.ends}")
        expect(len(set(record.sessions)) == 1, f"expected one session, found {', '.join(record.sessions)}")
        lines = record.told.splitlines()
        expect(any(lines[0] in text for text in requests), "the resumed model did not receive the resume prompt")
        self._say("    jackline ended the processes that were left, hung shell included, and resumed the session")
        self._say("    the resumed model received:")
        for line in lines:
            self._say(f"      | {line}".rstrip())
        if not recorded:
            self._say(f"    ({self._player.name} had not reported its call by then, so the prompt cannot name it)")

    def _say_calls(self, record: ActRecord) -> None:
        self._say("    calls, as jackline recorded them:")
        for call in record.calls:
            self._say(f"      {call}")

    def _say_cost(self, record: ActRecord) -> None:
        self._say(f"    session {record.session}, {record.tokens_input} tokens in, {record.tokens_output} out")
        self._say("    no process of it is left")


def _expect_success(ended: FinishedCommand) -> None:
    expect(ended.code == 0, f"the run should have succeeded: {ended}")


def _has_content(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0


def _wait_for_open_call(commands: CommandSession, run_id: str) -> bool:
    def has_open_call() -> bool:
        return any(call["state"] in _OPEN for call in commands.show(run_id)["calls"])

    try:
        wait_until(has_open_call, "the record of the call", _RECORDING_SECONDS)
    except DrillFailed:
        return False
    return True


def _build_record(run_id: str, shown: dict[str, Any]) -> ActRecord:
    turns, spent = shown["turns"], shown["life"]["spent"]
    expect(bool(turns), f"no turn of run {run_id} was recorded")
    return ActRecord(
        run=run_id,
        state=shown["state"],
        session=turns[-1]["session"] or "",
        sessions=tuple(turn["session"] or "" for turn in turns),
        ends=tuple(f"{turn['failure']}: {turn['detail']}" if turn["failure"] else "ok" for turn in turns),
        tokens_input=spent["tokens_input"],
        tokens_output=spent["tokens_output"],
        calls=tuple(f"{call['tool']} {_shorten(call['input'])} ({call['state']})" for call in shown["calls"]),
        commits=tuple(shown["changes"]["commits"]),
        told=turns[-1]["prompt"],
        said=turns[-1]["last_message"],
    )


def _shorten(text: str) -> str:
    return text if len(text) <= _INPUT_LENGTH else f"{text[:_INPUT_LENGTH]}…"
