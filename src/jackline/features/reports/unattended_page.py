"""What works unattended, as data and as sections of the dashboard: services, schedules, limits, stuck notices. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import NOTHING
from jackline.formatting import format_code, format_table, format_utc, pluralize
from jackline.named import NamedTuple, stored_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SHOWN_HERE = 20


@stored_as("name cron zone next_at last_at last_state paused")
class ScheduleLine(NamedTuple):
    """A schedule, its next fire and its last one."""

    name: str
    cron: str
    zone: str
    next_at: int | None
    last_at: int | None = None
    last_state: str = ""
    paused: bool = False


@stored_as("name watches state")
class TriggerLine(NamedTuple):
    """A trigger and whether it works."""

    name: str
    watches: str
    state: str


@stored_as("agent failure until detail")
class LimitLine(NamedTuple):
    """An agent, with its account, that is not used before a time."""

    agent: str
    failure: str
    until: int
    detail: str


@stored_as("id kind title channel attempts next_at error")
class StuckNotice(NamedTuple):
    """A notice that a channel has not taken; without `next_at` it is not tried again."""

    id: str
    kind: str
    title: str
    channel: str
    attempts: int
    next_at: int | None
    error: str


@stored_as("id host pid slots started_at died")
class ServiceLine(NamedTuple):
    """A service that has not been stopped."""

    id: str
    host: str
    pid: int
    slots: int
    started_at: int
    died: bool = False  # as far as this home can tell


@stored_as("services schedules triggers limits stuck waits accounts")
class UnattendedStatus(NamedTuple):
    """Everything that works without a person; a list may have one more element than is shown."""

    services: Sequence[ServiceLine] = ()
    schedules: Sequence[ScheduleLine] = ()
    triggers: Sequence[TriggerLine] = ()
    limits: Sequence[LimitLine] = ()
    stuck: Sequence[StuckNotice] = ()
    waits: Mapping[str, str] = NOTHING  # run → why it is not started
    accounts: Sequence[str] = ()  # AGENT@ACCOUNT, as configured


def render_unattended(shown: UnattendedStatus) -> Iterator[str]:
    """The sections of the dashboard."""
    yield from _render_services(shown)
    yield from _render_schedules(shown)
    yield from _render_limits(shown)
    yield from _render_stuck(shown)


def _render_services(shown: UnattendedStatus) -> Iterator[str]:
    yield from ("## Services", "")
    rows = [
        [
            format_code(one.id),
            format_code(one.host),
            str(one.pid),
            str(one.slots),
            format_utc(one.started_at),
            "**died**" if one.died else "running",
        ]
        for one in shown.services[:SHOWN_HERE]
    ]
    if rows:
        yield from format_table("service|host|pid|slots|since|state", rows)
    if all(one.died for one in shown.services):
        yield from ("None is running: nothing starts queued or waiting runs until `jackline serve` runs.", "")


def _render_schedules(shown: UnattendedStatus) -> Iterator[str]:
    yield from ("## Schedules", "")
    rows = [
        [
            format_code(one.name),
            format_code(f"{one.cron} {one.zone}"),
            "paused" if one.paused else format_utc(one.next_at),
            format_utc(one.last_at),
            one.last_state or "-",
        ]
        for one in shown.schedules[:SHOWN_HERE]
    ]
    if rows:
        yield from format_table("schedule|times|next|last|outcome", rows)
    triggers = [[format_code(one.name), format_code(one.watches), one.state] for one in shown.triggers[:SHOWN_HERE]]
    if triggers:
        yield from format_table("trigger|watches|state", triggers)
    if not rows and not triggers:
        yield from ("None.", "")


def _render_limits(shown: UnattendedStatus) -> Iterator[str]:
    yield from ("## Agents that rest", "")
    rows = [
        [format_code(one.agent), one.failure, format_utc(one.until), format_code(one.detail, 100)]
        for one in shown.limits[:SHOWN_HERE]
    ]
    yield from format_table("agent|why|until|detail", rows) if rows else ("None.", "")
    if shown.accounts:
        yield from (f"Accounts: {', '.join(format_code(one) for one in shown.accounts[:SHOWN_HERE])}.", "")


def _render_stuck(shown: UnattendedStatus) -> Iterator[str]:
    if not shown.stuck:
        return
    yield from ("## Notices that were not delivered", "")
    rows = [
        [
            format_code(one.title, 80),
            format_code(one.channel),
            pluralize(one.attempts, "attempt"),
            format_utc(one.next_at) if one.next_at is not None else "gave up",
            format_code(one.error, 100),
        ]
        for one in shown.stuck[:SHOWN_HERE]
    ]
    yield from format_table("notice|channel|tried|next|error", rows)
