"""Launches a turn: choose its session, build its prompt and request, store it, write its files, start the agent.

`turn` takes over once the agent runs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.domain.adapter import McpServer, TurnRequest
from jackline.domain.agent_health import build_health
from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.outcome import Outcome, Usage, add_usage, get_usage
from jackline.domain.records import AgentOptions, SessionUse, Turn
from jackline.domain.resume_prompt import find_interrupted_calls, find_new_messages
from jackline.domain.run_inputs import TurnEnded
from jackline.domain.states import CallState, Failure, Replay, Role, WaitReason
from jackline.engine import git, run_env
from jackline.engine.attempt import RunInput
from jackline.engine.process import SpawnFailed, WardenLost
from jackline.engine.recovery import find_interrupted_turn
from jackline.engine.repeated_calls import RepeatedCalls
from jackline.engine.replay import ReplayQueue
from jackline.engine.settings import new_session_id, select_variables
from jackline.engine.turn import TurnJob, build_session_use
from jackline.engine.work_prompt import WorkSession, build_work_prompt, list_read
from jackline.errors import (
    AgentUnavailable,
    DayBudgetSpent,
    JacklineError,
    NotLoggedIn,
    SessionTaken,
    Ungated,
    UsageError,
)
from jackline.extensions import call_hook
from jackline.formatting import join_some
from jackline.named import NamedTuple
from jackline.store.models import RunChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from jackline.domain.adapter import Adapter, Declaration, Launch, UntrustedSettings
    from jackline.domain.records import Lease, Run, Spec
    from jackline.domain.run_inputs import StartTurn
    from jackline.engine.gate_socket import GateServers
    from jackline.engine.process import Warden
    from jackline.engine.review_seat import ReviewSeat
    from jackline.engine.settings import EngineSettings
    from jackline.engine.turn import TurnServices
    from jackline.policy.reader_turns import ReaderTurn
    from jackline.store.store import Store

_LONGEST_ARGUMENT = 200
_MOST_NAMED = 4
_NOTHING_SPENT = Spent()
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


class LaunchContext(NamedTuple):
    """Where a turn will run."""

    folder: str  # the agent's own, in the run's folder
    gate: str
    token: str
    binary: str
    environ: Mapping[str, str]  # ours; the agent sees the variables that it declares
    mcp: McpServer | None = None
    mcp_missing: str = ""  # why there is no server, if a person should know
    untrusted: UntrustedSettings | None = None
    workspace: str = ""  # empty: the run's


class TurnPlan(NamedTuple):
    """A turn that is ready to be stored."""

    turn: Turn
    request: TurnRequest
    before: Usage  # already charged to earlier turns of the same session
    since: int  # the first turn of its session
    replay: ReplayQueue  # calls to make again before anything else
    facts: tuple[Fact, ...] = ()  # stored with the turn
    is_first: bool = False  # of this agent in this run
    last_message: int = 0  # its prompt has the messages of people up to this number


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
        reserved = self._reserve_budget(run, adapter, at)
        if seat is None:
            planned = plan_turn(services.store, services.lease, run, order, adapter, context, at, reserved)
        else:
            planned = self._plan_review(run, order, adapter, context, at, reserved, seat)
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
        job = TurnJob(services, run, adapter, planned, self._folder, reserved, seat)
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

    def _plan_review(
        self,
        run: Run,
        order: StartTurn,
        adapter: Adapter,
        context: LaunchContext,
        at: int,
        reserved: int | None,
        seat: ReviewSeat,
    ) -> TurnPlan:
        """Plan a review: in a new session, unless only a clear verdict is missing."""
        agent, declaration = adapter.declaration.name, adapter.declaration
        turns = self._services.store.records.list_turns(run.id)
        known = next((turn.session for turn in reversed(turns) if turn.role == Role.REVIEW), None)
        resumes = bool(order.asks_again and known and declaration.resumes)
        session = known if resumes else (new_session_id() if declaration.chooses_session else None)
        shared = [turn for turn in turns if resumes and (turn.agent, turn.session) == (agent, session)]
        turn = Turn(
            run_id=run.id,
            number=order.turn,
            step=order.step,
            attempt=self._services.lease.token,
            role=order.role,
            agent=agent,
            session=session,
            prompt=seat.build_prompt(knows_task=resumes),
            started_at=at,
            iteration=run.status.iteration,
            review_round=order.review_round,
            seat=order.seat,
        )
        is_first = not any(one.agent == agent for one in turns)
        return TurnPlan(
            turn=turn,
            request=build_request(
                run.spec, turn, adapter, context, resumes=resumes, spent=run.status.spent, reserved=reserved
            ),
            before=_sum_usage(shared),
            since=shared[0].number if shared else order.turn,
            replay=ReplayQueue(()),
            facts=build_warnings(adapter, context, run.spec) if is_first else (),
            is_first=is_first,
        )

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


def plan_turn(
    store: Store,
    lease: Lease,
    run: Run,
    order: StartTurn,
    adapter: Adapter,
    context: LaunchContext,
    at: int,
    reserved: int | None = None,
) -> TurnPlan:
    """Plan the next turn of the run, in its agent's session if it has one; `reserved` is its part of a day's budget."""
    agent = adapter.declaration.name
    session, resumes = _choose_session(store.records.get_sessions(run.id), run.spec, adapter)
    turns = [turn for turn in store.records.list_turns(run.id) if turn.role != Role.REVIEW]
    own = [turn for turn in turns if turn.agent == agent]
    shared = [turn for turn in own if resumes and turn.session == session]
    calls = store.calls.list_all(run.id)
    forced = [store.blobs.load_call(call) for call in store.calls.list_forced(run.id)]
    interrupted = find_interrupted_calls(calls, turns, forced)
    held = adapter.declaration.gate == "enforced"
    read = {turn.number for turn in list_read(shared)}.union(
        {turn.number for turn in shared}.intersection(call.turn for call in calls)
    )
    messages = find_new_messages(store.amendments.list_messages(run.id), read)
    work = WorkSession(
        agent=agent,
        role=order.role,
        session=session if resumes else None,
        turns=turns,
        messages=messages,
        is_held=held,
    )
    prompt = build_work_prompt(store, run, order.turn, work, forced, interrupted)
    turn = Turn(
        run_id=run.id,
        number=order.turn,
        step=order.step,
        attempt=lease.token,
        role=order.role,
        agent=agent,
        session=session,
        prompt=prompt,
        started_at=at,
        iteration=run.status.iteration,
    )
    # An agent that starts over asks for finished tasks, too; those were not cut off.
    finished = {call.key for call in calls if call.replay is Replay.RELAUNCH and call.state is CallState.DONE}
    return TurnPlan(
        turn=turn,
        request=build_request(
            run.spec, turn, adapter, context, resumes=resumes, first=not own, spent=run.status.spent, reserved=reserved
        ),
        before=_sum_usage(shared),
        since=shared[0].number if shared else order.turn,
        replay=ReplayQueue(forced, frozenset(finished), reported=interrupted, holds=held),
        facts=build_warnings(adapter, context, run.spec) if not own else (),
        is_first=not own,
        last_message=messages[-1].number if messages else 0,
    )


def add_messages(store: Store, planned: TurnPlan) -> TurnPlan:
    """Add to the prompt what others sent to the agent; a turn without a prompt continues a call, and gets nothing."""
    turn = planned.turn
    if not turn.prompt:
        return planned
    found = call_hook("turn_messages", store, turn.run_id, turn.number, turn.role, turn.seat)
    prompt = "\n\n".join([turn.prompt, *filter(None, found)])
    return planned._replace(turn=turn._replace(prompt=prompt), request=planned.request._replace(prompt=prompt))


def build_request(
    spec: Spec,
    turn: Turn,
    adapter: Adapter,
    context: LaunchContext,
    *,
    resumes: bool,
    first: bool = False,
    spent: Spent = _NOTHING_SPENT,
    reserved: int | None = None,
) -> TurnRequest:
    """Collect everything that the launch of the turn may depend on."""
    visible = adapter.declaration.list_visible(context.environ)
    options = spec.agent_options.get(turn.agent, AgentOptions())
    return TurnRequest(
        run_id=turn.run_id,
        attempt=turn.attempt,
        turn=turn.number,
        role=turn.role,
        prompt=turn.prompt,
        workspace=context.workspace or spec.workspace,
        folder=context.folder,
        gate=context.gate,
        token=context.token,
        session=turn.session,
        resume=resumes,
        fork_of=spec.fork_of if first and not resumes and turn.agent == spec.agent and turn.role != Role.REVIEW else "",
        binary=context.binary,
        model=options.model,
        effort=options.effort,
        arguments=options.arguments,
        environ=select_variables(context.environ, (*visible, *options.passes)),
        options=spec.options,
        usd_micros_left=find_usd_left(spec, spent) if reserved is None else reserved,
        mcp=context.mcp if adapter.declaration.mcp else None,
        reminder=run_env.build_reminder_command(adapter.declaration.agent) if adapter.declaration.compacts else (),
        untrusted=context.untrusted,
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


def find_usd_left(spec: Spec, spent: Spent) -> int | None:
    """The rest of the run's budget in millionths of a dollar, at least one; None if there is no limit."""
    limit = spec.limits.usd_micros
    return None if limit is None else max(limit - spent.usd_micros, 1)


