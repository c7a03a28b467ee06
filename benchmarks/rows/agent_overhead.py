"""The overhead of jackline: `jackline run` of a hello against the same CLI started bare, with a fake model.

Bare means the same command line, files, input and environment as with jackline, and nothing around it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

from benchmarks import command, real_cli
from benchmarks.measure import Contender, interleave
from benchmarks.real_cli import CliStage
from benchmarks.report import Line, Table, compare, describe_difference
from jackline.agents import registry
from jackline.app import agents, config
from jackline.domain.adapter import Adapter, Launch, TurnRequest
from jackline.engine.settings import new_session_id, select_inherited_variables, select_variables
from jackline.fake_model.script import Script
from jackline.fake_model.server import FakeModel

KEY = "agent-overhead"
GOAL = 1.15
GOAL_SECONDS = 0.120
_AGENTS = ("claude", "codex", "gemini", "qwen", "opencode", "kilo")
_QUICK_AGENTS = ("claude", "codex")
_ROUNDS = {"claude": 25, "codex": 25}  # the others take seconds for a hello
_SLOW_ROUNDS = 9
_PROMPT = "say hello"


def measure(folder: str, *, quick: bool) -> Table:
    wanted = _QUICK_AGENTS if quick else _AGENTS
    missing = {name: why for name in wanted if (why := real_cli.find_obstacle(name))}
    lines = tuple(_measure_agent(name, folder, quick=quick) for name in wanted if name not in missing)
    notes = (*map(describe_difference, lines), *(f"{name}: not measured, {why}" for name, why in missing.items()))
    return Table(KEY, "`jackline run` of a hello against the bare CLI", lines, notes)


def _measure_agent(name: str, folder: str, *, quick: bool) -> Line:
    with FakeModel(Script(())) as model:
        stage = real_cli.prepare_stage(name, os.path.join(folder, name), model.address)
        bare, ours = f"bare {real_cli.format_name(name)}", f"jackline run --agent {name}"
        words = (command.JACKLINE, "run", _PROMPT, "--agent", name)
        contenders = [
            Contender(bare, _build_bare_turn(stage)),
            Contender(ours, command.build_turn(words, stage.repository, stage.environ)),
        ]
        rounds = 3 if quick else _ROUNDS.get(name, _SLOW_ROUNDS)
        samples = interleave(contenders, rounds, warm_up=1 if quick else 2)
    return compare(samples[ours], samples[bare], GOAL, GOAL_SECONDS)


def _build_bare_turn(stage: CliStage) -> Callable[[], float]:
    adapter = registry.load_adapter(stage.agent)
    settings = config.load_config(stage.environ, stage.repository)
    program = agents.find_program(settings.get_text("home"), settings, adapter, stage.environ).binary
    allowed = select_variables(stage.environ, adapter.declaration.passes)

    def turn() -> float:
        launch = _build_launch(stage, adapter, program, allowed)
        real_cli.write_files(launch.files)
        environ = {**select_inherited_variables(stage.environ), **allowed, **launch.env}
        begin = time.perf_counter()
        stage.run(launch, environ)
        return time.perf_counter() - begin

    return turn


def _build_launch(stage: CliStage, adapter: Adapter, program: str, allowed: Mapping[str, str]) -> Launch:
    session = new_session_id() if adapter.declaration.chooses_session else None
    return adapter.launch(
        TurnRequest(
            run_id="bare",
            attempt=1,
            turn=1,
            role="work",
            prompt=_PROMPT,
            workspace=stage.repository,
            folder=os.path.join(stage.folder, "agent"),
            gate="",
            token="",
            session=session,
            binary=program,
            environ=allowed,
        )
    )
