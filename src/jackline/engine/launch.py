"""Launches a turn: have it planned, store it, write its files, start the agent.

`turn_plan` has the plan; `turn` takes over once the agent runs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.domain.adapter import McpServer, TurnRequest
from jackline.domain.agent_health import build_health
from jackline.domain.events import Fact
from jackline.domain.outcome import Outcome, Usage
from jackline.domain.records import SessionUse
from jackline.domain.run_inputs import TurnEnded
from jackline.domain.states import Failure, Role, WaitReason
from jackline.engine import git, run_env
from jackline.engine.attempt import RunInput
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.recovery import find_interrupted_turn
from jackline.engine.repeated_calls import RepeatedCalls
from jackline.engine.turn import TurnJob, build_session_use
from jackline.engine.turn_plan import LaunchContext, add_messages, find_usd_left, plan_review, plan_turn
from jackline.errors import (
    AgentUnavailable,
    DayBudgetSpent,
    JacklineError,
    NotLoggedIn,
    SessionTaken,
    Ungated,
    UsageError,
)
from jackline.named import NamedTuple
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jackline.domain.adapter import Adapter, Declaration, Launch
    from jackline.domain.records import Run
    from jackline.domain.run_inputs import StartTurn
    from jackline.domain.spec import Spec
    from jackline.engine.gate_socket import GateServers
    from jackline.engine.process import Warden
    from jackline.engine.settings import EngineSettings
    from jackline.engine.turn import TurnServices
    from jackline.policy.reader_turns import ReaderTurn
    from jackline.store.store import Store

_LONGEST_ARGUMENT = 200
_SERVER_SEES = (
    *run_env.NAMES,
    run_env.DATABASE,
    run_env.ACTOR,
    run_env.TAG_VARIABLE,
    run_env.ATTEMPT_VARIABLE,
    "XDG_CONFIG_HOME",
)


class ReviewUnavailable(Exception):
    """A review cannot start; the message says why."""


FAILED_STARTS = (SessionTaken, ReviewUnavailable, DayBudgetSpent, AgentUnavailable, SpawnFailed, WardenLost)
# Why an agent that could not be started is not simply unavailable.
_FAILURES: dict[type[JacklineError], Failure] = {
    Ungated: Failure.UNGATED,
    NotLoggedIn: Failure.AUTHENTICATION,
    WardenLost: Failure.CRASHED,
}


def build_failed_start(error: Exception, run: Run, store: Store, at: int) -> RunInput:
    """The end of a turn that could not be started; the error is one of FAILED_STARTS."""
    match error:
        case SessionTaken():
            lost = Outcome(detail=str(error), session_lost=True)
            ended = TurnEnded(at=at, outcome=lost, usage=Usage())
            return RunInput(ended, session=SessionUse(agent=run.agent, session=""))
        case ReviewUnavailable():
            failed = Outcome(failure=Failure.REVIEW, detail=str(error))
            return RunInput(TurnEnded(at=at, outcome=failed, usage=Usage()))
        case DayBudgetSpent():
            waits = Outcome(detail=str(error), waits=WaitReason.BUDGET, resets_at=error.wake_at)
            return RunInput(TurnEnded(at=at, outcome=waits, usage=Usage()))
    failure = next((one for kind, one in _FAILURES.items() if isinstance(error, kind)), Failure.UNAVAILABLE)
    outcome = Outcome(failure=failure, detail=str(error))
    health = build_health(run.agent, outcome, at) if isinstance(error, NotLoggedIn) else None
    turn = find_interrupted_turn(store, run.id)  # if it was stored already
    turn = turn and turn._replace(ended_at=at, failure=failure, detail=str(error))
    return RunInput(TurnEnded(at=at, outcome=outcome, usage=Usage()), turn=turn, health=health)


class PreparedTurn(NamedTuple):
    """A turn that is stored, and not started yet."""

    run: Run
    job: TurnJob
    launch: Launch
    environ: Mapping[str, str]  # the variables that the agent declares
    workspace: str
    role: str


class TurnLauncher:
    """Launches the turns of one attempt."""

    def __init__(
        self,
        services: TurnServices,
        settings: EngineSettings,
        gates: GateServers,
        *,
        agents: Callable[[str], Adapter],
        token: str,
        folder: str,
        env: Mapping[str, str],
    ) -> None:
        """`folder` is the run's; `env` is the environment that every process of the run gets."""
        self._services, self._settings, self._gates = services, settings, gates
        self._agents, self._token, self._folder, self._env = agents, token, folder, env

    def prepare(self, run: Run, order: StartTurn) -> PreparedTurn:
        """Plan the turn and store it. AgentUnavailable if the agent cannot be used."""
        services, adapter = self._services, self._load_adapter(order.agent or run.agent)
        seat = services.open_seat(run, order) if order.role is Role.REVIEW else None
        at, context = services.now(), self._build_context(adapter, seat.workspace if seat else run.spec.workspace)
        context = context._replace(reserved=self._reserve_budget(run, adapter, at))
        if seat is None:
            planned = plan_turn(services.store, services.lease, run, order, adapter, context, at)
        else:
            planned = plan_review(services.store, services.lease, run, order, adapter, context, at, seat)
        planned = add_messages(services.store, planned)
        turn, launch = planned.turn, build_launch(adapter, planned.request)
        data = {
            "turn": turn.number,
            "agent": turn.agent,
            "argv": shorten_argv(services.store.redactor.redact_value(launch.argv)),
            "resumes": planned.request.resume,
        }
        facts = (
            *planned.facts,
            *build_unprotected(adapter.declaration, launch.argv, is_first=planned.is_first),
            Fact("turn.launched", data),
        )
        session = build_session_use(turn) if turn.session else None
        run = services.store.leases.write_change(
            services.lease,
            RunChange(at=services.now(), facts=facts, turn=turn, session=session, last_message=planned.last_message),
        )
        services.ledger.current_step, services.ledger.since_turn = (order.turn, order.step), planned.since
        services.ledger.replay, services.ledger.repeats = planned.replay, RepeatedCalls()
        services.ledger.workspace = planned.request.workspace
        services.ledger.reader = build_reader(order.role, run.spec, adapter.declaration)
        job = TurnJob(services, run, adapter, planned, self._folder, context.reserved, seat)
        request = planned.request
        return PreparedTurn(
            run=run,
            job=job,
            launch=launch,
            environ=request.environ,
            workspace=request.workspace,
            role=turn.role,
        )

    def start(self, prepared: PreparedTurn, ready_warden: Callable[[], Warden]) -> None:
        """Write the agent's files and spawn it. SpawnFailed or WardenLost if nothing was started."""
        run, job, launch = prepared.run, prepared.job, prepared.launch
        write_files(launch.files)
        env = {
            **self._env,
            **run_env.build_actor_env(job.agent, self._settings.environ),
            **(
                git.build_commit_env(self._folder, run.id, self._env)
                if prepared.workspace == run.spec.workspace
                else {}
            ),
            **prepared.environ,
            **launch.env,
        }
        env |= run_env.build_reader_env(prepared.role, env)
        try:
            job.start(ready_warden(), launch, env, prepared.workspace)
        except (SpawnFailed, WardenLost):
            job.give_up()
            raise

    def _reserve_budget(self, run: Run, adapter: Adapter, at: int) -> int | None:
        """What the turn may spend, if the home has a budget per day. DayBudgetSpent if nothing is left of it."""
        limit, declaration = self._settings.usd_micros_per_day, adapter.declaration
        if not limit or not (declaration.tokens or declaration.cost):
            return None
        rest = find_usd_left(run.spec, run.status.spent)
        return self._services.store.spending.reserve(self._services.lease, limit, rest, at)

    def _load_adapter(self, agent: str) -> Adapter:
        try:
            return self._agents(agent)
        except UsageError as error:  # described in settings that are gone, or in a package that was removed
            raise AgentUnavailable(agent, why=error) from None

    def _build_context(self, adapter: Adapter, workspace: str) -> LaunchContext:
        name = adapter.declaration.name
        env = {**self._env, **run_env.build_actor_env(name, self._settings.environ)}
        return LaunchContext(
            folder=os.path.join(self._folder, "agent"),
            gate=self._gates.get_address(adapter),
            token=self._token,
            binary=self._settings.find_binary(adapter, workspace),
            environ=self._settings.read_environ(name),
            mcp=build_mcp_server(self._settings.server, env),
            mcp_missing=self._settings.server_missing,
            untrusted=self._settings.read_untrusted(adapter, workspace),
            workspace=workspace,
        )


