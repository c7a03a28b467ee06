"""A run as a program uses it: its state read fresh, its events as they come, and what a person can do with it."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from jackline.domain.states import RunState, exit_code
from jackline.engine import threads
from jackline.errors import Busy, NotFound, UsageError
from jackline.formatting import to_usd
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jackline.app.home import Home
    from jackline.domain.events import Event
    from jackline.domain.records import Call, Run
    from jackline.domain.states import Failure, WaitReason
    from jackline.exports.manifest import Manifest
    from jackline.exports.transcript import TranscriptEntry

_POLL_SECONDS = 0.1
_PAGE = 1000


class RunEvent(NamedTuple):
    """One event of a run; docs/events.md lists the kinds."""

    seq: int
    at: int  # milliseconds since 1970
    kind: str
    actor: str
    data: Mapping[str, Any]


class OpenQuestion(NamedTuple):
    """A call that waits for an answer, and the valid answers."""

    call: Call
    answers: tuple[str, ...]


class RunHandle:
    """One run of a home. Every property reads the store, so it is never stale."""

    def __init__(self, home: Home, run_id: str) -> None:
        """`Home.new_run` and `Home.get_run` return handles."""
        self._home = home
        self.id = run_id

    @property
    def record(self) -> Run:
        """Everything that is stored about the run now."""
        run = self._home.store().runs.get(self.id)
        if run is None:
            raise NotFound(self.id, what="run", hint="jackline list --all-repos")
        return run

    @property
    def manifest(self) -> Manifest:
        """The run as one record, as in its manifest.json."""
        return self._home.load_manifest(self.record)

    @property
    def transcript(self) -> list[TranscriptEntry]:
        """What was said and done, as in its transcript.jsonl."""
        return self._home.read_transcript(self.record)

    @property
    def state(self) -> RunState:
        """Queued, running, waiting, succeeded, failed or cancelled."""
        return self.record.status.state

    @property
    def waiting(self) -> WaitReason | None:
        """Why the run waits; None if it does not."""
        status = self.record.status
        return status.reason if status.state is RunState.WAITING else None

    @property
    def failure(self) -> Failure | None:
        """Why the run failed; None if it did not."""
        status = self.record.status
        return status.failure if status.state is RunState.FAILED else None

    @property
    def detail(self) -> str:
        """A sentence about the failure or the wait."""
        return self.record.status.detail

    @property
    def exit_code(self) -> int:
        """The exit code of a command that leaves the run in its current state."""
        status = self.record.status
        return exit_code(status.state, status.reason, status.failure)

    @property
    def last_message(self) -> str:
        """The agent's last message; empty if it has said nothing yet."""
        from jackline.domain.run_totals import find_last_message

        return find_last_message(self._home.store().records.list_turns(self.id))

    @property
    def cost(self) -> float | None:
        """The cost in dollars; None if the agent reports none."""
        from jackline.domain.run_totals import compute_run_cost

        return to_usd(compute_run_cost(self.record, self._home.store().records.list_turns(self.id)))

    @property
    def is_lost(self) -> bool:
        """Whether the run was being worked on, and its process is gone; `work` continues it."""
        return bool(self._home.explain_loss(self.record))

    @property
    def questions(self) -> list[OpenQuestion]:
        """The calls that wait for an answer."""
        from jackline.app.inbox import find_open_questions

        return [
            OpenQuestion(call=call, answers=answers)
            for call, answers in find_open_questions(self._home.store(), self.record)
        ]

    def answer(self, verdict: str, call: str = "") -> None:
        """Answer a call: happened, did-not, retry, skip, allow, always or deny; without `call` the only open one."""
        run = self.record
        if call:
            found = self._home.find_call(run, call)
        else:
            questions = self.questions
            if len(questions) != 1:
                raise UsageError(f"{len(questions)} calls of run {self.id} wait for an answer: name one of them")
            found = questions[0].call
        self._home.answer(run, found, verdict)

    def resume(self, message: str = "", *, model: str = "", effort: str = "", **limits: float) -> RunState:
        """Give the agent a message, change the run, and work on it.

        `limits` are new totals by the names of the settings: max_usd, max_tokens, max_calls, max_steps, max_seconds,
        max_iterations; 0 for no limit.
        """
        from jackline.app.setting_keys import parse_setting
        from jackline.domain.amendment import LIMIT_SETTINGS, Amendment
        from jackline.domain.limits import count_units

        settings = {setting: (field, unit) for field, (setting, unit) in LIMIT_SETTINGS.items()}
        if unknown := limits.keys() - settings.keys():
            message = f"unknown limit {min(unknown)}: use {', '.join(settings)}"
            raise TypeError(message)
        numbers = {name: float(parse_setting(name, total, "resume")) for name, total in limits.items()}
        totals = {settings[name][0]: count_units(total, settings[name][1]) or None for name, total in numbers.items()}
        amendment = Amendment(message=message, limits=totals, model=model, effort=effort)
        if not amendment.is_empty:
            self._home.amend(self.record, amendment)
        return self.work()

    def work(self) -> RunState:
        """Work on the run until it ends, or waits for more than a short time."""
        return self._home.work(self.record).status.state

    def cancel(self) -> RunState:
        """Request the end of the run."""
        return self._home.cancel(self.record).status.state

    def follow(self) -> Iterator[RunEvent]:
        """Work on the run and yield its events as they are stored, until it ends or waits.

        A run that another process works on is only watched, until it ends, waits or is lost. Leaving the loop early
        interrupts the work: the run parks and can be continued later.
        """
        seen = self.record.event_seq
        worker = _Worker(self._home, self.record)
        try:
            while True:
                is_over = worker.is_over() and not (worker.is_busy_elsewhere and self._is_worked_on())
                while events := self._home.store().records.list_events(self.id, seen, _PAGE):
                    seen = events[-1].seq
                    yield from map(_build_event, events)
                if is_over:
                    break
                worker.wait(_POLL_SECONDS)
        finally:
            worker.close()

    def _is_worked_on(self) -> bool:
        return self.state is RunState.RUNNING and not self.is_lost


