"""Writes and reads the records of services and of runs that they cannot start. Locks decide who is alive, not this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.digests import hash_text
from jackline.domain.limits import compute_wait
from jackline.domain.records import Notice, SubjectNotice
from jackline.domain.states import RunState
from jackline.named import NamedTuple, stored_as
from jackline.store import rows
from jackline.store.driver import Statements, clean
from jackline.store.parts import StorePart, add_notice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jackline.app.home import Home
    from jackline.app.inbox import InboxEntry
    from jackline.domain.records import Run

_ID_LENGTH = 32
_KEPT_MS = 30 * 86_400_000
_FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 5_000, 300_000


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


class ServiceStore(StorePart):
    """The part of the store with the service processes."""

    def add(self, record: ServiceRecord) -> None:
        """Record a service that starts, and forget those that ended long ago."""

        def write(statements: Statements) -> None:
            statements.run("forget_services", {"before": record.started_at - _KEPT_MS})
            statements.run("add_service", rows.build_parameters(record))

        self._driver.write(write)

    def renew(self, service_id: str, at: int) -> None:
        """Record that the service is alive."""
        values = {"id": clean(service_id), "at": at}
        self._driver.write(lambda statements: statements.run("renew_service", values), synced=False)

    def stop(self, service_id: str, at: int) -> None:
        """Record that the service was stopped."""
        values = {"id": clean(service_id), "at": at}
        self._driver.write(lambda statements: statements.run("stop_service", values))

    def list_open(self, host: str) -> list[ServiceRecord]:
        """The services of a host that were neither stopped nor reported; a database in a file has one host."""
        found = [ServiceRecord(*row) for row in self._all("open_services", {})]
        return [one for one in found if one.host == host or self._driver.backend == "sqlite"]

    def list_unended(self, limit: int = 20) -> list[ServiceRecord]:
        """The services of all hosts that were neither stopped nor reported, the newest first."""
        return [ServiceRecord(*row) for row in self._all("unended_services", {"limit": max(0, limit)})]

    def report_dead(self, service_id: str, notice: SubjectNotice, at: int) -> bool:
        """Write the notice about a dead service; False if another process has reported it."""

        def write(statements: Statements) -> bool:
            if not statements.run("report_service", {"id": clean(service_id), "at": at}):
                return False
            self._store.notices.add_within(statements, notice)
            return True

        return self._driver.write(write)

    def list_running(self) -> list[str]:
        """The ids of the runs that a process works on, or worked on when it died."""
        return [row[0] for row in self._all("running_run_ids", {"running": str(RunState.RUNNING)})]

    def count_waiting(self) -> dict[str, int]:
        """What a service would work on, by its name: queued runs, schedules and triggers that are not paused."""
        row = self._one("waiting_for_service", {"queued": str(RunState.QUEUED)}) or (0, 0, 0)
        return dict(zip(("queued run", "schedule", "trigger"), row, strict=True))

    # runs that could not be started

    def list_start_failures(self) -> list[StartFailure]:
        """The runs that a service could not start and that have not started since."""
        return [StartFailure(*row) for row in self._all("start_failures", {})]

    def record_start_failure(self, run_id: str, reason: str, at: int, notice_id: str) -> StartFailure:
        """Record why the run could not be started; a new reason is a notice of the run."""
        text = self.redactor.redact(clean(reason))

        def write(statements: Statements) -> StartFailure:
            run = self._lock_run(statements, run_id)
            row = statements.one("start_failure", {"run_id": run.id})
            known = StartFailure(*row) if row else None
            if known is None or known.reason != text:
                known = StartFailure(run_id=run.id, attempt=0, reason=text, failures=0, since=at, next_at=at)
                add_notice(statements, _build_notice(notice_id, run, text, at), run.chain_head)
            pause = compute_wait(_FIRST_PAUSE_MS, known.failures, LONGEST_PAUSE_MS)
            failure = known._replace(attempt=run.status.attempt, failures=known.failures + 1, next_at=at + pause)
            statements.run("put_start_failure", rows.build_parameters(failure))
            return failure

        return self._driver.write(write)

    # waking

    def notify_listeners(self) -> None:
        """Wake the services that listen on this PostgreSQL database."""
        self._one("notify_services", {})


def _build_notice(notice_id: str, run: Run, reason: str, at: int) -> Notice:
    return Notice(
        id=notice_id,
        run_id=run.id,
        kind="run.cannot_start",
        title=f"{run.agent}/{run.spec.task}: cannot start",
        body=reason,
        chain_head="",
        created_at=at,
    )


def build_death_notice(record: ServiceRecord, next_step: str, at: int) -> SubjectNotice:
    """A notice that a service died, with the same id from everyone who finds out."""
    return SubjectNotice(
        id=hash_text(f"service.died:{record.id}")[:_ID_LENGTH],
        subject=f"service:{record.id}",
        kind="service.died",
        title="a jackline service died",
        body=f"{describe_death(record)}; {next_step}",
        created_at=at,
    )


def describe_death(record: ServiceRecord) -> str:
    """Which service died, in words."""
    return f"service {record.id} (pid {record.pid} on {record.host}) died without being stopped"


# for the inbox and `jackline show`


def list_inbox_entries(home: Home) -> Iterator[InboxEntry]:
    """The runs that no service can start, each with the reason."""
    from jackline.app.inbox import CANNOT_START, InboxEntry

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
