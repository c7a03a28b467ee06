"""What a turn will be, before anything is written or started: session, prompt, request. It spawns nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackline.domain.adapter import McpServer, TurnRequest
from jackline.domain.budget import Spent
from jackline.domain.events import Fact
from jackline.domain.meter import plus
from jackline.domain.outcome import Usage
from jackline.domain.packet import packet, prompt_of, refusal
from jackline.domain.records import Manner, Turn
from jackline.domain.states import DEFERRED, CallState, Replay
from jackline.engine import inside, marks
from jackline.engine.replaying import Queue
from jackline.engine.review import open_cases
from jackline.engine.settings import fresh_session, passed
from jackline.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackline.domain.adapter import Adapter
    from jackline.domain.records import Call, Lease, Run, Spec
    from jackline.domain.signals import StartTurn
    from jackline.store.contract import Store


_SERVER_SEES = (*inside.NAMES, inside.DATABASE, inside.ACTOR, marks.NAME, marks.ATTEMPT, "XDG_CONFIG_HOME")

_NOTHING_SPENT = Spent()


class Place(NamedTuple):
    """Where the turn will happen."""

    folder: str  # the agent's own, in the run's folder
    gate: str
    token: str
    binary: str
    environ: Mapping[str, str]  # ours; the agent sees what it declares
    mcp: McpServer | None = None
    mcp_missing: str = ""  # why there is none, where somebody should know


class Plan(NamedTuple):
    """A turn that is ready to be written down."""

    turn: Turn
    request: TurnRequest
    before: Usage  # what earlier turns of the same session were charged already
    since: int  # the first turn of its session
    replay: Queue  # what has to be made again before anything else
    facts: tuple[Fact, ...] = ()  # what is to be said of it besides


def plan(store: Store, lease: Lease, run: Run, order: StartTurn, adapter: Adapter, place: Place, at: int) -> Plan:
    """The next turn of the run, in its agent's session if it has one."""
    agent = adapter.declaration.name
    session, resumes = _session(store.sessions(run.id), run.spec, adapter)
    turns = store.turns(run.id)
    own = [turn for turn in turns if turn.agent == agent]
    shared = [turn for turn in own if resumes and turn.session == session]
    calls, forced = store.calls(run.id), [store.whole(call) for call in store.forced(run.id)]
    held = adapter.declaration.gate == "enforced"
    told = _told(store, run, turns, calls, forced, held=held)
    prompt = _prompt(run.spec, order.turn, turns, told, session if resumes else None, agent)
    turn = Turn(run.id, order.turn, order.step, lease.token, order.role, agent, session, prompt, at)
    return Plan(
        turn,
        request_of(run.spec, turn, adapter, place, resumes=resumes, first=not own, spent=run.life.spent),
        _charged(shared),
        since=shared[0].number if shared else order.turn,
        replay=_queue(forced, calls, holds=held),
        facts=(*_advisory(adapter), *_without_server(adapter, place)) if not own else (),
    )


def _told(
    store: Store, run: Run, turns: Sequence[Turn], calls: Sequence[Call], forced: Sequence[Call], *, held: bool
) -> str:
    """What the host wrote down since the run began."""
    return packet(
        calls,
        store.receipts(run.id),
        store.changes(run.id).commits,
        forced,
        held=held,
        refused=refusal(store.checks(run.id), turns) if turns else None,
        cases=[case.id for case in open_cases(store, run.id)] if turns else (),
    )


def _queue(forced: Sequence[Call], calls: Sequence[Call], *, holds: bool) -> Queue:
    """An agent that begins again from the top asks for tasks that are finished, too: they are not those cut off."""
    tasks = (call for call in calls if call.replay is Replay.RELAUNCH)
    return Queue(forced, frozenset(call.key for call in tasks if call.state is CallState.DONE), holds=holds)


