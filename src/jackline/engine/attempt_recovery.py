"""Recovers a run within an attempt: leftovers, its worktree, the interrupted turn, open calls and reviews.

It returns what the run machine has to know. It decides nothing, and starts no turn.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from jackline import clock, crash_points
from jackline.diagnostic_log import LOG
from jackline.domain.agent_health import find_limit_resets, find_resting_agents
from jackline.domain.events import NOTHING, Fact
from jackline.domain.notices import describe_doubts
from jackline.domain.outcome import get_usage
from jackline.domain.run_inputs import Recovered
from jackline.domain.spec import AgentOptions
from jackline.domain.states import Failure, Phase
from jackline.engine import recovery, run_env
from jackline.engine.attempt import RunInput
from jackline.engine.check import find_pending_checks
from jackline.engine.git import unbind_git_env
from jackline.errors import JacklineError
from jackline.files import NotWritten
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jackline.domain.adapter import Adapter
    from jackline.domain.records import Lease, Run, Turn
    from jackline.engine.call_ledger import CallLedger
    from jackline.engine.probes.prober import Prober
    from jackline.engine.run_workspace import RunWorkspace
    from jackline.engine.settings import EngineSettings
    from jackline.engine.warden_holder import WardenHolder
    from jackline.store.store import Store


# The host checks come next, or come again once the files have changed.
_CHECKED_GOALS = frozenset({Phase.PROVING, Phase.REVIEWING, Phase.PUBLISHING})


class RecoveryServices(NamedTuple):
    """The parts of an attempt that its recovery uses."""

    store: Store
    lease: Lease
    settings: EngineSettings
    agents: Callable[[str], Adapter]
    env: Mapping[str, str]
    warden: WardenHolder
    workspace: RunWorkspace
    ledger: CallLedger
    prober: Prober
    wanted: Callable[[], bool]  # no person is waiting for the end


class AttemptRecovery:
    """Recovers the run when the attempt begins, and after each turn that left calls open."""

    def __init__(self, services: RecoveryServices) -> None:
        self._services, self._store = services, services.store
        self._unprepared = ""  # why the run's own worktree, or what a reviewer left in it, cannot be used

    def recover(self, run: Run, *, gave_up: bool) -> RunInput:
        """Recover the run; `gave_up`: the turn timed out, and nothing crashed."""
        services, store = self._services, self._store
        if not services.warden.has_started:  # the first recovery of this attempt: nothing of ours is alive yet
            if services.lease.token > 1:
                tag = run_env.build_process_tag(store.secret, run.id)
                ended = recovery.kill_orphaned_processes(store, services.lease, tag, services.settings.host)
                LOG.info(f"run {run.id}: ended {ended} leftovers of earlier attempts")
            crash_points.crash_point("leftovers.ended")
            services.warden.ready_or_none()  # it starts up while we recover; the first one to need it reports the cause
            self._unprepared = self._prepare_worktree(run)
        turn = self._charge_interrupted_turn(run)
        recovered = self._settle_calls(run, turn, gave_up=gave_up)
        turn = turn._replace(ended_at=recovered.at, failure=Failure.CRASHED, detail="cut off") if turn else None
        # A turn that was cut off may have made commits, which the next one has to know.
        known = store.records.get_changes(run.id)
        changes = services.workspace.survey() if run.status.turn else None
        if changes is not None:
            recovered = recovered._replace(commits=len(set(changes.ids) - set(known.ids)))
        facts = self._undo_reviews(run)
        recovered = recovered._replace(unprepared=self._unprepared)
        if services.settings.from_queue:
            recovered = recovered._replace(takeovers=recovery.count_takeovers(store, run.id))
        return RunInput(self._add_reviews(run, recovered), turn=turn, changes=changes, facts=facts)

    def _prepare_worktree(self, run: Run) -> str:
        """Make the run's own worktree, or find it again; return why that is not possible."""
        if not run.spec.worktree.name:
            return ""
        from jackline.engine.worktree import UserGit, prepare_for_attempt

        services = self._services
        git = UserGit(
            folder="/",
            env=unbind_git_env(services.env),
            warden=services.warden.ready_or_none(),
            wanted=services.wanted,
        )
        return prepare_for_attempt(self._store, services.lease, run, services.settings, git, clock.wall_ms)

    def _charge_interrupted_turn(self, run: Run) -> Turn | None:
        turn = recovery.find_interrupted_turn(self._store, run.id)
        if turn is None:
            return None
        try:
            family = self._services.agents(turn.agent).declaration.prices
        except JacklineError:  # the agent is gone: nothing is known about its prices
            return turn
        calls = sum(call.turn == turn.number for call in self._store.calls.list_all(run.id))
        model = run.spec.agent_options.get(turn.agent, AgentOptions()).model
        return recovery.estimate_unreported_usage(turn, self._services.settings.prices, family, model, calls)

    def _settle_calls(self, run: Run, turn: Turn | None, *, gave_up: bool) -> Recovered:
        """Settle the calls that an earlier turn left open."""
        services, store, spec, at = self._services, self._store, run.spec, clock.wall_ms()
        settings = services.settings
        with services.ledger.settle_lock:
            doubts = recovery.settle_open_calls(
                store,
                services.lease,
                services.prober,
                clock.wall_ms,
                host=settings.host,
                strict=spec.strict,
                gave_up=gave_up,
            )
        health = store.records.list_health()
        asked = recovery.list_waiting_calls(store, services.lease, spec, at, asks=settings.asks)
        return Recovered(
            at,
            doubts=tuple(call.id for call in doubts),
            resting=find_resting_agents(health, at, spec.agent),
            limit_resets=find_limit_resets(health, at) if settings.from_queue else NOTHING,
            usage=get_usage(turn.spent) if turn else None,  # it is charged at the end of a turn
            asked=tuple(call.id for call in asked),
            asked_at=min((call.prepared_at for call in asked), default=None),
            evidence=describe_doubts(doubts, spec.workspace),
            checks=find_pending_checks(store, run) if run.status.goal in _CHECKED_GOALS else None,
            undone=recovery.find_undone_calls(store, run.id),
        )

    def _undo_reviews(self, run: Run) -> tuple[Fact, ...]:
        """Remember where a run began; after a crash, undo what a reviewer left behind."""
        spec = run.spec
        if not spec.review and not spec.proof and (run.status.turn or not spec.commit_work):
            return ()
        from jackline.engine.tree_id import TreeUnreadable

        trees = self._services.workspace.open_trees()
        with suppress(TreeUnreadable, NotWritten):  # the next proof reports it
            trees.settle_interrupted_proof()
        if not run.status.turn:
            trees.record_repository()
        if not spec.review:
            with suppress(TreeUnreadable):  # the proof reports it
                if spec.proof and not run.status.turn:
                    trees.record_start()
            return ()
        from jackline.engine.review_copy import ReviewCopyFailed

        try:
            if not run.status.turn:
                trees.record_start()
                trees.check_complete()
                return ()
            end = self._services.workspace.open_copies().recover_review(restores=bool(spec.worktree.name))
        except (ReviewCopyFailed, TreeUnreadable) as error:
            self._unprepared = self._unprepared or str(error)
            return ()
        data = {"restored": list(end.restored), "refs": list(end.refs)}
        return (Fact("review.undone", data),) if end.restored else ()

    def _add_reviews(self, run: Run, recovered: Recovered) -> Recovered:
        """Add what the run machine has to know about iterations and reviews."""
        reviews, has_reviewers = self._store.reviews, bool(run.spec.review)
        if not run.status.iteration:
            return recovered
        is_reviewing = run.status.goal is Phase.REVIEWING
        accepted = reviews.find_acceptance(run.id) if is_reviewing else None
        return recovered._replace(
            last_iteration=reviews.get_last_iteration(run.id),
            verdicts=tuple(reviews.list_verdicts(run.id)) if has_reviewers else (),
            findings=tuple(reviews.list_findings(run.id)) if has_reviewers else (),
            tree=self._services.workspace.read_tree() if is_reviewing else "",
            accepted_round=accepted.review_round if accepted else 0,
        )
