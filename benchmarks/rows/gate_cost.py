"""What the gate adds to a tool call of the real Claude Code: with its hooks, and with the same settings without them.

The time of a call is taken at the model: from the request that is answered with it to the next one, which brings its
result. So the start of the CLI is not in it.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from benchmarks import door, real_cli
from benchmarks.measure import Contender, interleave
from benchmarks.report import Line, Table, compare, told
from jackline.agents.claude.adapter import ADAPTER
from jackline.agents.claude.hooks import HOOKS
from jackline.domain.adapter import Launch, TurnRequest
from jackline.engine.settings import fresh_session, inherited, passed
from jackline.fake.script import Reply, Script
from jackline.fake.server import FakeModel
from jackline.fake.wire import Asked

KEY = "gate-cost"
GOAL_SECONDS = 0.010
CALLS = 20
_AGENT = door.AGENT
_BARE = "no hooks"
# name, the book behind the door, what the model asks for
_HOOKED = (
    ("hooks that are answered at once, without a ledger", door.YES, door.plain),
    ("the gate: a read", door.READ, door.plain),
    ("the gate: an effect", door.EFFECT, door.effect),
    ("the gate: an effect that gets its stored result", door.STORED, door.repeated),
)
_GATED = {name: book for name, book, _ in _HOOKED if book != door.YES}


class Clocked(Script):
    """A script that looks at the clock whenever the agent asks for the next reply."""

    def __init__(self, replies: tuple[Reply, ...]) -> None:
        super().__init__(replies)
        self.at: list[float] = []

    def take(self, asked: Asked) -> Reply:
        if asked.tools:
            self.at.append(time.perf_counter())
        return super().take(asked)

    def per_call(self) -> float:
        """The seconds of the median call; every call has to be there, else something else was measured."""
        if len(self.at) != CALLS + 1:
            raise RuntimeError(f"the agent asked {len(self.at)} times, not {CALLS + 1}")
        return statistics.median(later - earlier for earlier, later in itertools.pairwise(self.at))


def measure(folder: str, *, quick: bool) -> Table:
    title = "A tool call of Claude Code with the gate, against no hooks"
    if why := real_cli.why_not(_AGENT):
        return Table(KEY, title, (), (f"{_AGENT}: not measured, {why}",))
    real_cli.prepare(_AGENT, folder, "")
    with door.Keeper(folder) as keeper:
        samples = interleave(_contenders(folder, keeper), rounds=3 if quick else 15, warm_up=1 if quick else 2)
        waits = {name: keeper.ask(f"told {book}") for name, book in _GATED.items()}
    bare = samples.pop(_BARE)
    goals = dict.fromkeys(_GATED, GOAL_SECONDS)
    lines = tuple(compare(one, bare, goal_seconds=goals.get(one.name)) for one in samples.values())
    return Table(KEY, title, lines, _notes(lines, waits))


def _notes(lines: tuple[Line, ...], waits: Mapping[str, str]) -> tuple[str, ...]:
    waited = (f"in the ledger, {name.removeprefix('the gate: ')}: {wait}" for name, wait in waits.items())
    return (f"{CALLS} calls in each turn of {real_cli.named(_AGENT)}", *map(told, lines), *waited)


def _contenders(folder: str, keeper: door.Keeper) -> list[Contender]:
    return [
        Contender(_BARE, lambda: _turn(folder, None, door.plain)),
        *(Contender(name, _hooked(folder, keeper, book, command)) for name, book, command in _HOOKED),
    ]


def _hooked(folder: str, keeper: door.Keeper, book: str, command: Callable[[], str]) -> Callable[[], float]:
    return lambda: _turn(folder, keeper.opened(book), command)


def _turn(folder: str, opened: AbstractContextManager[str] | None, command: Callable[[], str]) -> float:
    """One whole start of the CLI; the seconds of one of its calls. Without a door nobody listens, and nobody asks."""
    script = Clocked((*(Reply(shell=command()) for _ in range(CALLS)), Reply(say="done")))
    with FakeModel(script) as model, opened or nullcontext("") as address:
        stage = real_cli.pointed(_AGENT, folder, model.address)
        allowed = passed(stage.environ, ADAPTER.declaration.passes)
        launch = _launch(stage, address, allowed)
        real_cli.write(launch.files if address else unhooked(launch.files))
        stage.run(launch, {**inherited(stage.environ), **allowed, **launch.env})
    return script.per_call()


def _launch(stage: real_cli.Stage, address: str, allowed: Mapping[str, str]) -> Launch:
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
            token=door.TOKEN,
            session=fresh_session(),
            binary=real_cli.binary(_AGENT),
            environ=allowed,
            arguments=HOOKS.daring,  # for both: without the hooks nothing else would let a call run
        )
    )


def unhooked(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same settings without the hooks."""
    told_ = {path: json.loads(content) for path, content in files.items()}
    return {
        path: json.dumps({name: value for name, value in settings.items() if name != "hooks"}).encode()
        for path, settings in told_.items()
    }
