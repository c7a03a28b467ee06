"""Creates runs from requests: all checks first, then one transaction for all of them. It starts none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.own_files import refuse_fresh_changes
from jackline.app.preflight import describe_redactions, describe_unready_agent, refuse_unready
from jackline.app.request import build_new_run
from jackline.clock import wall_ms
from jackline.errors import UsageError
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.app.home import Home
    from jackline.app.request import Request
    from jackline.domain.records import Run
    from jackline.store.models import NewRun, QueueOptions

_MOST_PROBLEMS = 5


class WantedRun(NamedTuple):
    """A run to create."""

    request: Request
    queue: QueueOptions | None = None  # with it, the run belongs to the services; otherwise to its creator
    label: str = ""  # names the request in an error, if it is one of many


class CreatedRun(NamedTuple):
    """A run, and whether this request created it."""

    run: Run
    is_new: bool


def create_runs(home: Home, wanted: Sequence[WantedRun], *, at_once: bool = False) -> list[CreatedRun]:
    """Create the runs, ready to be worked on: all of them, or none. The same run id and request return the same run.

    `at_once`: a new run is refused if another one works in its worktree now; otherwise it is queued anyway.
    """
    started_at = wall_ms()
    home.refuse_unready("run")
    home.refuse_broken_project()
    built: list[tuple[NewRun, QueueOptions | None]] = []
    problems = []
    for one in wanted:
        try:
            built.append((_build_run(home, one, at_once=at_once), one.queue))
        except UsageError as error:
            if not one.label:
                raise
            problems.append(f"{one.label}: {error}")
    refuse_problems(problems)
    refuse_fresh_changes(home, started_at)  # the policy was read meanwhile
    created = [CreatedRun(*one) for one in home.store(create=True).runs.create_all(built, wall_ms())]
    for (new, queue), (run, is_new) in zip(built, created, strict=True):
        if run.id == new.id:  # not another run with the same dedupe key
            home.warnings += describe_redactions(new.spec, run.spec)
            if queue is not None and is_new and run.spec.agent not in home.known_agents:
                home.known_agents.add(run.spec.agent)  # many runs may be queued at once
                home.warnings += describe_unready_agent(home, run.spec)
    home.warnings[:] = dict.fromkeys(home.warnings)
    home.notify_change()
    return created


def refuse_problems(problems: Sequence[str]) -> None:
    """UsageError with the first problems of many requests, if there are any."""
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        rest = f"; and {more} more" if more > 0 else ""
        raise UsageError(f"{'; '.join(problems[:_MOST_PROBLEMS])}{rest}; nothing was created")


def _build_run(home: Home, wanted: WantedRun, *, at_once: bool) -> NewRun:
    new = build_new_run(wanted.request, home)
    # Only for a new run: one that has started may have changed its workspace.
    if home.is_new or not home.store().runs.is_known(new.id, wanted.queue.dedupe if wanted.queue else ""):
        refuse_unready(home, wanted.request, new.spec, at_once=at_once)
    return new
