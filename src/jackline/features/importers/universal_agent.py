"""universal_agent's `runtime_state.db`: runs with their attempts, steps, calls and receipts. It changes nothing."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING, Any

from jackline.domain.limits import Spent
from jackline.domain.records import Call
from jackline.domain.states import CallClass, CallState, Decision, Failure, Replay
from jackline.features.importers import imported_runs, source_files
from jackline.features.importers.clean_values import (
    SizeBudget,
    clean_integer,
    clean_json,
    clean_name,
    clean_text,
    parse_moment,
)
from jackline.features.importers.databases import MOST_CELL, Cells, RowQuery, SourceDatabase, open_database
from jackline.features.importers.import_records import UNIVERSAL_AGENT, FoundRun, Source, Troubles, build_digest
from jackline.features.importers.imported_records import ImportedCall, ImportedEvent, ImportedRun
from jackline.features.importers.source_files import SourceUnreadable
from jackline.worktrees import find_repository

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jackline.domain.records import Attempt, RunStatus, Turn
    from jackline.domain.spec import Spec

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

_CALLS = (
    "tool_call_id", "step_id", "created_at", "updated_at", "raw_tool_name", "tool_name", "tool_namespace",
    "side_effect_class", "replay_policy", "policy_rule_id", "idempotency_key", "status", "request_ref",
    "response_ref", "external_correlation_id", "error_code", "error_detail",
)  # fmt: skip
_RECEIPTS = (
    "tool_call_id", "tool_name", "tool_namespace", "idempotency_key", "created_at", "response_ref",
    "external_correlation_id",
)  # fmt: skip
_CLASSES = {
    "read_only": CallClass.READ,
    "local": CallClass.LOCAL,
    "external": CallClass.EFFECT,
    "memory": CallClass.EFFECT,
}
_REPLAYS = {
    "REPLAY_EXACT": Replay.EXACT,
    "REPLAY_IDEMPOTENT": Replay.IDEMPOTENT,
    "RELAUNCH": Replay.RELAUNCH,
}
_STATES = {"succeeded": CallState.DONE, "failed": CallState.FAILED, "abandoned_on_resume": CallState.ABANDONED}
_REPEATS_FREELY = frozenset({CallClass.READ, CallClass.LOCAL})
_DOOR = "imported"
_MOST_CALLS = 20_000
_LONGEST_ID = 200
_LITTLE = 1_000  # characters of a text, where there is too much of it
_BY_RECEIPT = "its receipt says so; the call itself could not be read"


def read(source: Source, troubles: Troubles) -> Iterator[FoundRun]:
    """Read the runs of the database."""
    try:
        with open_database(source.path) as database:
            for row, cells in database.rows(RowQuery(table="runs", columns=_RUNS), troubles):
                if isinstance(cells["run_id"], str) and cells["run_id"]:
                    yield _Reader(database, cells, troubles).build_run()
                else:
                    troubles.add(source.path, f"row {row} of runs", "its run_id is not a name")
    except OSError as error:
        troubles.add(source.path, "", error.strerror)
    except (SourceUnreadable, sqlite3.Error) as error:
        troubles.add(source.path, "", error)


class _Reader:
    """One run of the database."""

    def __init__(self, database: SourceDatabase, cells: Cells, troubles: Troubles) -> None:
        self._database, self._cells, self._troubles = database, cells, troubles
        self._id = str(cells["run_id"])
        created, updated = parse_moment(cells["created_at"]), parse_moment(cells["updated_at"])
        if created is None:
            instead = "its time is unknown" if updated is None else "its updated_at was taken"
            troubles.note(database.path, f"run {self._id[:100]}", f"its created_at is not a time: {instead}")
        self._created = created or updated or 0
        self._updated = max(self._created, updated or 0)
        self._request: Mapping[str, Any] = {}
        try:
            if isinstance(cells["run_spec_json"], str):
                self._request = source_files.parse_object(cells["run_spec_json"])
        except SourceUnreadable as error:
            troubles.add(database.path, f"run {self._id[:100]}", f"run_spec_json: {error}")
        self._steps = [cells for _, cells in self._read_rows("run_steps", _STEPS)]

    def build_run(self) -> FoundRun:
        """Build the imported run."""
        attempts = self._read_attempts()
        steps = {
            str(one["step_id"]): clean_integer(one["step_index"]) for one in self._steps if one["step_id"] is not None
        }
        turns = _build_turns(attempts, self._find_prompt(), self._created, self._updated)
        calls = _read_calls(self._database, self._id, steps, turns, self._troubles)
        events = [
            *(event for turn in turns for event in imported_runs.build_turn_events(turn)),
            *self._build_step_events(),
            *self._build_checkpoint_events(),
        ]
        finished = max((self._updated, *(one.ended_at for one in calls), *(event.at for event in events)))
        ending = self._find_ending(attempts)
        since = clean_name(self._cells["created_at"], "")
        run_id, other_id = imported_runs.build_ids(UNIVERSAL_AGENT, self._id, since)
        about = {"from": UNIVERSAL_AGENT, "original": self._id[:200], "path": self._database.path}
        run = ImportedRun(
            id=run_id,
            origin=f"{UNIVERSAL_AGENT} {self._id[:200]}",
            since=since,
            repository=find_repository(self._find_workspace()),
            spec=self._build_spec(),
            status=self._build_status(ending, turns, steps, len(calls), attempts),
            created_at=self._created,
            updated_at=finished,
            finished_at=finished,
            started_at=min((turn.started_at for turn in turns), default=self._created),
            events=tuple(sorted(events, key=lambda event: event.at)),
            turns=turns,
            attempts=tuple(attempts) or (imported_runs.build_attempt(1, self._created, finished, str(ending.state)),),
            calls=calls,
            about={**about, "stood_at": clean_name(self._cells["status"], "-"), "steps": len(steps)},
        )
        return FoundRun(run=run, other_id=other_id)

    # the run itself

    def _find_prompt(self) -> str:
        last = clean_text(self._cells["last_job_prompt"], source_files.MOST_LINE)
        return last or next((found for name in _PROMPTS if (found := clean_text(self._request.get(name)))), "")

    def _find_workspace(self) -> str:
        folder = clean_text(self._cells["workspace_dir"], 4096)
        return os.path.abspath(folder) if folder else os.path.dirname(self._database.path)

    def _build_spec(self) -> Spec:
        named = ("run_mode", "job_path", "provider_session_id", "parent_run_id", "entrypoint")
        options = {name: clean_name(self._cells[name], "", 500) for name in named}
        about = {"original": self._id[:200], "path": self._database.path}
        spec = imported_runs.build_spec(
            UNIVERSAL_AGENT, self._find_prompt(), self._find_workspace(), _AGENT, {**about, **options}
        )
        iterations = clean_integer(self._cells["max_iterations"]) or None
        return spec._replace(
            task=clean_name(self._cells["run_kind"], "adhoc"),
            limits=spec.limits._replace(iterations=iterations),
        )

    def _build_status(
        self,
        ending: imported_runs.RunEnding,
        turns: Sequence[Turn],
        steps: Mapping[str, int],
        calls: int,
        attempts: Sequence[Attempt],
    ) -> RunStatus:
        iteration = clean_integer(self._cells["iteration_count"])
        spent = Spent(
            wall_ms=self._updated - self._created,
            iterations=iteration,
            steps=len(steps),
            calls=calls,
            tokens_output=clean_integer(self._cells["total_tokens"]),
        )
        highest = max((one.token for one in attempts), default=1)
        status = imported_runs.build_status(ending, turns, _AGENT, spent, attempts=highest)
        return status._replace(step=max(steps.values(), default=0), iteration=iteration)

    def _find_ending(self, attempts: Sequence[Attempt]) -> imported_runs.RunEnding:
        status = clean_name(self._cells["status"], "")
        if status in _DONE:
            return imported_runs.SUCCEEDED
        if status == "cancelled":
            return imported_runs.CANCELLED._replace(detail=clean_text(self._cells["cancel_reason"]))
        if status != "failed":
            return imported_runs.build_unfinished(status)
        failure = imported_runs.parse_failure(attempts[-1].outcome or "") if attempts else None
        return imported_runs.build_failure(failure or Failure.AGENT_ERROR, clean_text(self._cells["terminal_reason"]))

    # what belongs to it

    def _read_rows(self, table: str, columns: tuple[str, ...], most: int | None = None) -> Iterator[tuple[int, Cells]]:
        most = _MOST_ROWS if most is None else most
        if self._database.has(table, "run_id"):
            yield from self._database.rows(
                RowQuery(table=table, columns=columns, where="run_id = ?", values=(self._id,), most=most),
                self._troubles,
            )

    def _read_attempts(self) -> list[Attempt]:
        """With their own numbers; of two attempts with one number the second is skipped."""
        found: dict[int, Attempt] = {}
        for row, cells in self._read_rows("run_attempts", _ATTEMPTS, _MOST_ATTEMPTS):
            number = clean_integer(cells["attempt_number"]) or len(found) + 1
            if number in found:
                place = f"row {row} of run_attempts"
                self._troubles.add(self._database.path, place, "another attempt of the run has its number")
                continue
            began = parse_moment(cells["started_at"]) or parse_moment(cells["created_at"]) or self._created
            ended = parse_moment(cells["ended_at"]) or parse_moment(cells["updated_at"]) or began
            outcome = clean_name(cells["failure_class"], "") or clean_name(cells["status"], "-")
            owner = clean_name(cells["lease_owner"], "")
            found[number] = imported_runs.build_attempt(number, began, max(began, ended), outcome, owner)
        return [found[number] for number in sorted(found)]

    def _build_step_events(self) -> Iterator[ImportedEvent]:
        for cells in self._steps:
            at = parse_moment(cells["created_at"]) or self._created
            named = ("step_id", "step_index", "status", "phase", "error_code", "error_detail")
            yield ImportedEvent(at=at, kind="import.step", actor=imported_runs.ENGINE, data=_select_cells(cells, named))

    def _build_checkpoint_events(self) -> Iterator[ImportedEvent]:
        """Checkpoints as events; a run cannot resume from them."""
        for _, cells in self._read_rows("checkpoints", _CHECKPOINTS, _MOST_CHECKPOINTS):
            at = parse_moment(cells["created_at"]) or self._created
            named = ("checkpoint_id", "step_id", "checkpoint_type", "state_snapshot_json", "cursor_json")
            yield ImportedEvent(
                at=at, kind="import.checkpoint", actor=imported_runs.ENGINE, data=_select_cells(cells, named)
            )


def _select_cells(cells: Cells, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: clean_json(cells[name]) for name in names if cells[name] is not None}


def _build_turns(attempts: Sequence[Attempt], prompt: str, created: int, updated: int) -> tuple[Turn, ...]:
    """Each attempt invoked the agent once."""
    if not attempts:
        return (imported_runs.build_turn(1, _AGENT, prompt, created)._replace(ended_at=updated),)
    return tuple(
        imported_runs.build_turn(number, _AGENT, prompt, one.started_at)._replace(
            attempt=one.token, ended_at=one.ended_at
        )
        for number, one in enumerate(attempts, 1)
    )


# calls


def _read_calls(
    database: SourceDatabase, run_id: str, steps: Mapping[str, int], turns: Sequence[Turn], troubles: Troubles
) -> tuple[ImportedCall, ...]:
    """The calls of a run; a receipt whose call is missing is a call that was done."""
    receipts = {
        str(cells["tool_call_id"]): cells
        for cells in _read_call_rows(database, "tool_receipts", _RECEIPTS, run_id, troubles)
    }
    ledger = _Ledger(steps, turns)
    for cells in _read_call_rows(database, "tool_calls", _CALLS, run_id, troubles):
        ledger.add(cells, receipts.pop(str(cells["tool_call_id"]), None))
    for cells in receipts.values():
        ledger.add({**dict.fromkeys(_CALLS), **cells, "side_effect_class": "external", "status": "succeeded",
                    "error_detail": _BY_RECEIPT}, cells)  # fmt: skip
    return tuple(ledger.calls)


def _read_call_rows(
    database: SourceDatabase, table: str, columns: tuple[str, ...], run_id: str, troubles: Troubles
) -> Iterator[Cells]:
    if not database.has(table, "run_id", "tool_call_id"):
        return
    query = RowQuery(table=table, columns=columns, where="run_id = ?", values=(run_id,), most=_MOST_CALLS)
    for row, cells in database.rows(query, troubles):
        if not isinstance(cells["tool_call_id"], str) or not cells["tool_call_id"]:
            troubles.add(database.path, f"row {row} of {table}", "its tool_call_id is not a name")
        else:
            yield cells


class _Ledger:
    """Collects the calls of a run."""

    def __init__(self, steps: Mapping[str, int], turns: Sequence[Turn]) -> None:
        self._steps, self._turns = steps, turns
        self._ids: set[str] = set()
        self._keys: dict[str, int] = {}
        self._room = SizeBudget()
        self.calls: list[ImportedCall] = []

    def add(self, cells: Cells, receipt: Cells | None) -> None:
        began = parse_moment(cells["created_at"]) or (self._turns[0].started_at if self._turns else 0)
        ended = parse_moment(cells["updated_at"]) or (parse_moment(receipt["created_at"]) if receipt else None) or began
        call = self._build_call(cells, receipt, began)
        external = clean_name(cells["external_correlation_id"], "", 500)
        if not external and receipt is not None:
            external = clean_name(receipt["external_correlation_id"], "", 500)
        self.calls.append(ImportedCall(call=call, ended_at=max(began, ended), external_id=external))

    def _build_call(self, cells: Cells, receipt: Cells | None, began: int) -> Call:
        original = str(cells["tool_call_id"])
        call_id = clean_name(original, "", _LONGEST_ID)
        if call_id != original or call_id in self._ids:
            call_id = f"{call_id[:100]}-{build_digest(original, str(len(self._ids)))}"
        self._ids.add(call_id)
        kind = _CLASSES.get(str(cells["side_effect_class"]), CallClass.UNKNOWN)
        key = clean_name(cells["idempotency_key"], "", 200) or build_digest(UNIVERSAL_AGENT, call_id)
        occurrence = 0
        if kind not in _REPEATS_FREELY:
            occurrence = self._keys[key] = self._keys.get(key, 0) + 1
        # The last turn that had begun.
        turn = next((turn for turn in reversed(self._turns) if turn.started_at <= began), next(iter(self._turns), None))
        return Call(
            id=call_id,
            run_id="",
            attempt=turn.attempt if turn else 1,
            turn=turn.number if turn else 1,
            step=self._steps.get(str(cells["step_id"]), 0),
            occurrence=occurrence,
            tool=clean_name(cells["raw_tool_name"], "") or clean_name(cells["tool_name"], "unknown"),
            call_class=kind,
            replay=_choose_replay(cells, kind),
            decision=Decision.ALLOW,
            rule=clean_name(cells["policy_rule_id"], ""),
            door=_DOOR,
            key=key,
            target="",
            input=self._clean_text(cells["request_ref"]),
            state=_find_state(cells, receipt, kind),
            prepared_at=began,
            agent_call=call_id,
            reason=clean_text(cells["error_detail"]) or clean_text(cells["error_code"]),
            output=self._clean_text(cells["response_ref"] or (receipt or cells)["response_ref"]),
        )

    def _clean_text(self, value: object) -> str:
        whole = clean_text(value, MOST_CELL)
        return whole if self._room.reserve(whole) else clean_text(whole, _LITTLE)


def _choose_replay(cells: Cells, kind: CallClass) -> Replay:
    """An effect is never replayed exactly, also if the old policy allowed it."""
    replay = _REPLAYS.get(str(cells["replay_policy"]), Replay.ASK)
    return Replay.ASK if replay is Replay.EXACT and kind not in _REPEATS_FREELY else replay


def _find_state(cells: Cells, receipt: Cells | None, kind: CallClass) -> CallState:
    """A receipt proves a call; a call in flight is in doubt, unless it can be repeated freely."""
    known = CallState.DONE if receipt is not None else _STATES.get(str(cells["status"]))
    if known is not None:
        return known
    return CallState.ABANDONED if kind in _REPEATS_FREELY else CallState.IN_DOUBT
