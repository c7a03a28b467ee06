"""What jackline adds to a real CLI: `jackline run` of a hello against the same CLI started bare, on a played model.

Bare means the very command line, files, input and environment that jackline would give it, and nothing around it.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from collections.abc import Callable, Mapping

from benchmarks import command
from benchmarks.measure import Contender, interleave
from benchmarks.report import Line, Table, compare
from jackline.agents import registry
from jackline.app import agents, config
from jackline.domain.adapter import Adapter, Launch, TurnRequest
from jackline.engine.settings import fresh_session, inherited, passed
from jackline.fake.pointing import point
from jackline.fake.script import Script
from jackline.fake.server import FakeModel
from tools.agents import pins

KEY = "agent-overhead"
GOAL = 1.15
GOAL_SECONDS = 0.150
_AGENTS = ("claude", "codex", "gemini", "qwen", "opencode", "kilo")
_QUICK_AGENTS = ("claude", "codex")
_ROUNDS = {"claude": 25, "codex": 25}  # the others take seconds for a hello
_SLOW_ROUNDS = 9
_PROMPT = "say hello"


@dataclasses.dataclass(frozen=True, slots=True)
class Stage:
    """One CLI in a HOME, a repository and a home of jackline that both contenders use."""

    agent: str
    folder: str
    environ: Mapping[str, str]

    @property
    def repository(self) -> str:
        return os.path.join(self.folder, "repository")


def measure(folder: str, *, quick: bool) -> Table:
    wanted = _QUICK_AGENTS if quick else _AGENTS
    missing = {name: why for name in wanted if (why := _why_not(name))}
    lines = tuple(_line(name, folder, quick=quick) for name in wanted if name not in missing)
    notes = (*map(_told, lines), *(f"{name}: not measured, {why}" for name, why in missing.items()))
    return Table(KEY, "`jackline run` of a hello against the bare CLI", lines, notes)


def _why_not(name: str) -> str:
    pin = pins.read()[name]
    if name not in registry.AGENTS:
        return "there is no adapter for it"
    is_there = pin.is_for_here and os.access(_binary(name), os.X_OK)
    return "" if is_there else f"{pin.version} is not installed (`make agents`)"


def _binary(name: str) -> str:
    return pins.read()[name].binary(pins.cache_folder(os.environ))


def _told(line: Line) -> str:
    median, low, high = (f"{seconds * 1000:+.0f}" for seconds in dataclasses.astuple(line.difference))
    return f"{line.name}: {median} ms (quartiles {low} to {high})"


def _line(name: str, folder: str, *, quick: bool) -> Line:
    with FakeModel(Script(())) as model:
        stage = _stage(name, os.path.join(folder, name), model.address)
        bare, ours = f"bare {name} {pins.read()[name].version}", f"jackline run --agent {name}"
        words = (command.JACKLINE, "run", _PROMPT, "--agent", name)
        contenders = [
            Contender(bare, _bare(stage)),
            Contender(ours, command.turn(words, stage.repository, stage.environ)),
        ]
        rounds = 3 if quick else _ROUNDS.get(name, _SLOW_ROUNDS)
        samples = interleave(contenders, rounds, warm_up=1 if quick else 2)
    return compare(samples[ours], samples[bare], GOAL, GOAL_SECONDS)


def _stage(name: str, folder: str, address: str) -> Stage:
    user, temporary = os.path.join(folder, "user"), os.path.join(folder, "tmp")
    pointed = point(name, address, user)
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "TMPDIR": temporary,  # some CLIs leave megabytes there, at every start
        "JACKLINE_HOME": os.path.join(folder, "home"),
        f"JACKLINE_{name.upper()}_BINARY": _binary(name),
        **pointed.env,
    }
    stage = Stage(name, folder, environ)
    for place in (user, temporary, stage.repository):
        os.makedirs(place)
    _write(pointed.files)
    for words in (("init", "-q"), ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty")):
        subprocess.run(("git", *words), cwd=stage.repository, env=environ, check=True)
    return stage


def _bare(stage: Stage) -> Callable[[], float]:
    adapter = registry.load(stage.agent)
    settings = config.load(stage.environ, stage.repository)
    program = agents.find(settings.text("home"), settings, adapter, stage.environ).binary
    allowed = passed(stage.environ, adapter.declaration.passes)

    def turn() -> float:
        launch = _launch(stage, adapter, program, allowed)
        _write(launch.files)
        environ = {**inherited(stage.environ), **allowed, **launch.env}
        begin = time.perf_counter()
        done = subprocess.run(
            launch.argv, cwd=stage.repository, env=environ, input=launch.stdin or b"", capture_output=True, check=False
        )
        took = time.perf_counter() - begin
        if done.returncode != 0:
            raise command.CommandFailed(f"{stage.agent}: exit {done.returncode}: {done.stderr.decode().strip()}")
        return took

    return turn


def _launch(stage: Stage, adapter: Adapter, program: str, allowed: Mapping[str, str]) -> Launch:
    session = fresh_session() if adapter.declaration.chooses_session else None
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


def _write(files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
