"""Reads and writes schedules and their fires. A due time is recorded once, in the transaction that passes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.records import SubjectNotice
from jackline.domain.states import TERMINAL
from jackline.errors import NotFound
from jackline.features.notify.delivery_store import build_fire_ping
from jackline.features.schedules.schedule_model import (
    CLAIMED,
    MISSED,
    MOST_WAITING,
    SKIPPED,
    STARTED,
    DuePlan,
    Fire,
    Schedule,
    ScheduleDefinition,
    build_run_id,
    plan_due,
)
from jackline.formatting import format_iso, pluralize
from jackline.named import NamedTuple, load_stored, stored_changes
from jackline.store import rows
from jackline.store.driver import clean
from jackline.store.parts import StorePart

if TYPE_CHECKING:
    from jackline.store.driver import Row, Statements
    from jackline.store.parts import PingEvent

_KEPT = 2_000  # the fires of a schedule that its history keeps
_LONGEST_REASON = 2_000
LONGEST_CLAIM_MS = 3_600_000


class RunOutcome(NamedTuple):
    """The state of a run, and the words about it."""

    state: str
    detail: str


class ScheduleStore(StorePart):
    """The part of the store with the schedules."""

    # schedules

    def put(self, schedule: Schedule) -> None:
        """Store a schedule in place of the one of that name; its fires stay."""
        definition = json.dumps(stored_changes(schedule.definition), separators=(",", ":"))
        values = {**rows.build_parameters(schedule), "definition": definition}
        self._driver.write(lambda statements: statements.run("put_schedule", values))

    def list_all(self) -> list[Schedule]:
        """Every schedule by name."""
        return [_parse_schedule(row) for row in self._all("list_schedules", {})]

    def find(self, name: str) -> Schedule | None:
        """A schedule; None if there is none of that name."""
        row = self._one("get_schedule", {"name": clean(name)})
        return None if row is None else _parse_schedule(row)

    def get(self, name: str) -> Schedule:
        """A schedule; NotFound if there is none of that name."""
        found = self.find(name)
        if found is None:
            raise NotFound(name[:60], what="schedule", hint="jackline schedule list")
        return found

    def remove(self, name: str) -> bool:
        """Remove a schedule; its fires stay, because their runs do."""
        return self._driver.write(lambda statements: statements.run("remove_schedule", {"name": clean(name)})) > 0

    def pause(self, name: str, at: int) -> bool:
        """Pause a schedule; False if it was paused already."""
        return self._driver.write(lambda one: one.run("pause_schedule", {"name": clean(name), "at": at})) > 0

    def resume(self, name: str, at: int) -> None:
        """Let a schedule fire from now on; what was due before is not missed."""
        self._driver.write(lambda statements: statements.run("resume_schedule", {"name": clean(name), "at": at}))

    # fires

    def record_due(self, name: str, now: int) -> DuePlan:
        """Record every due time up to now, and what becomes of it.

        Others may do the same at this moment: each time is recorded once, because the schedule's row is locked, and
        no time up to `checked_until` is looked at again, even if the clock was set back.
        """

        def record(statements: Statements) -> DuePlan:
            row = statements.one("lock_schedule", {"name": clean(name)})
            schedule = None if row is None else _parse_schedule(row)
            if schedule is None or schedule.paused_at is not None:
                return DuePlan()
            plan = plan_due(schedule.definition, schedule.checked_until, now)
            self._write_plan(statements, schedule, plan, now)
            statements.run("move_checked_until", {"name": schedule.name, "at": now})
            return plan

        return self._driver.write(record)

    def _write_plan(self, statements: Statements, schedule: Schedule, plan: DuePlan, now: int) -> None:
        most = max(MOST_WAITING, schedule.definition.catch_up_most)
        row = statements.one("count_waiting_fires", {"schedule": schedule.name})
        free = most - (row[0] if row else 0)
        added = []
        for due in plan.fires:
            state, reason = (CLAIMED, "") if free > 0 else (SKIPPED, f"{most} fires wait already")
            if _add_fire(statements, schedule.name, due, state, reason, now):
                added.append(due)
                free -= 1
        missed = [due for due in plan.missed if _add_fire(statements, schedule.name, due, MISSED, "", now)]
        if plan.missed_since is not None and plan.missed:
            until = format_iso(plan.missed[0], "seconds")
            _add_fire(statements, schedule.name, plan.missed_since, MISSED, f"and all until {until}", now)
        if missed:
            self._store.notices.add_within(statements, build_missed_notice(schedule, plan, now))
        if added or missed:
            statements.run("remove_old_fires", {"schedule": schedule.name, "kept": _KEPT})

    def add_manual(self, name: str, at: int) -> Fire | None:
        """Record a fire for a person; None if there is one with the same millisecond."""

        def add(statements: Statements) -> Fire | None:
            if not _add_fire(statements, name, at, CLAIMED, "", at):
                return None
            row = statements.one("get_fire", {"schedule": name, "due_at": at})
            return None if row is None else Fire(*row)

        return self._driver.write(add)

    def list_next(self) -> list[Fire]:
        """The first fire of each schedule that has no run yet."""
        return [Fire(*row) for row in self._all("list_next_fires", {})]

    def list_started(self) -> list[Fire]:
        """The fires whose runs have not ended, as far as is recorded, oldest first."""
        return [Fire(*row) for row in self._all("list_started_fires", {})]

    def find_fire_of_run(self, run_id: str) -> Fire | None:
        """The fire that has or would have created a run."""
        row = self._one("get_fire_of_run", {"run_id": clean(run_id)})
        return None if row is None else Fire(*row)

    def list_fires(self, name: str, limit: int) -> list[Fire]:
        """The fires of a schedule, newest first."""
        return [Fire(*row) for row in self._all("list_fires", {"schedule": clean(name), "limit": limit})]

    def take(self, fire: Fire, owner: str, now: int, claim_ms: int) -> bool:
        """Take a recorded fire to create its run; False if another process has taken it or is done with it.

        The fires of a schedule are taken in their order, one at a time: until the run of one exists, another process
        could not see that the next one overlaps it. The schedule's row is locked, as two may take different fires.
        """
        values = {
            **_build_key(fire),
            "owner": owner,
            "until": now + claim_ms,
            "at": now,
            "longest": now + LONGEST_CLAIM_MS,
        }

        def take(statements: Statements) -> bool:
            statements.one("lock_schedule", {"name": fire.schedule})
            return statements.run("take_fire", values) > 0

        return self._driver.write(take)

    def extend_claim(self, fire: Fire, owner: str, now: int, claim_ms: int) -> bool:
        """Keep a taken fire for longer; False if another process has taken it since."""
        values = {**_build_key(fire), "owner": owner, "until": now + claim_ms, "at": now}
        return self._driver.write(lambda statements: statements.run("extend_fire", values)) > 0

    def set_state(
        self,
        fire: Fire,
        state: str,
        now: int,
        reason: str = "",
        notice: SubjectNotice | None = None,
        ping: PingEvent | None = None,
    ) -> bool:
        """Write the result of a fire, with its notice and its ping; False if another process did so before."""
        shown = clean(self.redactor.redact(reason))[-_LONGEST_REASON:]
        values = {**_build_key(fire), "state": state, "before": fire.state, "reason": shown, "at": now}

        def change(statements: Statements) -> bool:
            if statements.run("set_fire", values) == 0:
                return False
            if notice is not None:
                self._store.notices.add_within(statements, notice)
            if ping is not None:
                statements.run("add_delivery", rows.build_parameters(build_fire_ping(ping, fire.run_id, now)))
            return True

        return self._driver.write(change)

    def mark_started(self, fire: Fire, now: int) -> None:
        """Record that the run exists; that is true whatever another process has written about the fire."""
        self._driver.write(lambda statements: statements.run("start_fire", {**_build_key(fire), "at": now}))

    def release(self, fire: Fire, now: int, reason: str) -> None:
        """Leave a taken fire to the next look of any service."""
        self.set_state(fire, CLAIMED, now, reason)

    def list_unfinished_runs(self, fire: Fire) -> list[str]:
        """The runs of the schedule's other fires that have not ended."""
        values = {"schedule": fire.schedule, "run_id": fire.run_id}
        return [run_id for run_id, state in self._all("list_fired_runs", values) if state not in TERMINAL]

    def find_outcome(self, run_id: str) -> RunOutcome | None:
        """The state of a run; None if it does not exist."""
        row = self._one("get_run_state", {"id": clean(run_id)})
        return None if row is None else RunOutcome(*row)