class _Worker:
    """Works on a run in a thread, over a separate connection."""

    def __init__(self, home: Home, run: Run) -> None:
        self._home, self._run = home, run
        self._interrupt: Callable[[], None] = lambda: None
        self._error: BaseException | None = None
        self._closed = False
        self.is_busy_elsewhere = False
        self._pause = threading.Event()
        self._thread = threads.start_thread("run", self._work, self._set_error)

    def is_over(self) -> bool:
        """Whether the work has ended here; raises its error."""
        if self._thread.is_alive():
            return False
        self.is_busy_elsewhere = isinstance(self._error, Busy)
        if self._error is not None and not self.is_busy_elsewhere:
            raise self._error
        return True

    def wait(self, seconds: float) -> None:
        """Wait for the end of the work, at most for some seconds."""
        self._pause.wait(seconds)

    def close(self) -> None:
        """Interrupt the work, and wait for its end."""
        self._closed = True
        self._interrupt()
        self._thread.join()

    def _set_interrupt(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        if self._closed:
            interrupt()

    def _set_error(self, error: BaseException) -> None:
        self._error = error

    def _work(self) -> None:
        if self._run.status.state in {RunState.SUCCEEDED, RunState.CANCELLED}:
            return
        with self._home.reopen() as home:
            home.work(self._run, self._set_interrupt)
            self._home.warnings += home.warnings
        self._pause.set()


def _build_event(event: Event) -> RunEvent:
    found = json.loads(event.data)
    return RunEvent(
        seq=event.seq,
        at=event.at,
        kind=event.kind,
        actor=event.actor,
        data=found if isinstance(found, dict) else {},
    )
