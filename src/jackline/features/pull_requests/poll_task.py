"""The service's task for pull requests: polls those that runs wait for, and queues each run that has something to do.

Up to twenty pull requests of a repository are read with one request, at most once a minute over all services, and more
rarely while nothing changes.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from jackline import clock
from jackline.app.environment import read_home_environ
from jackline.app.service_tasks import ServiceTask
from jackline.domain.pull_request import FIRST_LOOK_MS, PullRequestView, compute_next_look
from jackline.domain.records import SubjectNotice
from jackline.engine.github_client import GitHubClient, GitHubFailed
from jackline.engine.pull_request_look import look_at_view, read_views
from jackline.errors import ConfigError
from jackline.formatting import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jackline.app.home import Home
    from jackline.app.service_tasks import ServiceContext
    from jackline.domain.pull_request import PullRequest

_IDLE_SECONDS = 60.0
_LEAST_SECONDS = 1.0
_FAILURES_NOTICED = 5  # looks in a row that fail before a person is notified


def list_service_tasks(_home: Home) -> list[ServiceTask]:
    """The task of this feature in a service."""
    return [ServiceTask("pull requests", poll_pull_requests)]


def poll_pull_requests(context: ServiceContext) -> float:
    """Look at what is due; the seconds until the next look."""
    home = context.home
    if home.is_new:
        return _IDLE_SECONDS
    next_at = PullRequestPoller(home).poll()
    wait = _IDLE_SECONDS if next_at is None else (next_at - clock.wall_ms()) / 1000
    return min(max(wait, _LEAST_SECONDS), _IDLE_SECONDS)


def has_due_pull_request(home: Home, at: int) -> bool:
    """Whether a run waits for a pull request that should be looked at now."""
    return any(one.next_at <= at for one in home.store().pull_requests.list_waiting())


class PullRequestPoller:
    """Looks at the pull requests that the runs of a home wait for."""

    def __init__(self, home: Home, now: Callable[[], int] = clock.wall_ms) -> None:
        self._home, self._now = home, now
        self._store = home.store().pull_requests

    def poll(self) -> int | None:
        """Look at the repositories that are due; when the next one is, None if no run waits."""
        for repository, found in groupby(self._store.list_waiting(), lambda one: one.repository):
            self._poll(repository, list(found))
        return min((one.next_at for one in self._store.list_waiting()), default=None)

    def _poll(self, repository: str, found: Sequence[PullRequest]) -> None:
        at = self._now()
        if all(one.next_at > at for one in found):
            return
        # Those that are due soon are read with the others, so that a repository is asked once a minute.
        soon = [one for one in found if one.next_at <= at + FIRST_LOOK_MS]
        claimed = self._store.claim_looks(soon, at + FIRST_LOOK_MS)
        if not claimed:
            return
        try:
            client = GitHubClient(repository, read_home_environ(self._home.config))
        except ConfigError as error:
            self._note_failures(claimed, str(error))
            return
        # Those first that a look which was given up has left out.
        views = read_views(client, [one.number for one in sorted(claimed, key=lambda one: one.looked_at)])
        for one in claimed:
            match views.get(one.number):
                case PullRequestView() as view:
                    self._look(client, one, view)
                case GitHubFailed() as failure:
                    self._note_failures([one], str(failure))

    def _look(self, client: GitHubClient, known: PullRequest, view: PullRequestView) -> None:
        run, at = self._home.store().runs.get(known.run_id), self._now()
        if run is None:
            return
        reported = {one.origin for one in self._store.list_feedback(known.run_id)}
        try:
            look = look_at_view(client, known, view, run.spec.until, reported, at)
        except GitHubFailed as error:
            self._note_failures([known], str(error))
            return
        if look.has_decision:
            if self._store.wake(look.request, at):
                self._home.wake_services()
            return
        looked, notice = self._remind(look.request, look.verdict.detail, at)
        self._store.end_look(looked, look.ignored, notice)

    def _remind(self, looked: PullRequest, detail: str, at: int) -> tuple[PullRequest, SubjectNotice | None]:
        """Tell a person about a run that has waited for a day, once a day."""
        since = max(looked.pushed_at, looked.told_at or 0)
        if at - since < DAY_MS:
            return looked, None
        days = (at - looked.pushed_at) // DAY_MS
        title = f"run {looked.run_id} has waited for its pull request for {days} {'day' if days == 1 else 'days'}"
        return looked._replace(told_at=at), self._build_notice(looked, "waiting", str(days), title, detail)

    def _note_failures(self, found: Sequence[PullRequest], why: str) -> None:
        at = self._now()
        for one in found:
            failures, notice = one.failures + 1, None
            if failures == _FAILURES_NOTICED:
                title = f"run {one.run_id}: GitHub does not answer about its pull request"
                notice = self._build_notice(one, "failing", str(at), title, f"{one.url}: {why}")
            missed = one._replace(looked_at=at, next_at=compute_next_look(at, failures), failures=failures)
            self._store.end_look(missed, (), notice)

    def _build_notice(self, one: PullRequest, what: str, key: str, title: str, body: str) -> SubjectNotice:
        return SubjectNotice(
            id=f"pull-request-{one.run_id}-{what}-{key}",  # the same event is reported once, by any service
            subject=f"run:{one.run_id}",
            kind=f"pull_request.{what}",
            title=title,
            body=body,
            created_at=self._now(),
        )