def _prompt(spec: Spec, number: int, turns: Sequence[Turn], told: str, session: str | None, agent: str) -> str:
    """What the turn is told: the task, the facts, or nothing where a call that waited for a person goes on."""
    if session is not None and _is_deferred(turns, agent, session):
        return ""
    task = "\n\n".join(part for part in (spec.prompt, spec.preface) if part)
    first = not any(turn.agent == agent for turn in turns)
    # An adopted session is resumed, and yet knows nothing of the task.
    knows = session is not None and _was_told(turns, agent, session)
    return prompt_of(1 if first and session is not None else number, task, told, resumes=knows)


def _is_deferred(turns: Sequence[Turn], agent: str, session: str) -> bool:
    """Whether the last thing that happened is that this session stopped before a call, to go on from there."""
    last = turns[-1] if turns else None
    return (
        last is not None
        and (last.agent, last.session) == (agent, session)
        and (last.failure, last.detail) == (None, DEFERRED)
    )


def _charged(turns: Sequence[Turn]) -> Usage:
    before = Usage()
    for turn in turns:
        spent = turn.spent
        before = plus(before, Usage(spent.tokens_input, spent.tokens_output, spent.tokens_cached, spent.usd_micros))
    return before


def _was_told(turns: Sequence[Turn], agent: str, session: str | None) -> bool:
    """Whether a turn of this run has said anything in the session; one that was cut off before may know nothing."""
    return any((one.agent, one.session) == (agent, session) and one.stdout_bytes for one in turns)


def request_of(
    spec: Spec,
    turn: Turn,
    adapter: Adapter,
    place: Place,
    *,
    resumes: bool,
    first: bool = False,
    spent: Spent = _NOTHING_SPENT,
) -> TurnRequest:
    """Everything that the launch of the turn may depend on."""
    manner, usd_limit = spec.manners.get(turn.agent, Manner()), spec.limits.usd_micros
    return TurnRequest(
        run_id=turn.run_id,
        attempt=turn.attempt,
        turn=turn.number,
        role=turn.role,
        prompt=turn.prompt,
        workspace=spec.workspace,
        folder=place.folder,
        gate=place.gate,
        token=place.token,
        session=turn.session,
        resume=resumes,
        fork_of=spec.fork_of if first and not resumes and turn.agent == spec.agent else "",
        binary=place.binary,
        model=manner.model,
        effort=manner.effort,
        arguments=manner.arguments,
        environ=passed(place.environ, (*adapter.declaration.seen(place.environ), *manner.passes)),
        options=spec.options,
        usd_micros_left=None if usd_limit is None else max(usd_limit - spent.usd_micros, 1),
        mcp=place.mcp if adapter.declaration.mcp else None,
        reminder=inside.reminder(turn.agent) if adapter.declaration.compacts else (),
    )


def _advisory(adapter: Adapter) -> tuple[Fact, ...]:
    """An agent whose calls nobody holds is never run without saying so."""
    declaration = adapter.declaration
    if declaration.gate == "enforced":
        return ()
    return (Fact("gate.advisory", {"agent": declaration.name, "reason": declaration.gate_reason}),)


def _without_server(adapter: Adapter, place: Place) -> tuple[Fact, ...]:
    if not adapter.declaration.mcp or not place.mcp_missing:
        return ()
    return (Fact("mcp.missing", {"agent": adapter.declaration.name, "reason": place.mcp_missing}),)


def server_of(argv: tuple[str, ...], env: Mapping[str, str]) -> McpServer | None:
    """Jackline's own server, with what it needs of an agent's environment."""
    return McpServer(argv, {name: env[name] for name in _SERVER_SEES if name in env}) if argv else None


def _session(known: Mapping[str, str], spec: Spec, adapter: Adapter) -> tuple[str | None, bool]:
    """The session to use and whether it exists already. One that was lost is known as an empty text."""
    declaration = adapter.declaration
    adopted = spec.session if declaration.name == spec.agent else ""
    old = known.get(declaration.name, adopted)
    if old and declaration.resumes:
        return old, True
    return (fresh_session() if declaration.chooses_session else None), False