def build_reader(role: Role, spec: Spec, declaration: Declaration) -> ReaderTurn | None:
    """What a turn of this role may call, if it may only read."""
    if role is Role.WORK:
        return None
    from jackline.policy.reader_turns import ReaderTurn  # the policy is loaded while an agent starts, not before

    return ReaderTurn(
        role=role,
        proof=spec.proof,
        is_gated=declaration.gate == "enforced",
        is_contained=bool(declaration.read_only),
    )


def build_launch(adapter: Adapter, request: TurnRequest) -> Launch:
    """Ask the adapter for the command line. AgentUnavailable if the agent cannot be started this way."""
    try:
        return adapter.launch(request)
    except UsageError as error:  # an argument, a model or a session that this agent cannot take
        raise AgentUnavailable(adapter.declaration.name, why=error) from None


def build_mcp_server(argv: tuple[str, ...], env: Mapping[str, str]) -> McpServer | None:
    """Jackline's own server, with the variables that it needs from an agent's environment."""
    return McpServer(argv=argv, env={name: env[name] for name in _SERVER_SEES if name in env}) if argv else None


def build_unprotected(declaration: Declaration, argv: Sequence[str], *, is_first: bool) -> tuple[Fact, ...]:
    """An event for an agent's first turn about its own protections that the command line switches off."""
    off = {flag: what for flag, what in declaration.switches_off.items() if flag in argv}
    if not off or not is_first:
        return ()
    data = {"agent": declaration.name, "flags": " ".join(off), "protection": " and ".join(off.values())}
    return (Fact("gate.unprotected", data),)


def shorten_argv(argv: Sequence[str]) -> list[str]:
    """The command line for an event; an argument that is too long, such as the prompt, is cut."""
    return [word if len(word) <= _LONGEST_ARGUMENT else f"{word[:_LONGEST_ARGUMENT]}…" for word in argv]


def write_files(files: Mapping[str, bytes]) -> None:
    """Write the files that the agent reads besides its prompt, readable by their owner only."""
    for path, content in files.items():
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
