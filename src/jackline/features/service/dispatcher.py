"""Chooses the runs that a service works on, and works on each in a thread: at most `slots`, one for each worktree.

The order is: lost runs of this host, runs that are due or answered, then the queue. A queued run without a place in the
queue belongs to the process that created it, and so does an answered run for which a living process waits. Runs that a
person paused are never taken. A claim is atomic: of several services that choose the same run, all but one find it
taken.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Protocol

from jackline import clock
from jackline.app.own_files import find_unconfirmed, refuse_fresh_changes, refuse_unconfirmed
from jackline.app.queue import cancel_unreachable
from jackline.app.wakeups import LimitGate, list_due
from jackline.diagnostic_log import LOG
from jackline.digests import hash_text
from jackline.domain.limits import compute_wait
from jackline.domain.records import SubjectNotice
from jackline.domain.run_inputs import StopReason
from jackline.domain.states import RunState
from jackline.engine.dead_attempts import is_supervisor_gone
from jackline.engine.settings import new_id
from jackline.engine.workspace_guard import list_busy_worktrees
from jackline.errors import Busy, Fenced, JacklineError, NotStartable, Overtaken, Refused, StoreError, WorkspaceBusy
from jackline.features.service.service_store import LONGEST_PAUSE_MS, ServiceStore
from jackline.named import NamedTuple
from jackline.worktrees import find_run_worktree, find_settings_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext
    from jackline.domain.records import Run
    from jackline.engine.supervise import Interrupt
    from jackline.store.models import QueueEntry
    from jackline.store.store import Store

_MOST_CANDIDATES = 10_000
_ID_LENGTH = 32
_TAKEN = (Busy, Overtaken, Fenced, WorkspaceBusy, NotStartable)
_LONGEST_REST_S = 60.0
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.2, 10.0  # another process was faster, or the store failed


def list_candidates(home: Home, at: int) -> dict[str, QueueEntry | None]:
    """The ids of the runs that may be taken, best first; those of the queue with their entries."""
    due = (one.run_id for one in list_due(home, at))
    queued = {entry.run_id: entry for entry in home.store().queue.list_startable(at, _MOST_CANDIDATES)}
    return dict.fromkeys((*_find_lost(home), *due)) | queued


def _find_lost(home: Home) -> Iterator[str]:
    """Running runs whose process was on this host and is gone, or no longer renews its lease.

    A database in a file belongs to one host. Its name may have changed since; then only the lease can tell.
    """
    is_shared, host = "://" in home.database, clock.host_name()
    running = ServiceStore(home.store()).list_running()
    for attempt, is_lease_over in home.store().records.list_holders(running):
        if (is_shared and attempt.host != host) or attempt.ended_at is not None:
            continue
        if is_lease_over or is_supervisor_gone(attempt, host, home.folder(attempt.run_id)):
            yield attempt.run_id


class EventReporter(Protocol):
    """Reports an event of the service."""

    def __call__(self, event: str, text: str, **facts: object) -> None:
        """See `ServiceLog.report`."""
        ...


class RunCounts(NamedTuple):
    """The runs of a service at one moment."""

    active: int
    started: int  # since the service began
    has_overtaken: bool  # whether another process or run was faster than one that is tried again in a moment


class ActiveRun:
    """A run that a thread works on."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.worktree = "" if run.spec.share_workspace else find_run_worktree(run.spec)
        self._lock = threading.Lock()
        self._interrupt: Interrupt | None = None
        self.is_interrupted = False
        self.is_started = False

    def set_interrupt(self, interrupt: Interrupt) -> None:
        """The run is claimed: this function interrupts it. It is called at once if the service stops already."""
        with self._lock:
            self._interrupt, self.is_started = interrupt, True
            if self.is_interrupted:
                interrupt(StopReason.SHUTDOWN)

    def interrupt(self) -> None:
        """Let the run park, so that the next service continues it."""
        with self._lock:
            if not self.is_interrupted and self._interrupt is not None:
                self._interrupt(StopReason.SHUTDOWN)
            self.is_interrupted = True


class _Delay:
    """When a run may be tried again; the pauses double."""

    def __init__(self) -> None:
        self.until = 0.0
        self.problem = ""  # of the database, as it was last reported
        self.is_overtaken = False  # another process was faster, or another run in the same worktree
        self._failures = 0

    def extend(self) -> None:
        self.until = time.monotonic() + compute_wait(_FIRST_DELAY_S, self._failures, _LONGEST_DELAY_S)
        self._failures += 1


