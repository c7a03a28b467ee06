"""The records of service processes, and of runs that one could not start. Pure values."""

from __future__ import annotations

from jackline.named import NamedTuple, stored_as


@stored_as("id host boot pid slots started_at seen_at stopped_at reported_at")
class ServiceRecord(NamedTuple):
    """One service process; one that disappears without `stopped_at` is reported once."""

    id: str
    host: str
    boot: str
    pid: int
    slots: int
    started_at: int
    seen_at: int
    stopped_at: int | None = None
    reported_at: int | None = None


@stored_as("run_id attempt reason failures since next_at")
class StartFailure(NamedTuple):
    """Why a service could not start a run, and when one tries again; the pauses double."""

    run_id: str
    attempt: int  # the newest one of the run then; the failure is over when there is a newer one
    reason: str
    failures: int
    since: int
    next_at: int
