"""The live runtime of an attempt: warden, gate servers, agent and timeouts. Executes commands and delivers inputs."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from functools import partial
from typing import TYPE_CHECKING

from jackline import clock, crash_points
from jackline.diagnostic_log import LOG
from jackline.domain.agent_health import build_health, find_limit_resets, find_resting_agents
from jackline.domain.events import NOTHING, Fact
from jackline.domain.notices import describe_doubts
from jackline.domain.outcome import Outcome, Usage, get_usage
from jackline.domain.records import AgentOptions, Check, SessionUse
from jackline.domain.run_inputs import (
    PROOF,
    CheckEnded,
    LookAtPullRequest,
    Publish,
    Recover,
    Recovered,
    RunCheck,
    StartTurn,
    StopReason,
    StopWanted,
    StopWork,
    TurnEnded,
)
from jackline.domain.states import Failure, Phase, WaitReason
from jackline.engine import orphans, recovery, run_env, threads
from jackline.engine.attempt import RunInput
from jackline.engine.call_ledger import CallLedger
from jackline.engine.check import CheckJob, build_check_ended, find_pending_checks, load_check
from jackline.engine.gate_socket import GateServers
from jackline.engine.git import Git, read_changes, unbind_git_env
from jackline.engine.launch import ReviewUnavailable, TurnLauncher
from jackline.engine.lease_renewer import LeaseRenewer
from jackline.engine.probes.prober import Prober
from jackline.engine.process import SpawnFailed, Warden, WardenLost
from jackline.engine.settings import (
    new_id,
    select_agreed_variables,
    select_host_variables,
    select_inherited_variables,
)
from jackline.engine.timeouts import TIMEOUT_DETAILS, Timeouts
from jackline.engine.turn import TurnJob, TurnServices
from jackline.errors import (
    AgentUnavailable,
    DayBudgetSpent,
    JacklineError,
    NotLoggedIn,
    SessionTaken,
    Ungated,
    disk_error,
)
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter
    from jackline.domain.changes import Changes
    from jackline.domain.records import Lease, Run, Turn
    from jackline.domain.run_inputs import RunCommand
    from jackline.engine.check import CheckResult
    from jackline.engine.review_copy import WorkTrees
    from jackline.engine.review_seat import ReviewSeat
    from jackline.engine.settings import EngineSettings
    from jackline.engine.work_backup import Backup
    from jackline.policy.classify import Classification
    from jackline.policy.discarded_work import Discard
    from jackline.store.store import Store

_BACKUP_SECONDS = 30.0  # for one step of a backup, while the agent waits
# Why an agent that could not be started is not simply unavailable.
LAUNCH_FAILURES: dict[type[JacklineError], Failure] = {
    Ungated: Failure.UNGATED,
    NotLoggedIn: Failure.AUTHENTICATION,
    WardenLost: Failure.CRASHED,
}


class LiveRuntime:
    """Owns every thread and process of the attempt; `close` ends them all."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        run: Run,
        agents: Callable[[str], Adapter],
        settings: EngineSettings,
        lock: int,
    ) -> None:
        """Start renewing the lease at once."""
        self._store, self._lease, self._run = store, lease, run
        self._agents, self._settings, self._lock = agents, settings, lock
        self._folder = settings.build_folder(run.id)
        self._inbox: queue.SimpleQueue[RunInput | BaseException] = queue.SimpleQueue()
        self._tag = run_env.build_process_tag(store.secret, run.id)
        self._marker = {**self._tag, run_env.ATTEMPT_VARIABLE: str(lease.token)}
        passed = select_inherited_variables(settings.environ)
        self._env = {**passed, **self._marker, **run_env.build_run_env(settings, run.id, passed)}
        self._host_env = {**self._env, **select_host_variables(settings.environ)}
        self._started_ms = clock.boot_ms()
        self._hurry = threading.Event()  # a person wants to stop: do not wait for probes
        self._prober = self._build_prober()
        self._ledger = self._build_ledger()
        token = os.urandom(16).hex()
        self._gates = GateServers(self._folder, self._ledger, token, self._inbox.put, lease.token)
        self._launcher = self._build_launcher(token)
        self._closed = False
        self._unprepared = ""  # why the run's own worktree cannot be used
        self._warden: Warden | None = None
        self._job: TurnJob | CheckJob | None = None
        self._timeouts = Timeouts(run.spec, run.status.spent.wall_ms, lambda: self._ledger.active_until)
        self._renewer = LeaseRenewer(
            store,
            lease,
            settings.lease_ms,
            on_renewed=self._on_renewed,
            on_cancel=lambda: self.stop(StopReason.CANCEL, "cancel requested"),
            on_lost=self._inbox.put,
        )
        self._renewer.start()

    def _build_prober(self) -> Prober:
        spec, store = self._run.spec, self._store
        env = {**self._env, **select_agreed_variables(self._settings, spec)}
        timeout_s = self._settings.probe_timeout_s
        return Prober(
            spec,
            env,
            timeout_s,
            self._ready_warden,
            whole=lambda call: store.blobs.load_call(call).input,
            wanted=lambda: not self._hurry.is_set(),
            wait_for_host=self._wait_for_host,
            host_env=self._host_env,
        )

    def _build_ledger(self) -> CallLedger:
        ledger = CallLedger(
            self._store,
            self._lease,
            self._run,
            self._prober,
            now=self.now,
            new_id=self.new_id,
            stop=self.stop,
            read_inputs=self._read_key_inputs,
            keep_work=self._keep_work,
        )
        ledger.asks, ledger.environ = self._settings.asks, self._settings.environ
        ledger.closed_ports = run_env.find_docker_ports(self._env)
        return ledger

    def _build_launcher(self, token: str) -> TurnLauncher:
        services = TurnServices(
            store=self._store,
            lease=self._lease,
            ledger=self._ledger,
            now=self.now,
            post=self._inbox.put,
            stop=self.stop,
            survey=self._survey,
            read_tree=self._read_tree,
            open_seat=self._open_seat,
            prices=self._settings.prices,
        )
        return TurnLauncher(
            services,
            self._settings,
            self._gates,
            agents=self._agents,
            token=token,
            folder=self._folder,
            env=self._env,
        )

    def _wait_for_host(self) -> bool:
        """Give the host of an earlier attempt time to show that it was only slow; False if no time is set."""
        if not self._settings.other_host_s:
            return False
        passed_s = (clock.boot_ms() - self._started_ms) / 1000
        return not self._hurry.wait(max(0, self._settings.other_host_s - passed_s))

    def _read_key_inputs(self, judged: Classification, tool_input: object) -> dict[str, str]:
        from jackline.engine.key_inputs import read_call_inputs  # not needed before the first call

        return read_call_inputs(self._run.spec.workspace, self._env, self._ready_warden, judged, tool_input)

    def _keep_work(self, discards: tuple[Discard, ...], call_id: str) -> Backup:
        """Keep the work that a call would discard, and record where."""
        from jackline.engine.work_backup import keep_work  # hardly any run needs it

        warden: Warden | None = None
        with contextlib.suppress(SpawnFailed, WardenLost):
            warden = self._ready_warden()
        backup = keep_work(
            discards,
            self._run.id,
            lambda folder: Git(
                workspace=folder, env=unbind_git_env(self._env), warden=warden, timeout_s=_BACKUP_SECONDS
            ),
        )
        facts = tuple(
            Fact("backup.made", {"call": call_id, "ref": ref, "command": discards[0].command}) for ref in backup.refs
        )
        if facts:
            self._store.leases.write_change(self._lease, RunChange(at=self.now(), facts=facts))
        return backup

    # the Runtime protocol

    def execute(self, command: RunCommand, run: Run) -> None:
        """Execute a command of the run machine."""
        self._run = run
        LOG.info(f"run {run.id}: {command!r}")
        self._settings.on_change()
        match command:
            case Recover():
                self._recover(gave_up=command.gave_up)
            case StartTurn():
                self._start_turn(command)
            case RunCheck():
                self._start_check(command)
            case Publish() | LookAtPullRequest():
                self._job = None
                threads.start_thread("publish", partial(self._publish, command, run), self._inbox.put)
            case StopWork():
                if isinstance(self._job, TurnJob):
                    self._job.stopped_for = command.why
                if self._job is not None and self._job.child is not None:
                    self._job.child.stop(run.spec.grace_ms)
        self._settings.on_change()  # again: executing may have stored more

    def next_input(self) -> RunInput:
        """Wait for the next input; a timeout is one, too. Raises the error of a helper thread."""
        received = self._receive()
        if isinstance(received, BaseException):
            raise received
        if isinstance(received.input, TurnEnded | CheckEnded | StopWanted):
            self._timeouts.clear()
        self._report_restores(received.facts)
        if received.turn is not None:
            return received._replace(day_budget=self._settings.usd_micros_per_day)
        return received

    def _receive(self) -> RunInput | BaseException:
        while True:
            timeout = self._timeouts.find_next()
            try:
                return self._inbox.get(timeout=timeout[0] if timeout else None)
            except queue.Empty:
                late = self._timeouts.find_next()  # again: the agent may have printed something meanwhile
                if late is not None and late[0] == 0:
                    return RunInput(StopWanted(at=self.now(), why=late[1], detail=TIMEOUT_DETAILS[late[1]]))

    # used by the other parts of the engine

    def now(self) -> int:
        """Wall clock, milliseconds."""
        return clock.wall_ms()

    def new_id(self) -> str:
        """Return a new id."""
        return new_id()

    def stop(self, why: StopReason, detail: str) -> None:
        """Request a stop, from any thread or signal handler."""
        if why in {StopReason.INTERRUPT, StopReason.SHUTDOWN, StopReason.CANCEL}:
            self._hurry.set()
        self._inbox.put(RunInput(StopWanted(at=self.now(), why=why, detail=detail)))

    def account_time(self) -> None:
        """Account for the time since the last renewal while the lease is still ours."""
        self._renewer.stop()
        self._renewer.renew()

    def close(self) -> None:
        """End everything that this attempt started."""
        self._closed = True  # a late helper thread must not start anything
        self._renewer.stop()
        self._gates.close()
        if self._warden is not None:
            self._warden.close()

    # commands

    def _recover(self, *, gave_up: bool) -> None:
        if self._warden is None:  # the first recovery of this attempt: nothing of ours is alive yet
            if self._lease.token > 1:
                ended = recovery.kill_orphaned_processes(self._store, self._lease, self._tag, self._settings.host)
                LOG.info(f"run {self._run.id}: ended {ended} leftovers of earlier attempts")
            crash_points.crash_point("leftovers.ended")
            with contextlib.suppress(SpawnFailed, WardenLost):  # the first one to need it reports the cause
                self._ready_warden()  # it starts up while we recover
            self._unprepared = self._prepare_worktree()
        turn = self._charge_interrupted_turn()
        recovered = self._settle_calls(turn, self.now(), gave_up=gave_up)
        at = recovered.at
        turn = turn._replace(ended_at=at, failure=Failure.CRASHED, detail="cut off") if turn else None
        # A turn that was cut off may have made commits, which the next one has to know.
        known = self._store.records.get_changes(self._run.id)
        changes = self._survey() if self._run.status.turn else None
        if changes is not None:
            recovered = recovered._replace(commits=len(set(changes.ids) - set(known.ids)))
        facts = self._undo_reviews()
        recovered = recovered._replace(unprepared=self._unprepared)
        if self._settings.from_queue:
            recovered = recovered._replace(takeovers=recovery.count_takeovers(self._store, self._run.id))
        recovered = self._add_reviews(recovered)
        self._inbox.put(RunInput(recovered, turn=turn, changes=changes, facts=facts))

    def _publish(self, order: Publish | LookAtPullRequest, run: Run) -> None:
        """Publish the work, or look at its pull request; the result is posted. The next attempt probes what was cut."""
        from jackline.engine.publication import HostTools, look_at_pull_request, publish_work

        self._ledger.current_step = (run.status.turn, order.step)
        tools = HostTools(
            store=self._store,
            run=run,
            ledger=self._ledger,
            env=self._host_env,
            warden=self._ready_warden,
            folder=self._folder,
            read_tree=self._read_tree,
            now=self.now,
            wanted=lambda: not self._hurry.is_set(),
        )
        work = publish_work if isinstance(order, Publish) else look_at_pull_request
        self._inbox.put(work(tools))

    def _undo_reviews(self) -> tuple[Fact, ...]:
        """Remember where a run began; after a crash, undo what a reviewer left behind."""
        spec = self._run.spec
        if not spec.review and (self._run.status.turn or not spec.proof):
            return ()
        from jackline.engine.review_copy import ReviewCopyFailed
        from jackline.engine.tree_id import TreeUnreadable

        trees = self._open_trees()
        if not self._run.status.turn:
            trees.record_repository()
        if not spec.review:
            return ()
        try:
            if not self._run.status.turn:
                trees.record_start()
                return ()
            end = trees.recover_review(restores=bool(spec.worktree.name))
        except (ReviewCopyFailed, TreeUnreadable) as error:
            self._unprepared = self._unprepared or str(error)
            return ()
        data = {"restored": list(end.restored), "refs": list(end.refs)}
        return (Fact("review.undone", data),) if end.restored else ()

    def _report_restores(self, facts: tuple[Fact, ...]) -> None:
        """Tell the person whose files or commits were put back after a review, whatever else is printed."""
        for fact in facts:
            if fact.kind == "review.undone" and fact.data["restored"]:
                from jackline.engine.review_copy import describe_restore

                restored, refs = fact.data["restored"], fact.data["refs"]
                self._settings.warn(describe_restore(self._run.id, self._run.spec.workspace, restored, refs))

    def _add_reviews(self, recovered: Recovered) -> Recovered:
        """Add what the run machine has to know about iterations and reviews."""
        run_id, reviews = self._run.id, self._store.reviews
        if not self._run.status.iteration:
            return recovered
        is_reviewing = self._run.status.goal is Phase.REVIEWING
        return recovered._replace(
            last_iteration=reviews.get_last_iteration(run_id),
            verdicts=tuple(reviews.list_verdicts(run_id)) if self._run.spec.review else (),
            findings=tuple(reviews.list_findings(run_id)) if self._run.spec.review else (),
            tree=self._read_tree() if is_reviewing else "",
        )

    def _open_trees(self) -> WorkTrees:
        from jackline.engine.review_copy import WorkTrees

        git = Git(workspace=self._run.spec.workspace, env=unbind_git_env(self._env), warden=self._warden_or_none())
        return WorkTrees(git, self._run.id, self._folder, self._settings.cache)

    def _read_tree(self) -> str:
        return self._open_trees().read_id()

    def _open_seat(self, run: Run, order: StartTurn) -> ReviewSeat:
        from jackline.engine.review_copy import ReviewCopyFailed
        from jackline.engine.review_seat import ReviewSeat

        git = Git(workspace=run.spec.workspace, env=unbind_git_env(self._env), warden=self._ready_warden())
        try:
            return ReviewSeat(self._store, run, order, self._open_trees(), git)
        except ReviewCopyFailed as error:
            raise ReviewUnavailable(str(error)) from error

    def _prepare_worktree(self) -> str:
        """Make the run's own worktree, or find it again; return why that is not possible."""
        if not self._run.spec.worktree.name:
            return ""
        from jackline.engine.worktree import UserGit, prepare_for_attempt

        git = UserGit(
            folder="/",
            env=unbind_git_env(self._env),
            warden=self._warden_or_none(),
            wanted=lambda: not self._hurry.is_set(),
        )
        return prepare_for_attempt(self._store, self._lease, self._run, self._settings, git, self.now)

    def _charge_interrupted_turn(self) -> Turn | None:
        turn = recovery.find_interrupted_turn(self._store, self._run.id)
        if turn is None:
            return None
        try:
            family = self._agents(turn.agent).declaration.prices
        except JacklineError:  # the agent is gone: nothing is known about its prices
            return turn
        calls = sum(call.turn == turn.number for call in self._store.calls.list_all(self._run.id))
        model = self._run.spec.agent_options.get(turn.agent, AgentOptions()).model
        return recovery.estimate_unreported_usage(turn, self._settings.prices, family, model, calls)

    def _settle_calls(self, turn: Turn | None, at: int, *, gave_up: bool) -> Recovered:
        """Settle the calls that an earlier turn left open."""
        spec = self._run.spec
        with self._ledger.settle_lock:
            doubts = recovery.settle_open_calls(
                self._store,
                self._lease,
                self._prober,
                self.now,
                host=self._settings.host,
                strict=spec.strict,
                gave_up=gave_up,
            )
        health = self._store.records.list_health()
        asked = recovery.list_waiting_calls(self._store, self._lease, spec, at, asks=self._settings.asks)
        return Recovered(
            at,
            doubts=tuple(call.id for call in doubts),
            resting=find_resting_agents(health, at, spec.agent),
            limit_resets=find_limit_resets(health, at) if self._settings.from_queue else NOTHING,
            usage=get_usage(turn.spent) if turn else None,  # it is charged at the end of a turn
            asked=tuple(call.id for call in asked),
            asked_at=min((call.prepared_at for call in asked), default=None),
            evidence=describe_doubts(doubts, spec.workspace),
            checks=find_pending_checks(self._store, self._run) if self._run.status.goal is Phase.PROVING else None,
            undone=recovery.find_undone_calls(self._store, self._run.id),
        )

    def _start_turn(self, order: StartTurn) -> None:
        try:
            prepared = self._launcher.prepare(self._run, order)
            self._run, self._job = prepared.run, prepared.job
            self._launcher.start(prepared, self._ready_warden)
            job = prepared.job
            self._timeouts.start(lambda: job.last_output, lambda: job.over)
            self._settings.preload()
        except SessionTaken as error:
            lost = Outcome(detail=str(error), session_lost=True)
            ended = TurnEnded(at=self.now(), outcome=lost, usage=Usage())
            self._inbox.put(RunInput(ended, session=SessionUse(agent=self._run.agent, session="")))
        except ReviewUnavailable as error:
            failed = Outcome(failure=Failure.REVIEW, detail=str(error))
            self._inbox.put(RunInput(TurnEnded(at=self.now(), outcome=failed, usage=Usage())))
        except DayBudgetSpent as error:
            waits = Outcome(detail=str(error), waits=WaitReason.BUDGET, resets_at=error.wake_at)
            self._inbox.put(RunInput(TurnEnded(at=self.now(), outcome=waits, usage=Usage())))
        except (AgentUnavailable, SpawnFailed, WardenLost) as error:
            failure = next(
                (one for kind, one in LAUNCH_FAILURES.items() if isinstance(error, kind)), Failure.UNAVAILABLE
            )
            outcome = Outcome(failure=failure, detail=str(error))
            health = build_health(self._run.agent, outcome, self.now()) if isinstance(error, NotLoggedIn) else None
            turn = recovery.find_interrupted_turn(self._store, self._run.id)  # if it was stored already
            turn = turn and turn._replace(ended_at=self.now(), failure=failure, detail=str(error))
            ended = TurnEnded(at=self.now(), outcome=outcome, usage=Usage())
            self._inbox.put(RunInput(ended, turn=turn, health=health))
        except OSError as error:
            raise disk_error(error, self._folder) from error

    def _start_check(self, order: RunCheck) -> None:
        check = Check(
            run_id=self._run.id,
            step=order.step,
            attempt=self._lease.token,
            command=order.command,
            started_at=self.now(),
        )
        fact = Fact("check.launched", {"step": order.step, "command": order.command})
        self._run = self._store.leases.write_change(self._lease, RunChange(at=self.now(), facts=(fact,), check=check))
        host_check = load_check(order.name)
        read, work = host_check.read, host_check.work
        if work is not None:
            threads.start_thread("check", partial(self._run_work, work, check), self._inbox.put)
            return
        if read is not None:
            result = read(self._store, self._run.id, self._env, self._warden_or_none())
            crash_points.crash_point("check.finished")
            self._inbox.put(build_check_ended(check, result, self.now()))
            return
        from jackline.engine.tree_id import TreeUnreadable

        trees = self._open_trees() if order.name == PROOF else None
        job = CheckJob(order.name, check, self.now, self._inbox.put, self._store.redactor.values, trees)
        self._job = job
        try:
            job.start(self._ready_warden(), dict(self._env), self._run.spec.workspace)
        except (SpawnFailed, WardenLost, TreeUnreadable) as error:
            detail = f"the {order.name} could not be started: {error}"
            self._inbox.put(RunInput(CheckEnded(at=self.now(), exit_code=None, detail=detail)))
        else:
            self._timeouts.start()

    def _run_work(self, work: Callable[[Store, Run, WorkTrees], CheckResult], check: Check) -> None:
        result = work(self._store, self._run, self._open_trees())
        crash_points.crash_point("check.finished")
        self._inbox.put(build_check_ended(check, result, self.now())._replace(changes=self._survey()))

    def _survey(self) -> Changes | None:
        known = self._store.records.get_changes(self._run.id)
        warden = self._warden_or_none()
        return read_changes(self._run.id, self._run.spec.workspace, self._env, warden, known) if warden else None

    # the warden

    def _warden_or_none(self) -> Warden | None:
        try:
            return self._ready_warden()
        except (SpawnFailed, WardenLost):
            return None

    def _ready_warden(self) -> Warden:
        if self._closed:
            raise WardenLost("the attempt is over")
        if self._warden is None or self._warden.exit_code is not None:  # a killed warden took its agents along
            if self._warden is not None:
                # It may have reached its deadline while the store could not be reached: a new one would end at once.
                self._renewer.renew()
            own = {run_env.RUN: self._run.id, run_env.HOME: self._settings.home}
            self._warden = Warden.start(
                deadline_ms=self._renewer.deadline, lock_fd=self._lock, marker=self._marker, environ=own
            )
            started = orphans.read_start_ticks(self._warden.pid)
            self._store.leases.record_warden(self._lease, self._warden.pid, started or 0)
        return self._warden

    def _on_renewed(self, deadline: int) -> None:
        if self._warden is not None:
            with contextlib.suppress(WardenLost):  # the job that waits for its child reports the loss
                self._warden.renew(deadline)
