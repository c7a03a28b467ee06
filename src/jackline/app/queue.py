"""Puts runs into the queue, from which a service starts them; holds and cancels them there. It starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.clock import wall_ms
from jackline.engine.settings import new_id
from jackline.errors import UsageError
from jackline.store.models import QueueOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.app.run_creation import CreatedRun, WantedRun
    from jackline.domain.records import Run

_LONGEST_KEY = 200
_MOST = 1_000_000


def enqueue(home: Home, request: Request, options: QueueOptions | None = None) -> CreatedRun:
    """Create a run that a service starts, and wake the services.

    The same run id and request return the same run, and so does a dedupe key whose run has not ended. A run that
    depends on one that failed or was cancelled is cancelled at once.
    """
    from jackline.app.run_creation import WantedRun

    return enqueue_all(home, [WantedRun(request, queue=options or QueueOptions())])[0]


def enqueue_all(home: Home, wanted: Sequence[WantedRun], *, at_once: bool = False) -> list[CreatedRun]:
    """Create such runs in one transaction: all of them, or none."""
    from jackline.app.run_creation import create_runs

    for one in wanted:
        _refuse_invalid(one.queue or QueueOptions())
    created = create_runs(home, wanted, at_once=at_once)
    if any(one.queue and one.queue.depends_on for one in wanted):
        ended = {run.id: run for run in cancel_unreachable(home)}
        created = [one._replace(run=ended.get(one.run.id, one.run)) for one in created]
    if any(one.is_new for one in created):
        home.wake_services()
    return created


def cancel_unreachable(home: Home) -> list[Run]:
    """End the queued runs that can never start, because a run that they depend on failed or was cancelled.

    Every command that ends a run calls this, and services do before they start one.
    """
    ended = home.store(create=True).queue.cancel_unreachable(wall_ms(), new_id)
    if ended:
        home.notify_change()
        home.wake_services()
    return ended


def set_held(home: Home, runs: Sequence[Run], *, held: bool) -> list[Run]:
    """Keep queued runs from starting, or let them start: all of them, or none."""
    home.refuse_inside_run("hold")
    queue = home.store(create=True).queue
    (queue.hold if held else queue.release)(*(run.id for run in runs), at=wall_ms())
    home.notify_change()
    if not held:
        home.wake_services()
    return [home.store().runs.get(run.id) or run for run in runs]


def _refuse_invalid(options: QueueOptions) -> None:
    for name, text in (("dedupe key", options.dedupe), ("batch", options.batch)):
        if len(text) > _LONGEST_KEY or not text.isprintable():
            raise UsageError(f"a {name} has at most {_LONGEST_KEY} printable characters")
    if abs(options.priority) > _MOST:
        raise UsageError(f"a priority is between -{_MOST} and {_MOST}")
    if not (0 <= options.batch_slots <= _MOST and options.not_before >= 0):
        raise UsageError("the number of concurrent runs of a batch and the start time cannot be negative")
