"""Stores triggers and their deliveries. A delivery's row is written before its run is created, and only once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from jackline.domain.events import ENGINE, PERSON, Fact, canonical
from jackline.errors import Conflict, NotFound, UsageError
from jackline.features.triggers.trigger_model import (
    CLAIMED,
    ON_GITHUB,
    STARTED,
    Trigger,
    TriggerDelivery,
    build_event_id,
    dump_definition,
    load_definition,
    may_poll,
)
from jackline.named import stored_dict
from jackline.store.driver import Row, Statements, clean
from jackline.store.journal import append_to_journal
from jackline.store.parts import StorePart
from jackline.store.rows import build_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.domain.records import SubjectNotice

_LONGEST_REASON = 500


class TriggerStore(StorePart):
    """The part of the store with triggers."""

    def add(self, trigger: Trigger, *, replace: bool) -> None:
        """Store a trigger; one of the same name is a Conflict, unless it is to be replaced, which keeps its past."""
        definition = _dump(trigger)
        run = {name: value for name, value in trigger.definition.run.items() if name != "ping"}  # never shown
        if self.redactor.has_secret(_dump(trigger._replace(definition=trigger.definition._replace(run=run)))):
            raise UsageError(
                "the trigger seems to contain a secret and would be stored as it is; use a variable for it"
            )

        def write(statements: Statements) -> None:
            known = statements.one("lock_trigger", {"name": trigger.name})
            if known is not None and not replace:
                raise Conflict(trigger.name)
            if known is not None:
                _add_repository_to_deliveries(statements, _build_trigger(known))
            values = {**stored_dict(trigger), "definition": definition}
            statements.run("put_trigger", values)
            if known is not None and _build_trigger(known).definition.kind != trigger.definition.kind:
                statements.run("set_trigger_cursor", {"name": trigger.name, "cursor": trigger.cursor})
            data = {"name": trigger.name, "kind": trigger.definition.kind, "replaced": known is not None}
            append_to_journal(statements, Fact("trigger.added", data), trigger.updated_at, PERSON)

        self._driver.write(write)

    def get(self, name: str) -> Trigger:
        """One trigger; NotFound if there is none."""
        row = self._one("get_trigger", {"name": clean(name)})
        if row is None:
            raise NotFound(name, what="trigger", hint="jackline trigger list")
        return _build_trigger(row)

    def list_all(self) -> list[Trigger]:
        """Every trigger, by name."""
        return [_build_trigger(row) for row in self._all("all_triggers", {})]

    def set_paused(self, name: str, at: int, *, paused: bool) -> Trigger:
        """Pause or resume a trigger."""

        def write(statements: Statements) -> None:
            values = {"name": name, "paused_at": at if paused else None, "at": at}
            if statements.run("pause_trigger", values):
                kind = "trigger.paused" if paused else "trigger.resumed"
                append_to_journal(statements, Fact(kind, {"name": name}), at, PERSON)

        self.get(name)
        self._driver.write(write)
        return self.get(name)

    def remove(self, name: str, at: int) -> None:
        """Delete a trigger; its deliveries stay, so that a trigger of the same name does not start them again."""

        def write(statements: Statements) -> None:
            known = statements.one("lock_trigger", {"name": name})
            if known is not None:
                _add_repository_to_deliveries(statements, _build_trigger(known))
            statements.run("delete_trigger", {"name": name})
            append_to_journal(statements, Fact("trigger.removed", {"name": name}), at, PERSON)

        self.get(name)
        self._driver.write(write)

    # polling

    def claim_poll(self, names: list[str], at: int, next_at: int) -> bool:
        """Take the right to ask a server for these triggers now; False if another service has it."""

        def claim(statements: Statements) -> bool:
            rows = [statements.one("lock_trigger", {"name": name}) for name in sorted(names)]
            known = [_build_trigger(row) for row in rows if row is not None]
            if not known or not all(may_poll(one, at) for one in known):
                return False
            for one in known:
                statements.run("move_trigger", {"name": one.name, "next_at": next_at, "failures": one.failures})
            return True

        return self._driver.write(claim)

    def end_poll(
        self, name: str, next_at: int, failures: int, why: str = "", notice: SubjectNotice | None = None
    ) -> None:
        """Store how a poll went: why it failed, with a notice about its failure."""
        shown = clean(self.redactor.redact(why))[:_LONGEST_REASON]

        def write(statements: Statements) -> None:
            statements.run("move_trigger", {"name": name, "next_at": next_at, "failures": failures})
            statements.run("set_trigger_cursor", {"name": name, "cursor": shown})
            if notice is not None:
                self._store.notices.add_within(statements, notice)

        self._driver.write(write)

    def move_cursor(self, name: str, cursor: str) -> None:
        """Store how far a trigger has read."""
        self._driver.write(lambda one: one.run("set_trigger_cursor", {"name": name, "cursor": cursor}))

    # deliveries

    def add_delivery(self, delivery: TriggerDelivery) -> bool:
        """Record something that a trigger found; False if it is recorded already, by this or another service."""
        values = build_parameters(delivery._replace(reason=self.redactor.redact(delivery.reason)))
        return self._driver.write(lambda one: one.run("add_trigger_delivery", values)) > 0

    def set_delivery(
        self, delivery: TriggerDelivery, state: str, reason: str, notice: SubjectNotice | None = None
    ) -> None:
        """Store the result of a delivery, with a notice if a person should know."""

        def write(statements: Statements) -> None:
            values = {"trigger_name": delivery.trigger_name, "delivery": delivery.delivery, "state": state}
            if statements.run("set_trigger_delivery", {**values, "reason": clean(self.redactor.redact(reason))}):
                data = {"trigger": delivery.trigger_name, "delivery": delivery.delivery, "run": delivery.run_id}
                append_to_journal(statements, Fact(f"trigger.{state}", data), delivery.at, ENGINE)
            if notice is not None:
                self._store.notices.add_within(statements, notice)

        self._driver.write(write)

    def find_delivery(self, name: str, delivery: str) -> TriggerDelivery | None:
        """What is recorded of something that a trigger found."""
        row = self._one("get_trigger_delivery", {"trigger_name": name, "delivery": clean(delivery)})
        return TriggerDelivery(*row) if row else None

    def find_starter(self, run_id: str) -> TriggerDelivery | None:
        """The delivery that started a run."""
        row = self._one("get_delivery_of_run", {"run_id": clean(run_id)})
        return TriggerDelivery(*row) if row else None

    def list_deliveries(self, name: str, limit: int = 50) -> list[TriggerDelivery]:
        """The deliveries of a trigger, newest first."""
        values = {"trigger_name": clean(name), "limit": max(0, limit)}
        return [TriggerDelivery(*row) for row in self._all("newest_trigger_deliveries", values)]

    def list_open(self) -> list[TriggerDelivery]:
        """Deliveries whose run is not created, or has not ended."""
        values = {"claimed": CLAIMED, "started": STARTED}
        return [TriggerDelivery(*row) for row in self._all("open_trigger_deliveries", values)]

    def list_ended_runs(self, since: int, page: int) -> Iterator[tuple[str, str, str, int, int]]:
        """Runs that ended since a time, oldest first: id, state, task, attempt and time."""
        after = ""
        while found := self._all("list_ended_runs", {"since": since, "after": after, "limit": page}):
            yield from ((run_id, state, task, attempt, at) for run_id, state, task, attempt, at in found)
            after, *_, since = found[-1]


def _add_repository_to_deliveries(statements: Statements, trigger: Trigger) -> None:
    """Complete the ids that older versions recorded, before the name can mean another repository."""
    if trigger.definition.kind in ON_GITHUB:
        values = {"trigger_name": trigger.name, "prefix": build_event_id(trigger.definition.repository, "")}
        statements.run("add_repository_to_deliveries", values)


def _dump(trigger: Trigger) -> str:
    return canonical(dump_definition(trigger.definition))


def _build_trigger(row: Row) -> Trigger:
    name, definition, *rest = row
    return Trigger(name, load_definition(json.loads(definition)), *rest)
