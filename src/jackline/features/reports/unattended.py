"""Reads what works unattended for the dashboard; each part is bounded, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.features.reports.report_queries import ReportQueries
from jackline.features.reports.unattended_page import (
    SHOWN_HERE,
    LimitLine,
    ScheduleLine,
    ServiceLine,
    StuckNotice,
    TriggerLine,
    UnattendedStatus,
)
from jackline.formatting import format_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jackline.app.home import Home

_MOST = SHOWN_HERE + 1


def read_unattended(home: Home, queued: Sequence[str], now: int) -> UnattendedStatus:
    """Read it all; `queued` are the runs whose wait is explained."""
    # Most homes have few of these, and every change of a home writes the dashboard: import only what there is.
    has = ReportQueries(home.store()).find_unattended()
    return UnattendedStatus(
        services=list(_list_services(home)) if has.services else (),
        schedules=list(_list_schedules(home, now)) if has.schedules else (),
        triggers=list(_list_triggers(home)) if has.triggers else (),
        limits=_list_limits(home, now),
        stuck=list(_list_stuck(home, now))[:_MOST] if has.stuck else (),
        waits=_explain_waits(home, queued) if queued else {},
        accounts=[f"{agent}@{name}" for agent, names in home.config.accounts.items() for name in names],
    )


def _explain_waits(home: Home, queued: Sequence[str]) -> dict[str, str]:
    from jackline.cli.queue_text import explain_waits

    waits = explain_waits(home, queued, lambda at, _: format_utc(at))
    return {run_id: why for run_id, why in waits.items() if why}


def _list_services(home: Home) -> Iterator[ServiceLine]:
    from jackline.features.service import presence
    from jackline.features.service.service_store import ServiceStore

    for one in ServiceStore(home.store()).list_unended(_MOST):
        yield ServiceLine(
            id=one.id,
            host=one.host,
            pid=one.pid,
            slots=one.slots,
            started_at=one.started_at,
            died=bool(presence.is_dead(home.path, one.id)),
        )


def _list_schedules(home: Home, now: int) -> Iterator[ScheduleLine]:
    from jackline.features.schedules.schedule_store import ScheduleStore

    store = ScheduleStore(home.store())
    for one in store.list_all()[:_MOST]:
        from jackline.features.schedules.schedule_model import list_next_due  # it imports cron

        definition = one.definition
        fires = store.list_fires(one.name, 1)
        yield ScheduleLine(
            name=one.name,
            cron=definition.cron,
            zone=definition.zone,
            next_at=next(iter(list_next_due(one, now, 1)), None),
            last_at=fires[0].due_at if fires else None,
            last_state=fires[0].state if fires else "",
            paused=one.paused_at is not None,
        )


def _list_triggers(home: Home) -> Iterator[TriggerLine]:
    from jackline.features.triggers.trigger_model import describe_definition, describe_state
    from jackline.features.triggers.trigger_store import TriggerStore

    for one in TriggerStore(home.store()).list_all()[:_MOST]:
        yield TriggerLine(name=one.name, watches=describe_definition(one.definition), state=describe_state(one))


def _list_limits(home: Home, now: int) -> list[LimitLine]:
    resting = [one for one in home.store().records.list_health() if one.until > now]
    return [LimitLine(agent=one.agent, failure=one.failure, until=one.until, detail=one.detail) for one in resting]


def _list_stuck(home: Home, now: int) -> Iterator[StuckNotice]:
    from jackline.features.notify.delivery_store import PENDING, DeliveryStore

    for listed in DeliveryStore(home.store()).list_stuck(now, limit=_MOST):
        for one in listed.deliveries:
            if one.is_stuck(now):
                yield StuckNotice(
                    id=one.notice_id,
                    kind=listed.notice.kind,
                    title=listed.notice.title,
                    channel=one.channel,
                    attempts=one.attempts,
                    next_at=one.next_at if one.state == PENDING else None,
                    error=one.error,
                )
