"""The cost of the gate for a tool call of the real Claude Code: with hooks, and with the same settings without them.

The model measures the time of a call: from the request that is answered with it to the next one, which brings its
result. So the start of the CLI is not included.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from benchmarks import gate_process, real_cli
from benchmarks.measure import Contender, interleave
from benchmarks.report import Line, Table, compare, describe_difference
from jackline.agents.claude.claude_adapter import ADAPTER
from jackline.agents.claude.claude_hooks import HOOKS
from jackline.domain.adapter import Launch, TurnRequest
from jackline.engine.settings import new_session_id, select_inherited_variables, select_variables
from jackline.fake_model.script import Reply, Script
from jackline.fake_model.server import FakeModel
from jackline.fake_model.wire import ModelRequest

KEY = "gate-cost"
GOAL_SECONDS = 0.010
CALLS = 20
_AGENT = gate_process.AGENT
_BARE = "no hooks"
# name, the ledger of the gate, the command that the model requests
_HOOKED = (
    ("hooks that are answered at once, without a ledger", gate_process.YES, gate_process.plain),
    ("the gate: a read", gate_process.READ, gate_process.plain),
    ("the gate: an effect", gate_process.EFFECT, gate_process.effect),
    ("the gate: an effect that gets its stored result", gate_process.STORED, gate_process.repeated),
)
_GATED = {name: ledger for name, ledger, _ in _HOOKED if ledger != gate_process.YES}


class TimedScript(Script):
    """A script that records when the agent asks for each reply."""

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        super().__init__(replies)
        self.at: list[float] = []

    def next_reply(self, asked: ModelRequest) -> Reply:
        if asked.tools:
            self.at.append(time.perf_counter())
        return super().next_reply(asked)

    def measure_call(self) -> float:
        """The seconds of the median call; a missing call means that something else was measured."""
        if len(self.at) != CALLS + 1:
            raise RuntimeError(f"the agent asked {len(self.at)} times, not {CALLS + 1}")
        return statistics.median(later - earlier for earlier, later in itertools.pairwise(self.at))


def measure(folder: str, *, quick: bool) -> Table:
    title = "A tool call of Claude Code with the gate, against no hooks"
    if why := real_cli.find_obstacle(_AGENT):
        return Table(KEY, title, (), (f"{_AGENT}: not measured, {why}",))
    real_cli.prepare_stage(_AGENT, folder, "")
    with gate_process.GateProcess(folder) as gates:
        samples = interleave(_build_contenders(folder, gates), rounds=3 if quick else 15, warm_up=1 if quick else 2)
        waits = {name: gates.ask(f"waits {ledger}") for name, ledger in _GATED.items()}
    bare = samples.pop(_BARE)
    goals = dict.fromkeys(_GATED, GOAL_SECONDS)
    lines = tuple(compare(one, bare, goal_seconds=goals.get(one.name)) for one in samples.values())
    return Table(KEY, title, lines, _build_notes(lines, waits))


def _build_notes(lines: tuple[Line, ...], waits: Mapping[str, str]) -> tuple[str, ...]:
    waited = (f"in the ledger, {name.removeprefix('the gate: ')}: {wait}" for name, wait in waits.items())
    return (f"{CALLS} calls in each turn of {real_cli.format_name(_AGENT)}", *map(describe_difference, lines), *waited)


def _build_contenders(folder: str, gates: gate_process.GateProcess) -> list[Contender]:
    return [
        Contender(_BARE, lambda: _run_cli(folder, None, gate_process.plain)),
        *(Contender(name, _build_hooked_turn(folder, gates, ledger, command)) for name, ledger, command in _HOOKED),
    ]


def _build_hooked_turn(
    folder: str, gates: gate_process.GateProcess, ledger: str, command: Callable[[], str]
) -> Callable[[], float]:
    return lambda: _run_cli(folder, gates.open_gate(ledger), command)


def _run_cli(folder: str, gate: AbstractContextManager[str] | None, command: Callable[[], str]) -> float:
    """Run the CLI once and return the seconds of one call. Without a gate there are no hooks."""
    script = TimedScript((*(Reply(shell=command()) for _ in range(CALLS)), Reply(say="done")))
    with FakeModel(script) as model, gate or nullcontext("") as address:
        stage = real_cli.build_stage(_AGENT, folder, model.address)
        allowed = select_variables(stage.environ, ADAPTER.declaration.passes)
        launch = _build_launch(stage, address, allowed)
        real_cli.write_files(launch.files if address else remove_hooks(launch.files))
        stage.run(launch, {**select_inherited_variables(stage.environ), **allowed, **launch.env})
    return script.measure_call()


def _build_launch(stage: real_cli.CliStage, address: str, allowed: Mapping[str, str]) -> Launch:
    return ADAPTER.launch(
        TurnRequest(
            run_id="bench",
            attempt=1,
            turn=1,
            role="work",
            prompt="do it",
            workspace=stage.repository,
            folder=os.path.join(stage.folder, "agent"),
            gate=address,
            token=gate_process.TOKEN,
            session=new_session_id(),
            binary=real_cli.find_binary(_AGENT),
            environ=allowed,
            arguments=HOOKS.canary_args,  # for both: without the hooks nothing else would let a call run
        )
    )


def remove_hooks(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same settings without the hooks."""
    parsed = {path: json.loads(content) for path, content in files.items()}
    return {
        path: json.dumps({name: value for name, value in settings.items() if name != "hooks"}).encode()
        for path, settings in parsed.items()
    }
