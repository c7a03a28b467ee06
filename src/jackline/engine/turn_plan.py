"""Plans a turn: its session, its prompt and everything that its launch depends on. It stores and starts nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jackline.domain.adapter import TurnRequest
from jackline.domain.events import Fact
from jackline.domain.limits import Spent
from jackline.domain.outcome import Usage, add_usage, get_usage
from jackline.domain.records import Turn
from jackline.domain.resume_prompt import find_interrupted_calls, find_new_messages
from jackline.domain.spec import AgentOptions
from jackline.domain.states import CallState, Replay, Role
from jackline.engine import run_env
from jackline.engine.replay import ReplayQueue
from jackline.engine.settings import new_session_id, select_variables
from jackline.engine.work_prompt import WorkSession, build_work_prompt, list_read
from jackline.extensions import call_hook
from jackline.formatting import join_some
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jackline.domain.adapter import Adapter, McpServer, UntrustedSettings
    from jackline.domain.records import Lease, Run
    from jackline.domain.run_inputs import StartTurn
    from jackline.domain.spec import Spec
    from jackline.engine.review_seat import ReviewSeat
    from jackline.store.store import Store

_MOST_NAMED = 4
_NOTHING_SPENT = Spent()


class LaunchContext(NamedTuple):
    """Where a turn will run, and with what."""

    folder: str  # the agent's own, in the run's folder
    gate: str
    token: str
    binary: str
    environ: Mapping[str, str]  # ours; the agent sees the variables that it declares
    mcp: McpServer | None = None
    mcp_missing: str = ""  # why there is no server, if a person should know
    untrusted: UntrustedSettings | None = None
    workspace: str = ""  # empty: the run's
    reserved: int | None = None  # its part of a day's budget, in millionths of a dollar


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


def plan_turn(
    store: Store,
    lease: Lease,
    run: Run,
    order: StartTurn,
    adapter: Adapter,
    context: LaunchContext,
    at: int,
) -> TurnPlan:
    """Plan the next turn of the run, in its agent's session if it has one."""
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
    turn = _build_turn(lease, run, order, agent, session, prompt, at)
    # An agent that starts over asks for finished tasks, too; those were not cut off.
    finished = {call.key for call in calls if call.replay is Replay.RELAUNCH and call.state is CallState.DONE}
    return TurnPlan(
        turn=turn,
        request=build_request(run.spec, turn, adapter, context, resumes=resumes, first=not own, spent=run.status.spent),
        before=_sum_usage(shared),
        since=shared[0].number if shared else order.turn,
        replay=ReplayQueue(forced, frozenset(finished), reported=interrupted, holds=held),
        facts=build_warnings(adapter, context, run.spec) if not own else (),
        is_first=not own,
        last_message=messages[-1].number if messages else 0,
    )


def plan_review(
    store: Store,
    lease: Lease,
    run: Run,
    order: StartTurn,
    adapter: Adapter,
    context: LaunchContext,
    at: int,
    seat: ReviewSeat,
) -> TurnPlan:
    """Plan a review: in a new session, unless only a clear verdict is missing."""
    agent, declaration = adapter.declaration.name, adapter.declaration
    turns = store.records.list_turns(run.id)
    last = next((turn for turn in reversed(turns) if turn.role == Role.REVIEW), None)
    # Not the session of a turn that failed: one that was lost would be lost again, without end.
    known = last.session if last is not None and last.failure is None else None
    resumes = bool(order.asks_again and known and declaration.resumes)
    session = known if resumes else (new_session_id() if declaration.chooses_session else None)
    shared = [turn for turn in turns if resumes and (turn.agent, turn.session) == (agent, session)]
    turn = _build_turn(lease, run, order, agent, session, seat.build_prompt(knows_task=resumes), at)
    is_first = not any(one.agent == agent for one in turns)
    return TurnPlan(
        turn=turn,
        request=build_request(run.spec, turn, adapter, context, resumes=resumes, spent=run.status.spent),
        before=_sum_usage(shared),
        since=shared[0].number if shared else order.turn,
        replay=ReplayQueue(()),
        facts=build_warnings(adapter, context, run.spec) if is_first else (),
        is_first=is_first,
    )


def _build_turn(
    lease: Lease, run: Run, order: StartTurn, agent: str, session: str | None, prompt: str, at: int
) -> Turn:
    return Turn(
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
        review_round=order.review_round,
        seat=order.seat,
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
        usd_micros_left=find_usd_left(spec, spent) if context.reserved is None else context.reserved,
        mcp=context.mcp if adapter.declaration.mcp else None,
        reminder=run_env.build_reminder_command(adapter.declaration.agent) if adapter.declaration.compacts else (),
        untrusted=context.untrusted,
    )


def find_usd_left(spec: Spec, spent: Spent) -> int | None:
    """The rest of the run's budget in millionths of a dollar, at least one; None if there is no limit."""
    limit = spec.limits.usd_micros
    return None if limit is None else max(limit - spent.usd_micros, 1)


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