def build_missed_notice(schedule: Schedule, plan: DuePlan, now: int) -> SubjectNotice:
    """The notice about due times at which nothing was there to start the runs."""
    first = plan.missed_since or plan.missed[0]
    count = "more than " if plan.missed_since else ""
    caught = f"; {pluralize(len(plan.fires), 'run')} started now" if plan.fires else ""
    return build_schedule_notice(
        schedule,
        "missed",
        first,
        now,
        title=f"schedule {schedule.name}: missed",
        body=f"{count}{pluralize(len(plan.missed), 'due time')} missed since {format_iso(first, 'seconds')}{caught}",
    )


def build_schedule_notice(
    schedule: Schedule, kind: str, due_at: int, at: int, *, title: str, body: str
) -> SubjectNotice:
    """A notice about a fire; its id is the same wherever it is written, so there is one. It has the run's labels."""
    names = [name.strip() for names in schedule.definition.run.get("label", ()) for name in names.split(",")]
    return SubjectNotice(
        id=f"schedule.{kind}:{schedule.name}:{due_at}",
        subject=f"schedule:{schedule.name}",
        kind=f"schedule.{kind}",
        title=title,
        body=body,
        created_at=at,
        labels=" ".join(name for name in names if name),
    )


def _add_fire(statements: Statements, name: str, due_at: int, state: str, reason: str, at: int) -> bool:
    fire = Fire(
        schedule=name,
        due_at=due_at,
        state=state,
        run_id=build_run_id(name, due_at) if state in {CLAIMED, STARTED} else "",
        reason=reason,
        at=at,
        updated_at=at,
    )
    return statements.run("add_fire", rows.build_parameters(fire)) > 0


def _build_key(fire: Fire) -> dict[str, object]:
    return {"schedule": fire.schedule, "due_at": fire.due_at}


def _parse_schedule(row: Row) -> Schedule:
    name, text, *rest = row
    return Schedule(name, load_stored(ScheduleDefinition, json.loads(text)), *rest)
