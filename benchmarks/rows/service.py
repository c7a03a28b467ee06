"""A service: the time from the queue to a started agent, the cost of claiming and ending a run, and its memory.

The service is warm: it has worked on a run before. The agent is the scripted one, a Python program, whose own start is
a part of the time to its first output. PSS is read while the agents wait.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from benchmarks import command
from benchmarks.contenders.bare import record_statements
from benchmarks.measure import Contender, Spread, interleave, spread
from benchmarks.report import Line, Table, compare
from benchmarks.rows.run_memory import read_pss
from jackline import clock
from jackline.app.config import load_config
from jackline.app.home import Home
from jackline.app.request import Request
from jackline.domain.events import Fact
from jackline.domain.records import Owner, Run, RunStatus
from jackline.domain.spec import Spec
from jackline.domain.states import TERMINAL, RunState
from jackline.engine.settings import new_id
from jackline.engine.warden.process_tree import find_descendants, list_processes
from jackline.store.models import NewRun, QueueOptions, RunChange, RunQuery
from jackline.store.open import open_store
from jackline.store.sqlite import SqliteDriver
from jackline.store.store import Store

KEY = "service"
GOAL_SECONDS = 0.2
GOAL_RATIO = 1.43  # claim and end at least 0.7 times as many runs as the statements alone
_SAY = {"say": "hello"}
_WARDEN = b"/warden/__main__.py"
_RUNS = 4  # whose memory is measured together
_SECONDS = 60.0
_REPEAT = 10
_LEASE_MS = 30_000
_OWNER = Owner(name="bench", host=clock.host_name(), boot=clock.boot_id(), pid=os.getpid())


def measure(folder: str, *, quick: bool) -> Table:
    line = _measure_claims(folder, rounds=5 if quick else 40)
    with _serve(folder) as (service, home):
        _play(home, folder, _SAY)  # from now on it is warm
        idle = read_pss(service.pid)
        started = [_time_start(home, folder) for _ in range(5 if quick else 40)]
        memory = _measure_runs(service.pid, home, folder)
    return Table(KEY, "A service", (line,), (_describe_start(started), *_describe_memory(idle, memory)))


# --- from the queue to the agent


def _time_start(home: Home, folder: str) -> tuple[float, float]:
    """The seconds from the call that queues a run to the start of its agent's process, and to its first output."""
    begin = clock.wall_ms()
    run_id = _play(home, folder, _SAY)
    events = home.store().records.list_events(run_id)
    launched, said = (next(one.at for one in events if one.kind == kind) for kind in ("turn.launched", "agent.message"))
    return (launched - begin) / 1000, (said - begin) / 1000


def _describe_start(seconds: list[tuple[float, float]]) -> str:
    launched, said = (spread(one) for one in zip(*seconds, strict=True))
    verdict = "met" if launched.median <= GOAL_SECONDS else "missed"
    return (
        f"from the queue to the start of the agent: {_format_ms(launched)}; goal ≤ {GOAL_SECONDS * 1000:g} ms: "
        f"{verdict}; to its first output: {_format_ms(said)}"
    )


def _format_ms(found: Spread) -> str:
    return f"{found.median * 1000:.0f} ms (quartiles {found.low * 1000:.0f} to {found.high * 1000:.0f})"


# --- claim and end


def _measure_claims(folder: str, rounds: int) -> Line:
    contenders = (
        Contender("jackline: claim and end a run", _build_store_turn(folder)),
        Contender("its bare statements", _build_bare_turn(folder)),
    )
    samples = interleave(contenders, rounds, warm_up=6)  # until the write-ahead log has its size
    ours, bare = (samples[one.name] for one in contenders)
    return compare(ours, bare, GOAL_RATIO)


def _build_store_turn(folder: str) -> Callable[[], float]:
    store = open_store(os.path.join(folder, "claims.sqlite"), create=True)

    def turn() -> float:
        runs = _create_runs(store, folder)
        begin = time.perf_counter()
        for run in runs:
            _claim_and_end(store, run)
        return (time.perf_counter() - begin) / _REPEAT

    return turn


