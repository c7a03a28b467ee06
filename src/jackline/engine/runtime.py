"""The live runtime of an attempt: warden, gate servers, agent and timeouts. Executes commands and delivers inputs."""

from __future__ import annotations

import os
import queue
import threading
from functools import partial
from typing import TYPE_CHECKING

from jackline import clock, crash_points
from jackline.diagnostic_log import LOG
from jackline.domain.events import Fact
from jackline.domain.records import Check
from jackline.domain.run_inputs import (
    PROOF,
    CheckEnded,
    LookAtPullRequest,
    Publish,
    Recover,
    RunCheck,
    StartTurn,
    StopReason,
    StopWanted,
    StopWork,
    TurnEnded,
)
from jackline.engine import run_env, threads
from jackline.engine.attempt import RunInput
from jackline.engine.attempt_recovery import AttemptRecovery, RecoveryServices
from jackline.engine.call_ledger import CallLedger
from jackline.engine.check import CheckJob, build_check_ended, load_check
from jackline.engine.gate_socket import GateServers
from jackline.engine.launch import FAILED_STARTS, TurnLauncher, build_failed_start
from jackline.engine.lease_renewer import LeaseRenewer
from jackline.engine.probes.prober import Prober
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.run_workspace import RunWorkspace
from jackline.engine.settings import (
    new_id,
    select_agreed_variables,
    select_host_variables,
    select_inherited_variables,
)
from jackline.engine.timeouts import PROOF_TIMEOUT, TIMEOUT_DETAILS, Timeouts
from jackline.engine.turn import TurnJob, TurnServices
from jackline.engine.warden_holder import WardenHolder
from jackline.errors import (
    disk_error,
)
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackline.domain.adapter import Adapter
    from jackline.domain.records import Lease, Run
    from jackline.domain.run_inputs import RunCommand
    from jackline.engine.check import CheckResult
    from jackline.engine.settings import EngineSettings
    from jackline.engine.work_trees import WorkTrees
    from jackline.store.store import Store


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
        self._agents, self._settings = agents, settings
        self._folder = settings.build_folder(run.id)
        self._inbox: queue.SimpleQueue[RunInput | BaseException] = queue.SimpleQueue()
        tag = run_env.build_process_tag(store.secret, run.id)
        marker = {**tag, run_env.ATTEMPT_VARIABLE: str(lease.token)}
        passed = select_inherited_variables(settings.environ)
        self._env = {**passed, **marker, **run_env.build_run_env(settings, run.id, passed)}
        self._host_env = {**self._env, **select_host_variables(settings.environ)}
        self._started_ms = clock.boot_ms()
        self._hurry = threading.Event()  # a person wants to stop: do not wait for probes
        self._renewer = LeaseRenewer(
            store,
            lease,
            settings.lease_ms,
            on_renewed=lambda deadline: self._warden.renew(deadline),  # noqa: PLW0108 - the holder is made after it
            on_cancel=lambda: self.stop(StopReason.CANCEL, "cancel requested"),
            on_lost=self._inbox.put,
        )
        own = {run_env.RUN: run.id, run_env.HOME: settings.home}
        self._warden = WardenHolder(store, lease, self._renewer, lock_fd=lock, marker=marker, environ=own)
        self._workspace = RunWorkspace(store, lease, run, settings, self._env, self._warden)
        self._prober = self._build_prober()
        self._ledger = self._build_ledger()
        self._recovery = self._build_recovery()
        token = os.urandom(16).hex()
        self._gates = GateServers(self._folder, self._ledger, token, self._inbox.put, lease.token)
        self._launcher = self._build_launcher(token)
        self._job: TurnJob | CheckJob | None = None
        self._timeouts = Timeouts(run.spec, run.status.spent.wall_ms, lambda: self._ledger.active_until)
        self._renewer.start()

    def _build_prober(self) -> Prober:
        spec, store = self._run.spec, self._store
        env = {**self._env, **select_agreed_variables(self._settings, spec)}
        timeout_s = self._settings.probe_timeout_s
        return Prober(
            spec,
            env,
            timeout_s,
            self._warden.ready,
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
            read_inputs=self._workspace.read_key_inputs,
            keep_work=self._workspace.keep_work,
        )
        ledger.asks, ledger.environ = self._settings.asks, self._settings.environ
        ledger.closed_ports = run_env.find_docker_ports(self._env)
        return ledger

    def _build_recovery(self) -> AttemptRecovery:
        services = RecoveryServices(
            store=self._store,
            lease=self._lease,
            settings=self._settings,
            agents=self._agents,
            env=self._env,
            warden=self._warden,
            workspace=self._workspace,
            ledger=self._ledger,
            prober=self._prober,
            wanted=lambda: not self._hurry.is_set(),
        )
        return AttemptRecovery(services)

    def _build_launcher(self, token: str) -> TurnLauncher:
        services = TurnServices(
            store=self._store,
            lease=self._lease,
            ledger=self._ledger,
            now=self.now,
            post=self._inbox.put,
            stop=self.stop,
            survey=self._workspace.survey,
            read_tree=self._workspace.read_tree,
            open_seat=self._workspace.open_seat,
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

    # the Runtime protocol

    def execute(self, command: RunCommand, run: Run) -> None:
        """Execute a command of the run machine."""
        self._run = run
        LOG.info(f"run {run.id}: {command!r}")
        self._settings.on_change()
        match command:
            case Recover():
                self._inbox.put(self._recovery.recover(run, gave_up=command.gave_up))
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
        if not isinstance(command, Recover | StopWork):
            self._settings.on_phase(self._run)

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

    def _report_restores(self, facts: tuple[Fact, ...]) -> None:
        """Tell the person whose files or commits were put back after a review, whatever else is printed."""
        for fact in facts:
            if fact.kind == "review.undone" and fact.data["restored"]:
                from jackline.engine.review_copy import describe_restore

                restored, refs = fact.data["restored"], fact.data["refs"]
                self._settings.warn(describe_restore(self._run.id, self._run.spec.workspace, restored, refs))

    def _receive(self) -> RunInput | BaseException:
        while True:
            timeout = self._timeouts.find_next()
            try:
                return self._inbox.get(timeout=timeout[0] if timeout else None)
            except queue.Empty:
                late = self._timeouts.find_next()  # again: the agent may have printed something meanwhile
                if late is not None and late[0] == 0:
                    is_check = late[1] is StopReason.WALL and isinstance(self._job, CheckJob)
                    detail = PROOF_TIMEOUT if is_check else TIMEOUT_DETAILS[late[1]]
                    return RunInput(StopWanted(at=self.now(), why=late[1], detail=detail))

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
        self._warden.is_closed = True  # a late helper thread must not start anything
        self._renewer.stop()
        self._gates.close()
        self._warden.close()

    # commands

    def _publish(self, order: Publish | LookAtPullRequest, run: Run) -> None:
        """Publish the work, or look at its pull request; the result is posted. The next attempt probes what was cut."""
        from jackline.engine.publish import HostTools, look_at_pull_request, publish_work

        self._ledger.current_step = (run.status.turn, order.step)
        tools = HostTools(
            store=self._store,
            run=run,
            ledger=self._ledger,
            env=self._host_env,
            warden=self._warden.ready,
            folder=self._folder,
            read_tree=self._workspace.read_tree,
            now=self.now,
            wanted=lambda: not self._hurry.is_set(),
        )
        work = publish_work if isinstance(order, Publish) else look_at_pull_request
        self._inbox.put(work(tools))

    def _start_turn(self, order: StartTurn) -> None:
        try:
            prepared = self._launcher.prepare(self._run, order)
            self._run, self._job = prepared.run, prepared.job
            self._launcher.start(prepared, self._warden.ready)
            job = prepared.job
            self._timeouts.start(lambda: job.last_output, lambda: job.over)
            self._settings.preload()
        except FAILED_STARTS as error:
            self._inbox.put(build_failed_start(error, self._run, self._store, self.now()))
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
            result = read(self._store, self._run.id, self._env, self._warden.ready_or_none())
            crash_points.crash_point("check.finished")
            self._inbox.put(build_check_ended(check, result, self.now()))
            return
        from jackline.engine.tree_id import TreeUnreadable

        trees = self._workspace.open_trees() if order.name == PROOF else None
        job = CheckJob(order.name, check, self.now, self._inbox.put, self._store.redactor.values, trees)
        self._job = job
        try:
            job.start(self._warden.ready(), dict(self._env), self._run.spec.workspace)
        except (SpawnFailed, WardenLost, TreeUnreadable) as error:
            detail = f"the {order.name} could not be started: {error}"
            self._inbox.put(RunInput(CheckEnded(at=self.now(), exit_code=None, detail=detail)))
        else:
            self._timeouts.start()

    def _run_work(self, work: Callable[[Store, Run, WorkTrees], CheckResult], check: Check) -> None:
        result = work(self._store, self._run, self._workspace.open_trees())
        crash_points.crash_point("check.finished")
        self._inbox.put(build_check_ended(check, result, self.now())._replace(changes=self._workspace.survey()))