def build_launch(adapter: Adapter, request: TurnRequest) -> Launch:
    """Ask the adapter for the command line. AgentUnavailable if the agent cannot be started this way."""
    try:
        return adapter.launch(request)
    except UsageError as error:  # an argument, a model or a session that this agent cannot take
        raise AgentUnavailable(adapter.declaration.name, why=error) from None


def build_mcp_server(argv: tuple[str, ...], env: Mapping[str, str]) -> McpServer | None:
    """Jackline's own server, with the variables that it needs from an agent's environment."""
    return McpServer(argv=argv, env={name: env[name] for name in _SERVER_SEES if name in env}) if argv else None


def build_warnings(adapter: Adapter, context: LaunchContext, spec: Spec) -> tuple[Fact, ...]:
    """Events for an agent's first turn: its calls are not gated, it has no MCP server, or budgets hold less well."""
    declaration, facts = adapter.declaration, []
    if declaration.gate != "enforced":
        facts.append(Fact("gate.advisory", {"agent": declaration.name, "reason": declaration.gate_reason}))
    if declaration.mcp and context.mcp_missing:
        facts.append(Fact("mcp.missing", {"agent": declaration.name, "reason": context.mcp_missing}))
    if context.untrusted is not None:
        files = describe_files(context.untrusted.left_out, spec.workspace)
        facts.append(Fact("gate.settings", {"agent": declaration.name, "files": files}))
    if spec.limits.usd_micros and not declaration.live_usage:
        reports = declaration.tokens or declaration.cost
        facts.append(Fact("budget.late" if reports else "budget.blind", {"agent": declaration.name}))
    return tuple(facts)


def describe_files(paths: Iterable[str], workspace: str) -> str:
    """Name the first files, relative to the workspace, and count the others."""
    return join_some([os.path.relpath(path, os.path.realpath(workspace)) for path in paths], _MOST_NAMED)


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


def _sum_usage(turns: Sequence[Turn]) -> Usage:
    total = Usage()
    for turn in turns:
        total = add_usage(total, get_usage(turn.spent))
    return total


def _choose_session(known: Mapping[str, str], spec: Spec, adapter: Adapter) -> tuple[str | None, bool]:
    """The session to use and whether it exists already. A lost session is stored as an empty text."""
    declaration = adapter.declaration
    adopted = spec.session if declaration.name == spec.agent else ""
    old = known.get(declaration.name, adopted)
    if old and declaration.resumes:
        return old, True
    return (new_session_id() if declaration.chooses_session else None), False