def _build_bare_turn(folder: str) -> Callable[[], float]:
    """The statements of the store alone, each with the id of its own run."""
    store = open_store(os.path.join(folder, "bare.sqlite"), create=True)
    driver = cast("SqliteDriver", store.driver)
    connection = driver._connection  # noqa: SLF001 - its own connection, with its own settings
    template = _create_runs(store, folder)[0]
    recorded = record_statements(driver, lambda: _claim_and_end(store, template))

    def fill(name: str, values: Mapping[str, object], run_id: str) -> tuple[str, tuple[object, ...]]:
        sql, pick = driver._sql[name]  # noqa: SLF001 - as above
        return sql, pick({key: run_id if value == template.id else value for key, value in values.items()})

    def turn() -> float:
        runs = _create_runs(store, folder)
        ready = [
            [[fill(name, values, run.id) for name, values in transaction] for transaction in recorded] for run in runs
        ]
        begin = time.perf_counter()
        for transactions in ready:
            for transaction in transactions:
                connection.execute("BEGIN IMMEDIATE")
                for sql, values in transaction:
                    connection.execute(sql, values).fetchall()
                connection.execute("COMMIT")
        took = (time.perf_counter() - begin) / _REPEAT
        if any(store.runs.get_mark(run.id).state is not RunState.SUCCEEDED for run in runs):
            raise RuntimeError("the statements did not do what they do for the store")
        return took

    return turn


def _create_runs(store: Store, folder: str) -> list[Run]:
    """Queued runs as a service has read them before it claims them."""
    ids = [new_id() for _ in range(_REPEAT)]
    for run_id in ids:
        spec = Spec(prompt=f"do {run_id}", workspace=folder)
        new = NewRun(id=run_id, repository=folder, spec=spec, request="as asked")
        store.runs.create(new, 1, QueueOptions())
    return [run for run_id in ids if (run := store.runs.get(run_id)) is not None]


def _claim_and_end(store: Store, run: Run) -> None:
    lease, _ = store.leases.claim(run.id, _OWNER, _LEASE_MS, 1, None, run.status, from_queue=True)
    ended = RunChange(at=2, facts=(Fact("run.succeeded"),), status=RunStatus(state=RunState.SUCCEEDED))
    store.leases.write_change(lease, ended)


# --- memory


def _measure_runs(service: int, home: Home, folder: str) -> tuple[float, float]:
    """The memory of the service while it works on some runs, and that of the runs' other processes, in megabytes."""
    gate = os.path.join(folder, "go")
    names = [_queue(home, os.path.join(folder, f"repository-{n}"), _SAY, {"wait_for": gate}) for n in range(_RUNS)]
    _wait(lambda: all(_has_said(home, name) for name in names))
    below = find_descendants(list_processes(), [service])
    parts = [pid for pid in below if _WARDEN in _read_command(pid)]
    found = read_pss(service), sum(map(read_pss, parts))
    with open(gate, "x", encoding="ascii"):
        pass
    _wait(lambda: not home.list_active())
    return found


def _describe_memory(idle: float, memory: tuple[float, float]) -> Iterator[str]:
    service, others = memory
    each = (service - idle + others) / _RUNS
    yield f"memory (PSS) of an idle service: {idle:.1f} MB"
    yield f"memory of each of {_RUNS} runs besides its agent: {each:.1f} MB (warden and guard {others / _RUNS:.1f})"


def _read_command(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


# --- the service


@contextmanager
def _serve(folder: str) -> Iterator[tuple[subprocess.Popen[bytes], Home]]:
    environ = {**command.build_environment(os.path.join(folder, "home")), "JACKLINE_POLL_SECONDS": "3600"}
    words = (command.JACKLINE, "serve", "--quiet", "--slots", str(_RUNS))
    service = subprocess.Popen(words, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        with Home(load_config(environ, folder)) as home:
            _wait(home.has_service)
            yield service, home
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(_SECONDS)


def _play(home: Home, folder: str, *steps: object) -> str:
    """Queue a run, and wait for its end."""
    run_id = _queue(home, os.path.join(folder, "repository"), *steps)
    _wait(lambda: home.store().runs.get_mark(run_id).state in TERMINAL)
    state = home.list_runs(RunQuery(limit=1))[0].state
    if state != RunState.SUCCEEDED:
        raise command.CommandFailed(f"the run is {state}")
    return run_id


def _queue(home: Home, workspace: str, *steps: object) -> str:
    os.makedirs(workspace, exist_ok=True)
    script = json.dumps({"version": 1, "steps": steps})
    request = Request(prompt="do it", agent="scripted", workspace=workspace, options={"script": script})
    return home.enqueue(request, QueueOptions()).run.id


def _has_said(home: Home, run_id: str) -> bool:
    return any(event.kind == "agent.message" for event in home.store().records.list_events(run_id))


def _wait(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + _SECONDS
    while not holds():
        if time.monotonic() > until:
            raise command.CommandFailed("the service did not do its work in time")
        time.sleep(0.005)
