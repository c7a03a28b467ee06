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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn

from benchmarks import real_cli, samples
from benchmarks.measure import Contender, interleave
from benchmarks.report import Line, Table, compare, duration, told
from jackline import clock
from jackline.agents.claude import ADAPTER
from jackline.agents.claude_hooks import HOOKS
from jackline.domain.adapter import Launch, TurnRequest
from jackline.domain.rule import Rule
from jackline.domain.states import CallClass, Decision, RunState
from jackline.engine.hooking import Book
from jackline.engine.http_door import HttpDoor
from jackline.engine.ledger import Answer, Ledger, Report, Wish
from jackline.engine.probe import Prober
from jackline.engine.settings import fresh_session, inherited, passed
from jackline.fake.script import Reply, Script
from jackline.fake.server import FakeModel
from jackline.fake.wire import Asked
from jackline.store.contract import Store
from jackline.store.open import open_store

KEY = "gate-cost"
GOAL_SECONDS = 0.010
CALLS = 20
_AGENT = "claude"
_TOKEN = "the-token-of-the-benchmark"  # noqa: S105 - it opens a door of this process only
_BARE = "no hooks"
_YES = "hooks that are answered at once, without a ledger"
_PLAIN = "the gate: a read"
_EFFECT = "the gate: an effect"
_STORED = "the gate: an effect that gets its stored result"
# An effect that does what the yardstick does: nothing.
SEND = Rule("send", "", CallClass.EFFECT, command=("true", "send"), key=("1",), target="mail:{1}")
_numbers = itertools.count(1)


def plain() -> str:
    """A command that the built-in policy calls a read."""
    return "true"


def effect() -> str:
    """An effect that was never made before."""
    return f"true send {next(_numbers)}"


def repeated() -> str:
    """An effect that was made already."""
    return "true send 0"


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


class Yes:
    """Allows everything and writes nothing: what is left is the agent's own work for a hook, and http."""

    def prepare(self, wish: Wish) -> Answer:
        return Answer(Decision.ALLOW, wish.agent_call)

    def finish(self, report: Report) -> None:
        """Nothing."""


@dataclass
class Watched:
    """A ledger, and how long the agent waited for it."""

    ledger: Ledger
    prepared: list[float] = field(default_factory=list)
    finished: list[float] = field(default_factory=list)
    decisions: set[Decision] = field(default_factory=set)

    def prepare(self, wish: Wish) -> Answer:
        begin = time.perf_counter()
        answer = self.ledger.prepare(wish)
        self.prepared.append(time.perf_counter() - begin)
        self.decisions.add(answer.decision)
        return answer

    def finish(self, report: Report) -> None:
        begin = time.perf_counter()
        self.ledger.finish(report)
        self.finished.append(time.perf_counter() - begin)

    def told(self) -> str:
        """The medians of the two waits."""
        after = duration(statistics.median(self.finished)) if self.finished else "nothing"
        return f"{duration(statistics.median(self.prepared))} before the call, {after} after it"


def measure(folder: str, *, quick: bool) -> Table:
    title = "A tool call of Claude Code with the gate, against no hooks"
    if why := real_cli.why_not(_AGENT):
        return Table(KEY, title, (), (f"{_AGENT}: not measured, {why}",))
    real_cli.prepare(_AGENT, folder, "")
    store = open_store(os.path.join(folder, "state.sqlite"), create=True)
    try:
        books = {name: Watched(_ledger(store, folder)) for name in (_PLAIN, _EFFECT, _STORED)}
        settle(books[_STORED].ledger)
        samples_ = interleave(_contenders(folder, books), rounds=3 if quick else 15, warm_up=1 if quick else 2)
    finally:
        store.close()
    bare = samples_.pop(_BARE)
    goals = dict.fromkeys(books, GOAL_SECONDS)
    lines = tuple(compare(one, bare, goal_seconds=goals.get(one.name)) for one in samples_.values())
    return Table(KEY, title, lines, _notes(lines, books))


def _notes(lines: tuple[Line, ...], books: Mapping[str, Watched]) -> tuple[str, ...]:
    waits = (f"in the ledger, {name.removeprefix('the gate: ')}: {book.told()}" for name, book in books.items())
    return (f"{CALLS} calls in each turn of {real_cli.named(_AGENT)}", *map(told, lines), *waits)


def settle(book: Book) -> None:
    """Make the effect once, so that every call of it in the benchmark is a repeat."""
    answer = book.prepare(Wish("Bash", {"command": repeated()}, "http"))
    book.finish(Report(answer.call_id, ok=True, output="sent"))


def _contenders(folder: str, books: Mapping[str, Watched]) -> list[Contender]:
    commands = {_PLAIN: plain, _EFFECT: effect, _STORED: repeated}
    return [
        Contender(_BARE, lambda: _turn(folder, None, plain)),
        Contender(_YES, lambda: _turn(folder, Yes(), plain)),
        *(Contender(name, _gated(folder, book, commands[name])) for name, book in books.items()),
    ]


def _gated(folder: str, book: Watched, command: Callable[[], str]) -> Callable[[], float]:
    return lambda: _turn(folder, book, command)


def _turn(folder: str, book: Book | None, command: Callable[[], str]) -> float:
    """One whole start of the CLI; the seconds of one of its calls."""
    script = Clocked((*(Reply(shell=command()) for _ in range(CALLS)), Reply(say="done")))
    with FakeModel(script) as model, _door(book) as address:
        stage = real_cli.pointed(_AGENT, folder, model.address)
        allowed = passed(stage.environ, ADAPTER.declaration.passes)
        launch = _launch(stage, address, allowed)
        real_cli.write(launch.files if book else unhooked(launch.files))
        stage.run(launch, {**inherited(stage.environ), **allowed, **launch.env})
    return script.per_call()


@contextmanager
def _door(book: Book | None) -> Iterator[str]:
    """An open door to the book, as an attempt has it; without a book nobody listens, and nobody asks."""
    if book is None:
        yield ""
        return
    errors: list[BaseException] = []
    door = HttpDoor(book, _TOKEN, HOOKS, errors.append)
    door.open()
    try:
        yield door.address
    finally:
        door.close()
    if errors:
        raise errors[0]


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
            token=_TOKEN,
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


def _ledger(store: Store, folder: str) -> Ledger:
    """The ledger of a claimed run, as the live world makes it."""
    at = clock.wall_ms()
    wanted = samples.Wanted(RunState.RUNNING, os.path.join(folder, "repository"), _AGENT)
    lease, run = samples.claim(store, samples.create(store, wanted, at, rules=(SEND,)), at)

    def stop(_why: object, detail: str) -> None:
        raise AssertionError(f"the gate stopped the benchmark: {detail}")

    def warden() -> NoReturn:
        raise AssertionError("no call of the benchmark is in doubt, so nothing is probed")

    prober = Prober(run.spec, {}, 1.0, warden)
    return Ledger(
        store, lease, run, prober, now=clock.wall_ms, new_id=lambda: samples.new_id(clock.wall_ms()), stop=stop
    )