class BatchPlaces:
    """The free places of the batches: a run in another worktree gets the place of one whose worktree is busy."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._free: dict[str, int] = {}

    def has_place(self, entry: QueueEntry | None) -> bool:
        """Whether a run with this entry may start; the store is asked once for each batch."""
        if entry is None or not entry.batch_slots:
            return True
        if entry.batch not in self._free:
            self._free[entry.batch] = entry.batch_slots - self._store.queue.count_batch_places(entry.batch)
        return self._free[entry.batch] > 0

    def take(self, entry: QueueEntry | None) -> None:
        """Note that a run with this entry starts."""
        if entry is not None and entry.batch in self._free:
            self._free[entry.batch] -= 1


class Dispatcher:
    """The runs of one service."""

    def __init__(self, home: Home, slots: int, report: EventReporter, on_change: Callable[[], None]) -> None:
        """`on_change` is called after the work on a run has ended, and may be called from any thread."""
        self._home, self._slots, self._report, self._on_change = home, slots, report, on_change
        self._lock = threading.Lock()
        self._active: dict[str, ActiveRun] = {}
        self._delays: dict[str, _Delay] = {}
        self._worktrees: dict[str, str] = {}
        self._gate_facts: object = None
        self._resting: dict[str, float] = {}  # queued runs that the gate refuses until then, unless its facts change
        self._takes_new = True
        self._started = 0
        self._held = ""  # why no run may start

    @property
    def is_busy(self) -> bool:
        """Whether a thread works on a run."""
        with self._lock:
            return bool(self._active)

    def count_runs(self) -> RunCounts:
        """How many runs a thread works on now, how many were started, and whether one is about to be tried again."""
        now = time.monotonic()
        with self._lock:
            has_overtaken = any(delay.is_overtaken and delay.until > now for delay in self._delays.values())
            return RunCounts(active=len(self._active), started=self._started, has_overtaken=has_overtaken)

    def refuse_new(self) -> None:
        """Take no run any more."""
        with self._lock:
            self._takes_new = False

    def interrupt_all(self) -> None:
        """Let every run park."""
        with self._lock:
            active = list(self._active.values())
        for one in active:
            one.interrupt()

    # choosing

    def look(self, context: ServiceContext) -> int:
        """Start what may start now; the number of runs that were started."""
        home, at, started = context.home, clock.wall_ms(), 0
        cancel_unreachable(home)  # a process that ended a run may have died before it did this
        candidates = list_candidates(home, at)
        self._forget_others(candidates)
        if not candidates or not self._free_slots() or self._is_held(home):
            return 0
        # A time further ahead than any pause is that of a clock which was set back since.
        failures = ServiceStore(home.store()).list_start_failures()
        failed = {one.run_id for one in failures if at < one.next_at <= at + LONGEST_PAUSE_MS}
        busy = list_busy_worktrees(home.store(), home.path)
        batches, gate = BatchPlaces(home.store()), LimitGate(home, at)
        if gate.facts != self._gate_facts:
            self._gate_facts, self._resting = gate.facts, {}
        for run_id, entry in candidates.items():
            if not self._free_slots():
                break
            if run_id in failed or self._is_waiting_its_turn(run_id) or not batches.has_place(entry):
                continue
            if busy.get(self._worktrees.get(run_id, ""), run_id) != run_id:
                continue
            run = home.store().runs.get(run_id)
            if run is None or busy.get(worktree := self._find_worktree(run), run_id) != run_id:
                continue
            if not self.has_room(worktree):
                busy[worktree] = ""  # also if it becomes free during this look: this run was first
            elif self._start(run, gate):
                started += 1
                batches.take(entry)
        return started

    def _is_held(self, home: Home) -> bool:
        """Whether no run may start because a change of the user's own files is not confirmed; reported once."""
        change = find_unconfirmed(home)
        if change is None:
            self._held = ""
        elif str(change) != self._held:
            self._held = str(change)
            text = f"{change} changed while a run lived; review this, then type `jackline trust`"
            self._report("held", f"no run is started: {text}", error=text)
            digest = hash_text(f"service.held:{change}:{sorted(change.digests.items())}")  # the same in every service
            notice = SubjectNotice(
                id=digest[:_ID_LENGTH],
                subject="home",
                kind="service.held",
                title="no run is started until you confirm a change",
                body=text,
                created_at=clock.wall_ms(),
            )
            home.store().notices.add(notice)
        return change is not None

    def find_next_look(self, seconds: float) -> float:
        """The seconds until a delayed run may be tried again, at most `seconds`."""
        now = time.monotonic()
        with self._lock:
            pauses = [delay.until - now for delay in self._delays.values() if delay.until > now]
        return min([seconds, *pauses])

    def _free_slots(self) -> int:
        with self._lock:
            return self._slots - len(self._active) if self._takes_new else 0

    def _is_waiting_its_turn(self, run_id: str) -> bool:
        """Whether a thread works on the run already, or it is tried again later."""
        with self._lock:
            delay = self._delays.get(run_id)
            until = max(self._resting.get(run_id, 0.0), 0.0 if delay is None else delay.until)
            return run_id in self._active or until > time.monotonic()

    def _find_worktree(self, run: Run) -> str:
        if run.id not in self._worktrees:
            self._worktrees[run.id] = "" if run.spec.share_workspace else find_run_worktree(run.spec)
        return self._worktrees[run.id]

    def _forget_others(self, candidates: Iterable[str]) -> None:
        """Keep only what is known about runs that are still candidates."""
        with self._lock:
            known = {*candidates, *self._active}
            self._delays = {run_id: delay for run_id, delay in self._delays.items() if run_id in known}
        self._worktrees = {run_id: path for run_id, path in self._worktrees.items() if run_id in known}
        self._resting = {run_id: until for run_id, until in self._resting.items() if run_id in known}

    def _start(self, run: Run, gate: LimitGate) -> bool:
        """Work on the run in a thread, unless its agents rest after a limit."""
        # A lost run is taken up anyway: its processes have to be ended, and its open calls settled.
        if run.status.state is not RunState.RUNNING and not gate.lets_start(run):
            if run.status.state is RunState.QUEUED and gate.again_at:  # ten thousand may wait for one limit
                rest = min((gate.again_at - clock.wall_ms()) / 1000, _LONGEST_REST_S)
                self._resting[run.id] = time.monotonic() + rest
            return False
        active = ActiveRun(run)
        if not self._add_active(active):
            return False
        try:
            threading.Thread(target=self._work, args=(active,), name=f"run-{run.id}", daemon=True).start()
        except RuntimeError:  # the system has no thread left
            with self._lock:
                del self._active[run.id]
                self._started -= 1
            raise
        return True

    def has_room(self, worktree: str) -> bool:
        """Whether none of the runs of this service works in the worktree."""
        with self._lock:
            busy = {one.worktree for one in self._active.values() if one.worktree}
            return worktree not in busy and self._takes_new

    def _add_active(self, active: ActiveRun) -> bool:
        """False if the service was stopped meanwhile."""
        with self._lock:
            if self._takes_new:
                self._active[active.run.id] = active
                self._started += 1
            return self._takes_new

    # working, in the thread of a run

    def _work(self, active: ActiveRun) -> None:
        run = active.run
        try:
            ended = self._attempt(active)
            with self._lock:
                self._delays.pop(run.id, None)
            status = ended.status
            state = ": ".join(filter(None, (status.state, status.reason or status.failure)))
            words = ", ".join(filter(None, (state, status.detail)))
            self._report(
                "ended",
                f"run {run.id} (#{run.number}) {words}",
                run=run.id,
                state=status.state,
                reason=status.reason,
                failure=status.failure,
                detail=status.detail,
            )
        except _TAKEN as error:
            LOG.info(f"service: {error}")
            if active.is_started:  # this process was stopped for longer than its lease, for example
                self._report("taken", f"run {run.id} (#{run.number}) was taken up by another process", run=run.id)
            self._delay(run, is_overtaken=True)
        except StoreError as error:
            delay = self._delay(run)
            if active.is_started or delay.problem != str(error):  # a full disk may last for a night
                delay.problem = str(error)
                self._report("problem", f"run {run.id}: {error}", run=run.id, error=str(error))
        except JacklineError as error:
            self._record_failure(run, str(error))
        except Exception as error:  # noqa: BLE001 - a mistake of jackline in one run must not end the others
            LOG.error(error)
            self._record_failure(run, f"unexpected {type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._active.pop(run.id, None)
            self._on_change()

    def _attempt(self, active: ActiveRun) -> Run:
        run = active.run
        folder = find_settings_folder(run.spec)
        if not os.path.isdir(folder):
            raise Refused(f"its folder {folder} does not exist")
        with self._home.reopen_in(folder) as home:
            if home.database != self._home.database:
                raise Refused("the settings have named another database since this service started: restart it")
            refuse_unconfirmed(home)
            refuse_fresh_changes(home, home.config.loaded_at)  # one that an agent changes and restores at once
            home.on_change = self._home.on_change

            def on_start(interrupt: Interrupt) -> None:
                active.set_interrupt(interrupt)
                self._report("claimed", f"run {run.id} (#{run.number}) {run.agent}/{run.spec.task} started", run=run.id)

            try:
                return home.make_attempt(run, on_start)
            finally:
                home.wake_services()  # others may wait for this run, or for its worktree
                for warning in home.warnings:
                    self._report("problem", f"run {run.id}: {warning}", run=run.id, error=warning)

    def _delay(self, run: Run, *, is_overtaken: bool = False) -> _Delay:
        with self._lock:
            delay = self._delays.setdefault(run.id, _Delay())
            delay.is_overtaken = is_overtaken
            delay.extend()
            return delay

    def _record_failure(self, run: Run, error: str) -> None:
        """The run cannot start, or its attempt broke off: let a person know, and try again later."""
        self._delay(run)
        try:
            with self._home.reopen() as home:
                failure = ServiceStore(home.store()).record_start_failure(run.id, error, clock.wall_ms(), new_id())
        except StoreError as second:
            LOG.warning(f"service: {second}")
            return
        if failure.failures == 1:
            self._report("cannot_start", f"run {run.id} (#{run.number}) cannot start: {error}", run=run.id, error=error)
