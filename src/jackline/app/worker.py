"""Works on runs in this process: one attempt after the other, with short waits between, then writes the run's files."""

from __future__ import annotations

import contextlib
import os
import queue
from functools import partial
from typing import TYPE_CHECKING

from jackline import clock, faults
from jackline.app import agents, diagnostics
from jackline.app.handing import handed_over
from jackline.app.offering import offered
from jackline.domain.states import RunState, WaitReason
from jackline.engine.settings import Settings, fresh_id
from jackline.engine.supervise import dead_attempt, supervise
from jackline.errors import Busy, JacklineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.domain.records import Run

    OnStart = Callable[[Callable[[], None]], None]


def settings_of(home: Home) -> Settings:
    """Build the engine settings of a home."""
    server, missing = offered(home.config, os.environ)
    return Settings(
        home=home.path,
        host=clock.host_name(),
        lease_ms=round(home.config.number("lease_seconds") * 1000),
        preload=_preload,
        on_change=home.notify_change,
        database=handed_over(home.config),
        server=server,
        server_missing=missing,
        find_binary=lambda adapter: agents.usable(home.path, home.config, adapter),
    )


def _preload() -> None:
    """Import what the first call and the end of the run need, while the agent starts."""
    import jackline.engine.weigh
    import jackline.views.export  # noqa: F401


def work(home: Home, run: Run, on_start: OnStart) -> Run:
    """Make attempts until the run ends, or waits for more than the backoff of a transient failure."""
    home.make()
    diagnostics.start(home.path)
    home.store(create=True)
    with home.update_in_background():
        return _attempt_until_done(home, run, on_start)


def _attempt_until_done(home: Home, run: Run, on_start: OnStart) -> Run:
    store, settings = home.store(), settings_of(home)
    while True:
        run = supervise(store, run, partial(agents.load, home.config), settings, on_start)
        home.notify_change()
        _export(home, run)
        faults.reach("views.written")
        if run.life.reason is not WaitReason.RETRY or not _wait_for_backoff(run, on_start):
            return run
        run = store.run(run.id) or run
        if run.life.reason is not WaitReason.RETRY:  # cancelled, or continued by another process meanwhile
            return run


def _wait_for_backoff(run: Run, on_start: OnStart) -> bool:
    """Wait for the end of a backoff; False if a person interrupts it: the run keeps waiting until its wake time."""
    # A SimpleQueue, because a signal handler may put into it at any instruction; an Event has a lock.
    interrupted: queue.SimpleQueue[None] = queue.SimpleQueue()
    on_start(lambda: interrupted.put(None))
    left = (run.life.wake_at or 0) - clock.wall_ms()
    try:
        interrupted.get(timeout=max(0, left) / 1000)
    except queue.Empty:
        return True
    return False


def cancel(home: Home, run: Run) -> Run:
    """Store the cancel request; if the run's supervisor is dead, take the run over and end it."""
    store = home.store(create=True)
    run = store.request_cancel(run.id, clock.wall_ms(), fresh_id())
    if run.life.state is RunState.RUNNING and dead_attempt(store, run, settings_of(home)) is not None:
        with contextlib.suppress(Busy):  # another process took it over meanwhile and will see the request
            run = supervise(home.store(), run, partial(agents.load, home.config), settings_of(home))
    if run.life.state is not RunState.RUNNING and os.path.isdir(home.folder(run.id)):
        _export(home, run)
    home.notify_change()
    return run


def _export(home: Home, run: Run) -> None:
    """Write the run's files; a failure is only a warning, because they can be written again."""
    try:
        home.export(run)
    except JacklineError as error:
        home.warnings.append(f"{error}; `jackline export {run.id}` writes the files again")
