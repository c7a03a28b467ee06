"""Pull requests of runs and the feedback on them. Workers write them with their runs; a service notes its looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.events import SERVICE, Fact
from jackline.domain.pull_request import Feedback, PullRequest
from jackline.domain.states import RunState, WaitReason
from jackline.domain.transitions import next_run
from jackline.store import rows
from jackline.store.driver import Statements, clean
from jackline.store.parts import StorePart, append_events, get_chain_end
from jackline.store.record_digests import cover, digest_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jackline.domain.records import SubjectNotice

_WAITING = {"waiting": str(RunState.WAITING), "ci": str(WaitReason.CI)}


class PullRequests(StorePart):
    """The part of the store with the pull requests of runs."""

    def get(self, run_id: str) -> PullRequest | None:
        """The pull request of the run, if it has one."""
        row = self._one("get_pull_request", {"run_id": clean(run_id)})
        return PullRequest(*row) if row else None

    def list_feedback(self, run_id: str) -> list[Feedback]:
        """All feedback on the run's pull request, oldest first, that of people who may not write included."""
        return [Feedback(*row) for row in self._all("all_feedback", {"run_id": clean(run_id)})]

    def list_unread(self, run_id: str) -> list[Feedback]:
        """The feedback that no turn has got."""
        return [one for one in self.list_feedback(run_id) if one.turn is None]

    def list_waiting(self) -> list[PullRequest]:
        """The pull requests that runs wait for, those of one repository after each other."""
        return [PullRequest(*row) for row in self._all("waiting_pull_requests", _WAITING)]

    def claim_looks(self, found: Sequence[PullRequest], next_at: int) -> list[PullRequest]:
        """Those of the pull requests that no other process looks at now; it may not do so before `next_at`."""

        def claim(statements: Statements) -> list[PullRequest]:
            return [
                one
                for one in found
                if statements.run("claim_look", {"run_id": one.run_id, "seen_next": one.next_at, "next_at": next_at})
            ]

        return self._driver.write(claim)

    def end_look(
        self, looked: PullRequest, ignored: Sequence[Feedback] = (), notice: SubjectNotice | None = None
    ) -> None:
        """Store the result of a look after which the run keeps waiting, unless the run has pushed since."""

        def end(statements: Statements) -> None:
            values = {**rows.build_parameters(looked), "at": looked.looked_at}
            statements.run("end_look", values)
            for one in ignored:
                statements.run("add_feedback", rows.build_parameters(one))
            if notice is not None:
                self._store.notices.add_within(statements, notice)

        self._driver.write(end)

    def wake(self, looked: PullRequest, at: int) -> bool:
        """Queue the run, because there is something to decide; False if it no longer waits for its pull request."""

        def queue(statements: Statements) -> bool:
            run = self._lock_run(statements, looked.run_id)
            if run.status.state is not RunState.WAITING or run.status.reason is not WaitReason.CI:
                return False
            queued = next_run(run.status.state, "wake")
            woken = run._replace(status=run.status._replace(state=queued, reason=None, wake_at=None))
            facts = cover((Fact(f"run.{queued}", {"by": str(WaitReason.CI)}),), digest_run(woken))
            chain = append_events(statements, run.id, get_chain_end(run), facts, at, SERVICE)
            values = {"id": run.id, "state": str(run.status.state), "to": str(queued), "at": at, **chain._asdict()}
            statements.run("end_look", {**rows.build_parameters(looked), "at": looked.looked_at})
            return statements.run("queue_waiting_run", values) > 0

        return self._driver.write(queue)
