"""The queue: which runs a service may start, in which order, and why the others wait. Claims are in `leases`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jackline.domain.events import ENGINE, PERSON, Fact
from jackline.domain.states import RunState, WaitReason, format_run_state
from jackline.errors import NotStartable, Refused
from jackline.store import rows
from jackline.store.driver import RetryTransaction, Row, Statements, clean
from jackline.store.models import QueueEntry, QueueWait
from jackline.store.parts import StorePart, append_run_events, build_not_found
from jackline.store.runs import IdleEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.domain.records import Run
    from jackline.store.models import QueueOptions

_AT_ONCE = 200  # runs of one query
_WAITS = {"retry": WaitReason.RETRY, "limited": WaitReason.LIMIT, "budget": WaitReason.BUDGET}
_WORDS = {name: str(word) for name, word in ({str(state): state for state in RunState} | _WAITS).items()}


class RunQueue(StorePart):
    """The part of the store with the runs that a service starts."""

    def add_within(self, statements: Statements, run_id: str, options: QueueOptions, at: int, position: int) -> None:
        """Put a new run into the queue, in the transaction that creates it; NotFound if a dependency is unknown."""
        for earlier in sorted(set(options.depends_on)):
            if statements.one("get_run_mark", {"id": clean(earlier)}) is None:
                raise build_not_found(earlier)
            statements.run("add_dependency", {"run_id": run_id, "depends_on": clean(earlier)})
        entry = QueueEntry(
            run_id=run_id,
            priority=options.priority,
            not_before=options.not_before,
            batch=options.batch,
            batch_slots=options.batch_slots if options.batch else 0,
            held_at=at if options.held else None,
            added_at=at,
            position=position,
        )
        statements.run("add_queue_entry", rows.build_parameters(entry))
        if options.dedupe:
            taken = statements.run("take_dedupe_key", {"key": clean(options.dedupe), "run_id": run_id})
            if not taken:
                raise RetryTransaction  # another process took it since we looked

    def find_dedupe_owner(self, statements: Statements, key: str) -> str | None:
        """The id of the run with this key that has not ended."""
        row = statements.one("dedupe_owner", {"key": clean(key)}) if key else None
        return row[0] if row else None

    def get(self, run_id: str) -> QueueEntry | None:
        """The entry of a run; it stays after the run has started."""
        row = self._one("queue_entry", {"run_id": clean(run_id)})
        return QueueEntry(*row) if row else None

    def list_startable(self, at: int, limit: int = 100) -> list[QueueEntry]:
        """The runs that may start now, in the order in which they should.

        All of a batch that is not full: the claim of one too many is refused. `count_batch_places` tells how many fit.
        """
        values = {**_WORDS, "at": at, "limit": max(0, limit)}
        return [QueueEntry(*row) for row in self._all("startable_runs", values)]

    def list_batch(self, batch: str) -> list[str]:
        """The ids of the runs of a batch, in the order in which they were added."""
        return [row[0] for row in self._all("batch_runs", {"batch": clean(batch)})]

    def find_newest_batch(self, repository: str) -> str:
        """The batch of the run of this repository that was added last; empty if there is none."""
        row = self._one("newest_batch", {"repository": repository})
        return row[0] if row else ""

    def count_batch_places(self, batch: str) -> int:
        """How many runs of the batch are being worked on, or continue without a person."""
        row = self._one("batch_places", {**_WORDS, "batch": clean(batch)})
        return row[0] if row else 0

    def list_waits(self, run_ids: Sequence[str] | None = None, limit: int = 100) -> list[QueueWait]:
        """The runs that have not started, and what they depend on: those of these, or the next ones in their order."""
        if run_ids is None:
            run_ids = [row[0] for row in self._all("queued_ids", {**_WORDS, "limit": max(0, limit)})]
        pages = (run_ids[start : start + _AT_ONCE] for start in range(0, len(run_ids), _AT_ONCE))
        return [wait for page in pages for wait in self._read_waits(page)]

    def _read_waits(self, run_ids: Sequence[str]) -> list[QueueWait]:
        ids = {f"id_{place}": clean(one) for place, one in enumerate(run_ids)}
        words = {"queued": str(RunState.QUEUED), "succeeded": str(RunState.SUCCEEDED)}
        chosen = f"runs.id IN ({', '.join(f':{name}' for name in ids)}) AND runs.state = :queued AND runs.token = 0"
        entries = (
            f"SELECT {', '.join(rows.columns('queue_entry'))} FROM runs "  # noqa: S608 - values are parameters
            f"JOIN queue ON queue.run_id = runs.id WHERE {chosen}"
        )
        earlier = (
            "SELECT runs.id, earlier.id, earlier.state FROM runs "  # noqa: S608 - as above
            "JOIN dependencies ON dependencies.run_id = runs.id JOIN runs AS earlier ON earlier.id = depends_on "
            f"WHERE {chosen} AND earlier.state <> :succeeded ORDER BY earlier.id"
        )

        def read(statements: Statements) -> tuple[list[Row], list[Row]]:
            return statements.listing(entries, {**ids, **words}), statements.listing(earlier, {**ids, **words})

        found, waits = self._driver.snapshot(read)
        known = {row[0]: QueueEntry(*row) for row in found}
        return [
            QueueWait(entry=known[run_id], earlier=tuple((row[1], row[2]) for row in waits if row[0] == run_id))
            for run_id in ids.values()
            if run_id in known
        ]

    def refuse_unstartable(self, statements: Statements, run_id: str, at: int) -> None:
        """NotStartable unless the run may start now, in the transaction of its claim: no batch gets a run too many."""
        row = statements.one("lock_queue_entry", {"run_id": run_id})
        if row is None:
            raise NotStartable(run_id, why="it is not in the queue")
        entry = QueueEntry(*row)
        if entry.held_at is not None:
            raise NotStartable(run_id, why="it is held")
        if entry.not_before > at:
            raise NotStartable(run_id, why="it is too early")
        earlier = statements.all("open_dependencies", {**_WORDS, "run_id": run_id})
        if earlier:
            raise NotStartable(run_id, why=f"it depends on run {earlier[0][0]}")
        if entry.batch_slots:
            batch = {**_WORDS, "batch": entry.batch}
            statements.one("lock_batch", batch)
            places = statements.one("batch_places", batch)
            if places is not None and places[0] >= entry.batch_slots:
                raise NotStartable(run_id, why=f"{places[0]} runs of its batch are active")

    def hold(self, *run_ids: str, at: int) -> None:
        """Keep queued runs from being started: all, or Refused if one has started or is not in the queue."""
        self._driver.write(partial(self._set_held, run_ids=run_ids, held_at=at, at=at))

    def release(self, *run_ids: str, at: int) -> None:
        """Let held runs start: all, or Refused if one has started or is not in the queue."""
        self._driver.write(partial(self._set_held, run_ids=run_ids, held_at=None, at=at))

    def _set_held(self, statements: Statements, run_ids: Sequence[str], held_at: int | None, at: int) -> None:
        fact = Fact("run.released" if held_at is None else "run.held")
        for run_id in sorted(run_ids):
            run = self._lock_run(statements, run_id)
            row = statements.one("queue_entry", {"run_id": run.id})
            if run.status.state is not RunState.QUEUED or run.status.attempt:
                state = format_run_state(run.status.state)
                raise Refused(f"run {run.id} {state}: only a run that has not started can be held or released")
            if row is None:
                raise Refused(f"run {run.id} is not in the queue: the command that created it starts it")
            if (QueueEntry(*row).held_at is None) == (held_at is None):
                continue
            statements.run("hold_queue_entry", {"run_id": run.id, "at": held_at})
            append_run_events(statements, run, (fact,), at, PERSON)

    def cancel_unreachable(self, at: int, new_id: Callable[[], str]) -> list[Run]:
        """End the runs that wait for one that failed or was cancelled, and those that wait for them, with notices.

        `new_id` makes the ids of the notices.
        """
        ended: list[Run] = []
        while found := self._all("unreachable_runs", _WORDS):
            for row in found:
                run = self._driver.write(partial(self._cancel, run_id=row[0], at=at, notice_id=new_id()))
                ended += [run] if run is not None else []
        return ended

    def _cancel(self, statements: Statements, run_id: str, at: int, notice_id: str) -> Run | None:
        """End the run; None if it was started or ended meanwhile, or has no failed dependency any more."""
        run = self._lock_run(statements, run_id)
        row = statements.one("failed_dependency", {**_WORDS, "run_id": run_id})
        if row is None or run.status.state is not RunState.QUEUED or run.status.attempt:
            return None
        earlier, state = row
        ended = IdleEnd(
            at=at,
            notice_id=notice_id,
            detail=f"it depends on run {earlier}, which {'failed' if state == RunState.FAILED else 'was cancelled'}",
            data={"by": "dependency", "run": earlier},
            actor=ENGINE,
        )
        return self._store.runs.end_idle(statements, run, ended)
