"""Working on runs from this process: attempts one after the other, short waits in between, files written at the end."""

from __future__ import annotations

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
    """What the engine needs to know of this home."""
    server, missing = offered(home.config, os.environ)
    return Settings(
        home=home.path,
        host=clock.host_name(),
        lease_ms=round(home.config.number("lease_seconds") * 1000),
        meanwhile=_get_ready,
        changed=home.notify_change,
        database=handed_over(home.config),
        server=server,
        server_missing=missing,
        find=lambda adapter: agents.usable(home.path, home.config, adapter),
    )


def _get_ready() -> None:
    """Load what the first call needs, where an agent waits for it, and the end, where a person does."""
    import jackline.engine.weigh
    import jackline.views.export  # noqa: F401


def work(home: Home, run: Run, on_start: OnStart) -> Run:
    """Attempt after attempt until the run ends, or waits for more than the backoff of a transient failure."""
    home.make()
    diagnostics.start(home.path)
    home.store(create=True)
    with home.update_in_background():
        return _work(home, run, on_start)


def _work(home: Home, run: Run, on_start: OnStart) -> Run:
    store, settings = home.store(), settings_of(home)
    while True:
        run = supervise(store, run, partial(agents.load, home.config), settings, on_start)
        home.notify_change()
        _export(home, run)
        faults.reach("views.written")
        if run.life.reason is not WaitReason.RETRY or not _wait(run, on_start):
            return run
        run = store.run(run.id) or run
        if run.life.reason is not WaitReason.RETRY:  # cancelled, or carried on by somebody else meanwhile
            return run


def _wait(run: Run, on_start: OnStart) -> bool:
    """Sit out a backoff; False if a person interrupts it: the run then stays waiting, with its wake time."""
    # A queue, because a signal handler may put into it at any instruction; an Event has a lock.
    interrupted: queue.SimpleQueue[None] = queue.SimpleQueue()
    on_start(lambda: interrupted.put(None))
    left = (run.life.wake_at or 0) - clock.wall_ms()
    try:
        interrupted.get(timeout=max(0, left) / 1000)
    except queue.Empty:
        return True
    return False


def cancel(home: Home, run: Run) -> Run:
    """Write the request down; if nobody lives who could heed it, take the run over and end it."""
    store = home.store(create=True)
    run = store.request_cancel(run.id, clock.wall_ms(), fresh_id())
    if run.life.state is RunState.RUNNING and dead_attempt(store, run, settings_of(home)) is not None:
        run = _end_dead(home, run)
    if run.life.state is not RunState.RUNNING and os.path.isdir(home.folder(run.id)):
        _export(home, run)
    home.notify_change()
    return run


def _export(home: Home, run: Run) -> None:
    """How the run ended matters more than its files: they can be written again when there is room for them."""
    try:
        home.export(run)
    except JacklineError as error:
        home.warnings.append(f"{error}; `jackline export {run.id}` writes the files again")


def _end_dead(home: Home, run: Run) -> Run:
    try:
        return supervise(home.store(), run, partial(agents.load, home.config), settings_of(home))
    except Busy:  # somebody else took it over meanwhile and will see the request
        return run
