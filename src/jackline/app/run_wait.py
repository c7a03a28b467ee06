"""Waits until a run that needs a person can continue, wherever the answer comes from. It reads one row, writes none.

The run is not claimed meanwhile, so the time counts toward no timeout and no budget.
"""

from __future__ import annotations

import contextlib
import queue
from typing import TYPE_CHECKING

from jackline import clock
from jackline.domain.run_inputs import StopReason
from jackline.domain.states import PERSON_NEEDED, RunState, WaitReason
from jackline.engine.owner_lock import hold_waiter
from jackline.errors import Busy, Overtaken, StoreUnavailable
from jackline.named import NamedTuple
from jackline.store.parts import build_not_found

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.app.home import Home
    from jackline.domain.records import Run
    from jackline.engine.supervise import Interrupt
    from jackline.store.models import RunMark

    OnStart = Callable[[Interrupt], None]
    Pause = Callable[[float], bool]  # waits for some seconds; True ends the wait

POLL_SECONDS = 0.5
_RETRY_GRACE_MS = 5_000
STOP, WAIT, DENY = "stop", "wait", "deny"
ON_ASK = (STOP, WAIT, DENY)


class WaitSteps(NamedTuple):
    """How a process works on a run that may need a person. `ask` and `follow` return whether the run is left."""

    work: Callable[[Run], Run]  # until it ends or waits; Busy if another process works on it
    ask: Callable[[Run], bool]  # ask a person here, or wait for an answer
    follow: Callable[[Run], bool]  # wait while another process works on it


class RunWatch:
    """Watches a run that this process has left to others."""

    def __init__(self, home: Home, run_id: str) -> None:
        """Read the run once."""
        self._home, self._run_id = home, run_id
        self._mark: RunMark = home.store().runs.get_mark(run_id)

    def poll(self) -> bool:
        """Read the run again; whether it has changed. A database that cannot be reached is asked again later."""
        before = self._mark
        with contextlib.suppress(StoreUnavailable):
            self._mark = self._home.store().runs.get_mark(self._run_id)
        return self._mark != before or self.is_due()

    def is_same(self, run: Run) -> bool:
        """Whether the run is in the state of this record, in the same attempt."""
        status = run.status
        return (self._mark.state, self._mark.reason, self._mark.attempt) == (
            status.state,
            status.reason,
            status.attempt,
        )

    def needs_person(self) -> bool:
        """Whether the run waits for a person, whose time is not over."""
        waits = self._mark.state is RunState.WAITING and self._mark.reason in PERSON_NEEDED
        return waits and not self.is_due()

    def is_due(self) -> bool:
        """Whether the time for an answer is over: a claim applies the default answer."""
        waits, wake_at = self._mark.state is RunState.WAITING, self._mark.wake_at
        return waits and self._mark.reason in PERSON_NEEDED and wake_at is not None and wake_at <= clock.wall_ms()

    def is_busy(self) -> bool:
        """Whether another living process works on the run; also while the database cannot be reached to tell."""
        if self._mark.state is not RunState.RUNNING:
            return False
        from jackline.app.lost_runs import find_lost

        with contextlib.suppress(StoreUnavailable):
            return self._run_id not in find_lost(self._home, [self._run_id])
        return True

    def can_continue(self) -> bool:
        """Whether a process may take the run up now: it was answered or lost, or the time for an answer is over."""
        if self._mark.state is RunState.RUNNING:
            return not self.is_busy()
        return self._mark.state is RunState.QUEUED or self.is_due()

    def load(self) -> Run:
        """The run as it is now."""
        run = self._home.store().runs.get(self._run_id)
        if run is None:
            raise build_not_found(self._run_id)
        return run


def is_active(home: Home, run: Run) -> bool:
    """Whether a process works on the run, or is in the short wait between two attempts."""
    now = home.store().runs.get(run.id)
    if now is None:
        return False
    is_soon = (now.status.wake_at or 0) + _RETRY_GRACE_MS > clock.wall_ms()
    retries_soon = now.status.reason is WaitReason.RETRY and is_soon
    return retries_soon or (now.status.state is RunState.RUNNING and not home.explain_loss(now))


def work_and_wait(home: Home, run: Run, steps: WaitSteps) -> Run:
    """Work on the run as often as it can continue, and wait for a person in between, until it ends or is left.

    Others on this host see meanwhile that this process will continue the run.
    """
    while True:
        before = run.event_seq
        with hold_waiter(home.folder(run.id)):
            run, is_left = _work_until_left(home, run, steps)
        # An answer that came in this instant was left to this process.
        if not is_left or run.event_seq == before or not RunWatch(home, run.id).can_continue():
            return run


def _work_until_left(home: Home, run: Run, steps: WaitSteps) -> tuple[Run, bool]:
    run, is_left = steps.work(run), False
    while not is_left:
        watch = RunWatch(home, run.id)
        run = watch.load()
        if watch.is_busy():
            is_left = steps.follow(run)
        elif watch.needs_person():
            is_left = steps.ask(run)
        elif watch.can_continue():
            with contextlib.suppress(Busy, Overtaken):  # another process was faster
                is_left = steps.work(run).event_seq == run.event_seq  # interrupted before it began
        else:
            return run, False
    return RunWatch(home, run.id).load(), True


def wait_for_person(home: Home, run: Run, pause: Pause) -> bool:
    """Tell the person that the run needs them, and wait; True if the wait was interrupted."""
    home.finish_work()
    return _wait_while(RunWatch.needs_person, RunWatch(home, run.id), pause)


def wait_while_busy(home: Home, run: Run, pause: Pause) -> bool:
    """Wait while another process works on the run; True if the wait was interrupted."""
    return _wait_while(RunWatch.is_busy, RunWatch(home, run.id), pause)


def _wait_while(holds: Callable[[RunWatch], bool], watch: RunWatch, pause: Pause) -> bool:
    while holds(watch):
        if pause(POLL_SECONDS):
            return True
        watch.poll()
    return False


def build_pause(on_start: OnStart) -> Pause:
    """A function that waits for some seconds, and returns True if it is interrupted."""
    # A SimpleQueue, because a signal handler may put into it at any instruction; an Event has a lock.
    interrupted: queue.SimpleQueue[StopReason] = queue.SimpleQueue()

    def interrupt(why: StopReason = StopReason.INTERRUPT) -> None:
        interrupted.put(why)

    on_start(interrupt)

    def pause(seconds: float) -> bool:
        try:
            interrupted.get(timeout=seconds)
        except queue.Empty:
            return False
        return True

    return pause
