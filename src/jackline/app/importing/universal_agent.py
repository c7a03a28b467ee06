"""universal_agent's `runtime_state.db`: runs with their attempts, steps, calls and receipts. It changes nothing."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Any

from jackline.app import places
from jackline.app.importing import files, ledgers, runs, values
from jackline.app.importing.databases import Asked, Cells, Database, reading
from jackline.app.importing.files import Unreadable
from jackline.app.importing.kinds import UNIVERSAL_AGENT, FoundRun, Source, Troubles
from jackline.domain.budget import Spent
from jackline.domain.states import Failure
from jackline.store.import_contract import ImportedEvent, ImportedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.domain.records import Attempt, Life, Spec, Turn

_AGENT = "claude"  # the only one that it drives
_RUNS = (
    "run_id", "created_at", "updated_at", "status", "entrypoint", "run_spec_json", "workspace_dir", "run_kind",
    "terminal_reason", "run_mode", "job_path", "last_job_prompt", "provider_session_id", "parent_run_id",
    "cancel_reason", "total_tokens", "iteration_count", "max_iterations",
)  # fmt: skip
_ATTEMPTS = (
    "attempt_number", "created_at", "updated_at", "status", "lease_owner", "started_at", "ended_at", "failure_class",
    "failure_reason", "retry_reason", "retry_backoff_seconds",
)  # fmt: skip
_STEPS = ("step_id", "step_index", "created_at", "updated_at", "status", "phase", "error_code", "error_detail")
_CHECKPOINTS = ("checkpoint_id", "step_id", "created_at", "checkpoint_type", "state_snapshot_json", "cursor_json")
_DONE = frozenset({"succeeded", "completed", "success"})
_PROMPTS = ("prompt", "objective", "task", "request", "goal", "description")
_MOST_ROWS = 5_000  # of each table, of one run
_MOST_ATTEMPTS = 1_000
_MOST_CHECKPOINTS = 500


def read(source: Source, troubles: Troubles) -> Iterator[FoundRun]:
    """Run by run."""
    try:
        with reading(source.path) as database:
            for row, cells in database.rows(Asked("runs", _RUNS), troubles):
                if isinstance(cells["run_id"], str) and cells["run_id"]:
                    yield _Reader(database, cells, troubles).run()
                else:
                    troubles.add(source.path, f"row {row} of runs", "its run_id is not a name")
    except OSError as error:
        troubles.add(source.path, "", error.strerror)
    except (Unreadable, sqlite3.Error) as error:
        troubles.add(source.path, "", error)


class _Reader:
    """One run of the database."""

    def __init__(self, database: Database, cells: Cells, troubles: Troubles) -> None:
        self._database, self._cells, self._troubles = database, cells, troubles
        self._id = str(cells["run_id"])
        self._created = self._read_time()
        self._updated = max(self._created, values.moment(cells["updated_at"]) or 0)
        self._asked = self._read_spec()
        self._steps = [cells for _, cells in self._rows("run_steps", _STEPS)]

    def run(self) -> FoundRun:
        """Build the imported run."""
        attempts = self._attempts()
        steps = {
            str(one["step_id"]): values.whole(one["step_index"]) for one in self._steps if one["step_id"] is not None
        }
        turns = _turns(attempts, self._prompt(), self._created, self._updated)
        calls = ledgers.read(self._database, self._id, steps, turns, self._troubles)
        events = [*self._begun(turns), *self._step_events(), *self._checkpoints()]
        finished = max((self._updated, *(one.ended_at for one in calls), *(event.at for event in events)))
        ending = self._ending(attempts)
        since = values.name(self._cells["created_at"], "")
        run_id, other_id = runs.ids(UNIVERSAL_AGENT, self._id, since)
        about = {"from": UNIVERSAL_AGENT, "original": self._id[:200], "path": self._database.path}
        run = ImportedRun(
            run_id,
            f"{UNIVERSAL_AGENT} {self._id[:200]}",
            since,
            self._repository(),
            self._spec(),
            self._life(ending, turns, steps, len(calls), attempts),
            self._created,
            finished,
            finished,
            min((turn.started_at for turn in turns), default=self._created),
            tuple(sorted(events, key=lambda event: event.at)),
            turns,
            tuple(attempts) or (runs.attempt(1, self._created, finished, str(ending.state)),),
            calls,
            about={**about, "stood_at": values.name(self._cells["status"], "-"), "steps": len(steps)},
        )
        return FoundRun(run, other_id)

    # the run itself

    def _prompt(self) -> str:
        told = values.text(self._cells["last_job_prompt"], files.MOST_LINE)
        return told or next((found for name in _PROMPTS if (found := values.text(self._asked.get(name)))), "")

    def _read_time(self) -> int:
        created, updated = (values.moment(self._cells[name]) for name in ("created_at", "updated_at"))
        if created is None:
            instead = "its time is unknown" if updated is None else "its updated_at was taken"
            self._note(f"its created_at is not a time: {instead}")
        return created or updated or 0

    def _note(self, reason: str) -> None:
        self._troubles.note(self._database.path, f"run {self._id[:100]}", reason)

    def _read_spec(self) -> Mapping[str, Any]:
        told = self._cells["run_spec_json"]
        try:
            return files.object_of(told) if isinstance(told, str) else {}
        except Unreadable as error:
            self._troubles.add(self._database.path, f"run {self._id[:100]}", f"run_spec_json: {error}")
            return {}

    def _workspace(self) -> str:
        told = values.text(self._cells["workspace_dir"], 4096)
        return os.path.abspath(told) if told else os.path.dirname(self._database.path)

    def _repository(self) -> str:
        return places.repository_of(self._workspace())

    def _spec(self) -> Spec:
        named = ("run_mode", "job_path", "provider_session_id", "parent_run_id", "entrypoint")
        options = {name: values.name(self._cells[name], "", 500) for name in named}
        about = {"original": self._id[:200], "path": self._database.path}
        spec = runs.spec(UNIVERSAL_AGENT, self._prompt(), self._workspace(), _AGENT, {**about, **options})
        iterations = values.whole(self._cells["max_iterations"]) or None
        return spec._replace(
            task=values.name(self._cells["run_kind"], "adhoc"), limits=spec.limits._replace(iterations=iterations)
        )

    def _life(
        self,
        ending: runs.Ending,
        turns: Sequence[Turn],
        steps: Mapping[str, int],
        calls: int,
        attempts: Sequence[Attempt],
    ) -> Life:
        iteration = values.whole(self._cells["iteration_count"])
        spent = Spent(
            wall_ms=self._updated - self._created,
            iterations=iteration,
            steps=len(steps),
            calls=calls,
            tokens_output=values.whole(self._cells["total_tokens"]),
        )
        highest = max((one.token for one in attempts), default=1)
        life = runs.life(ending, turns, _AGENT, spent, attempts=highest)
        return life._replace(step=max(steps.values(), default=0), iteration=iteration)

    def _ending(self, attempts: Sequence[Attempt]) -> runs.Ending:
        status = values.name(self._cells["status"], "")
        if status in _DONE:
            return runs.SUCCEEDED
        if status == "cancelled":
            return runs.CANCELLED._replace(detail=values.text(self._cells["cancel_reason"]))
        if status != "failed":
            return runs.unfinished(status)
        told = runs.told_failure(attempts[-1].outcome or "") if attempts else None
        return runs.failed(told or Failure.AGENT_ERROR, values.text(self._cells["terminal_reason"]))

    # what belongs to it

    def _rows(self, table: str, columns: tuple[str, ...], most: int | None = None) -> Iterator[tuple[int, Cells]]:
        most = _MOST_ROWS if most is None else most
        if self._database.has(table, "run_id"):
            yield from self._database.rows(Asked(table, columns, "run_id = ?", (self._id,), most), self._troubles)

    def _attempts(self) -> list[Attempt]:
        """With their own numbers; of two attempts with one number the second is skipped."""
        found: dict[int, Attempt] = {}
        for row, cells in self._rows("run_attempts", _ATTEMPTS, _MOST_ATTEMPTS):
            number = values.whole(cells["attempt_number"]) or len(found) + 1
            if number in found:
                place = f"row {row} of run_attempts"
                self._troubles.add(self._database.path, place, "another attempt of the run has its number")
                continue
            began = values.moment(cells["started_at"]) or values.moment(cells["created_at"]) or self._created
            ended = values.moment(cells["ended_at"]) or values.moment(cells["updated_at"]) or began
            outcome = values.name(cells["failure_class"], "") or values.name(cells["status"], "-")
            owner = values.name(cells["lease_owner"], "")
            found[number] = runs.attempt(number, began, max(began, ended), outcome, owner)
        return [found[number] for number in sorted(found)]

    def _begun(self, turns: Sequence[Turn]) -> Iterator[ImportedEvent]:
        for turn in turns:
            yield from runs.turn_began(turn)

    def _step_events(self) -> Iterator[ImportedEvent]:
        for cells in self._steps:
            at = values.moment(cells["created_at"]) or self._created
            named = ("step_id", "step_index", "status", "phase", "error_code", "error_detail")
            yield ImportedEvent(at, "import.step", runs.ENGINE, _some(cells, named))

    def _checkpoints(self) -> Iterator[ImportedEvent]:
        """Checkpoints as events; a run cannot resume from them."""
        for _, cells in self._rows("checkpoints", _CHECKPOINTS, _MOST_CHECKPOINTS):
            at = values.moment(cells["created_at"]) or self._created
            named = ("checkpoint_id", "step_id", "checkpoint_type", "state_snapshot_json", "cursor_json")
            yield ImportedEvent(at, "import.checkpoint", runs.ENGINE, _some(cells, named))


def _some(cells: Cells, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values.tame(cells[name]) for name in names if cells[name] is not None}


def _turns(attempts: Sequence[Attempt], prompt: str, created: int, updated: int) -> tuple[Turn, ...]:
    """Each attempt invoked the agent once."""
    if not attempts:
        return (runs.new_turn(1, _AGENT, prompt, created)._replace(ended_at=updated),)
    return tuple(
        runs.new_turn(number, _AGENT, prompt, one.started_at)._replace(attempt=one.token, ended_at=one.ended_at)
        for number, one in enumerate(attempts, 1)
    )
