"""Runs that a service could not start, for `jackline show` and the inbox. It reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.app.inbox import CANNOT_START, InboxEntry
from jackline.features.service.service_store import ServiceStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home


def list_inbox_entries(home: Home) -> Iterator[InboxEntry]:
    """The runs that no service can start, each with the reason."""
    store = home.store()
    for failure in ServiceStore(store).list_start_failures():
        run = store.runs.get(failure.run_id)
        if run is not None:
            yield InboxEntry(
                kind=CANNOT_START,
                since=failure.since,
                text=failure.reason,
                commands=(("resume", run.id),),
                run_id=run.id,
                number=run.number,
                repository=run.spec.workspace,
                agent=run.agent,
                task=run.spec.task,
                detail=failure.reason,
            )


def explain_start_failures(home: Home) -> dict[str, str]:
    """The runs that a service tried to start and could not, each with the reason."""
    return {failure.run_id: failure.reason for failure in ServiceStore(home.store()).list_start_failures()}
