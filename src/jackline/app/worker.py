"""Works on runs in this process: one attempt after the other, with short waits between, then writes the run's files."""

from __future__ import annotations

import contextlib
import os
import queue
from functools import partial
from typing import TYPE_CHECKING

from jackline import clock, crash_points
from jackline.app import agents, diagnostics
from jackline.app.agent_env import build_mcp_argv, find_agent_database
from jackline.domain.prices import Price, PriceTable
from jackline.domain.states import RunState, WaitReason
from jackline.engine.dead_attempts import find_dead_attempt
from jackline.engine.settings import EngineSettings, new_id
from jackline.engine.supervise import supervise
from jackline.errors import Busy, JacklineError, Overtaken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.app.home import Home
    from jackline.domain.amendment import Amendment
    from jackline.domain.records import Run

    OnStart = Callable[[Callable[[], None]], None]


def build_settings(home: Home) -> EngineSettings:
    """Build the engine settings of a home."""
    server, missing = build_mcp_argv(home.config, os.environ)
    return EngineSettings(
        home=home.path,
        host=clock.host_name(),
        lease_ms=round(home.config.get_float("lease_seconds") * 1000),
        preload=_preload,
        on_change=home.notify_change,
        database=find_agent_database(home.config),
        server=server,
        server_missing=missing,
        usd_micros_per_day=round(home.config.get_float("max_usd_per_day") * 1_000_000),
        prices=PriceTable({pattern: _build_price(table) for pattern, table in home.config.prices.items()}),
        find_binary=lambda adapter: agents.require_program(home.path, home.config, adapter),
        share_workspace=home.share_workspace,
    )


def _build_price(table: Mapping[str, float]) -> Price:
    return Price(input=table["input"], cached=table.get("cached", table["input"]), output=table["output"])


def _preload() -> None:
    """Import what the first call and the end of the run need, while the agent starts."""
    import jackline.engine.intents
    import jackline.exports.run_folder  # noqa: F401


def work_on_run(home: Home, run: Run, on_start: OnStart) -> Run:
    """Make attempts until the run ends, or waits for more than the backoff of a transient failure."""
    home.create()
    diagnostics.start_log(home.path)
    home.store(create=True)
    with home.update_in_background():
        store, settings = home.store(), build_settings(home)
        while True:
            run = supervise(store, run, partial(agents.load_adapter, home.config), settings, on_start)
            home.notify_change()
            _export(home, run)
            crash_points.crash_point("views.written")
            if run.status.reason is not WaitReason.RETRY or not _wait_for_backoff(run, on_start):
                return run
            run = store.runs.get(run.id) or run
            if run.status.reason is not WaitReason.RETRY:  # cancelled, or continued by another process meanwhile
                return run


def _wait_for_backoff(run: Run, on_start: OnStart) -> bool:
    """Wait for the end of a backoff; False if a person interrupts it: the run keeps waiting until its wake time."""
    # A SimpleQueue, because a signal handler may put into it at any instruction; an Event has a lock.
    interrupted: queue.SimpleQueue[None] = queue.SimpleQueue()
    on_start(lambda: interrupted.put(None))
    left = (run.status.wake_at or 0) - clock.wall_ms()
    try:
        interrupted.get(timeout=max(0, left) / 1000)
    except queue.Empty:
        return True
    return False


def cancel_run(home: Home, run: Run) -> Run:
    """Store the cancel request; if the run's supervisor is dead, take the run over and end it."""
    store = home.store(create=True)
    run = store.runs.request_cancel(run.id, clock.wall_ms(), new_id())
    if run.status.state is RunState.RUNNING and find_dead_attempt(store, run, build_settings(home)) is not None:
        with contextlib.suppress(Busy, Overtaken):  # another process took it over meanwhile and will see the request
            settings = build_settings(home)._replace(share_workspace=True)  # it starts no agent
            run = supervise(home.store(), run, partial(agents.load_adapter, home.config), settings)
    if run.status.state is not RunState.RUNNING and os.path.isdir(home.folder(run.id)):
        _export(home, run)
    home.notify_change()
    return run


def amend_run(home: Home, run: Run, amendment: Amendment) -> Run:
    """Store a person's message and changes, before any process works on the run."""
    store = home.store(create=True)
    dead = find_dead_attempt(store, run, build_settings(home))
    run = store.amendments.amend(run.id, amendment, clock.wall_ms(), dead)
    home.notify_change()
    return run


def _export(home: Home, run: Run) -> None:
    """Write the run's files; a failure is only a warning, because they can be written again."""
    try:
        home.export(run)
    except JacklineError as error:
        home.warnings.append(f"{error}; `jackline export {run.id}` writes the files again")
